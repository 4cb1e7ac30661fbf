/** What finished rounds teach later ones: RTT vectors, the correction of gains, and the trust in published places. */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import {
  GainCalibration,
  LearnedRtts,
  mostEntries,
  placeNumbersOf,
  SourceTrust,
  VectorTable,
} from "#coordinator/place/delegation/policies/learned-rtts";
import { nearestPolicy } from "#coordinator/place/delegation/policies/nearest";
import { learnFromRound, observe, startRound } from "#coordinator/place/delegation/policies/policies";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import { seededRandom } from "#core/random";
import { smallestOf } from "#core/small-collections";
import { id, inputOf, line, placement, runRound } from "../rounds.ts";

/*
 * Three crawlers in a row, and targets off the line, so that the distances between the crawlers say little of them:
 * 60 ms from 1 and 2, but 20 ms from 3.
 *
 *   1 ──40── 2 ──40── 3
 */
const peers = [
  [0, 40, 80],
  [40, 0, 40],
  [80, 40, 0],
];
const where = { subnetKey: "t", holderKey: "h", ancestorKeys: ["p"] };

describe("what finished rounds measured", () => {
  it("lets later rounds nearby ask fewer crawlers for the same answer", () => {
    const learned = new LearnedRtts();
    const knowledge = new DelegationKnowledge();
    knowledge.record(placement({ ...where, subnetKey: "s" }), id(1));
    const rounds = Array.from({ length: 8 }, (_, index) => {
      const target = placement({ ...where, subnetKey: `t${index}`, country: "XA" });
      const setup = { policy: "nearest", answers: [60, 60, 20], peers, placement: target } as const;
      const { asked, end } = runRound({ ...setup, knowledge, learned });
      if (end.type === "decided") knowledge.record(target, end.crawlerId);
      return { asked, winner: end.type === "decided" ? end.crawlerId : null };
    });

    expect(rounds.map(({ winner }) => winner)).toEqual(Array(8).fill(3));
    expect(rounds[0]!.asked).toHaveLength(3);
    expect(rounds[7]!.asked).toEqual([3]);
  });

  it("is kept as measured where a crawler answered, and as expected within the triangle's bounds elsewhere", () => {
    const learned = new LearnedRtts();
    const setup = { policy: "nearest", answers: [1, 2, 3], peers, learned } as const;
    const started = startRound("nearest", inputOf({ ...setup, placement: placement(where) }));
    learnFromRound(observe(started, id(1), { failed: "timed out" }));
    expect(learned.size).toBe(0);

    learnFromRound(observe(started, id(1), { rttMs: 5 }));

    const row = learned.wonBy(id(1))[0]!;
    const kept = (crawler: number) => learned.figuresOf(row, id(crawler))!;
    expect(kept(1)).toEqual({ rttMs: 5, spreadMs: 0 });
    // Crawler 2 is 40 ms from crawler 1: at most 45 ms, and hardly less than 0.8 · 35.
    expect(kept(2).rttMs).toBeGreaterThanOrEqual(28);
    expect(kept(2).rttMs).toBeLessThanOrEqual(45);
    expect(kept(2).spreadMs).toBeGreaterThan(0);
    const { vectors } = learned;
    const nearest = [0, 1, 2].map((rank) => vectors.slots[vectors.nearest.at(row, rank)]);
    expect(vectors.nearest.counts[row]).toBe(3);
    expect(nearest).toEqual([1, 2, 3].map((crawler) => learned.slotOf(id(crawler))));
  });

  it("is bounded, whatever the number of subnets, holders and crawlers", () => {
    const learned = new LearnedRtts();

    for (let number = 0; number < 20_000; number++) {
      const published = [{ source: "s", place: `x${number}` }];
      const keys = { subnetKey: number, holderKey: `h${number >> 1}`, ancestorKeys: [`p${number}`] };
      const entries = { slots: [0, 1], rttsMs: [1, 2], spreadsMs: [0, 0] };
      learned.keep(id(1 + (number % 300)), placement({ ...keys, published }), entries);
    }

    expect(learned.size).toBeLessThanOrEqual(3200);
    expect(learned.vectors.size).toBeLessThanOrEqual(3200 + 3 * 8000);
    // The latest are there, the first are not.
    const alike = ["h9999", "h0"].map((holderKey) => learned.alike(placement({ holderKey })).length);
    expect(alike).toEqual([2, 0]);
    expect(["x19999", "x0"].map((place) => learned.atPublished(place).length)).toEqual([1, 0]);
  });

  it("no longer counts in a round when another subnet took the row", () => {
    const learned = new LearnedRtts();
    const entries = { slots: [0, 1, 2], rttsMs: [4, 6, 80], spreadsMs: [0, 0, 0] };
    for (const crawler of [1, 2, 3]) learned.slotOf(id(crawler));
    const here = placement(where);
    learned.keep(id(1), here, entries);
    const setup = { policy: "nearest", answers: [1, 2, 3], peers, placement: here, learned } as const;
    const state = nearestPolicy.start(inputOf(setup));
    expect(Array.from(state.mixture.rows)).toHaveLength(1);

    // Another 4 of the holder, and 32 of the crawler, push it out.
    for (let number = 0; number < 400; number++) learned.keep(id(1), here, entries);
    const after = nearestPolicy.observe(state, id(1), { rttMs: 4 });
    nearestPolicy.step(after);

    expect(learned.vectors.generations[state.mixture.rows[0]!]).toBeGreaterThan(0);
    expect(Array.from(after.mixture.vectorWeights)).toEqual([0]);
  });
});

