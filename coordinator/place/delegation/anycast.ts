/**
 * Anycast is one address announced from many places. Two crawlers that are far apart and both answered fast cannot have
 * reached the same machine, because its distances to them add up to at least the distance between them:
 *     a ── y_a ── target ── y_b ── b        y_a + y_b ≥ RTT(a, b)
 *
 * If both crawlers' coordinates are known, light in glass gives the minimum RTT(a, b): 100 km per ms of round trip (two
 * thirds of c, as Cicalese et al., "A fistful of pings", INFOCOM 2015). Otherwise their own RTT is used with a wide margin,
 * since a direct route can be much longer than a detour. Two sources of false alarms are excluded:
 * - A pair's RTT measured in a bad moment counts no more than the shortest way over a third crawler (among 490 measured hosts
 *   this removes nine of ten false alarms).
 * - The coordinates of a crawler that is not where its partner says, or is behind a box that answers for all targets, are
 *   ignored, because its RTTs are then shorter than light allows.
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId, SubnetId } from "#core/ids";
import { growingTo } from "#core/small-collections";
import type { ProbeOutcome } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { PeerMatrix } from "../distances/peer-matrix.ts";
import type { ListedRange, PlaceKey, Placement } from "./placement.ts";
import type { ReasonOf } from "./policies/reason.ts";
import type { CoordinatorState } from "./state.ts";

export interface Coordinates {
  readonly latitude: number;
  readonly longitude: number;
}

export interface PlacedAnswer {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  /** The crawler's location, if its partner states it. */
  readonly place: Coordinates | null;
}

/** The round's crawlers, through which detours may lead. */
export interface KnownFleet {
  readonly candidates: readonly CrawlerId[];
  readonly peerRtts: Pick<PeerMatrix, "rttMs">;
}

/** Maximum crawlers considered in one round. They suffice to find far ones and detours. */
const mostLookedAt = 256;

/** Returns all, or an evenly spaced sample of many. */
export function someOf<One>(all: readonly One[]): readonly One[] {
  const every = Math.ceil(all.length / mostLookedAt);
  return every <= 1 ? all : all.filter((_, index) => index % every === 0);
}

/** Two answers, and the minimum of their sum if one machine gave both. */
export type AnycastEvidence = Pick<ReasonOf<"anycast">, "near" | "far" | "leastSumMs" | "by">;

/** Pairs of answers that no single machine can have given, strongest contradiction first. */
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

/** Minimum sum, in ms, of two crawlers' answers from one machine. Null if nothing is known. */
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

/** An upper bound of `leastSum` that needs no search for detours. */
export function mostSumMs(
  a: Omit<PlacedAnswer, "rttMs">,
  b: Omit<PlacedAnswer, "rttMs">,
  fleet: KnownFleet,
): number {
  const peerRttMs = fleet.peerRtts.rttMs(a.crawlerId, b.crawlerId);
  if (peerRttMs === null) return leastByLight(a.place, b.place) ?? 0;
  // Coordinates are believed if light is no slower than the crawlers' own RTT.
  return a.place && b.place ? peerRttMs : trustInPeerRtt * peerRttMs;
}

/** Great-circle distance in km on a sphere of 6371 km (haversine; at most 0.5 % off). */
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

/** km of distance covered in glass per ms of round trip. */
const kmPerRoundTripMs = 100;

/** Tolerance of a stated location, since partners name a city and not a rack. */
const placeSlackKm = 100;

/**
 * The share of the crawlers' own RTT that two answers must reach. Among 490 measured hosts (random fleets of 6 to 50,
 * 62,000 targets) one target in 500 has a pair below this, and none has contradictions that rule out a single faulty
 * crawler (`anycast-check.ts`).
 */
const trustInPeerRtt = 0.5;

/** Crawlers nearer to each other than this are not far apart. */
const farApartMs = 40;

function leastByLight(a: Coordinates | null, b: Coordinates | null): number | null {
  if (a === null || b === null) return null;
  return Math.max(0, distanceKm(a, b) - placeSlackKm) / kmPerRoundTripMs;
}

/** RTT between two crawlers in ms, directly or over a third one. */
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

// Uses every probe, whatever its purpose, to detect anycast: its time is compared with the owner's. If one machine
// cannot have given both answers, the subnet gets a round that asks the witness again. This costs no extra probe.

interface HintPorts {
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly nowMs: () => number;
  /** Requests a round of the subnet unless one is in progress. */
  readonly request: (subnetId: SubnetId) => void;
}

/** Wraps the fleet so that its answers are examined. */
export function watchedFleet(fleet: Fleet, ports: HintPorts): Fleet {
  return {
    online: () => fleet.online(),
    probe: async (crawlerId, target) => {
      const outcome = await fleet.probe(crawlerId, target);
      noteAnswer(crawlerId, outcome.address ?? target.address, outcome, ports);
      return outcome;
    },
  };
}

