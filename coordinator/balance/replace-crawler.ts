/**
 * A crawler is gone, or hands over: each of its subnets goes to another that the deciding round has measured
 * (choose-heirs), without a new probe. Subnets of which nothing is known of the others are left for a probe
 * round, and those that nothing can be probed in go to the crawler next to it. The leases of one that is gone
 * return; one that is still there finishes its own.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { CrawlerRecord } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove, DelegationStore } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { FrontierStore } from "../frontier/ports.ts";
import { type FleetLoad, fleetLoad, roomsOf } from "./fleet-load.ts";
import { makeMoves } from "./make-moves.ts";
import { chooseHeirs, type Heir } from "./successors.ts";

export interface ReplaceCrawlerPorts {
  readonly delegations: Pick<
    DelegationStore,
    "move" | "probedRtts" | "crawlerLoads" | "loads" | "targetsFor"
  >;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  readonly state: CoordinatorState;
  /** Crawlers that may take a subnet now. */
  readonly online: () => readonly CrawlerId[];
  readonly recrawlDays: number;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
}

export interface Replaced {
  readonly returnedLeases: number;
  readonly moved: readonly SubnetId[];
  /** To be probed anew. */
  readonly orphans: readonly SubnetId[];
}

/** Subnets without a known heir that are looked up at once, for something to probe in them. */
const orphansLookedAt = 2000;

export async function replaceCrawler(
  gone: CrawlerId,
  ports: ReplaceCrawlerPorts,
  now: Date,
): Promise<Replaced> {
  const isGone = ports.state.crawler(gone)?.state === "offline";
  const returnedLeases = isGone ? await ports.frontier.returnLeasesOf(gone, now) : 0;
  const subnets = ports.state.subnetsOf(gone);
  const fleet = await loadOfHeirs(gone, ports);
  if (subnets.length === 0 || fleet.crawlers.length === 0) {
    return { returnedLeases, moved: [], orphans: subnets };
  }
  const heirs = await chooseHeirs({ crawlerId: gone, subnets }, fleet, ports, now);
  const moves = heirs.map((heir) => moveOf(gone, heir, ports.state));
  const inherited = new Set(await makeMoves(moves, ports, now));
  const rest = subnets.filter((subnetId) => !inherited.has(subnetId));
  const { targets, empty } = await withTargets(rest, ports);
  const given = await makeMoves(toNeighbour(gone, empty, fleet, ports.state), ports, now);
  return { returnedLeases, moved: [...inherited, ...given], orphans: targets };
}

async function loadOfHeirs(gone: CrawlerId, ports: ReplaceCrawlerPorts): Promise<FleetLoad> {
  const { state, delegations, recrawlDays } = ports;
  const crawlers = ports
    .online()
    .filter((crawlerId) => crawlerId !== gone)
    .map((crawlerId) => state.crawler(crawlerId))
    .filter((crawler): crawler is CrawlerRecord => crawler !== null && crawler.state !== "draining");
  if (crawlers.length === 0) return fleetLoad([], [], []);
  const loads = await delegations.crawlerLoads(recrawlDays);
  return fleetLoad(crawlers, loads, await delegations.loads(recrawlDays, [gone]));
}

/** Subnets with something to probe, and those in which nothing was ever resolved. */
async function withTargets(
  subnets: readonly SubnetId[],
  { delegations }: ReplaceCrawlerPorts,
): Promise<{ targets: SubnetId[]; empty: SubnetId[] }> {
  const [looked, later] = [subnets.slice(0, orphansLookedAt), subnets.slice(orphansLookedAt)];
  const found = new Set((await delegations.targetsFor(looked)).map(({ subnetId }) => subnetId));
  return {
    targets: [...looked.filter((subnetId) => found.has(subnetId)), ...later],
    empty: looked.filter((subnetId) => !found.has(subnetId)),
  };
}

/** To whoever is nearest to the crawler itself and has room: there is nothing to measure, and nothing to lose. */
function toNeighbour(
  gone: CrawlerId,
  subnets: readonly SubnetId[],
  fleet: FleetLoad,
  state: CoordinatorState,
): DelegationMove[] {
  const rooms = roomsOf(fleet);
  const distanceMs = (crawlerId: CrawlerId) =>
    state.peerRtts.rttMs(gone, crawlerId) ?? Number.POSITIVE_INFINITY;
  const [neighbour] = [...rooms.keys()]
    .filter((crawlerId) => (rooms.get(crawlerId) ?? 0) > 0)
    .sort((a, b) => distanceMs(a) - distanceMs(b) || a - b);
  if (neighbour === undefined) return [];
  return subnets.map((subnetId) => ({
    subnetId,
    from: gone,
    to: neighbour,
    cause: causeOf(gone, state),
    reason: `${whyOf(gone, state)}; this one is next to it, and there is nothing to probe`,
    rttMs: null,
  }));
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
