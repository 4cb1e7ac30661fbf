/**
 * The crawlers that may take a subnet, as a probe round sees them: the candidates (who is online, not full,
 * not draining and not denied the target is the caller's business), and the round-trip times between them.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import { type NearestPeers, type NearestStretch, PeerMatrix } from "./peer-matrix.ts";
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

  /** The same for one who asks of many: the answer is good until the next question. */
  nearestAtHand(slot: number): NearestStretch {
    return this.#matrix.nearestAtHand(slot);
  }

  /** The same into the beginning of `into`, from the position `first` of `to` on; what lies before it is left alone. */
  rttsInto(into: Float64Array, from: number, to: Int32Array, first: number): void {
    this.#matrix.rttsInto(into, from, to, first);
  }

  /** Every slot whose RTT lies between these, both included, in ascending order. */
  eachWithin(
    slot: number,
    rangeMs: { readonly leastMs: number; readonly mostMs: number },
    visit: (peer: number) => void,
  ): void {
    this.#matrix.eachWithin(slot, rangeMs, visit);
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
  const candidates: CrawlerId[] = [];
  for (const member of members) {
    peerSlots[candidates.length] = whole.peerSlots[member]!;
    candidates.push(whole.candidates[member]!);
  }
  const get = (crawlerId: CrawlerId) => {
    const member = whole.indexOf.get(crawlerId);
    if (member === undefined) return undefined;
    const index = peerPositions.of(peerSlots)[whole.peerSlots[member]!] ?? -1;
    return index < 0 ? undefined : index;
  };
  const has = (crawlerId: CrawlerId) => get(crawlerId) !== undefined;
  return {
    candidates,
    indexOf: { get, has },
    peerRtts: whole.peerRtts,
    peerSlots,
    part: { whole, members },
  };
}

/** Where the slots of the list that was looked at last stand in it. Parts of a fleet come and go by the ten thousand: none keeps its own. */
class LatestPositions {
  #slots: Int32Array = new Int32Array(0);
  #bySlot = new Int32Array(0);

  /** By slot the position, −1 where it is not in the list; good until another list is looked at. */
  of(slots: Int32Array, leastLength = 0): Int32Array {
    if (this.#slots === slots && this.#bySlot.length >= leastLength) return this.#bySlot;
    const before = this.#slots;
    for (let index = 0; index < before.length; index++) this.#bySlot[before[index]!] = -1;
    let most = leastLength - 1;
    for (let index = 0; index < slots.length; index++) if (slots[index]! > most) most = slots[index]!;
    if (most >= this.#bySlot.length) this.#bySlot = new Int32Array(Math.ceil(1.25 * (most + 1))).fill(-1);
    const bySlot = this.#bySlot;
    for (let index = 0; index < slots.length; index++) bySlot[slots[index]!] = index;
    this.#slots = slots;
    return bySlot;
  }
}

const peerPositions = new LatestPositions();
const learnedPositions = new LatestPositions();

/** The RTTs in ms from a candidate to all candidates, in their order; NaN where unknown. */
export function rttsToCandidates(fleet: CandidateFleet, index: number): Float64Array {
  return fleet.peerRtts.rttsBetween(fleet.peerSlots[index] ?? -1, fleet.peerSlots);
}

// What a round reads again and again of a fleet: per candidate the RTTs to the others and who stands nearest.

/** The nearest candidates of one, itself first unless another is nearer than `besideMs`, and their RTTs in ms. */
export interface NearestCandidates {
  readonly count: number;
  readonly indices: ArrayLike<number>;
  readonly rttsMs: ArrayLike<number>;
}

/** A target beside a crawler is about so far from it. */
const besideMs = 1;

/** A candidate seen as a place: what a target beside it would measure. Answers are good until the next question. */
export interface FleetView {
  /**
   * RTT in ms from the candidate at `index` to every candidate, NaN where unknown; to itself `besideMs`. The caller
   * reads none before the position `first`.
   */
  rttsFrom(index: number, first?: number): Float64Array;
  nearestTo(index: number): NearestCandidates;
  /** The candidates' slots in what was learned. */
  slotsIn(learned: LearnedRtts): Int32Array;
  /** The candidate of each slot, −1 for crawlers that are none. */
  indicesIn(learned: LearnedRtts): Int32Array;
}

const views = new WeakMap<CandidateFleet, WeakMap<LearnedRtts, FleetView>>();

export function viewOf(fleet: CandidateFleet, learned: LearnedRtts): FleetView {
  if (fleet.part !== undefined) return new PartView(fleet, fleet.part);
  const known = views.get(fleet) ?? new WeakMap<LearnedRtts, FleetView>();
  views.set(fleet, known);
  const view = known.get(learned) ?? new WholeView(fleet);
  known.set(learned, view);
  return view;
}

interface WholePlace extends NearestCandidates {
  readonly fromHereMs: Float64Array;
}

/** Made once a fleet and candidate, anew when the crawlers' RTTs changed. */
class WholeView implements FleetView {
  readonly #fleet: CandidateFleet;
  readonly #places: (WholePlace | undefined)[] = [];
  #revision = -1;
  #learnedSlots = -1;
  #slotOf = new Int32Array(0);
  #indexOf = new Int32Array(0);

  constructor(fleet: CandidateFleet) {
    this.#fleet = fleet;
  }

  rttsFrom(index: number): Float64Array {
    return this.#placeOf(index).fromHereMs;
  }

  nearestTo(index: number): NearestCandidates {
    return this.#placeOf(index);
  }

  slotsIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#slotOf;
  }

  indicesIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#indexOf;
  }

