/**
 * The paper's rule (section 4.4): an overloaded crawler hands over the subnets with the lowest variance in their probing
 * results, each to its next-best available crawler. A low variance means that the probed crawlers are about equally far, so
 * that another one does nearly as well.
 *
 * Where the paper is silent, these choices apply. A subnet that fewer than two crawlers measured has no variance and goes
 * last. "Next-best" is the lowest RTT, measured or predicted, among crawlers with room for the whole subnet, in pages and in
 * bytes. If no crawler has room, the subnet stays, except that a departed crawler keeps nothing.
 */
import type { SubnetId } from "#core/ids";
import { RttTable } from "../distances/predicted-rtts.ts";
import {
  type BalanceInput,
  type BalanceSubnet,
  burdensOf,
  type Move,
  overloads,
  plannedCapacities,
  unlisted,
} from "./plan.ts";

export function planByVarianceRule(input: BalanceInput): Move[] {
  const byCrawler = burdensOf(input);
  const over = overloads(byCrawler);
  if (over.length === 0) return [];
  const rtts = new RttTable(input.crawlerRttMs);
  for (const { crawlerId } of input.crawlers) rtts.indexOf(crawlerId);
  const rowOf = new Map<SubnetId, number>(input.subnets.map((one) => [one.subnetId, rtts.add(one)]));
  const burdens = rtts.crawlerIds.map((crawlerId) => byCrawler.get(crawlerId) ?? unlisted);
  const { pages, bytes } = plannedCapacities(burdens);
  const rooms = burdens.map((burden, crawler) => ({
    ...{ capacity: pages[crawler]!, pages: pages[crawler]! - burden.pages },
    bytes: bytes[crawler]! - burden.bytes,
  }));

  /** The nearest crawler with room. If there is none, −1, or the one with most room if the subnet cannot stay. */
  const nextBest = ({ subnetId, loadPagesPerDay, loadBytesPerDay = 0 }: BalanceSubnet, from: number) => {
    let [best, bestMs, roomiest] = [-1, Number.POSITIVE_INFINITY, -1];
    for (const [crawler, room] of rooms.entries()) {
      if (crawler === from || room.capacity === 0) continue;
      if (roomiest < 0 || room.pages > rooms[roomiest]!.pages) roomiest = crawler;
      if (room.pages < loadPagesPerDay || room.bytes < loadBytesPerDay) continue;
      const rttMs = rtts.rttMs(rowOf.get(subnetId)!, crawler);
      if (rttMs < bestMs) [best, bestMs] = [crawler, rttMs];
    }
    return best < 0 && rooms[from]!.capacity === 0 ? roomiest : best;
  };

  return over.flatMap((overloaded) => {
    const moves: Move[] = [];
    const from = rtts.indexOf(overloaded);
    const own = rooms[from]!;
    for (const subnet of lowestVarianceFirst(input.subnets.filter((one) => one.crawlerId === overloaded))) {
      if (own.capacity > 0 && own.pages >= 0 && own.bytes >= 0) break;
      const { subnetId, loadPagesPerDay, loadBytesPerDay = 0 } = subnet;
      if (own.capacity > 0 && loadPagesPerDay === 0) continue;
      const to = nextBest(subnet, from);
      if (to < 0) continue;
      own.pages += loadPagesPerDay;
      own.bytes += loadBytesPerDay;
      rooms[to]!.pages -= loadPagesPerDay;
      rooms[to]!.bytes -= loadBytesPerDay;
      const difference = rtts.difference(rowOf.get(subnetId)!, from, to);
      moves.push({ subnetId, from: overloaded, to: rtts.crawlerIds[to]!, ...difference });
    }
    return moves;
  });
}

function lowestVarianceFirst(subnets: readonly BalanceSubnet[]): BalanceSubnet[] {
  return subnets
    .map((subnet) => ({ subnet, variance: probingVariance(subnet) }))
    .sort((a, b) =>
      a.variance === b.variance ? a.subnet.subnetId - b.subnet.subnetId : a.variance - b.variance,
    )
    .map(({ subnet }) => subnet);
}

/** Population variance of the probing results, in ms². Infinite if there are fewer than two. */
export function probingVariance({ rttMs }: BalanceSubnet): number {
  if (rttMs.size < 2) return Number.POSITIVE_INFINITY;
  let [sum, squares] = [0, 0];
  for (const rtt of rttMs.values()) sum += rtt;
  const mean = sum / rttMs.size;
  for (const rtt of rttMs.values()) squares += (rtt - mean) ** 2;
  return squares / rttMs.size;
}
