/**
 * Chooses the heirs of a crawler's subnets among those measured in the deciding rounds, at the least total cost
 * (design section 6), within their room. If the fleet is too small, all capacities grow equally.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { CrawlerRecord, LeaseReturns } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { deniedIn, type FleetLoad, fleetLoad, roomsOf } from "./input.ts";
import { planPlacement } from "./placement.ts";
import { type BalanceInput, type Move, noHysteresis, overloads } from "./plan.ts";

interface Heir {
  readonly subnetId: SubnetId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

interface HeirPorts {
  readonly delegations: Pick<DelegationStore, "probedRtts" | "targetsFor">;
  readonly state: Pick<CoordinatorState, "delegationOf">;
  readonly denied?: DeniedTargets;
}

/** Subnets whose RTTs are read at once. */
const batchSize = 5000;

/** One heir for each subnet measured by somebody with room; the others are missing. */
async function chooseHeirs(
  gone: { readonly crawlerId: CrawlerId; readonly subnets: readonly SubnetId[] },
  fleet: FleetLoad,
  ports: HeirPorts,
  now: Date,
): Promise<Heir[]> {
  const rooms = roomsOf(fleet);
  const known = await knownRtts(gone.subnets, new Set(rooms.keys()), ports);
  await withoutDenied(known, ports, now);
  const plan = planByMinCostFlow({
    crawlers: [...rooms].map(([crawlerId, room]) => ({ crawlerId, capacityPagesPerDay: room })),
    subnets: [...known].map(([subnetId, rttMs]) => ({
      subnetId,
      crawlerId: gone.crawlerId,
      loadPagesPerDay: fleet.pagesOf(subnetId),
      rttMs,
    })),
    // Predictions do not suffice to inherit; unmeasured subnets wait for a round.
    crawlerRttMs: () => undefined,
  });
  return plan.flatMap(({ subnetId, to }) => {
    const rttMs = known.get(subnetId)?.get(to);
    return rttMs === undefined ? [] : [{ subnetId, to, rttMs }];
  });
}

/** Possible heirs' RTTs from the latest rounds; subnets without any are omitted. */
async function knownRtts(
  subnets: readonly SubnetId[],
  heirs: ReadonlySet<CrawlerId>,
  { delegations, state }: HeirPorts,
): Promise<Map<SubnetId, Map<CrawlerId, number>>> {
  const known = new Map<SubnetId, Map<CrawlerId, number>>();
  const note = (subnetId: SubnetId, crawlerId: CrawlerId, rttMs: number) => {
    if (!heirs.has(crawlerId)) return;
    known.set(subnetId, (known.get(subnetId) ?? new Map<CrawlerId, number>()).set(crawlerId, rttMs));
  };
  for (const subnetId of subnets) {
    const delegation = state.delegationOf(subnetId);
    if (delegation?.runnerUpId == null || delegation.runnerUpRttMs === null) continue;
    note(subnetId, delegation.runnerUpId, delegation.runnerUpRttMs);
  }
  for (let start = 0; start < subnets.length; start += batchSize) {
    const rtts = await delegations.probedRtts(subnets.slice(start, start + batchSize));
    for (const { subnetId, crawlerId, rttMs } of rtts) note(subnetId, crawlerId, rttMs);
  }
  return known;
}

// Which measured crawlers may have a subnet by their partners' rules.

/** Removes crawlers denied the subnet's probe target, and subnets nobody is left for. Reads nothing while nobody denies anything. */
export async function withoutDenied(
  measured: Map<SubnetId, Map<CrawlerId, number>>,
  ports: { readonly delegations: Pick<DelegationStore, "targetsFor">; readonly denied?: DeniedTargets },
  now: Date,
): Promise<void> {
  const crawlersOf = new Map([...measured].map(([subnetId, rtts]) => [subnetId, [...rtts.keys()]]));
  for (const [subnetId, refused] of await deniedIn(crawlersOf, ports, now)) {
    const rtts = measured.get(subnetId)!;
    for (const crawlerId of refused) rtts.delete(crawlerId);
    if (rtts.size === 0) measured.delete(subnetId);
  }
}

