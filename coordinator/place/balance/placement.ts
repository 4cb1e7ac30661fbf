/**
 * The plan of the policy `min-cost-flow`: the least sum of load × RTT over all subnets (design section 6) without overload,
 * with hysteresis, and the RTTs worth measuring before subnets move.
 *
 * In a large fleet the candidates for a subnet are those that measured it and 24 neighbours of the fastest. Plans then cost
 * 0.0 to 0.2 % more (test/bench/results/balance.md). If these do not suffice, it plans again with four times as many.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { expectedGainMs, RttTable } from "../distances/predicted-rtts.ts";
import { Auction, type AuctionInput } from "./auction.ts";
import {
  type BalanceInput,
  type BalanceSubnet,
  burdensOf,
  defaultHysteresis,
  type Hysteresis,
  leaveCostMs,
  type Move,
  plannedCapacities,
  unlisted,
  wholeUnits,
} from "./plan.ts";

interface BalancePlan {
  readonly moves: readonly Move[];
  /** Pairs with a predicted RTT that are worth measuring before moving, the most valuable first. */
  readonly probes: readonly WantedProbe[];
}

interface WantedProbe {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  /** Expected saving in ms × pages a day. Infinite if a planned move relies on it. */
  readonly expectedGain: number;
}

const usualBreadth = 24;

/** Share of capacity left beside a subnet too large for any crawler. Nothing fits, but unlike 0 it does not mean departed. */
const usedUpShare = 1e-9;

/**
 * Expected saving, in ms per page, for which a subnet with the mean load is probed. With twice the load, half of it suffices.
 * test/bench/results/balance.md compares values.
 */
const probeWorthMs = 2;

/** Twice the usual error of predictions. */
const tooFarMs = 50;

/** Maximum probes requested at once, and staying subnets whose crawlers are compared. */
const mostProbes = 10_000;
const mostCompared = 20_000;

/** Makes no moves while no crawler has any capacity. */
export function planPlacement(input: BalanceInput, settings: Hysteresis = defaultHysteresis): BalancePlan {
  const crawlers = [...input.crawlers].sort((a, b) => a.crawlerId - b.crawlerId);
  const subnets = [...input.subnets].sort((a, b) => a.subnetId - b.subnetId);
  if (!crawlers.some(({ capacityPagesPerDay }) => capacityPagesPerDay > 0)) return { moves: [], probes: [] };
  const rtts = new RttTable(input.crawlerRttMs);
  for (const { crawlerId } of crawlers) rtts.indexOf(crawlerId);
  for (const subnet of subnets) rtts.add(subnet);
  const owners = subnets.map(({ crawlerId }) => rtts.indexOf(crawlerId));
  const known = { subnets, owners, rtts };
  const byCrawler = burdensOf({ crawlers, subnets });
  const burdens = rtts.crawlerIds.map((crawlerId) => ({ ...(byCrawler.get(crawlerId) ?? unlisted) }));
  const mostPages = Math.max(...plannedCapacities(burdens, settings).pages);
  // Moving a subnet larger than any crawler's capacity relieves no crawler, so it stays and uses up its crawler's room.
  const isFixed = subnets.map(({ loadPagesPerDay }) => loadPagesPerDay > mostPages);
  for (const [row, { loadPagesPerDay, loadBytesPerDay = 0 }] of subnets.entries()) {
    const burden = burdens[owners[row]!]!;
    if (!isFixed[row] || burden.mostPages === 0) continue;
    burden.pages -= loadPagesPerDay;
    burden.bytes -= loadBytesPerDay;
    burden.mostPages = Math.max(usedUpShare * burden.mostPages, burden.mostPages - loadPagesPerDay);
  }
  const limits = plannedCapacities(burdens, settings);
  const pages = Float64Array.from(subnets, (one, row) => (isFixed[row] ? 0 : one.loadPagesPerDay));
  const bytes = Float64Array.from(subnets, (one, row) => (isFixed[row] ? 0 : (one.loadBytesPerDay ?? 0)));
  const capacityPages = inWholeSubnets(limits.pages, pages);
  const auctionAmong = (breadth: number) => {
    const ways = waysOf(known, { pages, limitPages: limits.pages, settings, breadth });
    const auction = new Auction({ capacityPages, capacityBytes: limits.bytes, pages, bytes, ...ways });
    auction.run();
    return { auction, ways };
  };
  let breadth = usualBreadth;
  let held = auctionAmong(breadth);
  while (held.auction.isAnyoneOver && breadth < rtts.crawlerIds.length) {
    breadth *= 4;
    held = auctionAmong(breadth);
  }
  const { places, prices } = held.auction;
  const moves = subnets.flatMap(({ subnetId, crawlerId: from }, row): Move[] => {
    if (places[row] === owners[row]) return [];
    const to = rtts.crawlerIds[places[row]!]!;
    return [{ subnetId, from, to, ...rtts.difference(row, owners[row]!, places[row]!) }];
  });
  return { moves, probes: wantedProbes(known, { places, prices, ...held.ways }) };
}

