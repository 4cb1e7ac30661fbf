/**
 * Hands over the subnets of draining crawlers and of those absent beyond the grace time. Each subnet goes to another
 * crawler measured in its deciding round, at the least total cost and within the heirs' room (design section 6).
 * Subnets without such an heir are probed again at a limited rate, so that a large crawler's end causes no storm of
 * probes, and those without a probe target go to the nearest crawler.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { LeaseReturns } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove } from "../delegation/delegation.ts";
import type { DelegationQueue } from "../delegation/queue.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { batchesOf, type DenialPorts, type Rtts, recordsOf, roomsOf, withoutDenied } from "./input.ts";
import { planPlacement } from "./placement.ts";
import { noHysteresis } from "./plan.ts";
import { type DepartureRule, departedCrawlers, refreshCrawlers } from "./presence.ts";

interface MovePorts {
  readonly delegations: Pick<DelegationStore, "move">;
  readonly state: CoordinatorState;
  /** If omitted, no range counts as anycast. */
  readonly anycast?: AnycastRanges;
}

const movesPerBatch = 1000;

/**
 * Moves subnets without a round: first in the database, then in memory. Returns the moves made, which are those whose former
 * crawler still had the subnet.
 */
export async function makeMoves(
  moves: readonly DelegationMove[],
  { delegations, state, anycast }: MovePorts,
  now: Date,
): Promise<SubnetId[]> {
  const made: SubnetId[] = [];
  const planned = new Map(moves.map((move) => [move.subnetId, move]));
  for (let start = 0; start < moves.length; start += movesPerBatch) {
    for (const subnetId of await delegations.move(moves.slice(start, start + movesPerBatch), now)) {
      made.push(subnetId);
      state.moveDelegation(planned.get(subnetId)!);
      // The crawler of an anycast range shows nothing about distance, so later rounds must not learn from it.
      const moved = anycast?.has(subnetId) ? state.delegationOf(subnetId) : null;
      if (moved?.measured) state.setDelegation({ ...moved, measured: false });
    }
  }
  return made;
}

interface SuccessionPorts extends DenialPorts {
  readonly delegations: Pick<DelegationStore, "probedRtts" | "crawlerLoads" | "loads" | "targetsFor">;
  readonly state: CoordinatorState;
  readonly online: () => readonly CrawlerId[];
  readonly recrawlDays: () => number;
}

interface Succession {
  /** Moves to crawlers that measured the subnet. */
  readonly inherited: readonly DelegationMove[];
  /** Moves of subnets without a probe target. */
  readonly given: readonly DelegationMove[];
  readonly orphans: readonly SubnetId[];
}

/** How many subnets without a known heir are checked for targets at once. */
const orphansLookedAt = 2000;

/** Plans where a crawler's subnets go, for the page's forecast and for the hand-over. Writes nothing. */
async function planSuccession(gone: CrawlerId, ports: SuccessionPorts, now: Date): Promise<Succession> {
  const { state, delegations, recrawlDays } = ports;
  const subnets = state.subnetsOf(gone);
  const heirs = recordsOf(ports.online(), state).filter(
    (crawler) => crawler.crawlerId !== gone && crawler.state !== "draining",
  );
  if (subnets.length === 0 || heirs.length === 0) return { inherited: [], given: [], orphans: subnets };
  const rooms = roomsOf(heirs, await delegations.crawlerLoads(recrawlDays()));
  const isDraining = (state.crawler(gone)?.drainingSince ?? null) !== null;
  const why = isDraining ? "its crawler hands its subnets over" : "its crawler is gone";
  const move = (subnetId: SubnetId, to: CrawlerId, rttMs: number | null, reason: string) =>
    ({ subnetId, from: gone, to, rttMs, cause: causeOf(isDraining), reason: `${why}; ${reason}` }) as const;

  const known = await knownRtts(subnets, rooms, ports);
  await withoutDenied(known, ports, now);
  const loads = await delegations.loads(recrawlDays(), [gone]);
  const pagesOf = new Map(loads.map(({ subnetId, pagesPerDay }) => [subnetId, pagesPerDay]));
  const plan = planPlacement(
    {
      crawlers: [...rooms].map(([crawlerId, room]) => ({ crawlerId, capacityPagesPerDay: room })),
      subnets: [...known].map(([subnetId, rttMs]) => ({
        ...{ subnetId, crawlerId: gone, loadPagesPerDay: pagesOf.get(subnetId) ?? 0, rttMs },
      })),
      // A predicted RTT is not enough to inherit a subnet. Unmeasured subnets wait for a round.
      crawlerRttMs: () => undefined,
    },
    noHysteresis,
  );
  const inherited = plan.moves.flatMap(({ subnetId, to }) => {
    const rttMs = known.get(subnetId)?.get(to);
    if (rttMs === undefined) return [];
    return [move(subnetId, to, rttMs, `this one was the next best with room, at ${rttMs.toFixed(1)} ms`)];
  });

  const isKnown = new Set(inherited.map(({ subnetId }) => subnetId));
  const rest = subnets.filter((subnetId) => !isKnown.has(subnetId));
  const looked = rest.slice(0, orphansLookedAt);
  const hasTarget = new Set((await delegations.targetsFor(looked)).map(({ subnetId }) => subnetId));
  const nearest = nearestOf(gone, rooms, state);
  const given = looked.flatMap((subnetId) => {
    if (hasTarget.has(subnetId)) return [];
    const next = nearest.find((crawlerId) => !ports.denied?.deniesSubnet(crawlerId, subnetId));
    if (next === undefined) return [];
    return [move(subnetId, next, null, "this one is next to it, and there is nothing to probe")];
  });
  const orphans = rest.filter((subnetId, at) => at >= orphansLookedAt || hasTarget.has(subnetId));
  return { inherited, given, orphans };
}

