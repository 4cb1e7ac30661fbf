/**
 * RTT vectors learned from finished rounds: for some past subnets the RTTs from the crawlers, measured or expected. A new
 * subnet is compared with them (`rtt-mixture.ts`), since one with similar answers is likely in a similar place.
 *
 * There are two bounds: each crawler keeps a few subnets that it won, replaced at random so that they cover time and place,
 * and only the latest few of each holder, neighbourhood and published place are kept.
 */
import type { CrawlerId } from "#core/ids";
import { mix32, seededRandom } from "#core/random";
import { smallestOf } from "#core/small-collections";
import type { CandidateFleet } from "../fleet.ts";
import type { PlaceKey, Placement } from "../placement.ts";

/** Maximum subnets kept by their winners, over all crawlers. */
const keptInAll = 3200;

/** Bounds of the number that one crawler keeps: few in a large fleet, enough in a small one. */
const leastKept = 2;

const mostKept = 32;

/** Maximum subnets kept per holder, neighbourhood or published place, the latest ones. */
const keptAlike = 4;

const mostKeysAlike = 4000;

export class LearnedRtts {
  readonly calibration = new GainCalibration();
  readonly sources = new SourceTrust();
  readonly vectors = new VectorTable();
  readonly #slots = new Map<CrawlerId, number>();
  readonly #crawlers: CrawlerId[] = [];
  readonly #kept = new Map<CrawlerId, number[]>();
  readonly #byHolder = new Map<PlaceKey, number[]>();
  readonly #byNeighbourhood = new Map<PlaceKey, number[]>();
  readonly #byPublished = new Map<PlaceKey, number[]>();
  readonly #draw = seededRandom(1);
  readonly #fleets = new WeakMap<CandidateFleet, FleetSlots>();

