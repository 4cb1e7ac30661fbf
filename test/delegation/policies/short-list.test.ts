/** The short list of a large fleet: the same decision where everybody is on it, bounded where not. */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { type NearestState, nearestPolicy } from "#coordinator/place/delegation/policies/nearest";
import { seededRandom } from "#core/random";
import { type FinishedTestRound, id, inputOf, placement, type RoundSetup, runRound } from "../rounds.ts";

/** Crawlers in a square of 200 ms, and a target in it; of each pair of crawlers in `unknown` nothing was measured. */
function squareWorld(crawlers: number, seed: number, unknown = 0): RoundSetup {
  const draw = seededRandom(seed);
  const spots = Array.from({ length: crawlers + 1 }, () => [200 * draw(), 200 * draw()] as const);
  const apartMs = (a: number, b: number) =>
    1 + Math.hypot(spots[a]![0] - spots[b]![0], spots[a]![1] - spots[b]![1]);
  const knowledge = new DelegationKnowledge();
  for (let subnet = 0; subnet < 60; subnet++) {
    const owner = id(1 + Math.floor(draw() * crawlers));
    knowledge.record(
      placement({ subnetKey: `s${subnet}`, holderKey: `h${subnet % 7}`, country: "gr" }),
      owner,
    );
  }
  return {
    policy: "nearest",
    answers: Array.from({ length: crawlers }, (_, index) => apartMs(index, crawlers)),
    peers: Array.from({ length: crawlers }, (_, a) =>
      Array.from({ length: crawlers }, (_, b) => (a === b ? 0 : draw() < unknown ? null : apartMs(a, b))),
    ),
    knowledge,
    placement: placement({ subnetKey: "t", holderKey: `h${seed % 9}`, country: "gr" }),
  };
}

/** A sum over the list in its order may differ in its last digit. */
const rounded = (round: FinishedTestRound): unknown =>
  JSON.parse(
    JSON.stringify(round, (_, value: unknown) =>
      typeof value === "number" ? Number(value.toPrecision(10)) : value,
    ),
  );

const answered = (state: NearestState, answers: RoundSetup["answers"]): NearestState => {
  let after = state;
  for (let step = nearestPolicy.step(after); step.type === "probe"; step = nearestPolicy.step(after))
    after = nearestPolicy.observe(after, step.crawlerId, { rttMs: answers[step.crawlerId - 1] as number });
  return after;
};

describe("the short list", () => {
  it("decides as the whole fleet does where everybody is on it", () => {
    const start = Math.floor(Math.random() * 1e6);
    for (let seed = start; seed < start + 12; seed++) {
      const world = squareWorld(30, seed, seed % 2 === 0 ? 0 : 0.3);

      const whole = runRound(world);
      const listed = runRound({ ...world, listFrom: 0 });

      expect(rounded(listed), `seed ${seed}`).toEqual(rounded(whole));
    }
  });

  it("is short, calls the neighbours of the best answer in, and finds the nearest of 400 among them", () => {
    const world = squareWorld(400, 5);
    const before = nearestPolicy.start(inputOf({ ...world, listFrom: 256 }));
    const first = before.mixture.members.length;

    expect(first).toBeGreaterThanOrEqual(80);
    expect(first).toBeLessThanOrEqual(200);
    const after = answered(before, world.answers);

    const best = Math.min(...(world.answers as number[]));
    const listed = after.mixture.follow(after.probes).members;
    expect(listed.length).toBeGreaterThan(first);
    expect(listed.length).toBeLessThanOrEqual(first + 25 * after.probes.length);
    expect(new Set(listed).size).toBe(listed.length);
    const end = nearestPolicy.step(after);
    expect(end.type === "decided" ? end.rttMs : null).toBeLessThanOrEqual(best + 5);
  });

  it("takes the answer of somebody who is not on it", () => {
    const world = squareWorld(400, 5);
    const state = nearestPolicy.start(inputOf({ ...world, listFrom: 256 }));
    const stranger = state.fleet.candidates.find((_, index) => !state.mixture.members.includes(index))!;

    const after = nearestPolicy.observe(state, stranger, { rttMs: 3 });

    expect(after.probes.map(({ crawlerId }) => crawlerId)).toEqual([stranger]);
    expect(after.mixture.follow(after.probes).members).toContain(after.fleet.indexOf.get(stranger)!);
  });

  it("leaves the state before an answer as it was: another answer to the same question counts as if it were the first", () => {
    const world = squareWorld(400, 5);
    const input = inputOf({ ...world, listFrom: 256 });
    const before = nearestPolicy.start(input);
    const [first, second] = before.fleet.candidates;
    const fresh = nearestPolicy.observe(nearestPolicy.start(input), first!, { rttMs: 40 });
    const expected = nearestPolicy.step(nearestPolicy.observe(fresh, second!, { rttMs: 30 }));

    // Two that call different crawlers in, and then the one that counts.
    nearestPolicy.step(nearestPolicy.observe(before, second!, { rttMs: 2 }));
    nearestPolicy.step(
      nearestPolicy.observe(nearestPolicy.observe(before, first!, { rttMs: 90 }), second!, { rttMs: 1 }),
    );
    const after = nearestPolicy.observe(before, first!, { rttMs: 40 });
    nearestPolicy.step(nearestPolicy.observe(after, second!, { rttMs: 90 }));

    expect(nearestPolicy.step(nearestPolicy.observe(after, second!, { rttMs: 30 }))).toEqual(expected);
    expect(before.probes).toEqual([]);
  });

  it("asks the next likeliest when nobody on it answered, and everybody in the end", () => {
    const world = squareWorld(300, 9);
    const silent = {
      ...world,
      answers: world.answers.map(() => "no route"),
      parameters: { giveUpAfter: 1000 },
    };

    expect(new Set(runRound({ ...silent, listFrom: 256 }).asked).size).toBe(300);
  });

  it("asks nobody whose partner denies the target, and names none as runner-up", () => {
    const world = squareWorld(400, 11);
    const mayTake = (crawlerId: number) => crawlerId % 2 === 0;

    for (const listFrom of [256, 1000]) {
      const { asked, end } = runRound({ ...world, listFrom, mayTake });

      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((crawlerId) => !mayTake(crawlerId))).toEqual([]);
      expect(mayTake(end.type === "decided" ? end.runnerUpId! : 1)).toBe(true);
    }
  });
});
