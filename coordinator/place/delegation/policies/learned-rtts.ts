/**
 * RTT vectors learned from finished rounds: for some past subnets the RTTs from the crawlers, measured or expected. A
 * new subnet is compared with them (`rtt-mixture.ts`), since one with similar answers is likely in a similar place.
 *
 * Bounded in two ways: each crawler keeps a few subnets that it won, replaced at random so that they cover time and
 * place; and the latest few of each holder, neighbourhood and published place are kept.
 */
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { CandidateFleet } from "../fleet.ts";
import type { PlaceKey, Placement } from "../placement.ts";
import { type RttEntries, VectorTable } from "./vector-table.ts";

/** Subnets kept by their winners, over all crawlers. */
const keptInAll = 3200;

/** Bounds of what one crawler keeps: few in a large fleet, enough in a small one. */
const leastKept = 2;

const mostKept = 32;

/** Latest subnets kept per holder, neighbourhood or published place. */
const keptAlike = 4;

/** Limit per kind of key. */
const mostKeysAlike = 4000;

export class LearnedRtts {
  /** Tracks whether rounds gained what was expected. */
  readonly calibration = new GainCalibration();
  /** Tracks whether subnets are where sources say. */
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

  /** Its measurements stay with a slot that is no longer used. */
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

  /** A row's RTT and spread of a crawler, in ms; null when unknown. */
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

  /** Drops the oldest key when full. */
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

  /** Maximum subnets kept per crawler in a fleet of this size. */
  get keptByEach(): number {
    const share = Math.floor(keptInAll / Math.max(1, this.#slots.size));
    return Math.max(leastKept, Math.min(mostKept, share));
  }
}

export interface FleetSlots {
  /** By candidate position. */
  readonly slotOf: Int32Array;
  /** By slot. */
  readonly indexOf: Int32Array;
}

// Corrects the expected savings by what probes actually saved in this fleet: with fewer surprises than estimated,
// gains are scaled down and rounds end sooner; with more, they continue longer.

/** A probe made because of an expected saving. */
interface ProbedGain {
  readonly expectedMs: number;
  /** The former best answer less its own; 0 when it was no better. */
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

// How far a source's published places can be trusted: how often the crawlers near to other measured subnets of the
// same place were near to this one too. A wrong or outdated source loses its weight by that alone.

/** Initial trust in subnets: a new source is believed, but not for long. */
const priorRight = 2;
const priorWrong = 1;

/** Decay of earlier subnets' weight with each new one: some hundred are remembered. */
const memoryOfSubnets = 0.99;

/** Beyond this, the source noted longest ago is forgotten. */
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
