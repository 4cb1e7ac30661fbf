/** Past subnets side by side: what is found of them, how alike they are, and that rows are used again. */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import {
  LearnedRtts,
  mostEntries,
  placeNumbersOf,
  VectorTable,
} from "#coordinator/place/delegation/policies/learned-rtts";
import { nearestPolicy } from "#coordinator/place/delegation/policies/nearest";
import { seededRandom } from "#core/random";
import { everyPair, id, inputOf, placement, runRound } from "../rounds.ts";

describe("the table of past subnets", () => {
  it("finds what was written, at slots that collide, too, and nothing else", () => {
    const start = Math.floor(Math.random() * 1e6);
    for (let seed = start; seed < start + 20; seed++) {
      const draw = seededRandom(seed);
      const table = new VectorTable();
      const rows = Array.from({ length: 80 }, () => {
        // Every other slot lies at the same place as another.
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
        const nearest = Array.from({ length: table.nearest.counts[row]! }, (_, rank) =>
          table.nearest.at(row, rank),
        );
        expect(nearest.map((at) => table.slots[at])).toEqual(order.slice(0, 24));
        expect(table.measured.counts[row]).toBe(Math.min(24, spreadsMs.filter((ms) => ms === 0).length));
      }
    }
  });

  it("uses the row of a vector that nobody holds again, and tells that it did", () => {
    const table = new VectorTable();
    const entries = { slots: [1], rttsMs: [5], spreadsMs: [0] };
    const row = table.add(0, placement(), entries);
    table.hold(row);
    table.hold(row);
    const generation = table.generations[row];

    table.release(row);
    const other = table.add(0, placement(), entries);
    table.release(row);
    const again = table.add(1, placement(), entries);

    expect(other).not.toBe(row);
    expect(again).toBe(row);
    expect(table.generations[row]).not.toBe(generation);
    expect(table.size).toBe(2);
  });

  it("takes for alike what shares a holder, a neighbourhood, a country or a published place", () => {
    const table = new VectorTable();
    const at = (source: string, place: string) => ({ published: [{ source, place }] });
    const weights = { holder: 35, neighbourhood: 5, country: 3, published: [20] };
    const of = (one: Parameters<typeof placement>[0], other: Parameters<typeof placement>[0]) => {
      const row = table.add(0, placement(one), { slots: [], rttsMs: [], spreadsMs: [] });
      return table.likeness(row, placeNumbersOf(placement(other)), weights);
    };

    expect(of({}, {})).toBe(1);
    expect(of({ holderKey: 1 }, { holderKey: 1, ancestorKeys: [3] })).toBe(35);
    expect(of({ ancestorKeys: [3, 4] }, { ancestorKeys: [5, 4] })).toBe(5);
    expect(of({ ancestorKeys: [3, 4] }, { ancestorKeys: [4, 3] })).toBe(1);
    expect(of({ country: "gr" }, { country: "gr" })).toBe(3);
    // Whoever says so; and the more telling of two that hold.
    expect(of(at("a", "XX city"), at("b", "XX city"))).toBe(20);
    expect(of(at("a", "XX city"), at("a", "XX town"))).toBe(1);
    expect(of({ holderKey: 1, ...at("a", "XX city") }, { holderKey: 1, ...at("b", "XX city") })).toBe(35);
  });
});

/* 1 ──10── 2, and a third far off. */
const peers = [
  [0, 10, 90],
  [10, 0, 90],
  [90, 90, 0],
];

describe("a round", () => {
  it("no longer counts a past subnet whose row another one took", () => {
    const learned = new LearnedRtts();
    const entries = { slots: [0, 1, 2], rttsMs: [4, 6, 80], spreadsMs: [0, 0, 0] };
    for (const crawler of [1, 2, 3]) learned.slotOf(id(crawler));
    const here = placement({ subnetKey: "t", holderKey: "h" });
    learned.keep(id(1), here, entries);
    const round = inputOf({ policy: "nearest", answers: [1, 2, 3], peers, placement: here, learned });
    const state = nearestPolicy.start(round);
    expect(Array.from(state.mixture.rows)).toHaveLength(1);

    const row = state.mixture.rows[0]!;
    // Another 4 of the holder, and 32 of the crawler, push it out.
    for (let number = 0; number < 400; number++) learned.keep(id(1), here, entries);
    expect(learned.vectors.generations[row]).toBeGreaterThan(0);
    const after = nearestPolicy.observe(state, id(1), { rttMs: 4 });
    nearestPolicy.step(after);

    expect(Array.from(after.mixture.vectorWeights)).toEqual([0]);
  });

  it("names nobody as runner-up who may not take the subnet", () => {
    const knowledge = new DelegationKnowledge();
    knowledge.record(placement({ subnetKey: "s" }), id(1));
    const setup = { policy: "nearest", answers: [2, 9, 88], peers, knowledge } as const;
    const runnerUp = (mayTake?: (crawlerId: number) => boolean) => {
      const { end } = runRound({ ...setup, ...(mayTake && { mayTake }) });
      return end.type === "decided" ? end.runnerUpId : null;
    };

    expect(runnerUp()).toBe(2);
    expect(runnerUp((crawlerId) => crawlerId !== 2)).toBe(3);
    expect(runnerUp((crawlerId) => crawlerId === 1)).toBeNull();
  });

  it("goes on for as long as it is told to, however little its answers fit", () => {
    const crawlers = 300;
    const answers = Array.from({ length: crawlers }, (_, index) => 450 - index / 10);

    const { asked } = runRound({
      policy: "nearest",
      answers,
      peers: everyPair(crawlers, 10),
      parameters: { lambdaMs: 0 },
    });

    expect(asked).toHaveLength(crawlers);
  });
});
