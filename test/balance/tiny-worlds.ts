/** Small balancing problems: by hand, and seeded random ones that brute force can still try out. */

import type { BalanceInput, BalanceSubnet, Move } from "#coordinator/place/balance/plan";
import { RttTable } from "#coordinator/place/distances/predicted-rtts";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

export interface TinyWorld {
  /** Capacity of crawlers 1, 2, 3 … */
  readonly capacities: readonly number[];
  /** Owner, load and RTTs (of crawler 1, 2, 3 …; null: never measured) of subnets 1, 2, 3 … */
  readonly subnets: readonly (readonly [owner: number, load: number, rtts: readonly (number | null)[]])[];
  /** Between every two crawlers; undefined: never measured. */
  readonly apartMs?: number;
}

export function balanceInput({ capacities, subnets, apartMs }: TinyWorld): BalanceInput {
  return {
    crawlers: capacities.map((capacityPagesPerDay, index) => ({
      crawlerId: asCrawlerId(index + 1),
      capacityPagesPerDay,
    })),
    subnets: subnets.map(([owner, loadPagesPerDay, rtts], index) => ({
      subnetId: asSubnetId(index + 1),
      crawlerId: asCrawlerId(owner),
      loadPagesPerDay,
      rttMs: new Map(rtts.flatMap((rtt, at) => (rtt === null ? [] : [[asCrawlerId(at + 1), rtt] as const]))),
    })),
    crawlerRttMs: () => apartMs,
  };
}

/** Crawlers and subnets on a plane; RTT is distance with noise, some of it never measured; each subnet at its nearest crawler. */
export function randomInput(shape: {
  seed: number;
  crawlers: number;
  subnets: number;
  unitLoads: boolean;
  tightness: number;
}): BalanceInput {
  const random = seededRandom(shape.seed);
  const point = () => ({ x: random() * 200, y: random() * 100 });
  const distance = (a: { x: number; y: number }, b: { x: number; y: number }) =>
    2 + Math.hypot(a.x - b.x, a.y - b.y);
  const places = Array.from({ length: shape.crawlers }, point);
  const subnets = Array.from({ length: shape.subnets }, (_, index): BalanceSubnet => {
    const place = point();
    const all = places.map(
      (crawler, at) => [asCrawlerId(at + 1), distance(crawler, place) * (0.9 + 0.2 * random())] as const,
    );
    const nearest = all.reduce((best, one) => (one[1] < best[1] ? one : best));
    const rttMs = new Map(all.filter((one) => one === nearest || random() < 0.5));
    return {
      subnetId: asSubnetId(index + 1),
      crawlerId: nearest[0],
      loadPagesPerDay: shape.unitLoads ? 1 : 1 + Math.floor(random() * 9),
      rttMs,
    };
  });
  const total = subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const capacityPagesPerDay = Math.ceil((shape.tightness * total) / shape.crawlers);
  return {
    crawlers: places.map((_, at) => ({ crawlerId: asCrawlerId(at + 1), capacityPagesPerDay })),
    subnets,
    crawlerRttMs: (a, b) =>
      distance(places[a - 1] as { x: number; y: number }, places[b - 1] as { x: number; y: number }),
  };
}

/** Load × added RTT over all moves. */
export function costOf(moves: readonly Move[], input: BalanceInput): number {
  const loads = new Map(input.subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]));
  return moves.reduce(
    (sum, { subnetId, addedRttMs }) => sum + addedRttMs * (loads.get(subnetId) as number),
    0,
  );
}

/** Loads after the moves. */
export function loadsAfter(moves: readonly Move[], input: BalanceInput): Map<CrawlerId, number> {
  const moved = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  const loads = new Map<CrawlerId, number>(input.crawlers.map(({ crawlerId }) => [crawlerId, 0]));
  for (const { subnetId, crawlerId, loadPagesPerDay } of input.subnets) {
    const at = moved.get(subnetId) ?? crawlerId;
    loads.set(at, (loads.get(at) ?? 0) + loadPagesPerDay);
  }
  return loads;
}

/** The least cost over every way to place the subnets that keeps to the capacities; infinite when there is none. */
export function bruteForceCost(input: BalanceInput): number {
  const room = new Map(
    input.crawlers.map(({ crawlerId, capacityPagesPerDay }) => [crawlerId, capacityPagesPerDay]),
  );
  const rtts = knownRtts(input);
  const place = (at: number): number => {
    const subnet = input.subnets[at];
    if (subnet === undefined) return 0;
    let best = Number.POSITIVE_INFINITY;
    for (const { crawlerId } of input.crawlers) {
      const left = (room.get(crawlerId) as number) - subnet.loadPagesPerDay;
      if (left < 0) continue;
      room.set(crawlerId, left);
      const added = rtts(subnet, crawlerId) - rtts(subnet, subnet.crawlerId);
      best = Math.min(best, added * subnet.loadPagesPerDay + place(at + 1));
      room.set(crawlerId, left + subnet.loadPagesPerDay);
    }
    return best;
  };
  return place(0);
}

/** The RTT (ms) that planning takes for a subnet and a crawler. */
export function knownRtts(input: BalanceInput): (subnet: BalanceSubnet, crawlerId: CrawlerId) => number {
  const rtts = new RttTable(input.crawlerRttMs);
  const rowOf = new Map(input.subnets.map((subnet) => [subnet.subnetId, rtts.add(subnet)]));
  return ({ subnetId }, crawlerId) => rtts.rttMs(rowOf.get(subnetId)!, rtts.indexOf(crawlerId));
}