/** Compares connects only, since RTTs between crawlers and most rounds are connects. */
function noteAnswer(crawlerId: CrawlerId, address: string, outcome: ProbeOutcome, ports: HintPorts): void {
  const { state, ranges, request } = ports;
  if (outcome.type !== "measured" || outcome.method !== "connect") return;
  const subnetId = state.subnetOf(address);
  const known = subnetId === null ? null : state.delegationOf(subnetId);
  if (subnetId === null || !known?.measured || known.rttMs === null) return;
  if (known.crawlerId === crawlerId || ranges.has(subnetId)) return;
  const answers = [answerOf(known.crawlerId, known.rttMs, state), answerOf(crawlerId, outcome.rttMs, state)];
  const candidates = someOf(state.crawlers).map((crawler) => crawler.crawlerId);
  if (contradictions(answers, { candidates, peerRtts: state.peerRtts }).length === 0) return;
  if (ranges.suspect(subnetId, crawlerId, ports.nowMs())) request(subnetId);
}

export function answerOf(crawlerId: CrawlerId, rttMs: number, state: CoordinatorState): PlacedAnswer {
  return { crawlerId, rttMs, place: placeOf(crawlerId, state) };
}

export function placeOf(crawlerId: CrawlerId, state: CoordinatorState): Coordinates | null {
  const { latitude = null, longitude = null } = state.crawler(crawlerId) ?? {};
  return latitude === null || longitude === null ? null : { latitude, longitude };
}

// Remembers which subnets are anycast, and their holders, since a network that announces one range from many places usually
// announces others so. Holders found clear are remembered for a while, so that ranges registered abroad are not
// checked repeatedly. Loaded from the database at start.

export const clearMs = 24 * 3_600_000;

const mostClearHolders = 50_000;

/** Maximum suspicions. The oldest are forgotten. */
const mostSuspects = 10_000;

interface Suspect {
  /** Null once the witness has been asked. */
  readonly witness: CrawlerId | null;
  readonly untilMs: number;
}

export class AnycastRanges {
  /** The holder of each anycast range. Null if unknown. */
  readonly #ranges = new Map<SubnetId, PlaceKey | null>();
  readonly #holders = new Map<PlaceKey, number>();
  /** Until when each holder counts as clear. */
  readonly #clear = new LRUCache<PlaceKey, number>(growingTo(mostClearHolders));

  /** Places of clouds' lists found to be single places, and until when that counts. */
  readonly #listedClear = new Map<string, number>();

  /** Crawlers whose fast answers one machine cannot explain. */
  readonly #suspects = new LRUCache<SubnetId, Suspect>(growingTo(mostSuspects));

  restore(
    subnetIds: readonly SubnetId[],
    placementOf: (subnetId: SubnetId) => Placement | null,
    checkedPlaces: readonly string[] = [],
  ): void {
    for (const place of checkedPlaces) this.noteListedClear(place);
    for (const subnetId of subnetIds) this.mark(subnetId, placementOf(subnetId)?.holderKey ?? null);
  }

  has(subnetId: SubnetId): boolean {
    return this.#ranges.has(subnetId);
  }

  /** Whether other ranges of the holder are anycast. False after a recent check, null if unknown. */
  ofHolder(holderKey: PlaceKey | null, nowMs: number): boolean | null {
    if (holderKey === null) return null;
    if (this.#holders.has(holderKey)) return true;
    return (this.#clear.get(holderKey) ?? 0) > nowMs ? false : null;
  }

  /** Whether the listed place was found to be a single place. */
  isListedClear({ place }: ListedRange, nowMs: number): boolean {
    return (this.#listedClear.get(place) ?? 0) > nowMs;
  }

  /** The default is permanent, since publishers name few places, and contradicting answers are followed up anyway. */
  noteListedClear(place: string, untilMs = Number.POSITIVE_INFINITY): void {
    this.#listedClear.set(place, untilMs);
  }

  /**
   * Notes a probe outside a round that contradicts what is known. Returns false if the subnet was suspected recently, since
   * its parts may measure apart with every probe.
   */
  suspect(subnetId: SubnetId, witness: CrawlerId, nowMs: number): boolean {
    const before = this.#suspects.get(subnetId);
    if (before && before.untilMs > nowMs) return false;
    this.#suspects.set(subnetId, { witness, untilMs: nowMs + clearMs });
    return true;
  }

  /** Returns, once only, the witness that the next round must ask. */
  takeWitness(subnetId: SubnetId): CrawlerId | null {
    const suspect = this.#suspects.get(subnetId);
    if (!suspect?.witness) return null;
    this.#suspects.set(subnetId, { ...suspect, witness: null });
    return suspect.witness;
  }

  mark(subnetId: SubnetId, holderKey: PlaceKey | null): void {
    this.unmark(subnetId);
    this.#ranges.set(subnetId, holderKey);
    if (holderKey === null) return;
    this.#holders.set(holderKey, (this.#holders.get(holderKey) ?? 0) + 1);
    this.#clear.delete(holderKey);
  }

  unmark(subnetId: SubnetId): void {
    const holderKey = this.#ranges.get(subnetId);
    this.#ranges.delete(subnetId);
    if (holderKey === undefined || holderKey === null) return;
    const left = (this.#holders.get(holderKey) ?? 0) - 1;
    if (left > 0) this.#holders.set(holderKey, left);
    else this.#holders.delete(holderKey);
  }

  /** Notes that a range of the holder was checked and is not anycast. */
  noteClear(holderKey: PlaceKey | null, nowMs: number): void {
    if (holderKey === null || this.#holders.has(holderKey)) return;
    this.#clear.set(holderKey, nowMs + clearMs);
  }
}
