/**
 * How near a crawler in a place would be to the subnets, before there is one. A place is where subnets lie together: a
 * country, what a holder has, a published region. To its own subnets a crawler is expected to be as near as crawlers are
 * to the subnets of their own country now (home-rtt). To the others it follows from what the same crawlers measured of
 * both: crawler c is D from the place and y from the subnet, so that the new one is between |D − y| and D + y of it, as
 * it is predicted elsewhere (distances/predicted-rtts).
 *
 * One measurement is noise. So D is the median over the place's subnets, and stands only where there are several of them,
 * as the greedy k-center under noisy distances asks a core of points for a cluster's distance and not one (Addanki,
 * Galhotra and Saha 2021, "How to design robust algorithms using noisy comparison oracle", arXiv 2011.01973); and of
 * a subnet elsewhere what counts is the gain to be expected from a distance that is known so vaguely.
 */
import type { CrawlerId } from "#core/ids";
import { expectedGainMs, type RttBounds, rttBounds } from "../../place/distances/predicted-rtts.ts";
import { type CrawlPiece, costOf, weightedMedian } from "./crawl-pieces.ts";
import type { HomeRttOf } from "./home-rtt.ts";
import type { MeasuredPiece } from "./piece-distances.ts";

export interface Place {
  readonly kind: "country" | "holder";
  readonly key: string;
}

/** The places of a piece. */
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
  /** Each crawler's measurement of a piece, including its own; when empty, only its own place can serve it. */
  readonly measuredOf: (piece: MeasuredPiece) => ReadonlyMap<CrawlerId, number>;
  readonly homeRtt: HomeRttOf;
  /** Countries with a crawler; another one there gains nothing. */
  readonly served: ReadonlySet<string | null>;
  readonly placesOf?: PlacesOf;
}

/** A crawler needs this many measured subnets in a place for a median distance. */
export const leastInPlace = 5;

/** The most costly holders; countries are all candidates. */
const mostHolders = 300;

/**
 * Where between the bounds the RTT is expected, and its standard deviation, as shares of their width. Two points at the same
 * distance from a third, in random directions, are 4/π and 0.62 of that distance apart: 0.635 and 0.31 of its double.
 */
const [meanShare, spreadShare] = [0.635, 0.31];

/** The minimum, because paths differ by this much. */
const leastSpreadMs = 2;

/** A smaller gain may be chance. */
const leastGainMs = 2;

interface ExpectedReach {
  readonly places: readonly CandidatePlace[];
  /** Places that could serve it from nearer. */
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

/** Countries without a crawler, and holders with enough measurements. */
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

/** The median distance (ms) of every crawler that measured enough of the place. */
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

/** Null when no crawler measured both. */
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

/** Adds the gain of a crawler that gets only what it turns out to be nearer to. */
function fromAfar({ rttMs }: MeasuredPiece, bounds: RttBounds | null): Omit<ExpectedRtt, "site"> | null {
  if (bounds === null) return null;
  const widthMs = Math.max(0, bounds.mostMs - bounds.leastMs);
  const spreadMs = leastSpreadMs + spreadShare * widthMs;
  const gainMs = expectedGainMs(rttMs, bounds.leastMs + meanShare * widthMs, spreadMs);
  return gainMs >= leastGainMs ? { rttMs: rttMs - gainMs, spreadMs } : null;
}
