/**
 * Finds probe reports that are too fast to be true. If a crawler measures x to a target and a witness measures y, the
 * two are at most x + y apart (triangle inequality). D is the RTT that the *witness* measured to the crawler, since a
 * liar would adjust its own. Real paths violate the inequality, so D counts only in part. The speed of light counts,
 * too, if both state where they are. A report is impossible if x + y < 0.7 · D − 5 ms, or if x + y is less than light
 * takes in fibre between the two places.
 *
 * Nobody is accused of being too slow: busy machines, lossy links and changed routes slow honest crawlers down, and
 * whoever reports too much only loses subnets.
 *
 * If the path over a third crawler is shorter than D, that is used instead, because a bad route between two crawlers
 * does not show their distance. What the suspect's nearest witness measured is deducted, because a busy machine
 * answers late.
 *
 * One pair does not show which of the two is wrong. A report counts as impossible when most of the subnet's witnesses
 * contradict it. A crawler is accused when that happens on many subnets, by several witnesses, and far more often than
 * to honest crawlers in measured RTTs (test/bench/results/trust.md). The worst is accused first and then stops counting
 * as a witness.
 */

import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { PeerRtt } from "../../place/crawlers/crawler.ts";
import { type Coordinates, distanceKm, placeOf } from "../../place/delegation/anycast.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";

export interface ProbedSubnet {
  readonly subnetId: SubnetId;
  readonly probes: readonly { readonly crawlerId: CrawlerId; readonly rttMs: number }[];
}

export interface ProbingFleet {
  readonly crawlers: readonly CrawlerId[];
  /** RTT that the first measured to the second, in ms; null if unmeasured. */
  readonly rttMs: (from: CrawlerId, to: CrawlerId) => number | null;
  /** Coordinates as stated by the crawler's partner; otherwise null. */
  readonly placeOf: (crawlerId: CrawlerId) => Coordinates | null;
}

interface ProbeLie {
  readonly crawlerId: CrawlerId;
  readonly subnets: readonly SubnetId[];
  /** On how many subnets an impossible report would show. */
  readonly tested: number;
}

const rule = {
  /** The share of D that counts. */
  trust: 0.7,
  /** Minimum number of subnets with impossible reports. */
  leastSubnets: 10,
  /** Minimum share of the tested subnets. */
  leastShare: 0.4,
  /** Minimum number of witnesses, each on several subnets. */
  leastWitnesses: 2,
  leastOfWitness: 3,
};

/** Returns the crawlers with impossible reports, the worst first. */
export function probeLies(subnets: readonly ProbedSubnet[], fleet: ProbingFleet): ProbeLie[] {
  const accused: ProbeLie[] = [];
  for (;;) {
    const excluded = new Set(accused.map(({ crawlerId }) => crawlerId));
    const worst = worstOf(tally(subnets, { fleet, excluded }));
    if (worst === null) return accused;
    accused.push(worst);
  }
}

interface Tally {
  readonly crawlerId: CrawlerId;
  readonly subnets: Set<SubnetId>;
  readonly tested: Set<SubnetId>;
  /** How often each witness contradicted the crawler. */
  readonly witnesses: Map<CrawlerId, number>;
}

interface TallyContext {
  readonly fleet: ProbingFleet;
  readonly excluded: ReadonlySet<CrawlerId>;
}

function worstOf(tallies: Iterable<Tally>): ProbeLie | null {
  let worst: ProbeLie | null = null;
  for (const { crawlerId, subnets, tested, witnesses } of tallies) {
    const heard = [...witnesses.values()].filter((times) => times >= rule.leastOfWitness);
    if (subnets.size < rule.leastSubnets || heard.length < rule.leastWitnesses) continue;
    if (subnets.size < rule.leastShare * tested.size) continue;
    if (worst !== null && subnets.size <= worst.subnets.length) continue;
    worst = { crawlerId, subnets: [...subnets], tested: tested.size };
  }
  return worst;
}

function tally(subnets: readonly ProbedSubnet[], context: TallyContext): Iterable<Tally> {
  const tallies = new Map<CrawlerId, Tally>();
  for (const { subnetId, probes } of subnets) {
    for (const { crawlerId, rttMs } of probes) {
      if (context.excluded.has(crawlerId)) continue;
      const heard = testimonies({ crawlerId, rttMs }, probes, context);
      if (heard.length === 0) continue;
      const against = heard.filter((one) => one.isImpossible);
      const mine = tallyOf(tallies, crawlerId);
      mine.tested.add(subnetId);
      if (2 * against.length <= heard.length) continue;
      mine.subnets.add(subnetId);
      for (const { witness } of against) mine.witnesses.set(witness, (mine.witnesses.get(witness) ?? 0) + 1);
    }
  }
  return tallies.values();
}

function tallyOf(tallies: Map<CrawlerId, Tally>, crawlerId: CrawlerId): Tally {
  const known = tallies.get(crawlerId);
  if (known !== undefined) return known;
  const fresh = {
    crawlerId,
    subnets: new Set<SubnetId>(),
    tested: new Set<SubnetId>(),
    witnesses: new Map<CrawlerId, number>(),
  };
  tallies.set(crawlerId, fresh);
  return fresh;
}

interface Testimony {
  readonly witness: CrawlerId;
  readonly isImpossible: boolean;
}

/** Tolerance for honest reports: jitter and the machine's own work. */
const marginMs = 5;

