/** nearest: whom it asks, when it stops, and the short list that it considers in a very large fleet. */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { type NearestState, nearestPolicy } from "#coordinator/place/delegation/policies/nearest";
import { seededRandom } from "#core/random";
import {
  everyPair,
  type FinishedTestRound,
  id,
  inputOf,
  line,
  placement,
  type RoundSetup,
  runRound,
} from "./rounds.ts";

const here = placement({ subnetKey: "t", holderKey: "h", ancestorKeys: ["p"] });
/** Crawlers that own other subnets of the same holder. */
const knowing = (...crawlers: number[]) => {
  const knowledge = new DelegationKnowledge();
  crawlers.forEach((crawler, index) => {
    knowledge.record(placement({ subnetKey: `s${index}`, holderKey: "h", ancestorKeys: ["p"] }), id(crawler));
  });
  return knowledge;
};
const round = (answers: RoundSetup["answers"], differences: Partial<RoundSetup> = {}) =>
  runRound({
    ...{ policy: "nearest", answers, peers: line, placement: here, knowledge: knowing(1) },
    ...differences,
  });
const wellKnown = new Array(8).fill(1);

describe("nearest", () => {
  it("rules out by the triangle inequality all that are farther than the best: 2 ms from crawler 1 leaves nobody at 100 ms or more", () => {
    const { asked, end } = round([2, 98, 198, 298]);

    expect(asked).toEqual([1]);
    expect(end).toMatchObject({
      ...{ crawlerId: 1, rttMs: 2 },
      // The runner-up is whoever can be least far, asked or not: at most 2 + 100 ms.
      ...{ runnerUpId: 2, runnerUpRttMs: null },
      reason: {
        ...{ type: "expected-gain", stop: "all-ruled-out", runnerUp: { crawlerId: 2, atMostMs: 102 } },
        ruledOutCount: 3,
        // Crawler 2 is 100 ms from crawler 1, which measured 2: at least 0.8 · 98 ms.
        ruledOut: [
          { crawlerId: 2, lowerBoundMs: expect.closeTo(78.4, 6), by: 1, byRttMs: 2, peerRttMs: 100 },
          { crawlerId: 3, lowerBoundMs: expect.closeTo(158.4, 6) },
          { crawlerId: 4, lowerBoundMs: expect.closeTo(238.4, 6) },
        ],
      },
    });
  });

  it.each<[string, RoundSetup["answers"], Partial<RoundSetup>, number[]]>([
    ["goes to the crawler whose distance fits the answer", [195, 95, 5, 105], {}, [1, 3]],
    [
      "stops where another probe is not worth λ",
      [6, 7, 8],
      { peers: everyPair(3, 10), knowledge: knowing(...wellKnown), parameters: { lambdaMs: 20 } },
      [1],
    ],
    [
      "asks all that are not ruled out where λ is 0",
      [6, 7, 8],
      { peers: everyPair(3, 10), knowledge: knowing(...wellKnown), parameters: { lambdaMs: 0 } },
      [1, 3, 2],
    ],
    [
      "asks little about a well-known holder",
      [5, 4],
      {
        peers: everyPair(2, 8),
        knowledge: knowing(...wellKnown, 1, 1, 1, 1),
        parameters: { lambdaMs: 4 },
      },
      [1],
    ],
    [
      "asks more about a new holder",
      [5, 4],
      {
        placement: { ...here, holderKey: "new" },
        peers: everyPair(2, 8),
        knowledge: knowing(...wellKnown, 1, 1, 1, 1),
        parameters: { lambdaMs: 4 },
      },
      [1, 2],
    ],
    [
      "continues as long as λ demands, however little the answers fit",
      Array.from({ length: 300 }, (_, index) => 450 - index / 10),
      { peers: everyPair(300, 10), parameters: { lambdaMs: 0 }, knowledge: new DelegationKnowledge() },
      Array.from({ length: 300 }, (_, index) => index + 1),
    ],
  ])("%s", (_, answers, differences, asked) => {
    expect(round(answers, differences).asked.toSorted((a, b) => a - b)).toEqual(
      asked.toSorted((a, b) => a - b),
    );
  });

  it("takes only the first observation from the crawl's own GET", () => {
    expect(round([195, 95, 5, 105], { parameters: { getFirst: true } }).how).toEqual(["get", "probe"]);
  });

  it("neither rules out nor prefers crawlers at unknown distances, not even after an answer of 0 ms", () => {
    const unknown = [
      [0, 100, null],
      [100, 0, null],
      [null, null, 0],
    ];

    expect(round([90, 10, 300], { peers: unknown }).asked.slice(0, 2)).toEqual([1, 2]);
    expect(
      round([0, 5], {
        peers: [
          [0, null],
          [null, 0],
        ],
      }).end,
    ).toMatchObject({
      ...{ crawlerId: 1, rttMs: 0 },
      reason: { type: "expected-gain", ruledOut: [], ruledOutCount: 0 },
    });
  });

  it("restores an earlier state of the round, whatever was heard after it", () => {
    const input = inputOf({ policy: "nearest", answers: [1, 2, 3, 4], peers: line, placement: here });
    const first = nearestPolicy.observe(nearestPolicy.start(input), id(1), { rttMs: 150 });
    const stepThen = nearestPolicy.step(first);
    const second = nearestPolicy.observe(first, id(4), { rttMs: 100 });

    // From 1: 0.8·|D − 150|. From 4: 0.8·|D − 100|, which is 160, 80, 0, 80: crawlers 3 and 4 keep their bounds.
    const bounds = ({ mixture, probes }: NearestState) =>
      Array.from(mixture.follow(probes).gapsMs, (gapMs) => Math.round(0.8 * gapMs));
    expect(bounds(second)).toEqual([160, 80, 40, 120]);
    expect(bounds(first)).toEqual([120, 40, 40, 120]);
    expect(nearestPolicy.step(first)).toEqual(stepThen);
    expect(first.probes).toHaveLength(1);
  });
});

