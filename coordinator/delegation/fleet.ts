/**
 * The crawlers that may take a subnet, as a probe round sees them: the candidates (who is online, not full,
 * not draining and not denied the target is the caller's business), and the round-trip times between them.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import type { PeerMatrix } from "./peers.ts";
import { type LearnedRtts, listedAsNearest } from "./policies/learned-rtts.ts";

export interface MeasuredPeer {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

/** RTTs between crawlers, in ms. Both directions are one path: the smaller measurement counts. */
export class PeerRttTable {
  #slots = new Map<CrawlerId, number>();
  #rows: readonly Float64Array[];
  #revision = () => 0;

  constructor(measurements: readonly MeasuredPeer[]) {
    for (const { from, to } of measurements) {
      if (!this.#slots.has(from)) this.#slots.set(from, this.#slots.size);
      if (!this.#slots.has(to)) this.#slots.set(to, this.#slots.size);
    }
    const size = this.#slots.size;
    this.#rows = Array.from({ length: size }, () => new Float64Array(size).fill(Number.NaN));
    for (const { from, to, rttMs } of measurements) this.#set(from, to, rttMs);
  }

  /** A table over a matrix, live: what is learned later shows here too, until a crawler gets a slot. */
  static over(matrix: PeerMatrix): PeerRttTable {
    const table = new PeerRttTable([]);
    table.#slots = new Map(matrix.slots);
    table.#rows = matrix.rows;
    table.#revision = () => matrix.revision;
    return table;
  }

  /** Another number after every change that matters (see `PeerMatrix`); constant for a table of given measurements. */
  get revision(): number {
    return this.#revision();
  }

  /** Null when neither side has measured the other. */
  rttMs(a: CrawlerId, b: CrawlerId): number | null {
    const rttMs = this.#rows[this.#slots.get(a) ?? -1]?.[this.#slots.get(b) ?? -1];
    return rttMs === undefined || Number.isNaN(rttMs) ? null : rttMs;
  }

  /** Where the crawlers stand in this table, for `rttsBetween`; −1 for one that measured nothing. */
  slotsOf(crawlerIds: readonly CrawlerId[]): Int32Array {
    const slots = new Int32Array(crawlerIds.length);
    for (let index = 0; index < slots.length; index++)
      slots[index] = this.#slots.get(crawlerIds[index]!) ?? -1;
    return slots;
  }

  /** The RTTs from one slot to many, in their order; NaN where unknown. */
  rttsBetween(from: number, to: Int32Array): Float64Array {
    const row = this.#rows[from];
    const rtts = new Float64Array(to.length).fill(Number.NaN);
    if (row === undefined) return rtts;
    for (let index = 0; index < to.length; index++) {
      if (to[index]! >= 0) rtts[index] = row[to[index]!]!;
    }
    return rtts;
  }

  #set(from: CrawlerId, to: CrawlerId, rttMs: number): void {
    if (!(rttMs >= 0) || !Number.isFinite(rttMs)) return;
    const a = this.#slots.get(from)!;
    const b = this.#slots.get(to)!;
    const known = this.#rows[a]![b]!;
    if (known <= rttMs) return;
    this.#rows[a]![b] = rttMs;
    this.#rows[b]![a] = rttMs;
  }
}

export interface CandidateFleet {
  readonly candidates: readonly CrawlerId[];
  readonly indexOf: ReadonlyMap<CrawlerId, number>;
  readonly peerRtts: PeerRttTable;
  /** The candidates' slots in that table. */
  readonly peerSlots: Int32Array;
}

/** The candidates of one round; a crawler named twice counts once. */
export function candidateFleet(crawlerIds: readonly CrawlerId[], peerRtts: PeerRttTable): CandidateFleet {
  const indexOf = new Map<CrawlerId, number>();
  for (const crawlerId of crawlerIds) if (!indexOf.has(crawlerId)) indexOf.set(crawlerId, indexOf.size);
  const candidates = [...indexOf.keys()];
  return { candidates, indexOf, peerRtts, peerSlots: peerRtts.slotsOf(candidates) };
}

/** The RTTs in ms from a candidate to all candidates, in their order; NaN where unknown. */
export function rttsToCandidates(fleet: CandidateFleet, index: number): Float64Array {
  return fleet.peerRtts.rttsBetween(fleet.peerSlots[index] ?? -1, fleet.peerSlots);
}

// What a round reads again and again of a fleet: per candidate the RTTs to the others and who stands nearest.
// Made once a fleet and candidate, anew when the crawlers' RTTs changed.

/** A candidate seen as a place: what a target beside it would measure. */
interface CandidatePlace {
  /** RTT in ms to every candidate, NaN where unknown; to itself `besideMs`. */
  readonly rttsMs: Float64Array;
  /** The nearest candidates, itself first. */
  readonly nearest: Int32Array;
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
    this.#slotOf = Int32Array.from(this.#fleet.candidates, (crawlerId: CrawlerId) =>
      learned.slotOf(crawlerId),
    );
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
  const rttsMs = rttsToCandidates(fleet, index);
  rttsMs[index] = besideMs;
  return { rttsMs, nearest: smallestOf(rttsMs, listedAsNearest) };
}
