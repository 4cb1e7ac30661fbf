/**
 * How many subnets of any stretch of the tree have which value: who crawls them, how far away, since when, of which
 * registry, with what load. A thousand places are counted once and remembered until one of them changes, so that an
 * answer over millions adds up a few thousand small counts, and a view's legend, its totals and the bar of a row in
 * the tree are the same figures. Counts are of subnets, each once, whatever its size.
 */
import { registries } from "../subnets/subnet.ts";
import { ageStepsHours, type Colouring, loadStepsPagesPerDay, rttStepsMs, stepOf } from "./colours.ts";
import type { PlaceLoads } from "./place-loads.ts";
import { sizeBits } from "./places.ts";
import type { PlaceFacts } from "./tile.ts";
import type { WorkTurns } from "./time-slices.ts";

export const placesPerBlock = 1024;

/** How many subnets have each value, by the value's number; 0 is for those without one. */
export type Parts = number[];

interface RolledFacts extends PlaceFacts {
  readonly loads: PlaceLoads;
}

/** By block of places: number, count, number, count, … */
type BlockCounts = (Uint16Array | null)[];

type KeptColouring = Exclude<Colouring, "load">;

export class RollUps {
  readonly #facts: RolledFacts;
  readonly #kept: Readonly<Record<KeptColouring, BlockCounts>>;
  /** Until when a block's ages stand in the same steps, in seconds since 1970. */
  readonly #agesGoodUntil: Float64Array;
  readonly #sizes: Float64Array;

  constructor(facts: RolledFacts) {
    this.#facts = facts;
    const blocks = Math.ceil(facts.rows.length / placesPerBlock);
    const none = (): BlockCounts => new Array<Uint16Array | null>(blocks).fill(null);
    this.#kept = { crawler: none(), rtt: none(), age: none(), registry: none() };
    this.#agesGoodUntil = new Float64Array(blocks);
    this.#sizes = new Float64Array(blocks).fill(Number.NaN);
  }