/** Keeps reports that could reveal a lie. A witness close to both proves nothing. */
function testimonies(
  suspect: Report,
  probes: ProbedSubnet["probes"],
  { fleet, excluded }: TallyContext,
): Testimony[] {
  return probes.flatMap((witness): Testimony[] => {
    if (witness.crawlerId === suspect.crawlerId || excluded.has(witness.crawlerId)) return [];
    const { crawlerId: name } = witness;
    const leastBy = (apartMs: number | null) => leastMs(suspect, witness, apartMs, fleet);
    const straight = leastBy(fleet.rttMs(name, suspect.crawlerId));
    // Searches for detours only if the direct way implies a lie, since the search scans the whole fleet.
    const isSuspect = suspect.rttMs < straight;
    const bound = isSuspect ? leastBy(shortestMs(name, suspect.crawlerId, fleet)) : straight;
    return bound > leastTellingMs ? [{ witness: name, isImpossible: suspect.rttMs < bound }] : [];
  });
}

type Report = ProbedSubnet["probes"][number];

/** The minimum RTT that the suspect can have measured. */
function leastMs(suspect: Report, witness: Report, apartMs: number | null, fleet: ProbingFleet): number {
  const byTriangleMs = apartMs === null ? 0 : rule.trust * apartMs - marginMs;
  return Math.max(byTriangleMs, byLightMs(suspect.crawlerId, witness.crawlerId, fleet)) - witness.rttMs;
}

/**
 * A lower bound of the distance between suspect and witness by others' measurements, directly or over a third
 * crawler. It is reduced by the possible delay of the suspect's machine, which is at most what its nearest witness
 * measured.
 */
function shortestMs(witness: CrawlerId, suspect: CrawlerId, fleet: ProbingFleet): number | null {
  let shortest = fleet.rttMs(witness, suspect);
  let nearest = shortest ?? Number.POSITIVE_INFINITY;
  for (const over of fleet.crawlers) {
    const rest = over === witness || over === suspect ? null : fleet.rttMs(over, suspect);
    if (rest === null) continue;
    nearest = Math.min(nearest, rest);
    const first = fleet.rttMs(witness, over);
    if (first !== null) shortest = Math.min(shortest ?? Number.POSITIVE_INFINITY, first + rest);
  }
  return shortest === null ? null : shortest - nearest;
}

/** Lower bounds up to this prove nothing, since every answer takes longer. */
const leastTellingMs = 2;

/** Kilometres in glass per ms of round trip, and the tolerance for a stated location. */
const kmPerRoundTripMs = 100;
const placeSlackKm = 200;

function byLightMs(a: CrawlerId, b: CrawlerId, fleet: ProbingFleet): number {
  const [placeA, placeB] = [fleet.placeOf(a), fleet.placeOf(b)];
  if (placeA === null || placeB === null) return 0;
  return Math.max(0, distanceKm(placeA, placeB) - placeSlackKm) / kmPerRoundTripMs;
}

// Excludes crawlers with impossible probe reports from rounds, has the subnets that they won probed again, and tells
// the operator. Second witnesses cover what a crawler may win on a few chosen subnets
// (delegation/policies/policies).

interface WatchProbesPorts {
  readonly trust: {
    probedSubnets(since: Date): Promise<ReadonlyMap<unknown, readonly ProbedSubnet[]>>;
    /** Returns false if the crawler's probes were doubted before. */
    doubtProbes(doubt: { crawlerId: CrawlerId; words: string; now: Date }): Promise<boolean>;
  };
  readonly state: CoordinatorState;
  /** RTTs by direction, as the first crawler measured them to the second. */
  readonly peerRtts: () => Promise<readonly PeerRtt[]>;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  readonly incidents: IncidentNotes;
  readonly log: Log;
  readonly now: () => Date;
}

/** Older reports are not compared with the present RTTs, because routes change. */
const probesDays = 7;

/** Returns the crawlers that were not distrusted before. */
export async function doubtImpossibleProbes(ports: WatchProbesPorts): Promise<CrawlerId[]> {
  const { trust, now } = ports;
  const since = new Date(now().getTime() - probesDays * 86_400_000);
  const subnetsBy = await trust.probedSubnets(since);
  if (subnetsBy.size === 0) return [];
  const fleet = fleetOf(await ports.peerRtts(), ports.state);
  const lies = [...subnetsBy.values()].flatMap((subnets) => probeLies(subnets, fleet));
  const doubted: CrawlerId[] = [];
  for (const lie of lies) if (await doubt(lie, ports)) doubted.push(lie.crawlerId);
  return doubted;
}

function fleetOf(peerRtts: readonly PeerRtt[], state: CoordinatorState): ProbingFleet {
  const between = new Map(peerRtts.map(({ from, to, rttMs }) => [`${from} ${to}`, rttMs]));
  return {
    crawlers: state.crawlers.map(({ crawlerId }) => crawlerId),
    rttMs: (from, to) => between.get(`${from} ${to}`) ?? null,
    placeOf: (crawlerId) => placeOf(crawlerId, state),
  };
}

async function doubt(lie: ProbeLie, ports: WatchProbesPorts): Promise<boolean> {
  const { trust, state, request, incidents, log, now } = ports;
  const { crawlerId, subnets } = lie;
  const words = lieWords(lie);
  if (!(await trust.doubtProbes({ crawlerId, words, now: now() }))) return false;
  const crawler = state.crawler(crawlerId)?.name ?? String(crawlerId);
  log.warn({ crawlerId, crawler, words }, "a crawler's probe reports are no longer trusted");
  incidents.note({
    crawlerId,
    kind: "wrong-probe",
    words: `${words}. See nearcrawl fleet show ${crawler}`,
    remoteAddress: null,
    at: now(),
  });
  const won = subnets.filter((subnetId) => state.ownerOf(subnetId) === crawlerId);
  request(won, "refresh");
  return true;
}

const lieWords = ({ subnets, tested }: ProbeLie): string =>
  "it reports round-trip times that are too short to be possible, or it is not where its partner says, " +
  `on ${subnets.length} of the ${tested} subnets where others can tell`;
