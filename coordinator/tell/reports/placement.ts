/**
 * Chooses places for new crawlers by greedy k-median: each step adds the site that saves the most round-trip time in addition
 * to the sites before it. Savings are the expected reduction in RTT times daily pages. They only shrink as sites are added,
 * so most need no re-evaluation (lazy evaluation: M. Minoux 1978, "Accelerated greedy algorithms for maximizing submodular
 * set functions").
 */
import type { CrawlerId } from "#core/ids";
import { expectedGainMs, type RttBounds, rttBounds } from "../../place/distances/predicted-rtts.ts";
import {
  type CrawlPiece,
  costOf,
  type HomeRttOf,
  type MeasuredPiece,
  weightedMedian,
} from "./crawl-pieces.ts";

interface PlacedLoad {
  readonly pagesPerDay: number;
  readonly rttMs: number;
  /** The sites that could serve it, with their distance. */
  readonly reach: readonly Reach[];
}

interface Reach {
  readonly site: string;
  readonly rttMs: number;
  /** The standard deviation of the distance; absent if unknown. */
  readonly spreadMs?: number;
}

export interface ChosenSite<Load extends PlacedLoad = PlacedLoad> {
  readonly site: string;
  /** Round-trip time saved per day: ms × pages. */
  readonly savedMsPages: number;
  /** How many daily pages get nearer. */
  readonly pagesPerDay: number;
  /** The mean RTT of these pages, now and from the new site. */
  readonly meanNowMs: number;
  readonly meanThenMs: number;
  /** The uncertainty of the RTT from the new site. */
  readonly spreadMs: number;
  /** The loads that it would serve, the greatest saving first. */
  readonly served: readonly { readonly load: Load; readonly savedMsPages: number }[];
}

/** Returns at most `most` sites, each in addition to the earlier ones, and none that saves less than `leastMsPages` a day. */
export function chooseSites<Load extends PlacedLoad>(
  loads: readonly Load[],
  { most, leastMsPages = 1 }: { readonly most: number; readonly leastMsPages?: number },
): ChosenSite<Load>[] {
  const nowMs = Float64Array.from(loads, ({ rttMs }) => rttMs);
  const reachOf = new Map<string, Reached[]>();
  for (const [at, { reach }] of loads.entries())
    for (const { site, rttMs, spreadMs = 0 } of reach) {
      const known = reachOf.get(site);
      if (known === undefined) reachOf.set(site, [{ at, rttMs, spreadMs }]);
      else known.push({ at, rttMs, spreadMs });
    }
  const savedAt = (at: number, rttMs: number) => loads[at]!.pagesPerDay * Math.max(0, nowMs[at]! - rttMs);
  const savedBy = (site: string) =>
    reachOf.get(site)!.reduce((sum, { at, rttMs }) => sum + savedAt(at, rttMs), 0);
  let candidates = [...reachOf.keys()].map((site) => ({ site, saved: savedBy(site) })).sort(mostSaved);
  const chosen: ChosenSite<Load>[] = [];
  while (chosen.length < most && candidates.length > 0) {
    // Returns the first site whose saving is still current.
    for (;;) {
      const saved = savedBy(candidates[0]!.site);
      if (saved === candidates[0]!.saved) break;
      candidates[0] = { site: candidates[0]!.site, saved };
      candidates.sort(mostSaved);
    }
    const [best] = candidates;
    if (best!.saved < leastMsPages) break;
    chosen.push(chosenSite(best!.site, reachOf.get(best!.site)!, { loads, nowMs, savedAt }));
    for (const { at, rttMs } of reachOf.get(best!.site)!) nowMs[at] = Math.min(nowMs[at]!, rttMs);
    candidates = candidates.slice(1);
  }
  return chosen;
}

/** The load at this index, as reached from a site. */
interface Reached {
  readonly at: number;
  readonly rttMs: number;
  readonly spreadMs: number;
}

interface Candidate {
  readonly site: string;
  readonly saved: number;
}

const mostSaved = (a: Candidate, b: Candidate) =>
  b.saved - a.saved || (a.site < b.site ? -1 : a.site > b.site ? 1 : 0);