  /** About so many: typed arrays have a head of their own. */
  get bytes(): number {
    let bytes = this.#sizes.byteLength + this.#agesGoodUntil.byteLength;
    for (const counts of Object.values(this.#kept))
      for (const block of counts) if (block !== null) bytes += 96 + block.byteLength;
    return bytes;
  }

  /** These places were delegated otherwise; the last excluded. */
  forget(from: number, to: number): void {
    for (let block = blockOf(from); block * placesPerBlock < to; block += 1) {
      this.#kept.crawler[block] = null;
      this.#kept.rtt[block] = null;
      this.#kept.age[block] = null;
    }
  }

  /** Counts what was not counted yet, in short turns. */
  async prepare(span: Span, { colouring, nowSeconds }: Counting, turns: WorkTurns): Promise<void> {
    if (colouring === "load") return;
    for (let block = blockOf(span.from); block * placesPerBlock < span.to; block += 1) {
      if (this.#known(block, colouring, nowSeconds) !== null) continue;
      this.#count(block, colouring, nowSeconds);
      if (block % 8 === 7) await turns.breathe();
    }
  }

  /** Adds the places of the span, the last excluded. */
  add(parts: Parts, { from, to }: Span, counting: Counting): void {
    if (counting.colouring === "load") {
      this.#addLoads(parts, from, to);
      return;
    }
    for (let at = from; at < to; ) {
      const block = blockOf(at);
      const end = Math.min(to, (block + 1) * placesPerBlock);
      if (end - at === this.#placesOf(block)) this.#addBlock(parts, block, counting);
      else for (let place = at; place < end; place += 1) addOne(parts, this.valueAt(place, counting));
      at = end;
    }
  }

  /** The number of a place's value; 0: it has none. */
  valueAt(place: number, { colouring, nowSeconds }: Counting): number {
    const facts = this.#facts;
    if (colouring === "registry") return 1 + ((facts.columns.labels[place] as number) % registries.length);
    if (colouring === "load") return loadStep(facts.loads.pagesPerDayAt(place));
    const row = facts.rows[place] as number;
    if (row < 0) return 0;
    if (colouring === "crawler") return facts.crawlerAt(row);
    if (colouring === "rtt") {
      const rttMs = facts.rttMsAt(row);
      return Number.isNaN(rttMs) ? 0 : 1 + stepOf(rttMs, rttStepsMs);
    }
    const since = facts.sinceAt(row);
    return since === 0 ? 0 : 1 + stepOf(ageHours(since, nowSeconds), ageStepsHours);
  }

  /** Sum of log2 of how many addresses each has, and 1 for each. */
  sizesWithin(from: number, to: number): number {
    let sum = 0;
    for (let at = from; at < to; ) {
      const block = blockOf(at);
      const end = Math.min(to, (block + 1) * placesPerBlock);
      if (end - at === this.#placesOf(block)) sum += this.#sizeOf(block);
      else for (let place = at; place < end; place += 1) sum += 1 + sizeBits(this.#facts.columns, place);
      at = end;
    }
    return sum;
  }

  #placesOf(block: number): number {
    return Math.min(placesPerBlock, this.#facts.rows.length - block * placesPerBlock);
  }

  #sizeOf(block: number): number {
    const known = this.#sizes[block] as number;
    if (!Number.isNaN(known)) return known;
    let sum = 0;
    const first = block * placesPerBlock;
    for (let place = first; place < first + this.#placesOf(block); place += 1)
      sum += 1 + sizeBits(this.#facts.columns, place);
    this.#sizes[block] = sum;
    return sum;
  }

  #addBlock(parts: Parts, block: number, { colouring, nowSeconds }: Counting): void {
    const kept = colouring as KeptColouring;
    const counts = this.#known(block, kept, nowSeconds) ?? this.#count(block, kept, nowSeconds);
    for (let at = 0; at < counts.length; at += 2)
      addTo(parts, counts[at] as number, counts[at + 1] as number);
  }

  #known(block: number, colouring: KeptColouring, nowSeconds: number): Uint16Array | null {
    const counts = this.#kept[colouring][block] ?? null;
    return colouring === "age" && nowSeconds >= (this.#agesGoodUntil[block] as number) ? null : counts;
  }

  #count(block: number, colouring: KeptColouring, nowSeconds: number): Uint16Array {
    const counts = new Map<number, number>();
    const first = block * placesPerBlock;
    for (let place = first; place < first + this.#placesOf(block); place += 1) {
      const value = this.valueAt(place, { colouring, nowSeconds });
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const packed = Uint16Array.from([...counts].flat());
    this.#kept[colouring][block] = packed;
    if (colouring === "age") this.#agesGoodUntil[block] = this.#nextAgeStep(block, nowSeconds);
    return packed;
  }

  #nextAgeStep(block: number, nowSeconds: number): number {
    let soonest = Number.POSITIVE_INFINITY;
    const first = block * placesPerBlock;
    for (let place = first; place < first + this.#placesOf(block); place += 1) {
      const row = this.#facts.rows[place] as number;
      const since = row < 0 ? 0 : this.#facts.sinceAt(row);
      const bound = ageStepsHours[stepOf(ageHours(since, nowSeconds), ageStepsHours)];
      if (since > 0 && bound !== undefined) soonest = Math.min(soonest, since + 3600 * bound);
    }
    return soonest;
  }

  #addLoads(parts: Parts, from: number, to: number): void {
    const { loads } = this.#facts;
    const last = loads.indexFrom(to);
    let without = to - from;
    for (let index = loads.indexFrom(from); index < last; index += 1) {
      const step = loadStep(loads.pagesPerDayOf(index));
      if (step === 0) continue;
      addTo(parts, step, 1);
      without -= 1;
    }
    addTo(parts, 0, without);
  }
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Counting {
  readonly colouring: Colouring;
  /** Ages are counted from here. */
  readonly nowSeconds: number;
}

export const blockOf = (place: number): number => Math.floor(place / placesPerBlock);

const ageHours = (since: number, nowSeconds: number): number => Math.max(0, nowSeconds - since) / 3600;

const loadStep = (pagesPerDay: number): number =>
  pagesPerDay <= 0 ? 0 : 1 + stepOf(pagesPerDay, loadStepsPagesPerDay);

export function addTo(parts: Parts, value: number, count: number): void {
  while (parts.length <= value) parts.push(0);
  parts[value] = (parts[value] as number) + count;
}

export const addOne = (parts: Parts, value: number): void => addTo(parts, value, 1);

export const sumOfParts = (parts: Parts): number => parts.reduce((sum, count) => sum + count, 0);
