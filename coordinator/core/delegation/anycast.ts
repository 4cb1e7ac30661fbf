/**
 * Anycast: one address announced from many places. Two crawlers that are far apart and both answered fast
 * cannot have met the same machine: its distances to them add up to at least theirs to each other.
 *
 *     a ── y_a ── target ── y_b ── b        y_a + y_b ≥ RTT(a, b)
 *
 * Where both crawlers' coordinates are known, light in glass gives the least RTT(a, b): 100 km per ms there
 * and back (two thirds of c, as Cicalese et al., "A fistful of pings", INFOCOM 2015). Else the crawlers' own
 * RTT is used, with a wide margin, since routes between two crawlers can be much longer than a detour over a
 * third place.
 */
import type { CrawlerId } from "../ids.ts";
import type { PeerRttTable } from "./fleet.ts";
import type { ReasonOf } from "./reason-record.ts";

export interface Coordinates {
  readonly latitude: number;
  readonly longitude: number;
}

export interface PlacedAnswer {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  /** Where the crawler stands, when its partner says. */
  readonly place: Coordinates | null;
}

/** The pair of answers that contradicts one place most, or null when one machine can have given all of them. */
export function anycastEvidence(
  answers: readonly PlacedAnswer[],
  peerRtts: PeerRttTable,
): ReasonOf<"anycast"> | null {
  let worst: ReasonOf<"anycast"> | null = null;
  let worstMissingMs = 0;
  for (const [index, a] of answers.entries()) {
    for (const b of answers.slice(index + 1)) {
      const least = leastSum(a, b, peerRtts);
      const missingMs = least === null ? 0 : least.ms - (a.rttMs + b.rttMs);
      if (least === null || missingMs <= worstMissingMs) continue;
      const [near, far] = a.rttMs <= b.rttMs ? [a, b] : [b, a];
      worstMissingMs = missingMs;
      worst = {
        type: "anycast",
        near: { crawlerId: near.crawlerId, rttMs: near.rttMs },
        far: { crawlerId: far.crawlerId, rttMs: far.rttMs },
        leastSumMs: least.ms,
        by: least.by,
      };
    }
  }
  return worst;
}

/** Great-circle distance in km on a sphere of 6371 km (haversine; wrong by 0.5 % at most). */
export function distanceKm(a: Coordinates, b: Coordinates): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const dLatitude = radians(b.latitude - a.latitude);
  const dLongitude = radians(b.longitude - a.longitude);
  const chord =
    Math.sin(dLatitude / 2) ** 2 +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * Math.sin(dLongitude / 2) ** 2;
  return 2 * 6371 * Math.asin(Math.min(1, Math.sqrt(chord)));
}

/** km of distance that one ms of round trip covers in glass. */
const kmPerRoundTripMs = 100;
/** How far a stated place may be off: partners name a city, not a rack. */
const placeSlackKm = 100;
/** Of the crawlers' own RTT, what two answers must add up to at least. */
const trustInPeerRtt = 0.3;
/** Crawlers nearer to each other than this are not far apart. */
const farApartMs = 40;

function leastSum(
  a: PlacedAnswer,
  b: PlacedAnswer,
  peerRtts: PeerRttTable,
): { readonly ms: number; readonly by: "light" | "peer-rtt" } | null {
  if (a.place !== null && b.place !== null) {
    const km = distanceKm(a.place, b.place) - placeSlackKm;
    return km > 0 ? { ms: km / kmPerRoundTripMs, by: "light" } : null;
  }
  const peerRttMs = peerRtts.rttMs(a.crawlerId, b.crawlerId);
  if (peerRttMs === null || peerRttMs < farApartMs) return null;
  return { ms: trustInPeerRtt * peerRttMs, by: "peer-rtt" };
}