function chosenSite<Load extends PlacedLoad>(
  site: string,
  reach: readonly Reached[],
  {
    loads,
    nowMs,
    savedAt,
  }: {
    readonly loads: readonly Load[];
    readonly nowMs: Float64Array;
    readonly savedAt: (at: number, rttMs: number) => number;
  },
): ChosenSite<Load> {
  const nearer = reach.filter(({ at, rttMs }) => savedAt(at, rttMs) > 0);
  const pagesPerDay = nearer.reduce((sum, { at }) => sum + loads[at]!.pagesPerDay, 0);
  const weighted = (msOf: (one: Reached) => number) =>
    nearer.reduce((sum, one) => sum + loads[one.at]!.pagesPerDay * msOf(one), 0) / pagesPerDay;
  return {
    site,
    pagesPerDay,
    savedMsPages: nearer.reduce((sum, { at, rttMs }) => sum + savedAt(at, rttMs), 0),
    meanNowMs: weighted(({ at }) => nowMs[at]!),
    meanThenMs: weighted(({ rttMs }) => rttMs),
    spreadMs: weighted(({ spreadMs }) => spreadMs),
    served: nearer
      .map(({ at, rttMs }) => ({ load: loads[at]!, savedMsPages: savedAt(at, rttMs) }))
      .sort((a, b) => b.savedMsPages - a.savedMsPages),
  };
}

// The expected distance between subnets and a crawler that does not exist yet. A place is a country, a holder's network or a
// published region. For its own subnets, the expectation is the current in-country RTT (`homeRtts`). For others it follows
// from crawlers that measured both: if a crawler is D from the place and y from the subnet, the new one is between |D − y|
// and D + y away (distances/predicted-rtts). Single measurements are noisy, so D is the median over several subnets, as
// greedy k-center under noisy distances represents a cluster by a core of points (Addanki, Galhotra and Saha 2021, "How to
// design robust algorithms using noisy comparison oracle", arXiv 2011.01973). Other subnets count with the expected gain
// under that uncertainty.

export interface Place {
  readonly kind: "country" | "holder";
  readonly key: string;
}

/** Returns the places of a piece. */
export type PlacesOf = (piece: CrawlPiece) => readonly Place[];

const countryAndHolder: PlacesOf = ({ country, holderId }) => [
  ...(country === null ? [] : [{ kind: "country" as const, key: country }]),
  ...(holderId === null ? [] : [{ kind: "holder" as const, key: String(holderId) }]),
];

/** A place where a crawler could be added, with its measurements. */
export interface CandidatePlace extends Place {
  readonly site: string;
  readonly pieces: readonly MeasuredPiece[];
}

interface ExpectedRtt {
  readonly site: string;
  readonly rttMs: number;
  /** The standard deviation in ms. */
  readonly spreadMs: number;
}

interface ReachPorts {
  /** Returns all crawlers' measurements of a piece, its own included. If there are none, only its own place can serve it. */
  readonly measuredOf: (piece: MeasuredPiece) => ReadonlyMap<CrawlerId, number>;
  readonly homeRtt: HomeRttOf;
  /** Countries with a crawler, where a further one gains nothing. */
  readonly served: ReadonlySet<string | null>;
  readonly placesOf?: PlacesOf;
}

/** A median distance from a place needs this many subnets there that the crawler measured. */
export const leastInPlace = 5;

/** How many of the most costly holders are candidates. All countries are. */
const mostHolders = 300;

/**
 * The expected position of the RTT between the bounds, and its standard deviation, as shares of the bounds' distance. Two
 * points at the same distance from a third, in random directions, are 4/π ± 0.62 of that distance apart, which is 0.635 ±
 * 0.31 of its double.
 */
const [meanShare, spreadShare] = [0.635, 0.31];

/** Minimum deviation, because paths differ by this much. */
const leastSpreadMs = 2;

/** A smaller gain may be chance. */
const leastGainMs = 2;

interface ExpectedReach {
  readonly places: readonly CandidatePlace[];
  /** Returns the places that could serve it from nearer. */
  readonly reachOf: (piece: MeasuredPiece) => ExpectedRtt[];
}

