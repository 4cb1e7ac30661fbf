/**
 * Collects the input of balancing (design section 6). While nobody is overloaded and no subnet is away from home, it
 * only reads one sum over the hosts. Otherwise it reads every subnet of overloaded crawlers and every displaced one,
 * and of other crawlers only their room.
 *
 * Offline and draining crawlers are excluded, since hand-overs move their subnets. So are anycast ranges of crawlers
 * that are not overloaded, because they have no home.
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
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

export interface ReliefInput extends BalanceInput {
  /** Crawlers denied each subnet by their partners; planning treats them as unable to measure it. */
  readonly denied: ReadonlyMap<SubnetId, ReadonlySet<CrawlerId>>;
  /** The method by which each subnet's RTTs were measured; only these are comparable. Missing when nothing is known. */
  readonly methods: ReadonlyMap<SubnetId, ProbeMethod>;
}

/** Subnets whose RTTs or targets are read at once. */
const batchSize = 5000;

/** Null when there is nothing to relieve and nothing away from home. */
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
  // An owner that was refused something keeps its subnet for now, since another round handles that.
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
    // Whether a crawler is overloaded does not depend on how its load is divided, so it counts as one subnet.
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

/** What the limits leave for the planned subnets. */
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
 * Crawlers that may not have a subnet, judged by its probe target; unrestricted subnets are missing. Reads nothing
 * while nobody denies anything.
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

// The fleet's daily fetches against its partners' limits, in pages of the mean size.

export interface FleetLoad {
  /** Crawlers that may take subnets. */
  readonly crawlers: readonly CrawlerRecord[];
  readonly loads: readonly CrawlerLoad[];
  /** Load of a subnet to be placed; 0 when unknown. */
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

/** Mean page size over the fleet's fetches. */
function meanPageBytes(loads: readonly CrawlerLoad[]): number {
  const pages = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const bytes = loads.reduce((sum, { bytesPerDay }) => sum + bytesPerDay, 0);
  return pages > 0 && bytes > 0 ? bytes / pages : defaultMeanPageBytes;
}

/**
 * Pages per day that each crawler can still take; full ones have none. If the fleet is too small, all capacities grow
 * by the same factor.
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
