/**
 * The crawlers that may take a subnet, as a probe round sees them: the candidates (who is online, not full,
 * not draining and not denied the target is the caller's business), and the round-trip times between them.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import { type NearestPeers, PeerMatrix } from "./peer-matrix.ts";
import { type LearnedRtts, listedAsNearest } from "./policies/learned-rtts.ts";

export interface MeasuredPeer {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

/** RTTs between crawlers, in ms, as rounds read them. Both directions are one path: the smaller measurement counts. */
export class PeerRttTable {
  readonly #matrix: PeerMatrix;

  /** `matrix`: where the measurements go to. */
  constructor(
    measurements: readonly MeasuredPeer[],
    matrix = new PeerMatrix(() => Number.POSITIVE_INFINITY),
  ) {
    this.#matrix = matrix;
    for (const { from, to, rttMs } of measurements) {
      const [a, b] = [matrix.slotOf(from), matrix.slotOf(to)];
      if (!(matrix.rttMs(a, b) <= rttMs)) matrix.learn(a, b, rttMs, 0);
    }
  }

  /** A table over a matrix, live: what is learned later shows here too. */
  static over(matrix: PeerMatrix): PeerRttTable {
    return new PeerRttTable([], matrix);
  }

  /** Another number after every change that matters (see `PeerMatrix`); constant for a table of given measurements. */
  get revision(): number {
    return this.#matrix.revision;
  }

  /** Null when neither side has measured the other. */
  rttMs(a: CrawlerId, b: CrawlerId): number | null {
    const { slots } = this.#matrix;
    const rttMs = this.#matrix.rttMs(slots.get(a) ?? -1, slots.get(b) ?? -1);
    return Number.isNaN(rttMs) ? null : rttMs;
  }

  /** Where the crawlers stand in this table, for the questions below; each gets its slot. */
  slotsOf(crawlerIds: readonly CrawlerId[]): Int32Array {
    return Int32Array.from(crawlerIds, (crawlerId: CrawlerId) => this.#matrix.slotOf(crawlerId));
  }

  /** The RTTs from one slot to many, in their order; NaN where unknown. */
  rttsBetween(from: number, to: Int32Array): Float64Array {
    return this.#matrix.rttsBetween(from, to);
  }

  /** The nearest that are known of a slot, nearest first. */
  nearestOf(slot: number): NearestPeers {
    return this.#matrix.nearestOf(slot);
  }

  /** Every slot that the RTT to is known, in ascending order. */
  eachKnown(slot: number, visit: (peer: number, rttMs: number) => void): void {
    this.#matrix.eachKnown(slot, visit);
  }
}

export interface CandidateFleet {
  readonly candidates: readonly CrawlerId[];
  readonly indexOf: Pick<ReadonlyMap<CrawlerId, number>, "get" | "has">;
  readonly peerRtts: PeerRttTable;
  /** The candidates' slots in that table. */
  readonly peerSlots: Int32Array;
  /** Of a part of a larger fleet: that fleet, and the positions of these in it. */
  readonly part?: { readonly whole: CandidateFleet; readonly members: readonly number[] };
}

/** The candidates of one round; a crawler named twice counts once. */
export function candidateFleet(crawlerIds: readonly CrawlerId[], peerRtts: PeerRttTable): CandidateFleet {
  const indexOf = new Map<CrawlerId, number>();
  for (const crawlerId of crawlerIds) if (!indexOf.has(crawlerId)) indexOf.set(crawlerId, indexOf.size);
  const candidates = [...indexOf.keys()];
  return { candidates, indexOf, peerRtts, peerSlots: peerRtts.slotsOf(candidates) };
}

/** Some of a fleet, by their positions in it. */
export function partOfFleet(whole: CandidateFleet, members: readonly number[]): CandidateFleet {
  const peerSlots = new Int32Array(members.length);
  for (let index = 0; index < members.length; index++) peerSlots[index] = whole.peerSlots[members[index]!]!;
  const get = (crawlerId: CrawlerId) => {
    const member = whole.indexOf.get(crawlerId);
    const index = member === undefined ? -1 : (positionsIn(fleet)[whole.peerSlots[member]!] ?? -1);
    return index < 0 ? undefined : index;
  };
  const fleet: CandidateFleet = {
    candidates: members.map((member) => whole.candidates[member]!),
    indexOf: { get, has: (crawlerId) => get(crawlerId) !== undefined },
    peerRtts: whole.peerRtts,
    peerSlots,
    part: { whole, members },
  };
  return fleet;
}

/** Where the crawlers of the part that was looked at last stand in it, by their slots; −1: not in it. Parts come and go by the ten thousand. */
const positions = { of: null as CandidateFleet | null, bySlot: new Int32Array(0) };

function positionsIn(fleet: CandidateFleet): Int32Array {
  if (positions.of === fleet) return positions.bySlot;
  for (const slot of positions.of?.peerSlots ?? []) positions.bySlot[slot] = -1;
  const { peerSlots } = fleet;
  let most = 0;
  for (let index = 0; index < peerSlots.length; index++)
    if (peerSlots[index]! > most) most = peerSlots[index]!;
  if (most >= positions.bySlot.length)
    positions.bySlot = new Int32Array(Math.ceil(1.25 * (most + 1))).fill(-1);
  for (let index = 0; index < peerSlots.length; index++) positions.bySlot[peerSlots[index]!] = index;
  positions.of = fleet;
  return positions.bySlot;
}

/** The RTTs in ms from a candidate to all candidates, in their order; NaN where unknown. */
export function rttsToCandidates(fleet: CandidateFleet, index: number): Float64Array {
  return fleet.peerRtts.rttsBetween(fleet.peerSlots[index] ?? -1, fleet.peerSlots);
}

// What a round reads again and again of a fleet: per candidate the RTTs to the others and who stands nearest.
// Made once a fleet and candidate, anew when the crawlers' RTTs changed.

/** A candidate seen as a place: what a target beside it would measure. */
export interface CandidatePlace {
  /** RTT in ms to every candidate, NaN where unknown; to itself `besideMs`. */
  readonly rttsMs: Float64Array;
  /** The nearest candidates, itself first, and their RTTs in ms. */
  readonly nearest: ArrayLike<number>;
  readonly nearestMs: ArrayLike<number>;
}

/** A target beside a crawler is about so far from it. */
const besideMs = 1;

export class FleetView {
  readonly #fleet: CandidateFleet;
  readonly #places: (CandidatePlace | undefined)[] = [];
  #revision = -1;
  #learnedSlots = -1;
  #slotOf = new Int32Array(0);
  #indexOf = new Int32Array(0);