  #placeOf(index: number): WholePlace {
    if (this.#revision !== this.#fleet.peerRtts.revision) {
      this.#revision = this.#fleet.peerRtts.revision;
      this.#places.length = 0;
    }
    this.#places[index] ??= wholePlace(this.#fleet, index);
    return this.#places[index];
  }

  #follow(learned: LearnedRtts): void {
    if (this.#learnedSlots === learned.slots) return;
    const slotOf = (crawlerId: CrawlerId) => learned.slotOf(crawlerId);
    this.#slotOf = Int32Array.from(this.#fleet.candidates, slotOf);
    this.#indexOf = new Int32Array(learned.slots).fill(-1);
    this.#slotOf.forEach((slot, index) => {
      this.#indexOf[slot] = index;
    });
    this.#learnedSlots = learned.slots;
  }
}

function wholePlace(fleet: CandidateFleet, index: number): WholePlace {
  const fromHereMs = rttsToCandidates(fleet, index);
  fromHereMs[index] = besideMs;
  const indices = smallestOf(fromHereMs, listedAsNearest);
  const rttsMs = Float64Array.from(indices, (one) => fromHereMs[one]!);
  return { fromHereMs, count: indices.length, indices, rttsMs };
}

/** What a part of a large fleet was asked last; such a part lives for one answer, so it keeps nothing of its own. */
const lastAsked = {
  fromHereMs: new Float64Array(0),
  nearest: { count: 0, indices: new Int32Array(listedAsNearest), rttsMs: new Float64Array(listedAsNearest) },
};

class PartView implements FleetView {
  readonly #fleet: CandidateFleet;
  readonly #part: NonNullable<CandidateFleet["part"]>;
  #slotOf: Int32Array | null = null;

  constructor(fleet: CandidateFleet, part: NonNullable<CandidateFleet["part"]>) {
    this.#fleet = fleet;
    this.#part = part;
  }

  rttsFrom(index: number, first = 0): Float64Array {
    const { peerRtts, peerSlots } = this.#fleet;
    if (lastAsked.fromHereMs.length < peerSlots.length)
      lastAsked.fromHereMs = new Float64Array(2 * peerSlots.length);
    const { fromHereMs } = lastAsked;
    peerRtts.rttsInto(fromHereMs, peerSlots[index]!, peerSlots, first);
    fromHereMs[index] = besideMs;
    return fromHereMs;
  }

  nearestTo(index: number): NearestCandidates {
    const { peerRtts, peerSlots } = this.#fleet;
    const positions = peerPositions.of(peerSlots);
    const { from, to, slots, rttsMs } = peerRtts.nearestAtHand(peerSlots[index]!);
    const { nearest } = lastAsked;
    nearest.indices[0] = index;
    nearest.rttsMs[0] = besideMs;
    let count = 1;
    for (let at = from; at < to && count < listedAsNearest; at++) {
      const one = positions[slots[at]!] ?? -1;
      if (one < 0) continue;
      nearest.indices[count] = one;
      nearest.rttsMs[count] = rttsMs[at]!;
      count += 1;
    }
    nearest.count = count;
    return nearest;
  }

  slotsIn(learned: LearnedRtts): Int32Array {
    if (this.#slotOf !== null) return this.#slotOf;
    const { whole, members } = this.#part;
    const ofWhole = viewOf(whole, learned).slotsIn(learned);
    const slotOf = new Int32Array(members.length);
    for (let index = 0; index < members.length; index++) slotOf[index] = ofWhole[members[index]!]!;
    this.#slotOf = slotOf;
    return slotOf;
  }

  indicesIn(learned: LearnedRtts): Int32Array {
    return learnedPositions.of(this.slotsIn(learned), learned.slots);
  }
}
