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
import { type BalanceInput, overloads } from "./plan.ts";

export type Rtts = Map<SubnetId, Map<CrawlerId, number>>;

export interface ReliefPorts {
  readonly state: CoordinatorState;
  readonly fleet: Pick<Fleet, "online">;
  readonly delegations: Pick<DelegationStore, "crawlerLoads" | "loads" | "probedRtts" | "targetsFor">;
  readonly putOff: PutOffMoves;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
  /** If omitted, no range counts as anycast. */
  readonly anycast?: AnycastRanges;
}

export interface ReliefInput extends BalanceInput {
  /** RTTs of the subnets. Later measurements are added. */
  readonly known: Rtts;
  /** The crawlers whose partners deny each subnet. Planning treats them as unable to measure it. */
  readonly denied: ReadonlyMap<SubnetId, ReadonlySet<CrawlerId>>;
  /** The method by which each subnet's RTTs were measured, the only comparable ones. Missing if nothing is known. */
  readonly methods: ReadonlyMap<SubnetId, ProbeMethod>;
}

/** Null if there is no overload to relieve and no subnet is away from home. */
export async function reliefInput(
  ports: ReliefPorts,
  recrawlDays: number,
  now: Date,
): Promise<ReliefInput | null> {
  const { state, delegations, anycast, fleet, putOff } = ports;
  const crawlers = recordsOf(fleet.online(), state).filter(({ drainingSince }) => drainingSince === null);
  const fleetLoads = new Map(
    (await delegations.crawlerLoads(recrawlDays)).map((load) => [load.crawlerId, load]),
  );
  const over = overloads(
    new Map(
      crawlers.map(({ crawlerId, pagesPerDay, bytesPerDay }) => {
        const { pagesPerDay: pages, bytesPerDay: bytes, subnets } = fleetLoads.get(crawlerId) ?? idle;
        return [crawlerId, { pages, bytes, subnets, mostPages: pagesPerDay, mostBytes: bytesPerDay }];
      }),
    ),
  );
  if (over.length === 0 && [...fleetLoads.values()].every(({ displaced }) => displaced === 0)) return null;
  const present = new Set(crawlers.map(({ crawlerId }) => crawlerId));
  const loads = (await delegations.loads(recrawlDays, over, { displaced: true })).filter(
    ({ subnetId, crawlerId }) =>
      present.has(crawlerId) && (over.includes(crawlerId) || !anycast?.has(subnetId)),
  );
  const known: Rtts = new Map(
    loads.map(({ subnetId, rttMs, crawlerId }) => [
      subnetId,
      new Map(rttMs === null ? [] : [[crawlerId, rttMs]]),
    ]),
  );
  const methods = new Map<SubnetId, ProbeMethod>();
  for (const some of batchesOf([...known.keys()])) {
    for (const { subnetId, crawlerId, rttMs, method } of await delegations.probedRtts(some)) {
      known.get(subnetId)?.set(crawlerId, rttMs);
      methods.set(subnetId, method);
    }
  }
  for (const [subnetId, rtts] of known)
    for (const [crawlerId, rttMs] of putOff.of(subnetId, now, methods.get(subnetId)))
      rtts.set(crawlerId, rttMs ?? unmeasurableMs);
  const denied = await deniedIn(new Map(loads.map(({ subnetId }) => [subnetId, [...present]])), ports, now);
  // An owner that was refused something keeps its subnet for now, since another round handles that.
  for (const { subnetId, crawlerId } of loads)
    if (!ports.denied?.deniesSubnet(crawlerId, subnetId)) denied.get(subnetId)?.delete(crawlerId);
  for (const [subnetId, crawlerIds] of denied)
    for (const crawlerId of crawlerIds) known.get(subnetId)?.set(crawlerId, unmeasurableMs);
  return {
    ...{ known, denied, methods },
    crawlers: crawlers.map((crawler) => roomFor(crawler, fleetLoads.get(crawler.crawlerId) ?? idle, loads)),
    subnets: loads.map(({ subnetId, crawlerId, pagesPerDay, bytesPerDay }) => ({
      ...{ subnetId, crawlerId, loadPagesPerDay: pagesPerDay, loadBytesPerDay: bytesPerDay },
      rttMs: known.get(subnetId)!,
    })),
    crawlerRttMs: (a, b) => state.peerRtts.rttMs(a, b) ?? undefined,
  };
}

const idle = { pagesPerDay: 0, bytesPerDay: 0, subnets: 0 };

/** The room that the limits leave for the planned subnets. */
function roomFor(
  { crawlerId, pagesPerDay, bytesPerDay }: CrawlerRecord,
  all: typeof idle,
  loads: readonly SubnetLoad[],
): BalanceInput["crawlers"][number] {
  const planned = loads.filter((load) => load.crawlerId === crawlerId);
  const room = (limit: number, figure: "pagesPerDay" | "bytesPerDay") =>
    Math.max(0, limit - Math.max(0, all[figure] - sumOf(planned, figure)));
  return {
    crawlerId,
    capacityPagesPerDay: room(pagesPerDay, "pagesPerDay"),
    capacityBytesPerDay: room(bytesPerDay, "bytesPerDay"),
  };
}

