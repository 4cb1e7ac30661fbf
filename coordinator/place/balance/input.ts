/**
 * What balancing has to plan with (design section 6). While nobody has too much and nothing is away from home,
 * one sum over the hosts is all that is read. Otherwise: every subnet of those who have too much and every one
 * that went to relieve somebody; of the other crawlers only the room that they have.
 *
 * Crawlers that are offline or draining are left alone: their subnets are handed over (hand-overs). So is an
 * anycast range whose crawler has not too much: it answers from many places, none of which is its home.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { type CrawlerRecord, defaultMeanPageBytes, type Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { CrawlerLoad, SubnetLoad } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { unmeasurableMs } from "../distances/predicted-rtts.ts";
import { type BalanceInput, effectiveCapacity, overloads } from "./plan.ts";
import type { PutOffMoves } from "./rebalance.ts";

interface ReliefPorts {
  readonly state: CoordinatorState;
  readonly fleet: Pick<Fleet, "online">;
  readonly delegations: Pick<DelegationStore, "crawlerLoads" | "loads" | "probedRtts" | "targetsFor">;
  readonly putOff: PutOffMoves;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
}

export interface ReliefInput extends BalanceInput {
  /** Who may not have a subnet, as the partner says; nobody for those that are missing. For planning they could not measure it. */
  readonly denied: ReadonlyMap<SubnetId, ReadonlySet<CrawlerId>>;
  /** How what is known of a subnet was measured; others are not compared with it. Of those that are missing nothing is. */
  readonly methods: ReadonlyMap<SubnetId, ProbeMethod>;
}

/** Subnets whose RTTs or targets are read at once. */
const batchSize = 5000;

/** Null: there is nothing to relieve, and nothing away from home. */
export async function reliefInput(
  ports: ReliefPorts,
  recrawlDays: number,
  now: Date,
): Promise<ReliefInput | null> {
  const { state, delegations, anycast } = ports;
  const crawlers = ports.fleet
    .online()
    .map((crawlerId) => state.crawler(crawlerId))
    .filter((crawler): crawler is CrawlerRecord => crawler !== null && crawler.drainingSince === null);
  const fleetLoads = await delegations.crawlerLoads(recrawlDays);
  const over = overloaded(crawlers, fleetLoads);
  if (over.length === 0 && fleetLoads.every(({ displaced }) => displaced === 0)) return null;
  const present = new Set(crawlers.map(({ crawlerId }) => crawlerId));
  const loads = (await delegations.loads(recrawlDays, over, { displaced: true })).filter(
    ({ subnetId, crawlerId }) =>
      present.has(crawlerId) && (over.includes(crawlerId) || !anycast?.has(subnetId)),
  );
  const { known, methods } = await knownRtts(loads, ports, now);
  const denied = await deniedIn(new Map(loads.map(({ subnetId }) => [subnetId, [...present]])), ports, now);
  // Whoever has a subnet and was refused something in it keeps it for now: another round sees to that.
  for (const { subnetId, crawlerId } of loads)
    if (!ports.denied?.deniesSubnet(crawlerId, subnetId)) denied.get(subnetId)?.delete(crawlerId);
  for (const [subnetId, crawlerIds] of denied)
    for (const crawlerId of crawlerIds) known.get(subnetId)?.set(crawlerId, unmeasurableMs);
  return {
    denied,
    methods,
    crawlers: crawlers.map((crawler) => capacityFor(crawler, fleetLoads, loads)),
    subnets: loads.map(({ subnetId, crawlerId, pagesPerDay, bytesPerDay }) => ({
      subnetId,
      crawlerId,
      loadPagesPerDay: pagesPerDay,
      loadBytesPerDay: bytesPerDay,
      rttMs: known.get(subnetId) ?? new Map(),
    })),
    crawlerRttMs: (a, b) => state.peerRtts.rttMs(a, b) ?? undefined,
  };
}

function overloaded(crawlers: readonly CrawlerRecord[], loads: readonly CrawlerLoad[]): CrawlerId[] {
  const present = new Set(crawlers.map(({ crawlerId }) => crawlerId));
  return overloads({
    crawlers: crawlers.map(limitsOf),
    // A crawler's whole load, as if it were one subnet: who is over does not depend on how it is divided.
    subnets: loads
      .filter(({ crawlerId, subnets }) => present.has(crawlerId) && subnets > 0)
      .map(({ crawlerId, pagesPerDay, bytesPerDay }) => ({
        subnetId: crawlerId as number as SubnetId,
        crawlerId,
        loadPagesPerDay: pagesPerDay,
        loadBytesPerDay: bytesPerDay,
        rttMs: new Map(),
      })),
  });
}

const limitsOf = ({ crawlerId, pagesPerDay, bytesPerDay }: CrawlerRecord) => ({
  crawlerId,
  capacityPagesPerDay: pagesPerDay,
  capacityBytesPerDay: bytesPerDay,
});

