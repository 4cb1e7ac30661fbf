/**
 * What finished probe rounds taught about distances: for some past subnets the round-trip times from every
 * crawler, measured where somebody asked and expected where nobody did. A new subnet is held against them
 * (see `rtt-mixture.ts`): whoever answers alike most likely lies alike.
 *
 * Bounded, in two ways of looking: each crawler keeps a few subnets that it won, of which a later one replaces any
 * at random, so that they are spread over time and place; and the latest few of each holder and neighbourhood are
 * kept for as many of these as there is room for. 8 bytes a crawler and kept subnet.
 */
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { smallestOf } from "#core/small-collections";
import type { PlaceKey, Placement } from "../placement.ts";

/**
 * A past subnet as the crawlers see it: an entry for each slot, or, where a round looked at a part of a large fleet, for
 * some slots. Crawlers that came later have none.
 */
export interface LearnedVector {
  /** The crawler that was found nearest. */
  readonly crawlerId: CrawlerId;
  readonly placement: Placement;
  /** The slots of the entries, ascending; null: the entry of each slot is its number. */
  readonly slots: Int32Array | null;
  /** Measured or expected RTT in ms; NaN: nothing known. */
  readonly rttsMs: Float32Array;
  /** How far off the expectation may be, in ms (one standard deviation); 0 where it was measured. */
  readonly spreadsMs: Float32Array;
  /** Slots of the crawlers that measured it. */
  readonly measured: Int32Array;
  /** Entries of the nearest crawlers, nearest first. */
  readonly nearest: Int32Array;
}

/** The entry of a slot; −1, or one beyond the last, where there is none. */
export function entryOf({ slots }: LearnedVector, slot: number): number {
  if (slots === null) return slot;
  let low = 0;
  let high = slots.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    if (slots[middle]! === slot) return middle;
    if (slots[middle]! < slot) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** Subnets that a fleet keeps by their winners, all crawlers together. */
const keptInAll = 3200;

/** Bounds of what one crawler keeps: few of a large fleet, enough of a small one. */
const leastKept = 2;

const mostKept = 32;

/** The latest subnets of one holder or neighbourhood that are kept. */
const keptAlike = 4;

/** Room for all of these, in RTTs (8 bytes each): 32 MB. */
const roomForAlike = 4_000_000;

/** Crawlers that a vector lists as nearest: a farther one is no candidate for being the nearest. */
export const listedAsNearest = 24;

export class LearnedRtts {
  /** Whether rounds gained what was expected of them. */
  readonly calibration = new GainCalibration();
  readonly #slots = new Map<CrawlerId, number>();
  readonly #crawlers: CrawlerId[] = [];
  readonly #kept = new Map<CrawlerId, LearnedVector[]>();
  readonly #byHolder = new Map<PlaceKey, LearnedVector[]>();
  readonly #byNeighbourhood = new Map<PlaceKey, LearnedVector[]>();
  readonly #draw = seededRandom(1);

  /** The slot of a crawler, given at its first appearance. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }

  /** Crawlers that have a slot. */
  get slots(): number {
    return this.#slots.size;
  }

  /** The kept subnets that this crawler won. */
  wonBy(crawlerId: CrawlerId): readonly LearnedVector[] {
    return this.#kept.get(crawlerId) ?? [];
  }

  /** How many are kept in all. */
  get size(): number {
    let size = 0;
    for (const kept of this.#kept.values()) size += kept.length;
    return size;
  }

  /** Of the same holder and of the same neighbourhood, the latest few of each. */
  alike({ holderKey, ancestorKeys }: Placement): ReadonlySet<LearnedVector> {
    const alike = new Set<LearnedVector>();
    if (holderKey !== null) for (const vector of this.#byHolder.get(holderKey) ?? []) alike.add(vector);
    for (const key of ancestorKeys.slice(0, 2))
      for (const vector of this.#byNeighbourhood.get(key) ?? []) alike.add(vector);
    return alike;
  }

  /** Crawlers that were nearest to a past subnet, as far as is known. */
  nearestTo({ slots, nearest }: LearnedVector, most: number): CrawlerId[] {
    return Array.from(nearest.subarray(0, most), (entry) => this.#crawlers[slots?.[entry] ?? entry]!);
  }

  keep(vector: Omit<LearnedVector, "nearest">): void {
    const { crawlerId, placement } = vector;
    this.slotOf(crawlerId);
    const entry = { ...vector, nearest: smallestOf(vector.rttsMs, listedAsNearest) };
    this.#keepForWinner(entry);
    if (placement.holderKey !== null) this.#keepAlike(this.#byHolder, placement.holderKey, entry);
    for (const key of placement.ancestorKeys.slice(0, 2)) this.#keepAlike(this.#byNeighbourhood, key, entry);
  }

  #keepForWinner(entry: LearnedVector): void {
    const kept = this.#kept.get(entry.crawlerId);
    if (kept === undefined) this.#kept.set(entry.crawlerId, [entry]);
    else if (kept.length < this.keptByEach) kept.push(entry);
    else kept[Math.floor(this.#draw() * kept.length)] = entry;
  }

  /** The key that was added longest ago goes when there is no more room. */
  #keepAlike(lists: Map<PlaceKey, LearnedVector[]>, key: PlaceKey, entry: LearnedVector): void {
    const list = lists.get(key);
    if (list !== undefined) {
      if (list.length >= keptAlike) list.shift();
      list.push(entry);
      return;
    }
    lists.set(key, [entry]);
    const entries = entry.slots === null ? this.#slots.size : entry.rttsMs.length;
    const mostKeys = roomForAlike / (keptAlike * entries);
    const [oldest] = lists.size > mostKeys ? lists.keys() : [];
    if (oldest !== undefined) lists.delete(oldest);
  }

  /** How many subnets a crawler keeps in a fleet of this size, at most. */
  get keptByEach(): number {
    const share = Math.floor(keptInAll / Math.max(1, this.#slots.size));
    return Math.max(leastKept, Math.min(mostKept, share));
  }
}

// Whether probes save what was expected of them, in this fleet and this part of the Internet. Where answers
// hold fewer surprises than the estimate takes for granted, its gains are scaled down and rounds end sooner;
// where more, they go on for longer.

/** A probe that was made because something was expected of it. */
interface ProbedGain {
  readonly expectedMs: number;
  /** What it saved: the best answer before it, less its own; 0 when it was no better. */
  readonly savedMs: number;
}

/** Of a saving only so much counts, as in the estimate (see `expected-gain.ts`). */
const mostCountedMs = 15;

/** Evidence, in ms of saving, that the uncorrected estimate starts with. */
const priorMs = 20;

/** What an old probe still counts after each new one: some hundred are remembered. */
const memory = 0.998;

const leastScale = 1 / 3;
const mostScale = 3;

export class GainCalibration {
  #expectedMs = 0;
  #savedMs = 0;

  /** By what an estimate is to be multiplied, 1/3 to 3. */
  get scale(): number {
    const scale = (this.#savedMs + priorMs) / (this.#expectedMs + priorMs);
    return Math.min(mostScale, Math.max(leastScale, scale));
  }

  note({ expectedMs, savedMs }: ProbedGain): void {
    this.#expectedMs = this.#expectedMs * memory + expectedMs;
    this.#savedMs = this.#savedMs * memory + Math.min(mostCountedMs, savedMs);
  }
}