// Subnets that change crawlers without a round: stored first, then updated in memory.

interface MovePorts {
  readonly delegations: Pick<DelegationStore, "move">;
  readonly state: CoordinatorState;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

/** Moves per transaction. */
const movesPerBatch = 1000;

/** Returns the moves made, whose former crawler still had the subnet. */
export async function makeMoves(
  moves: readonly DelegationMove[],
  ports: MovePorts,
  now: Date,
): Promise<SubnetId[]> {
  const made: SubnetId[] = [];
  for (let start = 0; start < moves.length; start += movesPerBatch) {
    const batch = moves.slice(start, start + movesPerBatch);
    const planned = new Map(batch.map((move) => [move.subnetId, move]));
    for (const subnetId of await ports.delegations.move(batch, now)) {
      rememberMove(planned.get(subnetId) as DelegationMove, ports);
      made.push(subnetId);
    }
  }
  return made;
}

/** An anycast range's crawler says nothing about distance, so later rounds must not learn from it. */
function rememberMove(move: DelegationMove, { state, anycast }: MovePorts): void {
  state.moveDelegation(move);
  const moved = anycast?.has(move.subnetId) ? state.delegationOf(move.subnetId) : null;
  if (moved?.measured) state.setDelegation({ ...moved, measured: false });
}

// Replaces a crawler that is gone or hands over: each subnet goes to another crawler measured in its deciding round.
// Subnets without such are left for a probe round, and those without a target go to the nearest crawler. The page's
// forecast (`successionOf`) and the action (`replaceCrawler`) use one plan.

interface SuccessionPorts {
  readonly delegations: Pick<DelegationStore, "probedRtts" | "crawlerLoads" | "loads" | "targetsFor">;
  readonly state: CoordinatorState;
  /** Crawlers that can take a subnet now. */
  readonly online: () => readonly CrawlerId[];
  readonly recrawlDays: () => number;
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
}

interface Succession {
  /** To crawlers that measured the subnet. */
  readonly inherited: readonly DelegationMove[];
  /** Of subnets without a probe target. */
  readonly given: readonly DelegationMove[];
  /** To be probed again. */
  readonly orphans: readonly SubnetId[];
}

/** Subnets without a known heir checked for targets at once. */
const orphansLookedAt = 2000;

/** Plans where a crawler's subnets go; writes nothing. */
async function planSuccession(gone: CrawlerId, ports: SuccessionPorts, now: Date): Promise<Succession> {
  const subnets = ports.state.subnetsOf(gone);
  const fleet = await loadOfHeirs(gone, ports);
  if (subnets.length === 0 || fleet.crawlers.length === 0)
    return { inherited: [], given: [], orphans: subnets };
  const heirs = await chooseHeirs({ crawlerId: gone, subnets }, fleet, ports, now);
  const inherited = heirs.map((heir) => moveOf(gone, heir, ports.state));
  const known = new Set(inherited.map(({ subnetId }) => subnetId));
  const rest = subnets.filter((subnetId) => !known.has(subnetId));
  const { targets, empty } = await withTargets(rest, ports);
  const given = toNeighbour(gone, empty, fleet, ports);
  return { inherited, given, orphans: targets };
}

/** One line of the forecast for a crawler's subnets. */
export interface HeirLine {
  /** Null when no heir is known, so that they are measured again. */
  readonly crawler: string | null;
  readonly subnets: number;
  /** True when the heir measured them; otherwise they have no target and it is the nearest. */
  readonly measured: boolean;
}

/** Largest share first, those to be measured again last; empty without subnets. */
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

export interface ReplaceCrawlerPorts extends SuccessionPorts {
  readonly delegations: SuccessionPorts["delegations"] & Pick<DelegationStore, "move">;
  readonly frontier: LeaseReturns;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

export interface Replaced {
  readonly returnedLeases: number;
  readonly moved: readonly SubnetId[];
  /** To be probed again. */
  readonly orphans: readonly SubnetId[];
}

/** A departed crawler's leases return; a draining one finishes its own. */
export async function replaceCrawler(
  gone: CrawlerId,
  ports: ReplaceCrawlerPorts,
  now: Date,
): Promise<Replaced> {
  const isGone = ports.state.crawler(gone)?.state === "offline";
  const returnedLeases = isGone ? await ports.frontier.returnLeasesOf(gone, now) : 0;
  const { inherited, given, orphans } = await planSuccession(gone, ports, now);
  const moved = await makeMoves([...inherited, ...given], ports, now);
  return { returnedLeases, moved, orphans };
}

async function loadOfHeirs(gone: CrawlerId, ports: SuccessionPorts): Promise<FleetLoad> {
  const { state, delegations, recrawlDays } = ports;
  const crawlers = ports
    .online()
    .filter((crawlerId) => crawlerId !== gone)
    .map((crawlerId) => state.crawler(crawlerId))
    .filter((crawler): crawler is CrawlerRecord => crawler !== null && crawler.state !== "draining");
  if (crawlers.length === 0) return fleetLoad([], [], []);
  const loads = await delegations.crawlerLoads(recrawlDays());
  return fleetLoad(crawlers, loads, await delegations.loads(recrawlDays(), [gone]));
}

/** Separates subnets with a probe target from those without resolved hosts. */
async function withTargets(
  subnets: readonly SubnetId[],
  { delegations }: SuccessionPorts,
): Promise<{ targets: SubnetId[]; empty: SubnetId[] }> {
  const [looked, later] = [subnets.slice(0, orphansLookedAt), subnets.slice(orphansLookedAt)];
  const found = new Set((await delegations.targetsFor(looked)).map(({ subnetId }) => subnetId));
  return {
    targets: [...looked.filter((subnetId) => found.has(subnetId)), ...later],
    empty: looked.filter((subnetId) => !found.has(subnetId)),
  };
}

/**
 * Gives subnets without targets to the crawler's nearest neighbours, those with room first and those at unknown
 * distance last. What nobody can reach stays.
 */
function toNeighbour(
  gone: CrawlerId,
  subnets: readonly SubnetId[],
  fleet: FleetLoad,
  { state, denied }: Pick<SuccessionPorts, "state" | "denied">,
): DelegationMove[] {
  const neighbours = [...roomsOf(fleet)]
    .map(([crawlerId, room]) => ({ crawlerId, room, rttMs: state.peerRtts.rttMs(gone, crawlerId) }))
    .sort(
      (a, b) =>
        Number(a.rttMs === null) - Number(b.rttMs === null) ||
        Number(a.room <= 0) - Number(b.room <= 0) ||
        (a.rttMs ?? 0) - (b.rttMs ?? 0) ||
        a.crawlerId - b.crawlerId,
    );
  return subnets.flatMap((subnetId) => {
    const next = neighbours.find(({ crawlerId }) => !denied?.deniesSubnet(crawlerId, subnetId));
    if (next === undefined) return [];
    const reason = `${whyOf(gone, state)}; this one is next to it, and there is nothing to probe`;
    return [{ subnetId, from: gone, to: next.crawlerId, cause: causeOf(gone, state), reason, rttMs: null }];
  });
}

function moveOf(gone: CrawlerId, { subnetId, to, rttMs }: Heir, state: CoordinatorState): DelegationMove {
  const reason = `${whyOf(gone, state)}; this one was the next best with room, at ${rttMs.toFixed(1)} ms`;
  return { subnetId, from: gone, to, cause: causeOf(gone, state), reason, rttMs };
}

const isDraining = (gone: CrawlerId, state: CoordinatorState) =>
  (state.crawler(gone)?.drainingSince ?? null) !== null;

const causeOf = (gone: CrawlerId, state: CoordinatorState) =>
  isDraining(gone, state) ? "drained" : "crawler-left";

const whyOf = (gone: CrawlerId, state: CoordinatorState) =>
  isDraining(gone, state) ? "its crawler hands its subnets over" : "its crawler is gone";

/** One plan without hysteresis. Nothing moves while nobody is overloaded; otherwise subnets may also go to a nearer crawler. */
export function planByMinCostFlow(input: BalanceInput): Move[] {
  const { moves } = planPlacement(input, noHysteresis);
  return overloads(input).length === 0 ? [] : [...moves];
}
