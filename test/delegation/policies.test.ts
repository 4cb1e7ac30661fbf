/** What holds for every policy, on worlds drawn from a seed (printed with a failure). */
import { describe, expect, it } from "vitest";
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { nextStep, observe, policyNames, startRound } from "#coordinator/place/delegation/policies/policies";
import { seededRandom } from "#core/random";
import { decisionOf, id, inputOf, peerTable, placement, runRound } from "./rounds.ts";

/** Random crawlers and a target on a square of 200 × 200 ms, with noise; some crawlers fail. */
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
  it("asks only candidates, each at most once, and always decides for a candidate", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const world = randomWorld(seed, seed % 3 === 0 ? 0 : 0.3);
      const { candidates } = world;
      if (candidates.length === 0) continue;

      const { asked, end } = runRound({ policy, ...world });

      const { crawlerId, runnerUpId, rttMs } = end as ReturnType<typeof decisionOf>;
      const message = `seed ${seed}`;
      expect(new Set(asked).size, message).toBe(asked.length);
      for (const one of [...asked, crawlerId]) expect(candidates, message).toContain(one);
      if (candidates.length === 1) continue;
      expect(candidates, message).toContain(runnerUpId);
      expect(runnerUpId, message).not.toBe(crawlerId);
      if (policy !== "exhaustive" || seed % 3 > 0) continue;
      const all = candidates.map((candidate) => world.answers[candidate - 1] as number);
      expect(rttMs, message).toBe(Math.min(...all));
    }
  });

  it("asks nobody without a candidate or with only one, whose decision counts as unmeasured", () => {
    const only = { type: "decided", crawlerId: 2, runnerUpId: null, measured: false };

    expect(runRound({ policy, answers: [10, 20], candidates: [] })).toMatchObject({
      asked: [],
      end: { type: "nobody", reason: { type: "no-candidates" } },
    });
    expect(runRound({ policy, answers: [10, 20], candidates: [2] })).toMatchObject({
      asked: [],
      end: { ...only, reason: { type: "only-candidate" } },
    });
  });

  it("returns the same step until the next observation, and does not change a state", () => {
    const round = startRound(policy, inputOf({ policy, ...randomWorld(5, 0) }));

    const step = nextStep(round);
    if (step.type === "probe") observe(round, step.crawlerId, { rttMs: 1 });

    expect(nextStep(round)).toEqual(step);
  });

  it("ignores strangers' answers and second answers, and takes an invalid time for a failure", () => {
    const round = startRound(policy, inputOf({ policy, answers: [1, 2, 3], candidates: [1, 2] }));
    const invalid = [{ crawlerId: 1, observation: { failed: "no valid time" } }];

    expect(observe(round, id(3), { rttMs: 1 }).state.probes).toEqual([]);
    const once = observe(round, id(1), { rttMs: Number.NaN });
    expect(observe(once, id(1), { rttMs: 4 }).state).toBe(once.state);
    expect(once.state.probes).toEqual(invalid);
    expect(observe(round, id(1), { rttMs: -1 }).state.probes).toEqual(invalid);
  });
});

describe.each(["exhaustive", "ipmicra", "nearest"] as const)("%s when probes fail", (policy) => {
  const knowledge = new DelegationKnowledge();
  knowledge.record(placement({ subnetKey: "s", country: "GR" }), id(3));
  const decision = (...answers: (number | string)[]) =>
    decisionOf({ policy, answers, placement: placement({ country: "GR" }), knowledge });

  it("decides by past delegations, as unmeasured, when nobody answers, and else for one that answers", () => {
    expect(decision("timed out", "refused", "timed out")).toMatchObject({
      ...{ crawlerId: 3, rttMs: null, measured: false },
      reason: { type: "by-prior", askedCount: 3 },
    });
    expect(decision("refused", 40, "timed out")).toMatchObject({ crawlerId: 2, rttMs: 40, measured: true });
  });

  it("gives up a silent target after five crawlers, unless all are to be asked", () => {
    const { asked, end } = runRound({ policy, answers: new Array(30).fill("timed out") });

    expect(asked).toHaveLength(policy === "exhaustive" ? 30 : 5);
    expect(end).toMatchObject({ measured: false });
  });
});

it("random maps the draw evenly onto the candidates", () => {
  const chosen = [0, 0.3, 0.6, 0.9999].map(
    (random) => decisionOf({ policy: "random", answers: [1, 2, 3], random }).crawlerId,
  );

  expect(chosen).toEqual([1, 1, 2, 3]);
});

it("a fleet counts a candidate named twice once", () => {
  expect(candidateFleet([id(4), id(4), id(5)], peerTable([])).candidates).toEqual([4, 5]);
});