const causeOf = (isDraining: boolean) => (isDraining ? "drained" : "crawler-left");

/** Possible heirs' RTTs from the latest rounds. Subnets without any RTT are omitted. */
async function knownRtts(
  subnets: readonly SubnetId[],
  heirs: ReadonlyMap<CrawlerId, number>,
  { delegations, state }: SuccessionPorts,
): Promise<Rtts> {
  const known: Rtts = new Map();
  const note = (subnetId: SubnetId, crawlerId: CrawlerId | null, rttMs: number | null) => {
    if (crawlerId === null || rttMs === null || !heirs.has(crawlerId)) return;
    known.set(subnetId, (known.get(subnetId) ?? new Map<CrawlerId, number>()).set(crawlerId, rttMs));
  };
  for (const subnetId of subnets) {
    const { runnerUpId = null, runnerUpRttMs = null } = state.delegationOf(subnetId) ?? {};
    note(subnetId, runnerUpId, runnerUpRttMs);
  }
  for (const some of batchesOf(subnets))
    for (const { subnetId, crawlerId, rttMs } of await delegations.probedRtts(some))
      note(subnetId, crawlerId, rttMs);
  return known;
}

/** The crawlers near a crawler, those with room first and those at an unknown distance last. */
function nearestOf(
  gone: CrawlerId,
  rooms: ReadonlyMap<CrawlerId, number>,
  { peerRtts }: CoordinatorState,
): CrawlerId[] {
  return [...rooms]
    .map(([crawlerId, room]) => ({ crawlerId, room, rttMs: peerRtts.rttMs(gone, crawlerId) }))
    .sort(
      (a, b) =>
        Number(a.rttMs === null) - Number(b.rttMs === null) ||
        Number(a.room <= 0) - Number(b.room <= 0) ||
        (a.rttMs ?? 0) - (b.rttMs ?? 0) ||
        a.crawlerId - b.crawlerId,
    )
    .map(({ crawlerId }) => crawlerId);
}

/** One line of the forecast for a crawler's subnets. */
export interface HeirLine {
  /** Null if no heir is known, so that the subnets are measured again. */
  readonly crawler: string | null;
  readonly subnets: number;
  /** True if the heir measured the subnets. If false, they have no target and the heir is the nearest crawler. */
  readonly measured: boolean;
}

/** Largest share first, those to be measured again last. Empty if the crawler has no subnets. */
export async function successionOf(
  crawlerId: CrawlerId,
  ports: SuccessionPorts,
  now: Date,
): Promise<HeirLine[]> {
  const { inherited, given, orphans } = await planSuccession(crawlerId, ports, now);
  const nameOf = (id: CrawlerId) => ports.state.crawler(id)?.name ?? `crawler ${id}`;
  const lines = [inherited, given].flatMap((moves, index) => {
    const counts = new Map<CrawlerId, number>();
    for (const { to } of moves) counts.set(to, (counts.get(to) ?? 0) + 1);
    return [...counts].map(([to, subnets]) => ({ crawler: nameOf(to), subnets, measured: index === 0 }));
  });
  const listed = lines.toSorted((a, b) => b.subnets - a.subnets || (a.crawler < b.crawler ? -1 : 1));
  if (orphans.length === 0) return listed;
  return [...listed, { crawler: null, subnets: orphans.length, measured: false }];
}