export function recordsOf(
  crawlerIds: readonly CrawlerId[],
  state: Pick<CoordinatorState, "crawler">,
): CrawlerRecord[] {
  return crawlerIds.map((crawlerId) => state.crawler(crawlerId)).filter((crawler) => crawler !== null);
}

const batchSize = 5000;

export function* batchesOf(subnetIds: readonly SubnetId[]): Generator<readonly SubnetId[]> {
  for (let start = 0; start < subnetIds.length; start += batchSize)
    yield subnetIds.slice(start, start + batchSize);
}

export interface DenialPorts {
  readonly delegations: Pick<DelegationStore, "targetsFor">;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
}

/**
 * Crawlers that may not have a subnet, judged by its probe target. Unrestricted subnets are missing. Reads nothing while no
 * crawler denies anything.
 */
async function deniedIn(
  crawlersOf: ReadonlyMap<SubnetId, readonly CrawlerId[]>,
  { delegations, denied }: DenialPorts,
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
  for (const some of batchesOf(subnetIds))
    for (const target of await delegations.targetsFor(some))
      note(target.subnetId, (crawlerId) => denied.denies(crawlerId, target, now.getTime()));
  return found;
}

/** Removes crawlers denied the subnet's probe target, and subnets for which no crawler is left. */
export async function withoutDenied(measured: Rtts, ports: DenialPorts, now: Date): Promise<void> {
  const crawlersOf = new Map([...measured].map(([subnetId, rtts]) => [subnetId, [...rtts.keys()]]));
  for (const [subnetId, refused] of await deniedIn(crawlersOf, ports, now)) {
    const rtts = measured.get(subnetId)!;
    for (const crawlerId of refused) rtts.delete(crawlerId);
    if (rtts.size === 0) measured.delete(subnetId);
  }
}

/**
 * Pages of the mean size per day that each crawler can still take. Full crawlers are left out. If the fleet is too small, all
 * capacities grow by the same factor.
 */
export function roomsOf(
  crawlers: readonly CrawlerRecord[],
  loads: readonly CrawlerLoad[],
): Map<CrawlerId, number> {
  const [pages, bytes] = [sumOf(loads, "pagesPerDay"), sumOf(loads, "bytesPerDay")];
  const pageBytes = pages > 0 && bytes > 0 ? bytes / pages : defaultMeanPageBytes;
  const load = new Map(loads.map(({ crawlerId, pagesPerDay }) => [crawlerId, pagesPerDay]));
  const capacityOf = ({ pagesPerDay, bytesPerDay }: CrawlerRecord) =>
    Math.min(pagesPerDay, Math.floor(bytesPerDay / pageBytes));
  const carried = crawlers.reduce((sum, crawler) => sum + capacityOf(crawler), 0);
  const factor = carried > 0 && pages > carried ? pages / carried : 1;
  return new Map(
    crawlers.map((crawler) => {
      const room = capacityOf(crawler) * factor - (load.get(crawler.crawlerId) ?? 0);
      return [crawler.crawlerId, Math.max(0, room)];
    }),
  );
}

export const sumOf = <Name extends string>(rows: readonly Readonly<Record<Name, number>>[], figure: Name) =>
  rows.reduce((sum, row) => sum + row[figure], 0);

// Remembers measurements for postponed moves for an hour, so that later passes do not plan the same moves again.

interface Attempt {
  /** Null if the crawler could not measure the subnet. */
  readonly rttMs: number | null;
  readonly method?: ProbeMethod;
}

const believedMs = 3_600_000;

export class PutOffMoves {
  readonly #attempts = new Map<SubnetId, Map<CrawlerId, Attempt & { readonly atMs: number }>>();

  note(
    { subnetId, to, ...attempt }: Attempt & { readonly subnetId: SubnetId; readonly to: CrawlerId },
    now: Date,
  ): void {
    const known = this.#attempts.get(subnetId) ?? new Map();
    this.#attempts.set(subnetId, known.set(to, { ...attempt, atMs: now.getTime() }));
  }

  /** Valid measurements by this method, or by any if omitted. Null for crawlers that could not measure. */
  of(subnetId: SubnetId, now: Date, method?: ProbeMethod): ReadonlyMap<CrawlerId, number | null> {
    const believed = new Map<CrawlerId, number | null>();
    for (const [crawlerId, attempt] of this.#attempts.get(subnetId) ?? []) {
      const isComparable = [attempt.method, method].includes(undefined) || attempt.method === method;
      if (isComparable && now.getTime() - attempt.atMs <= believedMs) believed.set(crawlerId, attempt.rttMs);
    }
    if (believed.size === 0) this.#attempts.delete(subnetId);
    return believed;
  }
}