/** Crawlers and a target in a square of 200 ms; the share `unknown` of the crawlers' pairs is unmeasured. */
function squareWorld(crawlers: number, seed: number, unknown = 0): RoundSetup {
  const draw = seededRandom(seed);
  const spots = Array.from({ length: crawlers + 1 }, () => [200 * draw(), 200 * draw()] as const);
  const apartMs = (a: number, b: number) =>
    1 + Math.hypot(spots[a]![0] - spots[b]![0], spots[a]![1] - spots[b]![1]);
  const knowledge = new DelegationKnowledge();
  for (let subnet = 0; subnet < 60; subnet++) {
    const keys = { subnetKey: `s${subnet}`, holderKey: `h${subnet % 7}`, country: "gr" };
    knowledge.record(placement(keys), id(1 + Math.floor(draw() * crawlers)));
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
const rounded = (finished: FinishedTestRound): unknown =>
  JSON.parse(
    JSON.stringify(finished, (_, value) =>
      typeof value === "number" ? Number(value.toPrecision(10)) : value,
    ),
  );

describe("the short list of a very large fleet", () => {
  const world = squareWorld(400, 5);
  const input = () => inputOf({ ...world, listFrom: 256 });

  it("decides as the whole fleet does where everybody is on it", () => {
    const start = Math.floor(Math.random() * 1e6);
    for (let seed = start; seed < start + 12; seed++) {
      const small = squareWorld(30, seed, seed % 2 === 0 ? 0 : 0.3);

      const listed = runRound({ ...small, listFrom: 0 });

      expect(rounded(listed), `seed ${seed}`).toEqual(rounded(runRound(small)));
    }
  });

  it("is short, adds the neighbours of the best answer, and finds the nearest of 400 among them", () => {
    let state: NearestState = nearestPolicy.start(input());
    const first = state.mixture.members.length;
    let step = nearestPolicy.step(state);
    for (; step.type === "probe"; step = nearestPolicy.step(state)) {
      const rttMs = world.answers[step.crawlerId - 1] as number;
      state = nearestPolicy.observe(state, step.crawlerId, { rttMs });
    }

    const { members } = state.mixture.follow(state.probes);
    expect([first >= 80, first <= 200, members.length > first]).toEqual([true, true, true]);
    expect(members.length).toBeLessThanOrEqual(first + 25 * state.probes.length);
    expect(new Set(members).size).toBe(members.length);
    const best = Math.min(...(world.answers as number[]));
    expect(step.type === "decided" ? step.rttMs : null).toBeLessThanOrEqual(best + 5);
  });

  it("accepts the answer of a crawler that is not on it", () => {
    const state = nearestPolicy.start(input());
    const stranger = state.fleet.candidates.find((_, index) => !state.mixture.members.includes(index))!;

    const after = nearestPolicy.observe(state, stranger, { rttMs: 3 });

    expect(after.probes.map(({ crawlerId }) => crawlerId)).toEqual([stranger]);
    expect(after.mixture.follow(after.probes).members).toContain(after.fleet.indexOf.get(stranger)!);
  });

  it("does not remember answers of other branches of the round", () => {
    const { start, step, observe } = nearestPolicy;
    const before = start(input());
    const [first = id(1), second = id(2)] = before.fleet.candidates;
    const told = (state: NearestState, ...answers: (readonly [number, number])[]) =>
      answers.reduce((known, [crawler, rttMs]) => observe(known, id(crawler), { rttMs }), state);
    const expected = step(told(start(input()), [first, 40], [second, 30]));

    // Other answers, which add other crawlers, before the ones that count.
    step(told(before, [second, 2]));
    step(told(before, [first, 90], [second, 1]));
    const after = told(before, [first, 40]);
    step(told(after, [second, 90]));

    expect(step(told(after, [second, 30]))).toEqual(expected);
    expect(before.probes).toEqual([]);
  });

  it("asks the next likeliest when nobody on it answered, and finally everybody", () => {
    const silent = squareWorld(300, 9);
    const answers = silent.answers.map(() => "no route");

    const { asked } = runRound({ ...silent, answers, parameters: { giveUpAfter: 1000 }, listFrom: 256 });

    expect(new Set(asked).size).toBe(300);
  });

  it.each([256, 1000])(
    "asks nobody whose partner denies the target, nor names it runner-up (listFrom %i)",
    (listFrom) => {
      const mayTake = (crawlerId: number) => crawlerId % 2 === 0;

      const { asked, end } = runRound({ ...squareWorld(400, 11), listFrom, mayTake });

      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((crawlerId) => !mayTake(crawlerId))).toEqual([]);
      expect(mayTake(end.type === "decided" ? end.runnerUpId! : 1)).toBe(true);
    },
  );
});

it("names nobody as runner-up who may not take the subnet", () => {
  const peers = [
    [0, 10, 90],
    [10, 0, 90],
    [90, 90, 0],
  ];
  const runnerUp = (mayTake: (crawlerId: number) => boolean) => {
    const { end } = round([2, 9, 88], { peers, mayTake });
    return end.type === "decided" ? end.runnerUpId : null;
  };

  expect(runnerUp(() => true)).toBe(2);
  expect(runnerUp((crawlerId) => crawlerId !== 2)).toBe(3);
  expect(runnerUp((crawlerId) => crawlerId === 1)).toBeNull();
});
