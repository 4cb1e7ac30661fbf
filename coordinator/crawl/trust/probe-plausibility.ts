/**
 * Probe reports that are too fast to be true. Where a crawler measured x to a target, and a witness y, the two are at
 * most x + y apart (triangle inequality); D is what the *witness* measured to the crawler, for a liar would state it to
 * fit. Real paths violate the inequality, so it is believed in part only; light is believed as far as both state where
 * they are. Impossible is x + y < 0.7 · D − 5 ms, or less than light takes in fibre between the two places.
 *
 * Nobody is accused of being too slow. A busy machine, a lossy link and a way that has changed since D was measured make
 * honest crawlers so, and whoever reports too much only loses subnets by it.
 *
 * Where the way over a third crawler is shorter than D, that is taken: a bad route between two is not their distance.
 * And less is taken by what the suspect's nearest witness measured: a busy machine answers everybody late.
 *
 * One pair does not tell which of the two is wrong. A report counts as impossible when most of the subnet's witnesses
 * say so, and a crawler is accused when that happened on many distinct subnets, by several different witnesses, and
 * far more often than honest crawlers come to on measured round trips (test/bench/results/trust.md). The one with the
 * most is accused first and is no witness any more.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import { type Coordinates, distanceKm } from "../../place/delegation/anycast.ts";

export interface ProbedSubnet {
  readonly subnetId: SubnetId;
  readonly probes: readonly { readonly crawlerId: CrawlerId; readonly rttMs: number }[];
}

export interface ProbingFleet {
  readonly crawlers: readonly CrawlerId[];
  /** RTT measured by the first to the second, in ms; null when unmeasured. */
  readonly rttMs: (from: CrawlerId, to: CrawlerId) => number | null;
  /** As its partner states it; otherwise null. */
  readonly placeOf: (crawlerId: CrawlerId) => Coordinates | null;
}

export interface ProbeLie {
  readonly crawlerId: CrawlerId;
  /** Subnets on which its report cannot be true. */
  readonly subnets: readonly SubnetId[];
  /** Subnets on which an impossible report would show. */
  readonly tested: number;
}

const rule = {
  /** The part of D that is believed. */
  trust: 0.7,
  /** Minimum distinct subnets with impossible reports. */
  leastSubnets: 10,
  /** Minimum share of the tested subnets. */
  leastShare: 0.4,
  /** Minimum different witnesses, each on several subnets. */
  leastWitnesses: 2,
  leastOfWitness: 3,
};

/** Crawlers with impossible reports, the worst first. */
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
  /** Contradictions per witness. */
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

/** Tolerance between honest reports: jitter and the machine's work. */
const marginMs = 5;

/** Keeps reports that could reveal a lie; a witness beside both proves nothing. */
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
    // Searches for detours only when the direct way implies a lie, since that scans the whole fleet.
    const isSuspect = suspect.rttMs < straight;
    const bound = isSuspect ? leastBy(shortestMs(name, suspect.crawlerId, fleet)) : straight;
    return bound > leastTellingMs ? [{ witness: name, isImpossible: suspect.rttMs < bound }] : [];
  });
}

type Report = ProbedSubnet["probes"][number];

/** The least RTT that the suspect can have measured. */
function leastMs(suspect: Report, witness: Report, apartMs: number | null, fleet: ProbingFleet): number {
  const byTriangleMs = apartMs === null ? 0 : rule.trust * apartMs - marginMs;
  return Math.max(byTriangleMs, byLightMs(suspect.crawlerId, witness.crawlerId, fleet)) - witness.rttMs;
}

/**
 * A lower bound of the suspect's distance from the witness by others' measurements, directly or over a third crawler,
 * less its machine's possible delay, which is at most what its nearest witness measured.
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

/** Smaller bounds prove nothing, since every answer takes longer. */
const leastTellingMs = 2;

/** km covered in glass per ms of round trip, and the tolerance of a stated location. */
const kmPerRoundTripMs = 100;
const placeSlackKm = 200;

function byLightMs(a: CrawlerId, b: CrawlerId, fleet: ProbingFleet): number {
  const [placeA, placeB] = [fleet.placeOf(a), fleet.placeOf(b)];
  if (placeA === null || placeB === null) return 0;
  return Math.max(0, distanceKm(placeA, placeB) - placeSlackKm) / kmPerRoundTripMs;
}