/** What is left of its limits for the subnets that are planned with. */
function capacityFor(
  crawler: CrawlerRecord,
  fleetLoads: readonly CrawlerLoad[],
  loads: readonly SubnetLoad[],
): BalanceInput["crawlers"][number] {
  const all = fleetLoads.find(({ crawlerId }) => crawlerId === crawler.crawlerId);
  const planned = loads.filter(({ crawlerId }) => crawlerId === crawler.crawlerId);
  const othersPages =
    (all?.pagesPerDay ?? 0) - planned.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const othersBytes =
    (all?.bytesPerDay ?? 0) - planned.reduce((sum, { bytesPerDay }) => sum + bytesPerDay, 0);
  return {
    crawlerId: crawler.crawlerId,
    capacityPagesPerDay: Math.max(0, crawler.pagesPerDay - Math.max(0, othersPages)),
    capacityBytesPerDay: Math.max(0, crawler.bytesPerDay - Math.max(0, othersBytes)),
  };
}

async function knownRtts(
  loads: readonly SubnetLoad[],
  { delegations, putOff }: ReliefPorts,
  now: Date,
): Promise<{ readonly known: Map<SubnetId, Map<CrawlerId, number>> } & Pick<ReliefInput, "methods">> {
  const known = new Map<SubnetId, Map<CrawlerId, number>>();
  const methods = new Map<SubnetId, ProbeMethod>();
  for (const { subnetId, rttMs, crawlerId } of loads) {
    known.set(subnetId, new Map(rttMs === null ? [] : [[crawlerId, rttMs]]));
  }
  const subnetIds = [...known.keys()];
  for (let start = 0; start < subnetIds.length; start += batchSize) {
    const rtts = await delegations.probedRtts(subnetIds.slice(start, start + batchSize));
    for (const { subnetId, crawlerId, rttMs, method } of rtts) {
      known.get(subnetId)?.set(crawlerId, rttMs);
      methods.set(subnetId, method);
    }
  }
  for (const [subnetId, rtts] of known) {
    const believed = putOff.of(subnetId, now, methods.get(subnetId));
    for (const [crawlerId, rttMs] of believed) rtts.set(crawlerId, rttMs ?? unmeasurableMs);
  }
  return { known, methods };
}

/**
 * Who of these crawlers may not have a subnet, by what is probed in it; those that all may have are missing. While nobody
 * denies anything, nothing is read.
 */
export async function deniedIn(
  crawlersOf: ReadonlyMap<SubnetId, readonly CrawlerId[]>,
  {
    delegations,
    denied,
  }: { readonly delegations: Pick<DelegationStore, "targetsFor">; readonly denied?: DeniedTargets },
  now: Date,
): Promise<Map<SubnetId, Set<CrawlerId>>> {
  const found = new Map<SubnetId, Set<CrawlerId>>();
  if (!denied?.deniesAnything) return found;
  const note = (subnetId: SubnetId, isDenied: (crawlerId: CrawlerId) => boolean) => {
    const refused = crawlersOf.get(subnetId)!.filter(isDenied);
    if (refused.length > 0) found.set(subnetId, new Set([...(found.get(subnetId) ?? []), ...refused]));
  };
  const subnetIds = [...crawlersOf.keys()].filter((subnetId) => denied.concerns(subnetId));
  for (const subnetId of subnetIds) note(subnetId, (crawlerId) => denied.deniesSubnet(crawlerId, subnetId));
  for (let start = 0; start < subnetIds.length; start += batchSize) {
    for (const target of await delegations.targetsFor(subnetIds.slice(start, start + batchSize)))
      note(target.subnetId, (crawlerId) => denied.denies(crawlerId, target, now.getTime()));
  }
  return found;
}

// What the fleet has to fetch a day against what its partners allow: in pages, at the mean size of a page.

export interface FleetLoad {
  /** Crawlers that may take subnets. */
  readonly crawlers: readonly CrawlerRecord[];
  readonly loads: readonly CrawlerLoad[];
  /** Of a subnet that is to be placed; 0 where nothing is known. */
  readonly pagesOf: (subnetId: SubnetId) => number;
}

export function fleetLoad(
  crawlers: readonly CrawlerRecord[],
  loads: readonly CrawlerLoad[],
  subnets: readonly SubnetLoad[],
): FleetLoad {
  const pages = new Map(subnets.map(({ subnetId, pagesPerDay }) => [subnetId, pagesPerDay]));
  return { crawlers, loads, pagesOf: (subnetId) => pages.get(subnetId) ?? 0 };
}

/** Bytes of a page, over everything that the fleet fetches. */
function meanPageBytes(loads: readonly CrawlerLoad[]): number {
  const pages = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const bytes = loads.reduce((sum, { bytesPerDay }) => sum + bytesPerDay, 0);
  return pages > 0 && bytes > 0 ? bytes / pages : defaultMeanPageBytes;
}

/**
 * Pages a day that each crawler may still take; none for one that is full. Where all together may not take
 * what all have, everyone's capacity grows by the same factor.
 */
export function roomsOf({ crawlers, loads }: FleetLoad): Map<CrawlerId, number> {
  const pageBytes = meanPageBytes(loads);
  const load = new Map(loads.map(({ crawlerId, pagesPerDay }) => [crawlerId, pagesPerDay]));
  const total = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const capacities = crawlers.map((crawler) => effectiveCapacity(crawler, pageBytes));
  const carried = capacities.reduce((sum, capacity) => sum + capacity, 0);
  const factor = carried > 0 && total > carried ? total / carried : 1;
  return new Map(
    crawlers.map(({ crawlerId }, index) => [
      crawlerId,
      Math.max(0, (capacities[index] ?? 0) * factor - (load.get(crawlerId) ?? 0)),
    ]),
  );
}
