/**
 * What finished probe rounds taught about distances: for some past subnets the round-trip times from the crawlers, measured
 * where somebody asked and expected where nobody did. A new subnet is held against them (see `rtt-mixture.ts`):
 * whoever answers alike most likely lies alike.
 *
 * Bounded, in two ways of looking: each crawler keeps a few subnets that it won, of which a later one replaces any
 * at random, so that they are spread over time and place; and the latest few of each holder, neighbourhood and published place
 * are kept, of as many of these as there is room for.
 */
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { CandidateFleet } from "../fleet.ts";
import type { PlaceKey, Placement } from "../placement.ts";
import { type RttEntries, VectorTable } from "./vector-table.ts";

/** Subnets that a fleet keeps by their winners, all crawlers together. */
const keptInAll = 3200;

/** Bounds of what one crawler keeps: few of a large fleet, enough of a small one. */
const leastKept = 2;

const mostKept = 32;

/** The latest subnets of one holder, neighbourhood or published place that are kept. */
const keptAlike = 4;

/** Holders, neighbourhoods and published places that are kept, of each sort. */
const mostKeysAlike = 4000;

export class LearnedRtts {
  /** Whether rounds gained what was expected of them. */
  readonly calibration = new GainCalibration();
  /** Whether subnets lie where sources say. */
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

  /** The slot of a crawler, given at its first appearance. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }

  /** What was measured of this crawler stays with a slot that nobody has any more. */
  forget(crawlerId: CrawlerId): void {
    if (!this.#slots.delete(crawlerId)) return;
    for (const row of this.wonBy(crawlerId)) this.vectors.release(row);
    this.#kept.delete(crawlerId);
    this.slotOf(crawlerId);
  }

  /** The candidates' slots, and the candidate of each slot (−1 for crawlers that are none). */
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

  /** Rows of the kept subnets that this crawler won. */
  wonBy(crawlerId: CrawlerId): readonly number[] {
    return this.#kept.get(crawlerId) ?? [];
  }

  /** How many are kept by their winners. */
  get size(): number {
    let size = 0;
    for (const kept of this.#kept.values()) size += kept.length;
    return size;
  }

  /** Rows of the same holder, neighbourhood and published place, the latest few of each. */
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

  /** Rows of subnets that are said to lie at the same place, the latest few. */
  atPublished(place: string): readonly number[] {
    return this.#byPublished.get(place) ?? [];
  }

  /** RTT and spread that a row keeps of a crawler, in ms; null where it knows nothing. */
  figuresOf(row: number, crawlerId: CrawlerId): { readonly rttMs: number; readonly spreadMs: number } | null {
    const { vectors } = this;
    const at = vectors.find(row, this.slotOf(crawlerId));
    return at < 0 ? null : { rttMs: vectors.figures[2 * at]!, spreadMs: vectors.figures[2 * at + 1]! };
  }

  /** A subnet that the crawler won. */
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

  /** The key that was added longest ago goes when there is no more room. */
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

  /** How many subnets a crawler keeps in a fleet of this size, at most. */
  get keptByEach(): number {
    const share = Math.floor(keptInAll / Math.max(1, this.#slots.size));
    return Math.max(leastKept, Math.min(mostKept, share));
  }
}

export interface FleetSlots {
  /** By the candidate's position. */
  readonly slotOf: Int32Array;
  /** By slot. */
  readonly indexOf: Int32Array;
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

// How far what a source publishes can be trusted to say where a subnet lies: of the subnets that were measured, how often
// the crawlers that were near to the others of the same published place were near to this one, too. A source that lies, or is
// out of date, loses its weight by that alone; nothing else is known about it.

/** What a source starts with, in subnets: a stranger is believed, but not for long. */
const priorRight = 2;
const priorWrong = 1;

/** Of what was seen, so much is still counted after each new one: some hundred subnets are remembered. */
const memoryOfSubnets = 0.99;

/** Sources that are remembered; who was heard of longest ago goes. */
const mostSources = 20_000;

interface Seen {
  right: number;
  wrong: number;
}

export class SourceTrust {
  readonly #seen = new Map<string, Seen>();

  /** 0 to 1. */
  of(source: string): number {
    const { right = 0, wrong = 0 } = this.#seen.get(source) ?? {};
    return (priorRight + right) / (priorRight + priorWrong + right + wrong);
  }

  /** `right`: of what could be held against it, the share that fitted, 0 to 1. */
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