export function expectedReach(pieces: readonly MeasuredPiece[], ports: ReachPorts): ExpectedReach {
  const places = candidatePlaces(pieces, ports);
  const distances = places.map((place) => distancesOf(place, ports));
  const ownPlaces = new Map<MeasuredPiece, number[]>();
  for (const [at, { pieces: own }] of places.entries())
    for (const piece of own) ownPlaces.set(piece, [...(ownPlaces.get(piece) ?? []), at]);
  const everyPlace = [...places.keys()];
  return {
    places,
    reachOf: (piece) => {
      const own = ownPlaces.get(piece) ?? [];
      const measured = ports.measuredOf(piece);
      return (measured.size > 0 ? everyPlace : own).flatMap((at) => {
        const bounds = boundsFrom(measured, distances[at]!);
        const reach = own.includes(at) ? atHome(piece, bounds, ports) : fromAfar(piece, bounds);
        return reach === null ? [] : [{ site: places[at]!.site, ...reach }];
      });
    },
  };
}

/** Returns countries without a crawler, and holders with enough measurements. */
function candidatePlaces(
  pieces: readonly MeasuredPiece[],
  { served, placesOf = countryAndHolder }: ReachPorts,
): CandidatePlace[] {
  const found = new Map<string, Place & { site: string; pieces: MeasuredPiece[]; cost: number }>();
  for (const piece of pieces)
    for (const { kind, key } of placesOf(piece)) {
      if (kind === "country" && served.has(key)) continue;
      const site = `${kind}:${key}`;
      const place = found.get(site) ?? { kind, key, site, pieces: [], cost: 0 };
      found.set(site, place);
      place.pieces.push(piece);
      place.cost += costOf(piece);
    }
  const countries = [...found.values()].filter(({ kind }) => kind === "country");
  const others = [...found.values()]
    .filter(({ kind, pieces: own }) => kind !== "country" && own.length >= leastInPlace)
    .sort((a, b) => b.cost - a.cost || (a.site < b.site ? -1 : 1));
  const places = [...countries, ...others.slice(0, mostHolders)];
  for (const { pieces: own } of places) own.sort((a, b) => costOf(b) - costOf(a) || a.subnetId - b.subnetId);
  return places;
}

/** Returns the median distance (ms) of every crawler that measured enough of the place. */
function distancesOf({ pieces }: CandidatePlace, { measuredOf }: ReachPorts): ReadonlyMap<CrawlerId, number> {
  const measured = new Map<CrawlerId, { value: number; weight: number }[]>();
  for (const piece of pieces)
    for (const [crawlerId, rttMs] of measuredOf(piece)) {
      const own = measured.get(crawlerId);
      if (own === undefined) measured.set(crawlerId, [{ value: rttMs, weight: 1 }]);
      else own.push({ value: rttMs, weight: 1 });
    }
  return new Map(
    [...measured].flatMap(([crawlerId, rttsMs]) =>
      rttsMs.length < leastInPlace ? [] : [[crawlerId, weightedMedian(rttsMs)!]],
    ),
  );
}

/** Returns null if no crawler measured both. */
function boundsFrom(
  measured: ReadonlyMap<CrawlerId, number>,
  distances: ReadonlyMap<CrawlerId, number>,
): RttBounds | null {
  const bounds = rttBounds([...measured].map(([crawlerId, rttMs]) => [distances.get(crawlerId), rttMs]));
  return bounds.mostMs === Number.POSITIVE_INFINITY ? null : bounds;
}

/** A subnet that is far from the centre of its place gains less than the others there. */
function atHome(
  { country, rttMs }: MeasuredPiece,
  bounds: RttBounds | null,
  { homeRtt }: ReachPorts,
): Omit<ExpectedRtt, "site"> | null {
  const home = homeRtt(country ?? "");
  if (home === null) return null;
  const expectedMs = Math.max(home.medianMs, bounds?.leastMs ?? 0);
  return expectedMs < rttMs ? { rttMs: expectedMs, spreadMs: home.spreadMs } : null;
}

/** Returns the expected gain if the new crawler gets only what it turns out to be nearer to. */
function fromAfar({ rttMs }: MeasuredPiece, bounds: RttBounds | null): Omit<ExpectedRtt, "site"> | null {
  if (bounds === null) return null;
  const widthMs = Math.max(0, bounds.mostMs - bounds.leastMs);
  const spreadMs = leastSpreadMs + spreadShare * widthMs;
  const gainMs = expectedGainMs(rttMs, bounds.leastMs + meanShare * widthMs, spreadMs);
  return gainMs >= leastGainMs ? { rttMs: rttMs - gainMs, spreadMs } : null;
}
