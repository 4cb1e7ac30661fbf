/**
 * Anycast: one address announced from many places. Two crawlers that are far apart and both answered fast
 * cannot have met the same machine: its distances to them add up to at least theirs to each other.
 *
 *     a ── y_a ── target ── y_b ── b        y_a + y_b ≥ RTT(a, b)
 *
 * Where both crawlers' coordinates are known, light in glass gives the least RTT(a, b): 100 km per ms there
 * and back (two thirds of c, as Cicalese et al., "A fistful of pings", INFOCOM 2015). Else the crawlers' own
 * RTT is used, with a wide margin, since routes between two crawlers can be much longer than a detour over a
 * third place. Two things would raise a false alarm, and are looked at first:
 * - a pair whose own RTT was taken in a bad moment: it counts no more than the shortest way over a third
 *   crawler (in 490 measured hosts this takes nine of ten false alarms away);
 * - a crawler that does not stand where its partner says, or behind a box that answers for everybody: its
 *   distances to the others are then shorter than light allows, so its coordinates are not believed.
 */
import type { CrawlerId } from "#core/ids";
import type { PeerRttTable } from "./fleet.ts";
import type { ReasonOf } from "./policies/reason.ts";

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

/** The crawlers of a round, over which ways between two of them may lead. */
export interface KnownFleet {
  readonly candidates: readonly CrawlerId[];
  readonly peerRtts: Pick<PeerRttTable, "rttMs">;
}

/** Two answers, and what they add up to at least if one machine gave both. */
export type AnycastEvidence = Pick<ReasonOf<"anycast">, "near" | "far" | "leastSumMs" | "by">;

/** The pair of answers that contradicts one place most, or null when one machine can have given all of them. */
export function anycastEvidence(answers: readonly PlacedAnswer[], fleet: KnownFleet): AnycastEvidence | null {
  return contradictions(answers, fleet)[0] ?? null;
}

/** Every pair of answers that one machine cannot have given, the strongest contradiction first. */
export function contradictions(answers: readonly PlacedAnswer[], fleet: KnownFleet): AnycastEvidence[] {
  const found: { readonly evidence: AnycastEvidence; readonly missingMs: number }[] = [];
  for (const [index, a] of answers.entries()) {
    for (const b of answers.slice(index + 1)) {
      if (mostSumMs(a, b, fleet) <= a.rttMs + b.rttMs) continue;
      const least = leastSum(a, b, fleet);
      const missingMs = least === null ? 0 : least.ms - (a.rttMs + b.rttMs);
      if (least === null || missingMs <= 0) continue;
      const [near, far] = a.rttMs <= b.rttMs ? [a, b] : [b, a];
      found.push({
        missingMs,
        evidence: {
          near: { crawlerId: near.crawlerId, rttMs: near.rttMs },
          far: { crawlerId: far.crawlerId, rttMs: far.rttMs },
          leastSumMs: least.ms,
          by: least.by,
        },
      });
    }
  }
  return found.sort((one, other) => other.missingMs - one.missingMs).map(({ evidence }) => evidence);
}

/** What the answers of two crawlers add up to at least, in ms, if one machine gives both; null where nothing is known. */
export function leastSum(
  a: Omit<PlacedAnswer, "rttMs">,
  b: Omit<PlacedAnswer, "rttMs">,
  fleet: KnownFleet,
): { readonly ms: number; readonly by: "light" | "peer-rtt" } | null {
  const peerRttMs = fleet.peerRtts.rttMs(a.crawlerId, b.crawlerId);
  const lightMs = leastByLight(a.place, b.place);
  if (lightMs !== null && (peerRttMs === null || peerRttMs >= lightMs)) {
    return lightMs > 0 ? { ms: lightMs, by: "light" } : null;
  }
  if (peerRttMs === null || peerRttMs < farApartMs) return null;
  const shortestMs = shortestWay(a.crawlerId, b.crawlerId, { ...fleet, directMs: peerRttMs });
  return shortestMs < farApartMs ? null : { ms: trustInPeerRtt * shortestMs, by: "peer-rtt" };
}

/** What `leastSum` comes to at most, in ms, without a look for shorter ways: where this is no more, that is not either. */
export function mostSumMs(
  a: Omit<PlacedAnswer, "rttMs">,
  b: Omit<PlacedAnswer, "rttMs">,
  fleet: KnownFleet,
): number {
  const peerRttMs = fleet.peerRtts.rttMs(a.crawlerId, b.crawlerId);
  if (peerRttMs === null) return leastByLight(a.place, b.place) ?? 0;
  // Places are believed where light is no slower than the crawlers' own RTT.
  return a.place && b.place ? peerRttMs : trustInPeerRtt * peerRttMs;
}

/** Great-circle distance in km on a sphere of 6371 km (haversine; wrong by 0.5 % at most). */
export function distanceKm(a: Coordinates, b: Coordinates): number {
  const dLatitude = radians(b.latitude - a.latitude);
  const dLongitude = radians(b.longitude - a.longitude);
  const chord =
    Math.sin(dLatitude / 2) ** 2 +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * Math.sin(dLongitude / 2) ** 2;
  return 2 * 6371 * Math.asin(Math.min(1, Math.sqrt(chord)));
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

/** km of distance that one ms of round trip covers in glass. */
const kmPerRoundTripMs = 100;
/** How far a stated place may be off: partners name a city, not a rack. */
const placeSlackKm = 100;
/**
 * Of the crawlers' own RTT, what two answers must add up to at least. Among 490 measured hosts (fleets of 6 to
 * 50 drawn at random, 62,000 targets) one target in 500 has a pair below this, and none has contradictions
 * that no single crawler can be at fault for (`anycast-check.ts`).
 */
const trustInPeerRtt = 0.5;
/** Crawlers nearer to each other than this are not far apart. */
const farApartMs = 40;

function leastByLight(a: Coordinates | null, b: Coordinates | null): number | null {
  if (a === null || b === null) return null;
  return Math.max(0, distanceKm(a, b) - placeSlackKm) / kmPerRoundTripMs;
}

/** Between two crawlers, straight or over a third one, in ms. */
function shortestWay(a: CrawlerId, b: CrawlerId, ways: KnownFleet & { readonly directMs: number }): number {
  let shortestMs = ways.directMs;
  for (const over of ways.candidates) {
    if (over === a || over === b) continue;
    const firstMs = ways.peerRtts.rttMs(a, over);
    const secondMs = ways.peerRtts.rttMs(over, b);
    if (firstMs !== null && secondMs !== null) shortestMs = Math.min(shortestMs, firstMs + secondMs);
  }
  return shortestMs;
}