describe("the table of past subnets", () => {
  it("finds what was written, even at colliding slots, and nothing else", () => {
    const start = Math.floor(Math.random() * 1e6);
    for (let seed = start; seed < start + 20; seed++) {
      const draw = seededRandom(seed);
      const table = new VectorTable();
      const rows = Array.from({ length: 80 }, () => {
        // Every other slot is at the same place as another.
        const slots = [...new Set(Array.from({ length: mostEntries }, () => 64 * Math.floor(300 * draw())))];
        const rttsMs = slots.map(() => Math.fround(100 * draw()));
        const spreadsMs = slots.map(() => (draw() < 0.1 ? 0 : 1));
        return { row: table.add(7, placement(), { slots, rttsMs, spreadsMs }), slots, rttsMs, spreadsMs };
      });

      for (const { row, slots, rttsMs, spreadsMs } of rows) {
        const found = slots.map((slot) => table.figures[2 * table.find(row, slot)]);
        expect(found, `seed ${seed}`).toEqual(rttsMs);
        expect(table.find(row, 64 * 300)).toBe(-1);
        const order = [...slots.keys()].sort((a, b) => rttsMs[a]! - rttsMs[b]!).map((at) => slots[at]);
        const ranks = Array.from({ length: table.nearest.counts[row]! }, (_, rank) => rank);
        const nearest = ranks.map((rank) => table.slots[table.nearest.at(row, rank)]);
        expect(nearest).toEqual(order.slice(0, 24));
        expect(table.measured.counts[row]).toBe(Math.min(24, spreadsMs.filter((ms) => ms === 0).length));
      }
    }
  });

  it("reuses the row of a vector that nobody holds, under another generation", () => {
    const table = new VectorTable();
    const add = () => table.add(0, placement(), { slots: [1], rttsMs: [5], spreadsMs: [0] });
    const row = add();
    table.hold(row);
    table.hold(row);
    const generation = table.generations[row];

    table.release(row);
    const other = add();
    table.release(row);

    expect(other).not.toBe(row);
    expect(add()).toBe(row);
    expect(table.generations[row]).not.toBe(generation);
    expect(table.size).toBe(2);
  });

  const at = (source: string, place: string) => ({ published: [{ source, place }] });
  it.each<[object, object, number]>([
    [{}, {}, 1],
    [{ holderKey: 1 }, { holderKey: 1, ancestorKeys: [3] }, 35],
    [{ ancestorKeys: [3, 4] }, { ancestorKeys: [5, 4] }, 5],
    [{ ancestorKeys: [3, 4] }, { ancestorKeys: [4, 3] }, 1],
    [{ country: "gr" }, { country: "gr" }, 3],
    // Whichever source names it; of two things in common the more telling one counts.
    [at("a", "XX city"), at("b", "XX city"), 20],
    [at("a", "XX city"), at("a", "XX town"), 1],
    [{ holderKey: 1, ...at("a", "XX city") }, { holderKey: 1, ...at("b", "XX city") }, 35],
  ])("takes %j and %j for alike by the weight %i", (one, other, likeness) => {
    const table = new VectorTable();
    const weights = { holder: 35, neighbourhood: 5, country: 3, published: [20] };
    const row = table.add(0, placement(one), { slots: [], rttsMs: [], spreadsMs: [] });

    expect(table.likeness(row, placeNumbersOf(placement(other)), weights)).toBe(likeness);
  });
});

