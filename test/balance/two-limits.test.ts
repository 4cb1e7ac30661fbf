import { describe, expect, it } from "vitest";
import { type BalanceInput, type BalanceSubnet, type Move, overloads } from "#coordinator/place/balance/plan";
import { planByVarianceRule } from "#coordinator/place/balance/rebalance";
import { planByMinCostFlow } from "#coordinator/place/balance/successors";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

/** Everything at crawler 1; pages and bytes of a subnet have little to do with each other. */
function world(shape: { seed: number; crawlers: number; subnets: number; headroom: number }): BalanceInput {
  const random = seededRandom(shape.seed);
  const subnets = Array.from({ length: shape.subnets }, (_, index): BalanceSubnet => {
    const rtts = Array.from(
      { length: shape.crawlers },
      (_, at) => [asCrawlerId(at + 1), 5 + 95 * random()] as const,
    );
    return {
      subnetId: asSubnetId(index + 1),
      crawlerId: asCrawlerId(1 + Math.floor(shape.crawlers * random() ** 2)),
      loadPagesPerDay: 1 + Math.floor(9 * random()),
      loadBytesPerDay: 1_000 * (1 + Math.floor(9 * random())),
      rttMs: new Map(rtts),
    };
  });
  const sum = (of: (subnet: BalanceSubnet) => number) =>
    subnets.reduce((total, subnet) => total + of(subnet), 0);
  const share = (total: number) => Math.ceil((shape.headroom * total) / shape.crawlers);
  return {
    crawlers: Array.from({ length: shape.crawlers }, (_, index) => ({
      crawlerId: asCrawlerId(index + 1),
      capacityPagesPerDay: share(sum(({ loadPagesPerDay }) => loadPagesPerDay)),
      capacityBytesPerDay: share(sum(({ loadBytesPerDay }) => loadBytesPerDay ?? 0)),
    })),
    subnets,
    crawlerRttMs: () => 50,
  };
}

function withMoves(input: BalanceInput, moves: readonly Move[]): BalanceInput {
  const places = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  const subnets = input.subnets.map((subnet) => ({
    ...subnet,
    crawlerId: places.get(subnet.subnetId) ?? subnet.crawlerId,
  }));
  return { ...input, subnets };
}

/** Whether any placement keeps to both limits: by trying all. */
function isFeasible({ crawlers, subnets }: BalanceInput): boolean {
  const room = crawlers.map((one) => ({
    pages: one.capacityPagesPerDay,
    bytes: one.capacityBytesPerDay ?? Number.POSITIVE_INFINITY,
  }));
  const place = (at: number): boolean => {
    const subnet = subnets[at];
    if (subnet === undefined) return true;
    const { loadPagesPerDay: pages, loadBytesPerDay: bytes = 0 } = subnet;
    return room.some((left) => {
      if (left.pages < pages || left.bytes < bytes) return false;
      left.pages -= pages;
      left.bytes -= bytes;
      const fits = place(at + 1);
      left.pages += pages;
      left.bytes += bytes;
      return fits;
    });
  };
  return place(0);
}

describe("pages and bytes per day", () => {
  it("are both kept to in nine of ten tiny worlds in which anything keeps to both", () => {
    const inputs = Array.from({ length: 120 }, (_, index) =>
      world({ seed: 7 * index + 1, crawlers: 3, subnets: 8, headroom: 1.15 }),
    ).filter(isFeasible);

    const failed = inputs.filter((input) => overloads(withMoves(input, planByMinCostFlow(input))).length > 0);

    expect(inputs.length).toBeGreaterThan(40);
    expect(failed.length / inputs.length).toBeLessThan(0.1);
  });

  it.each([11, 12, 13])("are both kept to with 12 crawlers and 400 subnets, seed %i", (seed) => {
    const input = world({ seed, crawlers: 12, subnets: 400, headroom: 1.15 });

    expect(overloads(input).length).toBeGreaterThan(0);
    expect(overloads(withMoves(input, planByMinCostFlow(input)))).toEqual([]);
    expect(overloads(withMoves(input, planByVarianceRule(input)))).toEqual([]);
  });

  it("bytes alone make a crawler give up what costs the least for its bytes", () => {
    const subnet = (id: number, bytes: number, elsewhere: number): BalanceSubnet => ({
      subnetId: asSubnetId(id),
      crawlerId: asCrawlerId(1),
      loadPagesPerDay: 1,
      loadBytesPerDay: bytes,
      rttMs: new Map([
        [asCrawlerId(1), 10],
        [asCrawlerId(2), elsewhere],
      ]),
    });
    const input: BalanceInput = {
      crawlers: [
        { crawlerId: asCrawlerId(1), capacityPagesPerDay: 9, capacityBytesPerDay: 150 },
        { crawlerId: asCrawlerId(2), capacityPagesPerDay: 9 },
      ],
      subnets: [subnet(1, 100, 30), subnet(2, 100, 20), subnet(3, 1, 11)],
      crawlerRttMs: () => 50,
    };

    expect(planByMinCostFlow(input).map(({ subnetId, to }) => [subnetId, to])).toEqual([[2, 2]]);
  });
});