interface ReplacePorts extends SuccessionPorts, MovePorts {
  readonly delegations: SuccessionPorts["delegations"] & MovePorts["delegations"];
  readonly frontier: LeaseReturns;
}

/** Replaces a crawler. A departed crawler's leases are returned, while a draining one finishes its own. */
export async function replaceCrawler(gone: CrawlerId, ports: ReplacePorts, now: Date) {
  const isGone = ports.state.crawler(gone)?.state === "offline";
  const returnedLeases = isGone ? await ports.frontier.returnLeasesOf(gone, now) : 0;
  const { inherited, given, orphans } = await planSuccession(gone, ports, now);
  const moved = await makeMoves([...inherited, ...given], ports, now);
  return { returnedLeases, moved, orphans };
}

export interface HandOverPorts extends ReplacePorts {
  readonly crawlers: Pick<CrawlerStore, "mustJoin" | "list">;
  readonly queue: Pick<DelegationQueue, "request">;
  readonly onMoved: (cause: "crawler-left" | "drained", subnets: number) => void;
  readonly log: Log;
  readonly now: () => Date;
}

/** Rounds requested per pass, for all crawlers. */
const roundsPerPass = 40;
/** Time after which the remaining subnets are planned and probed again, when other crawlers may have room. */
const planAgainMs = 60_000;

export class HandOvers {
  readonly #ports: HandOverPorts;
  readonly #rule: DepartureRule;
  /** For each crawler, the subnets for which the last plan requested no round, and the time of that plan. */
  readonly #left = new Map<CrawlerId, { readonly orphans: SubnetId[]; readonly atMs: number }>();
  /** Number of orphans of each crawler when last reported. They are reported once, since they may stay for long. */
  readonly #reported = new Map<CrawlerId, number>();

  constructor(ports: HandOverPorts, rule: DepartureRule) {
    this.#ports = ports;
    this.#rule = rule;
  }

  async pass(): Promise<void> {
    const { online, queue } = this.#ports;
    const now = this.#ports.now();
    const leaving = this.#leaving(now);
    for (const crawlerId of this.#left.keys()) if (!leaving.includes(crawlerId)) this.#left.delete(crawlerId);
    let rounds = roundsPerPass;
    for (const crawlerId of leaving) {
      if (online().every((other) => other === crawlerId)) continue;
      const plannedAtMs = this.#left.get(crawlerId)?.atMs ?? Number.NEGATIVE_INFINITY;
      if (now.getTime() - plannedAtMs >= planAgainMs) {
        // The crawler may have connected meanwhile, here or to another coordinator.
        await refreshCrawlers(this.#ports, [crawlerId]);
        if (!this.#leaving(now).includes(crawlerId)) continue;
        await this.#replace(crawlerId, now);
      }
      const orphans = this.#left.get(crawlerId)?.orphans.splice(0, Math.max(0, rounds)) ?? [];
      if (orphans.length > 0) queue.request(orphans, causeOf(this.#isDraining(crawlerId)));
      rounds -= orphans.length;
    }
  }

  /** Draining crawlers come first, because somebody waits for them. */
  #leaving(now: Date): CrawlerId[] {
    const { state } = this.#ports;
    const draining = state.crawlers
      .map(({ crawlerId }) => crawlerId)
      .filter((crawlerId) => this.#isDraining(crawlerId) && state.subnetCountOf(crawlerId) > 0);
    return [...new Set([...draining, ...departedCrawlers(state, this.#rule, now)])];
  }

  #isDraining(crawlerId: CrawlerId): boolean {
    return (this.#ports.state.crawler(crawlerId)?.drainingSince ?? null) !== null;
  }

  async #replace(crawlerId: CrawlerId, now: Date): Promise<void> {
    const { crawlers, onMoved, log } = this.#ports;
    const { moved, orphans, returnedLeases } = await replaceCrawler(crawlerId, this.#ports, now);
    this.#left.set(crawlerId, { orphans: [...orphans], atMs: now.getTime() });
    if (moved.length > 0) {
      onMoved(causeOf(this.#isDraining(crawlerId)), moved.length);
      await crawlers.mustJoin(crawlerId, now);
      await refreshCrawlers(this.#ports, [crawlerId]);
    }
    const isOld = moved.length + returnedLeases === 0 && this.#reported.get(crawlerId) === orphans.length;
    this.#reported.set(crawlerId, orphans.length);
    if (isOld) return;
    const counts = { crawlerId, moved: moved.length, orphans: orphans.length, returnedLeases };
    if (this.#isDraining(crawlerId)) log.warn(counts, "a crawler hands over, its subnets go to others");
    else log.warn(counts, "a crawler is gone, its subnets go to others");
  }
}