  /** Assigned at the crawler's first appearance. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }

  /** Gives the crawler a new slot. Its measurements stay with the old slot, which is no longer used. */
  forget(crawlerId: CrawlerId): void {
    if (!this.#slots.delete(crawlerId)) return;
    for (const row of this.wonBy(crawlerId)) this.vectors.release(row);
    this.#kept.delete(crawlerId);
    this.slotOf(crawlerId);
  }

  /** The candidates' slots, and the candidate of each slot (−1 for other crawlers). */
  slotsIn(fleet: CandidateFleet): FleetSlots {
    const known = this.#fleets.get(fleet);
    if (known?.indexOf.length === this.#crawlers.length) return known;
    const slotOf = Int32Array.from(fleet.candidates, (crawlerId: CrawlerId) => this.slotOf(crawlerId));
    const indexOf = new Int32Array(this.#crawlers.length).fill(-1);
    slotOf.forEach((slot, index) => {
      indexOf[slot] = index;
    });
    const made = { slotOf, indexOf };
    this.#fleets.set(fleet, made);
    return made;
  }

  wonBy(crawlerId: CrawlerId): readonly number[] {
    return this.#kept.get(crawlerId) ?? [];
  }

  get size(): number {
    let size = 0;
    for (const kept of this.#kept.values()) size += kept.length;
    return size;
  }

  /** Rows of the same holder, neighbourhood or published place, the latest few of each. */
  alike({ holderKey, ancestorKeys, published = [] }: Placement): number[] {
    const alike: number[] = [];
    const add = (rows: readonly number[] | undefined) => {
      for (const row of rows ?? []) if (!alike.includes(row)) alike.push(row);
    };
    if (holderKey !== null) add(this.#byHolder.get(holderKey));
    for (const key of ancestorKeys.slice(0, 2)) add(this.#byNeighbourhood.get(key));
    for (const { place } of published) add(this.#byPublished.get(place));
    return alike;
  }

  /** The latest rows of subnets said to be at the same place. */
  atPublished(place: string): readonly number[] {
    return this.#byPublished.get(place) ?? [];
  }

  /** A crawler's RTT and spread in a row, in ms. Null if unknown. */
  figuresOf(row: number, crawlerId: CrawlerId): { readonly rttMs: number; readonly spreadMs: number } | null {
    const { vectors } = this;
    const at = vectors.find(row, this.slotOf(crawlerId));
    return at < 0 ? null : { rttMs: vectors.figures[2 * at]!, spreadMs: vectors.figures[2 * at + 1]! };
  }

  keep(crawlerId: CrawlerId, placement: Placement, entries: RttEntries): void {
    const { holderKey, ancestorKeys, published = [] } = placement;
    const row = this.vectors.add(this.slotOf(crawlerId), placement, entries);
    this.#keepForWinner(crawlerId, row);
    if (holderKey !== null) this.#keepAlike(this.#byHolder, holderKey, row);
    for (const key of ancestorKeys.slice(0, 2)) this.#keepAlike(this.#byNeighbourhood, key, row);
    for (const { place } of published) this.#keepAlike(this.#byPublished, place, row);
  }

  #keepForWinner(crawlerId: CrawlerId, row: number): void {
    this.vectors.hold(row);
    const kept = this.#kept.get(crawlerId);
    if (kept === undefined) this.#kept.set(crawlerId, [row]);
    else if (kept.length < this.keptByEach) kept.push(row);
    else {
      const at = Math.floor(this.#draw() * kept.length);
      this.vectors.release(kept[at]!);
      kept[at] = row;
    }
  }

  #keepAlike(lists: Map<PlaceKey, number[]>, key: PlaceKey, row: number): void {
    const list = lists.get(key);
    if (list?.includes(row)) return;
    this.vectors.hold(row);
    if (list !== undefined) {
      if (list.length >= keptAlike) this.vectors.release(list.shift()!);
      list.push(row);
      return;
    }
    lists.set(key, [row]);
    const oldest = lists.size > mostKeysAlike ? lists.entries().next().value : undefined;
    if (oldest === undefined) return;
    for (const old of oldest[1]) this.vectors.release(old);
    lists.delete(oldest[0]);
  }

  /** Maximum subnets kept per crawler in a fleet of the present size. */
  get keptByEach(): number {
    const share = Math.floor(keptInAll / Math.max(1, this.#slots.size));
    return Math.max(leastKept, Math.min(mostKept, share));
  }
}

export interface FleetSlots {
  /** Slots by candidate position. */
  readonly slotOf: Int32Array;
  /** Candidate positions by slot. */
  readonly indexOf: Int32Array;
}

// Corrects the expected savings by what probes actually saved in this fleet. With fewer surprises than estimated, gains are
// scaled down and rounds end sooner. With more, they continue longer.

interface ProbedGain {
  readonly expectedMs: number;
  /** The former best answer minus this one. 0 if this one was no better. */
  readonly savedMs: number;
}

/** Larger savings are capped, as in the estimate (`expected-gain.ts`). */
const mostCountedMs = 15;

/** Initial weight of the uncorrected estimate, in ms of saving. */
const priorMs = 20;

/** Decay of earlier probes' weight with each new one: some hundred are remembered. */
const memory = 0.998;

const leastScale = 1 / 3;
const mostScale = 3;

export class GainCalibration {
  #expectedMs = 0;
  #savedMs = 0;

  /** Factor for an estimate, 1/3 to 3. */
  get scale(): number {
    const scale = (this.#savedMs + priorMs) / (this.#expectedMs + priorMs);
    return Math.min(mostScale, Math.max(leastScale, scale));
  }

  note({ expectedMs, savedMs }: ProbedGain): void {
    this.#expectedMs = this.#expectedMs * memory + expectedMs;
    this.#savedMs = this.#savedMs * memory + Math.min(mostCountedMs, savedMs);
  }
}

// How far a source's published places can be trusted: how often the crawlers near to other measured subnets of the same place
// were near to this one too. By this measure alone, a wrong or outdated source loses its weight.

/** Initial trust, in subnets: a new source is believed, but not for long. */
const priorRight = 2;
const priorWrong = 1;

/** Decay of earlier subnets' weight with each new one: some hundred are remembered. */
const memoryOfSubnets = 0.99;

/** Maximum sources. The one noted longest ago is forgotten. */
const mostSources = 20_000;

interface Seen {
  right: number;
  wrong: number;
}

export class SourceTrust {
  readonly #seen = new Map<string, Seen>();

  /** From 0 to 1. */
  of(source: string): number {
    const { right = 0, wrong = 0 } = this.#seen.get(source) ?? {};
    return (priorRight + right) / (priorRight + priorWrong + right + wrong);
  }

  /** `right` is the share, 0 to 1, of comparisons that matched. */
  note(source: string, right: number): void {
    const seen = this.#seen.get(source) ?? { right: 0, wrong: 0 };
    this.#seen.delete(source);
    this.#seen.set(source, seen);
    seen.right = seen.right * memoryOfSubnets + right;
    seen.wrong = seen.wrong * memoryOfSubnets + (1 - right);
    const [oldest] = this.#seen.size > mostSources ? this.#seen.keys() : [];
    if (oldest !== undefined) this.#seen.delete(oldest);
  }
}

// Past subnets' RTT vectors in a few typed arrays. A round examines dozens of them per answer for one crawler's RTT, and an
// object for each would cost three cache misses instead of one.
//
// A vector is a hash table of 128 places, at most 96 used: the entry of a slot is at the slot modulo 128 or behind it (linear
// probing). It takes 1.7 KB, whatever the fleet's size. Rows are reused, so a reference to a row must include its generation.

const placesBits = 7;
const places = 2 ** placesBits;

/** Entries per vector: measured ones and the nearest expected ones. */
export const mostEntries = 96;

/** Maximum crawlers listed as nearest. Farther ones cannot be the nearest. */
export const listedAsNearest = 24;
const listedAsMeasured = 24;

const none = -1;

export interface RttEntries {
  readonly slots: ArrayLike<number>;
  /** Measured or expected RTT in ms. */
  readonly rttsMs: ArrayLike<number>;
  /** Standard deviation of an expectation, in ms. 0 for measured. */
  readonly spreadsMs: ArrayLike<number>;
}

/** Placement keys as numbers for comparison. 0 for none. */
interface PlaceNumbers {
  readonly holder: number;
  readonly parent: number;
  readonly grandparent: number;
  readonly country: number;
  readonly published: readonly number[];
}

const numbersOfRow = 7;
const publishedOfRow = numbersOfRow - 4;

export class VectorTable {
  /** The crawler's slot by row and place, or none. */
  slots = new Int32Array(0);
  /** RTT and spread in ms, by row and place. */
  figures = new Float32Array(0);
  /** The winner's slot by row. */
  winners = new Int32Array(0);
  /** Generation of each row, which changes with each vector stored there. */
  generations = new Int32Array(0);
  /** For each row, the places of the nearest, nearest first, and of those that measured. */
  readonly nearest = new PlaceLists(listedAsNearest);
  readonly measured = new PlaceLists(listedAsMeasured);
  #placeNumbers = new Int32Array(0);
  #references = new Uint8Array(0);
  readonly #free: number[] = [];
  #rows = 0;

  get size(): number {
    return this.#rows - this.#free.length;
  }

  /** Returns the row of a new vector. No other code has a reference to it yet. */
  add(winner: number, placement: Placement, entries: RttEntries): number {
    const row = this.#free.pop() ?? this.#newRow();
    this.winners[row] = winner;
    this.#writeEntries(row, entries);
    const { holder, parent, grandparent, country, published } = placeNumbersOf(placement);
    const numbers = [holder, parent, grandparent, country, ...published];
    for (let at = 0; at < numbersOfRow; at++) this.#placeNumbers[row * numbersOfRow + at] = numbers[at] ?? 0;
    return row;
  }

  hold(row: number): void {
    this.#references[row]! += 1;
  }

  release(row: number): void {
    this.#references[row]! -= 1;
    if (this.#references[row]! > 0) return;
    this.generations[row]! += 1;
    this.#free.push(row);
  }

  /** Index of the slot's entry in `slots` (twice that in `figures`). Negative for none. */
  find(row: number, slot: number): number {
    const first = row << placesBits;
    for (let place = slot & (places - 1); ; place = (place + 1) & (places - 1)) {
      const found = this.slots[first + place]!;
      if (found === slot) return first + place;
      if (found === none) return none;
    }
  }

  /** The row's range in `slots`. Places without an entry are negative. */
  placesOf(row: number): { readonly first: number; readonly last: number } {
    return { first: row << placesBits, last: (row << placesBits) + places - 1 };
  }

  /** Likeness of the placements, by the weights of what both share. 1 if they share nothing. */
  likeness(row: number, other: PlaceNumbers, weights: LikenessWeights): number {
    const numbers = this.#placeNumbers;
    const first = row * numbersOfRow;
    let likeness = 1;
    if (other.holder !== 0 && numbers[first] === other.holder) likeness = weights.holder;
    else if (other.parent !== 0 && numbers[first + 1] === other.parent) likeness = weights.neighbourhood;
    else if (other.grandparent !== 0 && numbers[first + 2] === other.grandparent)
      likeness = weights.neighbourhood;
    else if (other.country !== 0 && numbers[first + 3] === other.country) likeness = weights.country;
    for (let claim = 0; claim < other.published.length; claim++)
      for (let at = first + 4; at < first + numbersOfRow; at++)
        if (numbers[at] === other.published[claim]) likeness = Math.max(likeness, weights.published[claim]!);
    return likeness;
  }

  #writeEntries(row: number, { slots, rttsMs, spreadsMs }: RttEntries): void {
    const first = row << placesBits;
    this.slots.fill(none, first, first + places);
    const placeOf: number[] = [];
    for (let entry = 0; entry < slots.length; entry++) {
      const slot = slots[entry]!;
      let place = slot & (places - 1);
      while (this.slots[first + place] !== none) place = (place + 1) & (places - 1);
      this.slots[first + place] = slot;
      this.figures[2 * (first + place)] = rttsMs[entry]!;
      this.figures[2 * (first + place) + 1] = spreadsMs[entry]!;
      placeOf.push(place);
    }
    this.nearest.clear(row);
    for (const entry of smallestOf(rttsMs, listedAsNearest)) this.nearest.push(row, placeOf[entry]!);
    this.measured.clear(row);
    for (let entry = 0; entry < slots.length; entry++)
      if (spreadsMs[entry] === 0) this.measured.push(row, placeOf[entry]!);
  }

  #newRow(): number {
    const row = this.#rows++;
    if (row < this.winners.length) return row;
    const rows = Math.max(64, Math.ceil(1.5 * row));
    const grown = <Column extends Int32Array | Float32Array | Uint8Array>(column: Column, made: Column) => {
      made.set(column);
      return made;
    };
    this.slots = grown(this.slots, new Int32Array(rows * places));
    this.figures = grown(this.figures, new Float32Array(2 * rows * places));
    this.winners = grown(this.winners, new Int32Array(rows));
    this.generations = grown(this.generations, new Int32Array(rows));
    this.#placeNumbers = grown(this.#placeNumbers, new Int32Array(rows * numbersOfRow));
    this.#references = grown(this.#references, new Uint8Array(rows));
    this.nearest.grow(rows);
    this.measured.grow(rows);
    return row;
  }
}

class PlaceLists {
  readonly most: number;
  counts = new Uint8Array(0);
  #places = new Uint8Array(0);

  constructor(most: number) {
    this.most = most;
  }

  /** Index in the table's `slots` of the entry with that rank. */
  at(row: number, rank: number): number {
    return (row << placesBits) + this.#places[row * this.most + rank]!;
  }

  clear(row: number): void {
    this.counts[row] = 0;
  }

  /** Ignores entries beyond the limit. */
  push(row: number, place: number): void {
    const rank = this.counts[row]!;
    if (rank === this.most) return;
    this.#places[row * this.most + rank] = place;
    this.counts[row] = rank + 1;
  }

  grow(rows: number): void {
    const [counts, listed] = [this.counts, this.#places];
    this.counts = new Uint8Array(rows);
    this.counts.set(counts);
    this.#places = new Uint8Array(rows * this.most);
    this.#places.set(listed);
  }
}

interface LikenessWeights {
  readonly holder: number;
  readonly neighbourhood: number;
  readonly country: number;
  readonly published: readonly number[];
}

export function placeNumbersOf({
  holderKey,
  ancestorKeys,
  country,
  published = [],
}: Placement): PlaceNumbers {
  return {
    holder: numberOf(holderKey),
    parent: numberOf(ancestorKeys[0]),
    grandparent: numberOf(ancestorKeys[1]),
    country: numberOf(country),
    published: published.slice(0, publishedOfRow).map(({ place }) => numberOf(place)),
  };
}

/** Two keys collide once in four billion. Then subnets look slightly more alike than they are. */
function numberOf(key: PlaceKey | null | undefined): number {
  if (key === null || key === undefined) return 0;
  if (typeof key === "number") return mix32(key) | 0 || 1;
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return mix32(hash) | 0 || 1;
}
