/** Balancing problems: small ones by hand, and seeded random ones, of which brute force can still solve the smallest. */
import { planPlacement } from "#coordinator/place/balance/placement";
import {
  type BalanceInput,
  type BalanceSubnet,
  type Move,
  noHysteresis,
} from "#coordinator/place/balance/plan";
import { RttTable } from "#coordinator/place/distances/predicted-rtts";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

/** Owner, load in pages, RTTs by crawlers 1, 2, 3 … (null when never measured), and load in bytes. */
export type TinySubnet = readonly [
  owner: number,
  pages: number,
  rtts: readonly (number | null)[],
  bytes?: number,
];

/** `apartMs` is the RTT between every two crawlers; a capacity is in pages, or in pages and bytes. */
export function tinyWorld(
  capacities: readonly (number | readonly [pages: number, bytes: number])[],
  subnets: readonly TinySubnet[],
  apartMs?: number,
): BalanceInput {
  return {
    crawlers: capacities.map((capacity, index) => {
      const [capacityPagesPerDay, capacityBytesPerDay] = [capacity].flat() as [number, number?];
      const bytes = capacityBytesPerDay === undefined ? {} : { capacityBytesPerDay };
      return { crawlerId: asCrawlerId(index + 1), capacityPagesPerDay, ...bytes };
    }),
    subnets: subnets.map(([owner, loadPagesPerDay, rtts, loadBytesPerDay = 0], index) => ({
      ...{ subnetId: asSubnetId(index + 1), crawlerId: asCrawlerId(owner), loadPagesPerDay, loadBytesPerDay },
      rttMs: new Map(rtts.flatMap((rtt, at) => (rtt === null ? [] : [[asCrawlerId(at + 1), rtt] as const]))),
    })),
    crawlerRttMs: () => apartMs,
  };
}

/**
 * Crawlers and subnets on a plane. The RTT is the distance with noise, half of them never measured; each subnet is at
 * its nearest crawler. Every crawler may have `headroom` times its share of the load, in pages and in bytes.
 */
export function randomWorld(shape: {
  readonly seed: number;
  readonly crawlers: number;
  readonly subnets: number;
  readonly headroom: number;
  readonly loads?: "equal" | "unequal";
}): BalanceInput {
  const random = seededRandom(shape.seed);
  const point = () => [random() * 200, random() * 100] as const;
  const distance = ([x, y]: ReturnType<typeof point>, [a, b]: ReturnType<typeof point>) =>
    2 + Math.hypot(x - a, y - b);
  const load = () => (shape.loads === "equal" ? 1 : 1 + Math.floor(random() * 9));
  const places = Array.from({ length: shape.crawlers }, point);
  const subnets = Array.from({ length: shape.subnets }, (_, index): BalanceSubnet => {
    const place = point();
    const all = places.map(
      (crawler, at) => [asCrawlerId(at + 1), distance(crawler, place) * (0.9 + 0.2 * random())] as const,
    );
    const nearest = all.reduce((best, one) => (one[1] < best[1] ? one : best));
    return {
      ...{ subnetId: asSubnetId(index + 1), crawlerId: nearest[0] },
      ...{ loadPagesPerDay: load(), loadBytesPerDay: 1000 * load() },
      rttMs: new Map(all.filter((one) => one === nearest || random() < 0.5)),
    };
  });
  const shareOf = (figure: (subnet: BalanceSubnet) => number) =>
    Math.ceil((shape.headroom * subnets.reduce((sum, one) => sum + figure(one), 0)) / shape.crawlers);
  const capacities = {
    capacityPagesPerDay: shareOf((one) => one.loadPagesPerDay),
    capacityBytesPerDay: shareOf((one) => one.loadBytesPerDay!),
  };
  return {
    crawlers: places.map((_, at) => ({ crawlerId: asCrawlerId(at + 1), ...capacities })),
    subnets,
    crawlerRttMs: (a, b) => distance(places[a - 1]!, places[b - 1]!),
  };
}

export const cheapestMoves = (input: BalanceInput): readonly Move[] =>
  planPlacement(input, noHysteresis).moves;

export function withMoves(input: BalanceInput, moves: readonly Move[]): BalanceInput {
  const places = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  const subnets = input.subnets.map((one) => ({
    ...one,
    crawlerId: places.get(one.subnetId) ?? one.crawlerId,
  }));
  return { ...input, subnets };
}

/** Pages × added RTT over all moves. */
export function costOf(moves: readonly Move[], { subnets }: BalanceInput): number {
  const pages = new Map(subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]));
  return moves.reduce((sum, { subnetId, addedRttMs }) => sum + addedRttMs * pages.get(subnetId)!, 0);
}

/** The least cost over all placements that keep to both limits; infinite when there is none. */
export function bruteForceCost(input: BalanceInput): number {
  const table = new RttTable(input.crawlerRttMs);
  const rows = input.subnets.map((subnet) => table.add(subnet));
  const rttMs = (at: number, crawlerId: CrawlerId) => table.rttMs(rows[at]!, table.indexOf(crawlerId));
  const rooms = input.crawlers.map((one) => ({
    ...{ crawlerId: one.crawlerId, pages: one.capacityPagesPerDay },
    bytes: one.capacityBytesPerDay ?? Number.POSITIVE_INFINITY,
  }));
  const leastFrom = (at: number): number => {
    const subnet = input.subnets[at];
    if (subnet === undefined) return 0;
    const { crawlerId: owner, loadPagesPerDay: pages, loadBytesPerDay: bytes = 0 } = subnet;
    let best = Number.POSITIVE_INFINITY;
    for (const room of rooms) {
      if (room.pages < pages || room.bytes < bytes) continue;
      room.pages -= pages;
      room.bytes -= bytes;
      const added = rttMs(at, room.crawlerId) - rttMs(at, owner);
      best = Math.min(best, added * pages + leastFrom(at + 1));
      room.pages += pages;
      room.bytes += bytes;
    }
    return best;
  };
  return leastFrom(0);
}