it.each([
  [0, 2, 0, 1, 1],
  [50, 2, 0.5, 1 / 3, 0.5],
  [5000, 10, 0, 1 / 3, 1 / 3],
  // A saving counts up to 15 ms.
  [5000, 10, 1000, 1.45, 1.5],
])(
  "after %i probes of %d ms expected and %d ms saved, gains are scaled by %d to %d",
  (probes, expectedMs, savedMs, least, most) => {
    const calibration = new GainCalibration();
    for (let number = 0; number < probes; number++) calibration.note({ expectedMs, savedMs });

    expect(calibration.scale).toBeGreaterThanOrEqual(least);
    expect(calibration.scale).toBeLessThanOrEqual(most);
  },
);

it("the smallest values are found in their order, as sorting finds them", () => {
  const draw = seededRandom(7);
  for (let round = 0; round < 200; round++) {
    const values = Float64Array.from({ length: Math.floor(draw() * 40) }, () =>
      draw() < 0.2 ? Number.NaN : draw(),
    );
    const sorted = [...values.keys()].filter((at) => !Number.isNaN(values[at]!));
    sorted.sort((a, b) => values[a]! - values[b]!);
    expect([...smallestOf(values, 9)], `round ${round}`).toEqual(sorted.slice(0, 9));
  }
});

/** A coordinator that delegates one subnet after the other, each of a holder of its own. */
function coordinator() {
  const knowledge = new DelegationKnowledge();
  const learned = new LearnedRtts();
  // Crawler 1 is the likeliest where nothing is published.
  for (let subnet = 0; subnet < 20; subnet++) knowledge.record(placement({ subnetKey: `s${subnet}` }), id(1));
  let subnets = 0;
  const delegate = (nearest: number, source?: string, place = "XX city") => {
    const keys = { subnetKey: `t${subnets}`, holderKey: `h${subnets++}` };
    const target = placement({ ...keys, ...(source && { published: [{ source, place }] }) });
    const answers = [1, 2, 3, 4].map((one) => 2 + 100 * Math.abs(one - nearest));
    const setup = { policy: "nearest", answers, peers: line, placement: target, knowledge, learned } as const;
    const { asked, end } = runRound(setup);
    if (end.type !== "decided") throw new Error("nobody");
    knowledge.record(target, end.crawlerId);
    return { asked, winner: end.crawlerId, reason: end.reason };
  };
  return { learned, delegate };
}

describe("published places", () => {
  it("decide a subnet by a hint and one probe, once others of the place are known, and say so", () => {
    const { delegate } = coordinator();
    expect(delegate(3, "aws").asked[0]).toBe(1);
    for (let subnet = 0; subnet < 4; subnet++) delegate(3, "aws");

    const other = delegate(3, "geofeed https://net.example/geofeed.csv");

    expect(other).toMatchObject({ asked: [3], winner: 3 });
    expect(explainReason(other.reason, String)).toContain(
      "According to geofeed https://net.example/geofeed.csv it lies in XX city (source trusted 67 %); 5 other subnets are known there. " +
        "It was asked first, as the likeliest by past delegations there and nearby, and answered in 2 ms.",
    );
    expect(delegate(3).asked[0]).toBe(1);
  });

  it("lose weight where their source is wrong again and again, but not where another source names them", () => {
    const { delegate, learned } = coordinator();
    for (let subnet = 0; subnet < 12; subnet++) delegate(3, "aws");
    for (let subnet = 0; subnet < 60; subnet++) delegate(1 + ((subnet * 7) % 4), "liar");

    expect(learned.sources.of("liar")).toBeLessThan(0.6);
    expect(learned.sources.of("aws")).toBeGreaterThan(0.9);
    expect(delegate(2, "liar").winner).toBe(2);
  });

  it("that contradict each other are outvoted by the first probes", () => {
    const { delegate } = coordinator();
    delegate(4, "a", "east");
    delegate(2, "b", "west");

    expect(delegate(4, "b", "west").winner).toBe(4);
    expect(delegate(2, "a", "east").winner).toBe(2);
  });
});

it("the trust in a source begins at two thirds, follows what was seen, and is kept for the latest 20,000", () => {
  const trust = new SourceTrust();
  const begins = trust.of("s");
  for (let number = 0; number < 400; number++) trust.note("s", 0);
  const liar = trust.of("s");
  for (let number = 0; number < 400; number++) trust.note("s", 1);
  const honest = trust.of("s");
  for (let number = 0; number < 20_500; number++) trust.note(`s${number}`, 1);

  expect(begins).toBeCloseTo(2 / 3, 6);
  expect(liar).toBeLessThan(0.03);
  expect(honest).toBeGreaterThan(0.9);
  expect(["s", "s0", "s20499"].map((source) => trust.of(source).toFixed(2))).toEqual([
    "0.67",
    "0.67",
    "0.75",
  ]);
});
