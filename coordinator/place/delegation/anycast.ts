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
  /** Where the crawler stands, when its partner says. */
  readonly place: Coordinates | null;
}

/** The crawlers of a round, over which ways between two of them may lead. */
export interface KnownFleet {
  readonly candidates: readonly CrawlerId[];
  readonly peerRtts: Pick<PeerMatrix, "rttMs">;
}

/** Crawlers that are looked at in one round: for who is far away, and for shorter ways over others, these will do. */
const mostLookedAt = 256;

/** All, or of many some at even distances. */
export function someOf<One>(all: readonly One[]): readonly One[] {
  const every = Math.ceil(all.length / mostLookedAt);
  return every <= 1 ? all : all.filter((_, index) => index % every === 0);
}

/** Two answers, and what they add up to at least if one machine gave both. */
export type AnycastEvidence = Pick<ReasonOf<"anycast">, "near" | "far" | "leastSumMs" | "by">;

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

// Every probe tells something of anycast, whatever it was made for: a host looked at from afar, a move that is
// measured first, an old decision seen again. Its time is held against that of the crawler that has the subnet;
// where one machine cannot have given both, the subnet gets a round, which asks the witness again. Costs no
// probe by itself.

interface HintPorts {
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly nowMs: () => number;
  /** Asks for a round of the subnet; nothing happens while one is under way. */
  readonly request: (subnetId: SubnetId) => void;
}

/** The fleet, with its answers looked at on their way. */
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

/** Only connects are compared: what crawlers know of each other, and most rounds, are connects. */
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

/** As its partner states it. */
export function placeOf(crawlerId: CrawlerId, state: CoordinatorState): Coordinates | null {
  const { latitude = null, longitude = null } = state.crawler(crawlerId) ?? {};
  return latitude === null || longitude === null ? null : { latitude, longitude };
}

// Which subnets are anycast, and what that says of their holders: who announces one range from many places
// mostly does so with others. Holders that were checked and were not are remembered for a while, so that a
// range registered abroad is not checked again and again. Read from the database at the start.

/** A holder that was clear may have become one since. */
export const clearMs = 24 * 3_600_000;

const mostClearHolders = 50_000;

/** Suspicions that are remembered; of more, the oldest are forgotten. */
const mostSuspects = 10_000;

interface Suspect {
  /** Null: it was asked. */
  readonly witness: CrawlerId | null;
  readonly untilMs: number;
}

export class AnycastRanges {
  /** Null: its holder is not known. */
  readonly #ranges = new Map<SubnetId, PlaceKey | null>();
  readonly #holders = new Map<PlaceKey, number>();
  /** Until when a holder counts as clear. */
  readonly #clear = new LRUCache<PlaceKey, number>(growingTo(mostClearHolders));

  /** Of the clouds' lists: the places that were checked and are one place, and until when that counts. */
  readonly #listedClear = new Map<string, number>();

  /** Who answered so fast that one machine cannot explain it. */
  readonly #suspects = new LRUCache<SubnetId, Suspect>(growingTo(mostSuspects));

  /** What earlier coordinators found. */
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

  /** True: other ranges of the holder are anycast. False: one was looked at lately, and was not. Null: not known. */
  ofHolder(holderKey: PlaceKey | null, nowMs: number): boolean | null {
    if (holderKey === null) return null;
    if (this.#holders.has(holderKey)) return true;
    return (this.#clear.get(holderKey) ?? 0) > nowMs ? false : null;
  }

  /** Whether it was found out that what a cloud lists there answers from one place. */
  isListedClear({ place }: ListedRange, nowMs: number): boolean {
    return (this.#listedClear.get(place) ?? 0) > nowMs;
  }

  /** For good, unless a time is given: publishers name few places, and contradicting answers are looked into anyway. */
  noteListedClear(place: string, untilMs = Number.POSITIVE_INFINITY): void {
    this.#listedClear.set(place, untilMs);
  }

  /**
   * A probe outside of its rounds contradicts what is known of the subnet. False: it was suspected lately, and
   * whatever came of it counts (parts of a subnet that measure apart contradict with every probe).
   */
  suspect(subnetId: SubnetId, witness: CrawlerId, nowMs: number): boolean {
    const before = this.#suspects.get(subnetId);
    if (before && before.untilMs > nowMs) return false;
    this.#suspects.set(subnetId, { witness, untilMs: nowMs + clearMs });
    return true;
  }

  /** Whom the next round of the subnet has to ask, since its answer contradicted; told once. */
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

  /** A later round found that one machine answers after all. */
  unmark(subnetId: SubnetId): void {
    const holderKey = this.#ranges.get(subnetId);
    this.#ranges.delete(subnetId);
    if (holderKey === undefined || holderKey === null) return;
    const left = (this.#holders.get(holderKey) ?? 0) - 1;
    if (left > 0) this.#holders.set(holderKey, left);
    else this.#holders.delete(holderKey);
  }

  /** A range of the holder was checked and is not anycast. */
  noteClear(holderKey: PlaceKey | null, nowMs: number): void {
    if (holderKey === null || this.#holders.has(holderKey)) return;
    this.#clear.set(holderKey, nowMs + clearMs);
  }
}