  constructor(fleet: CandidateFleet) {
    this.#fleet = fleet;
  }

  placeOf(index: number): CandidatePlace {
    if (this.#revision !== this.#fleet.peerRtts.revision) {
      this.#revision = this.#fleet.peerRtts.revision;
      this.#places.length = 0;
    }
    this.#places[index] ??= placeOf(this.#fleet, index);
    return this.#places[index];
  }

  /** The candidates' slots in what was learned. */
  slotsIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#slotOf;
  }

  /** The candidate of each slot, −1 for crawlers that are none. */
  indicesIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#indexOf;
  }

  #follow(learned: LearnedRtts): void {
    if (this.#learnedSlots === learned.slots) return;
    const { candidates, part } = this.#fleet;
    const ofWhole = part === undefined ? null : viewOf(part.whole, learned).slotsIn(learned);
    this.#slotOf =
      part === undefined
        ? Int32Array.from(candidates, (crawlerId: CrawlerId) => learned.slotOf(crawlerId))
        : Int32Array.from(part.members, (member) => ofWhole![member]!);
    this.#indexOf = new Int32Array(learned.slots).fill(-1);
    this.#slotOf.forEach((slot, index) => {
      this.#indexOf[slot] = index;
    });
    this.#learnedSlots = learned.slots;
  }
}

const views = new WeakMap<CandidateFleet, WeakMap<LearnedRtts, FleetView>>();

export function viewOf(fleet: CandidateFleet, learned: LearnedRtts): FleetView {
  const known = views.get(fleet) ?? new WeakMap<LearnedRtts, FleetView>();
  views.set(fleet, known);
  const view = known.get(learned) ?? new FleetView(fleet);
  known.set(learned, view);
  return view;
}

function placeOf(fleet: CandidateFleet, index: number): CandidatePlace {
  if (fleet.part !== undefined) return new ListedPlace(fleet, index);
  const rttsMs = besideItself(fleet, index);
  const nearest = smallestOf(rttsMs, listedAsNearest);
  return { rttsMs, nearest, nearestMs: Float64Array.from(nearest, (one) => rttsMs[one]!) };
}

function besideItself(fleet: CandidateFleet, index: number): Float64Array {
  const rttsMs = rttsToCandidates(fleet, index);
  rttsMs[index] = besideMs;
  return rttsMs;
}

/** In a part of a large fleet, which is another one in every round: of most places only who is nearest is asked. */
class ListedPlace implements CandidatePlace {
  readonly #fleet: CandidateFleet;
  readonly #index: number;
  readonly nearest: number[];
  readonly nearestMs: number[];
  #rttsMs: Float64Array | null = null;

  constructor(fleet: CandidateFleet, index: number) {
    const bySlot = positionsIn(fleet);
    this.#fleet = fleet;
    this.#index = index;
    this.nearest = [index];
    this.nearestMs = [besideMs];
    const { slots, rttsMs } = fleet.peerRtts.nearestOf(fleet.peerSlots[index]!);
    for (let rank = 0; rank < slots.length && this.nearest.length < listedAsNearest; rank++) {
      const one = bySlot[slots[rank]!] ?? -1;
      if (one < 0) continue;
      this.nearest.push(one);
      this.nearestMs.push(rttsMs[rank]!);
    }
  }

  get rttsMs(): Float64Array {
    this.#rttsMs ??= besideItself(this.#fleet, this.#index);
    return this.#rttsMs;
  }
}
