import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { nearestPolicy } from "#coordinator/place/delegation/policies/nearest";
import { everyPair, id, inputOf, placement, type RoundSetup, runRound } from "./rounds.ts";

/*
 * Places on a line, RTT in ms is the distance:
 *
 *   1 ──100── 2 ──100── 3 ──100── 4
 */
const line = [
  [0, 100, 200, 300],
  [100, 0, 100, 200],
  [200, 100, 0, 100],
  [300, 200, 100, 0],
];
const here = placement({ subnetKey: "t", holderKey: "h", ancestorKeys: ["p"] });
const knowing = (...crawlers: number[]) => {
  const knowledge = new DelegationKnowledge();
  crawlers.forEach((crawler, index) => {
    knowledge.record(placement({ subnetKey: `s${index}`, holderKey: "h", ancestorKeys: ["p"] }), id(crawler));
  });
  return knowledge;
};

/** A round on the line, of whose holder crawler 1 has another subnet. */
const onLine = (answers: RoundSetup["answers"], differences: Partial<RoundSetup> = {}) =>
  runRound({
    policy: "nearest",
    answers,
    peers: line,
    placement: here,
    knowledge: knowing(1),
    ...differences,
  });

describe("nearest", () => {
  it("rules out by the triangle inequality all that are farther than the best: 2 ms from crawler 1 leaves nobody at 100 ms or more", () => {
    const round = onLine([2, 98, 198, 298]);

    expect(round.asked).toEqual([1]);
    expect(round.end).toMatchObject({
      crawlerId: 1,
      rttMs: 2,
      // The runner-up is whoever can be least far, asked or not: at most 2 + 100 ms.
      runnerUpId: 2,
      runnerUpRttMs: null,
      // Crawler 2 is 100 ms from crawler 1, which measured 2: at least 0.8 · 98 ms.
      reason: {
        type: "expected-gain",
        stop: "all-ruled-out",
        runnerUp: { crawlerId: 2, atMostMs: 102 },
        ruledOutCount: 3,
        ruledOut: [
          { crawlerId: 2, lowerBoundMs: expect.closeTo(78.4, 6), by: 1, byRttMs: 2, peerRttMs: 100 },
          { crawlerId: 3, lowerBoundMs: expect.closeTo(158.4, 6) },
          { crawlerId: 4, lowerBoundMs: expect.closeTo(238.4, 6) },
        ],
      },
    });
  });

  it("goes to the crawler whose distance fits the answer: 195 ms from crawler 1 points at crawler 3", () => {
    const round = onLine([195, 95, 5, 105]);

    expect(round.asked).toEqual([1, 3]);
    expect(round.end).toMatchObject({ crawlerId: 3, rttMs: 5 });
  });

  it("asks more when λ is smaller, and all that are not ruled out when λ is 0", () => {
    const setup = {
      policy: "nearest",
      answers: [6, 7, 8],
      peers: everyPair(3, 10),
      placement: here,
    } as const;
    const knowledge = knowing(1, 1, 1, 1, 1, 1, 1, 1);

    const dear = runRound({ ...setup, knowledge, parameters: { lambdaMs: 20 } });
    const free = runRound({ ...setup, knowledge, parameters: { lambdaMs: 0 } });

    expect(dear.asked).toEqual([1]);
    expect(free.asked.toSorted()).toEqual([1, 2, 3]);
  });

  it("asks more about a holder that is new than about a well-known one", () => {
    const setup = { policy: "nearest", answers: [5, 4], peers: everyPair(2, 8) } as const;
    const knowledge = knowing(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    const stranger = { ...here, holderKey: "new" };

    const known = runRound({ ...setup, placement: here, knowledge, parameters: { lambdaMs: 4 } });
    const fresh = runRound({ ...setup, placement: stranger, knowledge, parameters: { lambdaMs: 4 } });

    expect(known.asked).toEqual([1]);
    expect(fresh.asked).toEqual([1, 2]);
  });

  it("takes the first observation from the crawl's own GET when told to, and only the first", () => {
    const round = onLine([195, 95, 5, 105], { parameters: { getFirst: true } });

    expect(round.how).toEqual(["get", "probe"]);
  });

  it("neither rules out nor prefers a crawler whose distance to the others nobody measured", () => {
    const unknown = [
      [0, 100, null],
      [100, 0, null],
      [null, null, 0],
    ];
    const setup = { policy: "nearest", answers: [90, 10, 300], peers: unknown, placement: here } as const;

    const round = runRound({ ...setup, knowledge: knowing(1) });

    expect(round.asked.slice(0, 2)).toEqual([1, 2]);
  });

  it("gives an earlier state of the round back as it was, whatever was heard after it", () => {
    const input = inputOf({
      policy: "nearest",
      answers: [],
      candidates: [1, 2, 3, 4],
      peers: line,
      placement: here,
    });
    const first = nearestPolicy.observe(nearestPolicy.start(input), id(1), { rttMs: 150 });
    const stepThen = nearestPolicy.step(first);
    const second = nearestPolicy.observe(first, id(4), { rttMs: 100 });

    // From 1: 0.8·|D − 150|. From 4: 0.8·|D − 100|, which is 160, 80, 0, 80: crawlers 3 and 4 keep their bounds.
    const bounds = ({ mixture, probes }: typeof first) =>
      Array.from(mixture.follow(probes).gapsMs, (gapMs) => Math.round(0.8 * gapMs));
    expect(bounds(second)).toEqual([160, 80, 40, 120]);
    expect(bounds(first)).toEqual([120, 40, 40, 120]);
    expect(nearestPolicy.step(first)).toEqual(stepThen);
    expect(first.probes).toHaveLength(1);
  });

  it("rules nobody out whom nobody has measured, not even by an answer of 0 ms", () => {
    const round = runRound({
      policy: "nearest",
      answers: [0, 5],
      peers: [
        [0, null],
        [null, 0],
      ],
      placement: here,
      knowledge: knowing(1),
    });

    expect(round.end).toMatchObject({
      crawlerId: 1,
      rttMs: 0,
      reason: { type: "expected-gain", ruledOut: [], ruledOutCount: 0 },
    });
  });
});
