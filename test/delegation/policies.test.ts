/** What holds for every policy, on worlds drawn from a seed (printed with a failure). */
import { describe, expect, it } from "vitest";
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { nextStep, observe, policyNames, startRound } from "#coordinator/place/delegation/policies/policies";
import { seededRandom } from "#core/random";
import { decisionOf, id, inputOf, peerTable, placement, runRound } from "./rounds.ts";

/** Crawlers and a target at random on a square of 200 × 200 ms, with noise; some crawlers fail. */
function randomWorld(seed: number, failing: number) {
  const draw = seededRandom(seed);
  const count = 2 + Math.floor(draw() * 20);
  const spot = () => [draw() * 200, draw() * 200] as const;
  const spots = Array.from({ length: count }, spot);
  const target = spot();
  const apart = (a: readonly [number, number], b: readonly [number, number]) =>
    Math.hypot(a[0] - b[0], a[1] - b[1]) * (0.8 + 0.4 * draw());
  const peers = spots.map((a) => spots.map((b) => apart(a, b)));
  const answers = spots.map((a) => (draw() < failing ? "timed out" : apart(a, target)));
  const candidates = answers.map((_, index) => index + 1).filter(() => draw() < 0.8);
  const knowledge = new DelegationKnowledge();
  for (let times = 0; times < 10; times++) {
    const keys = { subnetKey: times, holderKey: `h${Math.floor(draw() * 3)}`, country: "GR" };
    knowledge.record(placement(keys), id(1 + Math.floor(draw() * count)));
  }
  const where = placement({ subnetKey: "t", holderKey: "h1", country: "GR" });
  return { peers, answers, candidates, knowledge, placement: where, random: draw() };
}

describe.each(policyNames)("%s", (policy) => {
  it("asks candidates only, nobody twice, and always decides for a candidate", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const world = randomWorld(seed, 0.3);
      if (world.candidates.length === 0) continue;

      const round = runRound({ policy, ...world });

      expect(new Set(round.asked).size, `seed ${seed}`).toBe(round.asked.length);
      for (const asked of round.asked) expect(world.candidates, `seed ${seed}`).toContain(asked);
      expect(round.end.type, `seed ${seed}`).toBe("decided");
      if (round.end.type !== "decided") continue;
      expect(world.candidates, `seed ${seed}`).toContain(round.end.crawlerId);
      if (world.candidates.length > 1) {
        expect(world.candidates, `seed ${seed}`).toContain(round.end.runnerUpId);
        expect(round.end.runnerUpId, `seed ${seed}`).not.toBe(round.end.crawlerId);
      }
    }
  });

  it("gives the subnet to nobody when there is no candidate", () => {
    const { asked, end } = runRound({ policy, answers: [10, 20], candidates: [] });

    expect(asked).toEqual([]);
    expect(end).toEqual({ type: "nobody", reason: { type: "no-candidates" } });
  });

  it("gives the subnet to the only candidate without a probe, and calls it unmeasured", () => {
    const { asked, end } = runRound({ policy, answers: [10, 20], candidates: [2] });

    expect(asked).toEqual([]);
    expect(end).toMatchObject({
      type: "decided",
      crawlerId: 2,
      runnerUpId: null,
      measured: false,
      reason: { type: "only-candidate" },
    });
  });

  it("gives the same step again when nothing new was observed, and does not change a state", () => {
    const input = inputOf({ policy, ...randomWorld(5, 0) });
    const round = startRound(policy, input);

    const step = nextStep(round);
    if (step.type === "probe") observe(round, step.crawlerId, { rttMs: 1 });

    expect(nextStep(round)).toEqual(step);
  });

  it("does not heed answers of strangers, second answers and times that are none", () => {
    const round = startRound(policy, inputOf({ policy, answers: [1, 2, 3], candidates: [1, 2] }));

    expect(observe(round, id(3), { rttMs: 1 }).state.probes).toEqual([]);
    const once = observe(round, id(1), { rttMs: Number.NaN });
    const twice = observe(once, id(1), { rttMs: 4 });
    expect(twice.state).toBe(once.state);
    expect(observe(round, id(1), { rttMs: -1 }).state.probes[0]!.observation).toEqual({
      failed: "no valid time",
    });
    expect(twice.state.probes.map((probe) => probe.observation)).toEqual([{ failed: "no valid time" }]);
  });
});

describe.each(["exhaustive", "ipmicra", "nearest"] as const)("%s when probes fail", (policy) => {
  const owned = new DelegationKnowledge();
  owned.record(placement({ subnetKey: "s", country: "GR" }), id(3));
  const where = placement({ country: "GR" });

  it("decides by past delegations when nobody answers, and marks that as not measured", () => {
    const decision = decisionOf({
      policy,
      answers: ["timed out", "refused", "timed out"],
      placement: where,
      knowledge: owned,
    });

    expect(decision).toMatchObject({
      crawlerId: 3,
      rttMs: null,
      measured: false,
      reason: { type: "by-prior", askedCount: 3 },
    });
  });

  it("takes the one that answers, not the likeliest one that failed", () => {
    const decision = decisionOf({
      policy,
      answers: ["refused", 40, "timed out"],
      placement: where,
      knowledge: owned,
    });

    expect(decision).toMatchObject({ crawlerId: 2, rttMs: 40, measured: true });
  });
});

describe.each(["ipmicra", "nearest"] as const)("%s at a target that answers nobody", (policy) => {
  it("gives up after five crawlers in place of asking the whole fleet", () => {
    const round = runRound({ policy, answers: new Array(30).fill("timed out") });

    expect(round.asked).toHaveLength(5);
    expect(round.end).toMatchObject({ measured: false });
  });
});

describe("exhaustive", () => {
  it("is always the fastest of those that answer", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const world = randomWorld(seed, 0);
      if (world.candidates.length < 2) continue;

      const decision = decisionOf({ policy: "exhaustive", ...world });

      const best = Math.min(...world.candidates.map((candidate) => world.answers[candidate - 1] as number));
      expect(decision.rttMs, `seed ${seed}`).toBe(best);
    }
  });
});

describe("random", () => {
  it("maps the draw evenly onto the candidates and probes nobody", () => {
    const chosen = [0, 0.3, 0.6, 0.9999].map(
      (random) => decisionOf({ policy: "random", answers: [1, 2, 3], random }).crawlerId,
    );

    expect(chosen).toEqual([1, 1, 2, 3]);
  });
});

describe("a fleet", () => {
  it("counts a candidate named twice once", () => {
    expect(candidateFleet([id(4), id(4), id(5)], peerTable([])).candidates).toEqual([4, 5]);
  });

  it("takes the smaller of the two directions between crawlers, and knows what nobody measured", () => {
    const table = peerTable([
      [0, 30, null, 7],
      [20, 0, null, null],
      [null, null, 0, null],
      [9, null, null, 0],
    ]);

    expect(table.rttMs(id(1), id(2))).toBe(20);
    expect(table.rttMs(id(2), id(1))).toBe(20);
    expect(table.rttMs(id(1), id(4))).toBe(7);
    expect(table.rttMs(id(1), id(3))).toBeNull();
    expect(table.rttMs(id(1), id(99))).toBeNull();
  });
});