type Ways = Pick<AuctionInput, "crawlers" | "costsMs">;

interface KnownSubnets {
  readonly subnets: readonly BalanceSubnet[];
  readonly owners: readonly number[];
  readonly rtts: RttTable;
}

/** Returns each subnet's candidates with the cost of a page there. Leaving its crawler costs extra. */
function waysOf(
  { owners, rtts }: KnownSubnets,
  {
    pages,
    limitPages,
    settings,
    breadth,
  }: {
    readonly pages: Float64Array;
    readonly limitPages: Float64Array;
    readonly settings: Hysteresis;
    readonly breadth: number;
  },
): Ways {
  const able = [...limitPages.keys()].filter((crawler) => limitPages[crawler]! > 0);
  const crawlers = owners.map((owner, row) => {
    // A subnet without load has nothing to gain.
    if (pages[row] === 0 && limitPages[owner]! > 0) return [owner];
    if (able.length <= breadth) return able;
    const likely = [...new Set([owner, ...rtts.likely(row, breadth)])];
    const found = likely.filter((crawler) => limitPages[crawler]! > 0);
    return found.length > 0 ? found : able;
  });
  const costsMs = crawlers.map((some, row) => {
    const leavingMs = leaveCostMs(pages[row]!, settings);
    return some.map((crawler) => rtts.rttMs(row, crawler) + (crawler === owners[row] ? 0 : leavingMs));
  });
  return { crawlers, costsMs };
}

function inWholeSubnets(capacities: Float64Array, pages: Float64Array): Float64Array {
  const loads = pages.filter((load) => load > 0);
  const [unit = 0] = loads;
  if (unit === 0 || loads.some((load) => load !== unit)) return capacities;
  return wholeUnits(capacities, unit, loads.length);
}

// Chooses RTTs to measure before moves: those that a move relies on, and those likely to reveal a cheaper crawler. At the
// plan's prices, RTT plus price is compared with that of the planned crawler, and a prediction's error gives the expected
// saving (like `nearest` when it delegates).

interface PlannedPlaces extends Ways {
  readonly places: Int32Array;
  readonly prices: Float64Array;
}

/** At most one per subnet, the most valuable first. */
function wantedProbes({ subnets, owners, rtts }: KnownSubnets, plan: PlannedPlaces): WantedProbe[] {
  const wanted: WantedProbe[] = [];
  const settled: number[] = [];
  let pages = 0;
  for (const [row, { subnetId, loadPagesPerDay }] of subnets.entries()) {
    pages += loadPagesPerDay;
    const to = plan.places[row]!;
    if (to === owners[row] || rtts.isMeasured(row, to)) settled.push(row);
    else wanted.push({ subnetId, crawlerId: rtts.crawlerIds[to]!, expectedGain: Number.POSITIVE_INFINITY });
  }
  const leastGain = (probeWorthMs * pages) / Math.max(1, subnets.length);
  if (settled.length > mostCompared)
    settled.sort((a, b) => subnets[b]!.loadPagesPerDay - subnets[a]!.loadPagesPerDay);
  for (const row of settled.slice(0, mostCompared)) {
    const { subnetId, loadPagesPerDay } = subnets[row]!;
    const { crawler, gainMs } = bestGain(row, rtts, plan);
    const expectedGain = gainMs * loadPagesPerDay;
    if (expectedGain > 0 && expectedGain >= leastGain)
      wanted.push({ subnetId, crawlerId: rtts.crawlerIds[crawler]!, expectedGain });
  }
  wanted.sort((a, b) =>
    a.expectedGain === b.expectedGain ? a.subnetId - b.subnetId : b.expectedGain - a.expectedGain,
  );
  return wanted.slice(0, mostProbes);
}

/** The other crawler with the largest expected saving, after the cost of moving. */
function bestGain(row: number, rtts: RttTable, { places, prices, crawlers, costsMs }: PlannedPlaces) {
  const place = places[row]!;
  const placeMs = costsMs[row]![crawlers[row]!.indexOf(place)] ?? Number.NaN;
  let best = { crawler: -1, gainMs: 0 };
  for (const [at, crawler] of crawlers[row]!.entries()) {
    const costMs = costsMs[row]![at]!;
    const limitMs = placeMs + prices[place]! - prices[crawler]!;
    // Most candidates are ruled out here, too far above the limit to gain anything.
    if (!(costMs <= limitMs + tooFarMs) || rtts.isMeasured(row, crawler)) continue;
    const gainMs = expectedGainMs(limitMs, costMs, rtts.spreadMs(row, crawler));
    if (gainMs > best.gainMs) best = { crawler, gainMs };
  }
  return best;
}
