/**
 * The occupied space: only what is registered, however far apart its addresses lie, in their order. A view is a block;
 * it is drawn as at most some hundred groups, each a rectangle: one subnet, or a smaller block with all that starts in
 * it. The heaviest group is halved at the middle of its block until there are enough of them.
 *
 *   10.0.0.0/8 with 10.0.0.0/16, 10.0.1.0/24 and 10.128.0.0/24 becomes
 *   10.0.0.0/8 itself · 10.0.0.0/16 and one more · 10.128.0.0/24
 *
 * Rectangles come from a binary treemap: the list of groups is cut where both sides weigh about the same, and the
 * rectangle along its longer side, so that neighbours in the list stay neighbours. They cover the view without gap or overlap.
 */
import { formatAddress, type IpAddress } from "#core/ip/address";
import type { IpRange } from "#core/ip/range";
import type { ExploredWorld } from "./explored-tree.ts";
import { placesStartingIn, rangeAtPlace } from "./places.ts";
import { addOne, type Counting, type Parts } from "./roll-ups.ts";
import type { WorkTurns } from "./time-slices.ts";

/** What a rectangle's area stands for. */
export const measures = ["subnets", "pages", "addresses"] as const;
export type Measure = (typeof measures)[number];

/** A CIDR block. */
export interface Block {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly prefixLength: number;
}

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface OccupiedGroup {
  readonly block: Block;
  /** The subnet's place where the group is one subnet; −1 where it is several. */
  readonly place: number;
  /** Which of the view's places: indexes, the last excluded. */
  readonly from: number;
  readonly to: number;
  readonly weight: number;
}

const placesPerPiece = 8192;

/** The places of a view, in the order of addresses: all that start in its block, or those of them that are chosen. */
export class ViewPlaces {
  readonly world: ExploredWorld;
  readonly block: Block;
  /** Null: every place counts, and its index is the place. */
  readonly #chosen: Int32Array | null;
  readonly #measure: Measure;
  readonly from: number;
  readonly to: number;
  /** Where places weigh differently, the sum of the weights before each; all of them by roll-ups. */
  readonly #sums: Float64Array | null;

  constructor(
    world: ExploredWorld,
    of: { readonly at: IpRange; readonly chosen: Int32Array | null; readonly measure: Measure },
  ) {
    this.world = world;
    this.#chosen = of.measure === "pages" ? loadedOf(world, of.chosen) : of.chosen;
    this.#measure = of.measure;
    this.block = blockHolding(of.at);
    const [firstPlace, endPlace] = placesStartingIn(world.columns, rangeOf(this.block));
    let from = this.#indexFrom(firstPlace);
    this.to = this.#indexFrom(endPlace);
    // What holds the block whole and more is not in it.
    while (from < this.to && this.#reachesBeyond(from, this.block)) from += 1;
    this.from = from;
    this.#sums = this.#chosen === null || of.measure === "subnets" ? null : this.#sumWeights();
  }

  get count(): number {
    return this.to - this.from;
  }

  /** At most about `most`, in the order of addresses. */
  groups(most: number): OccupiedGroup[] {
    const groups: OccupiedGroup[] = [];
    const open: OccupiedGroup[] = [];
    const add = (group: OccupiedGroup) => (group.place >= 0 ? groups : open).push(group);
    if (this.count > 0) add(this.#group(this.from, this.to, this.block));
    while (open.length > 0 && open.length + groups.length < most) {
      let heaviest = 0;
      for (let at = 1; at < open.length; at += 1)
        if ((open[at] as OccupiedGroup).weight > (open[heaviest] as OccupiedGroup).weight) heaviest = at;
      const [group] = open.splice(heaviest, 1);
      for (const smaller of this.#split(group as OccupiedGroup)) add(smaller);
    }
    return [...groups, ...open].sort((a, b) => a.from - b.from);
  }

  placeAt(index: number): number {
    return this.#chosen === null ? index : (this.#chosen[index] as number);
  }

  async prepare(counting: Counting, turns: WorkTurns): Promise<void> {
    if (this.#chosen === null) await this.world.rollUps.prepare(this, counting, turns);
  }

  /** Adds these to the counts by value; the last excluded. */
  add(parts: Parts, { from, to }: { readonly from: number; readonly to: number }, counting: Counting): void {
    const { rollUps } = this.world;
    if (this.#chosen === null) rollUps.add(parts, { from, to }, counting);
    else
      for (let index = from; index < to; index += 1)
        addOne(parts, rollUps.valueAt(this.placeAt(index), counting));
  }

  pagesPerDay(): number {
    const { loads } = this.world;
    if (this.#chosen === null) return loads.pagesPerDayWithin(this.from, this.to);
    let sum = 0;
    for (let index = this.from; index < this.to; index += 1) sum += loads.pagesPerDayAt(this.placeAt(index));
    return sum;
  }

  dueHosts(): number {
    const { loads } = this.world;
    if (this.#chosen === null) return loads.dueHostsWithin(this.from, this.to);
    let sum = 0;
    for (let index = this.from; index < this.to; index += 1) sum += loads.dueHostsAt(this.placeAt(index));
    return sum;
  }

  #weight(from: number, to: number): number {
    if (this.#sums !== null)
      return (this.#sums[to - this.from] as number) - (this.#sums[from - this.from] as number);
    return this.#measure === "addresses" ? this.world.rollUps.sizesWithin(from, to) : to - from;
  }

  #sumWeights(): Float64Array {
    const sums = new Float64Array(this.count + 1);
    const { loads, rollUps } = this.world;
    for (let at = 0; at < this.count; at += 1) {
      const place = this.placeAt(this.from + at);
      const isLoad = this.#measure === "pages";
      const weight = isLoad ? loads.pagesPerDayAt(place) : rollUps.sizesWithin(place, place + 1);
      sums[at + 1] = (sums[at] as number) + weight;
    }
    return sums;
  }

  #indexFrom(place: number): number {
    if (this.#chosen === null) return place;
    let [low, high] = [0, this.#chosen.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#chosen[middle] as number) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** With the smallest block around all that starts there, and around the first of them whole. */
  #group(from: number, to: number, within: Block): OccupiedGroup {
    const widest = this.#rangeAt(from);
    const weight = this.#weight(from, to);
    if (to - from === 1) return { block: blockHolding(widest), place: this.placeAt(from), from, to, weight };
    // One that starts within and reaches beyond is not held by any smaller block.
    if (BigInt(widest.last) > lastOf(within)) return { block: within, place: -1, from, to, weight };
    const last = larger(widest.last, this.#rangeAt(to - 1).first);
    const block = blockHolding({ family: widest.family, first: widest.first, last } as IpRange);
    return { block, place: -1, from, to, weight };
  }

  /** What holds the block whole, each by itself, and then its two halves. */
  *#split({ block, from, to }: OccupiedGroup): Generator<OccupiedGroup> {
    let start = from;
    while (start < to && !this.#endsBefore(start, block)) {
      yield this.#group(start, start + 1, block);
      start += 1;
    }
    if (block.prefixLength === bitsOf(block.family)) return;
    const [lower, upper] = halves(block);
    const middle = this.#firstFrom(upper.first, start, to);
    yield* this.#within(lower, start, middle);
    yield* this.#within(upper, middle, to);
  }

  *#within(block: Block, from: number, to: number): Generator<OccupiedGroup> {
    let start = from;
    while (start < to && this.#reachesBeyond(start, block)) {
      yield this.#group(start, start + 1, block);
      start += 1;
    }
    if (start < to) yield this.#group(start, to, block);
  }

  #firstFrom(address: bigint, from: number, to: number): number {
    let [low, high] = [from, to];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (BigInt(this.#rangeAt(middle).first) < address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #rangeAt(index: number): IpRange {
    return rangeAtPlace(this.world.columns, this.placeAt(index));
  }

  /** It starts where the block does, and ends behind it. */
  #reachesBeyond(index: number, block: Block): boolean {
    const range = this.#rangeAt(index);
    return BigInt(range.first) === block.first && BigInt(range.last) > lastOf(block);
  }

  #endsBefore(index: number, block: Block): boolean {
    const range = this.#rangeAt(index);
    return BigInt(range.first) > block.first || BigInt(range.last) < lastOf(block);
  }
}

/** Of these places, or of all, those with pages to fetch. */
function loadedOf({ loads }: ExploredWorld, chosen: Int32Array | null): Int32Array {
  if (chosen !== null) return chosen.filter((place) => loads.pagesPerDayAt(place) > 0);
  return loads.places.filter((_, index) => loads.pagesPerDayOf(index) > 0);
}

const larger = (one: number | bigint, other: number | bigint) => (one > other ? one : other);

const bitsOf = (family: 4 | 6): 32 | 128 => (family === 4 ? 32 : 128);

const lastOf = ({ family, first, prefixLength }: Block): bigint =>
  first + (1n << BigInt(bitsOf(family) - prefixLength)) - 1n;

function halves({ family, first, prefixLength }: Block): readonly [Block, Block] {
  const half = 1n << BigInt(bitsOf(family) - prefixLength - 1);
  const lower = { family, first, prefixLength: prefixLength + 1 };
  return [lower, { ...lower, first: first + half }];
}

/** The smallest CIDR block that holds the range. */
export function blockHolding({ family, first, last }: IpRange): Block {
  const differing = BigInt(first) ^ BigInt(last);
  const free = differing === 0n ? 0 : differing.toString(2).length;
  return {
    family,
    first: (BigInt(first) >> BigInt(free)) << BigInt(free),
    prefixLength: bitsOf(family) - free,
  };
}

export function rangeOf(block: Block): IpRange {
  const { family, first } = block;
  const last = lastOf(block);
  return family === 4 ? { family, first: Number(first), last: Number(last) } : { family, first, last };
}

export function blockText({ family, first, prefixLength }: Block): string {
  const value = family === 4 ? Number(first) : first;
  return `${formatAddress({ family, value } as IpAddress)}/${prefixLength}`;
}

/** No rectangle is a smaller share of the area: it can still be hit. */
const leastShare = 1 / 2500;

/** One rectangle for each weight, in the order given; together they fill the area. */
export function treemap(weights: readonly number[], area: Rectangle): Rectangle[] {
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const drawn = weights.map((weight) => Math.max(weight, all * leastShare, Number.MIN_VALUE));
  const sums = [0];
  for (const weight of drawn) sums.push((sums.at(-1) as number) + weight);
  const rectangles = new Array<Rectangle>(weights.length);
  const fill = (from: number, to: number, into: Rectangle): void => {
    if (to - from === 1) {
      rectangles[from] = into;
      return;
    }
    const [start, end] = [sums[from] as number, sums[to] as number];
    const middle = cutAt(sums, from, to);
    const share = ((sums[middle] as number) - start) / (end - start);
    const { x, y, width, height } = into;
    if (width >= height) {
      const left = rounded(width * share);
      fill(from, middle, { x, y, width: left, height });
      fill(middle, to, { x: rounded(x + left), y, width: rounded(width - left), height });
    } else {
      const top = rounded(height * share);
      fill(from, middle, { x, y, width, height: top });
      fill(middle, to, { x, y: rounded(y + top), width, height: rounded(height - top) });
    }
  };
  if (weights.length > 0) fill(0, weights.length, area);
  return rectangles;
}

/** Where both sides weigh about the same, at least one on each. */
function cutAt(sums: readonly number[], from: number, to: number): number {
  const half = ((sums[from] as number) + (sums[to] as number)) / 2;
  let at = from + 1;
  while (at < to - 1 && (sums[at + 1] as number) <= half) at += 1;
  const [below, above] = [sums[at] as number, sums[at + 1] as number];
  return at < to - 1 && above - half < half - below ? at + 1 : at;
}

const rounded = (value: number) => Math.round(100 * value) / 100;

/** The places that a filter lets through, collected in short turns. */
export async function collectPlaces(
  pieces: AsyncIterable<readonly number[]>,
  turns: WorkTurns,
): Promise<Int32Array> {
  let places = new Int32Array(placesPerPiece);
  let count = 0;
  for await (const piece of pieces) {
    if (count + piece.length > places.length) {
      const wider = new Int32Array(2 * Math.max(places.length, piece.length));
      wider.set(places);
      places = wider;
    }
    places.set(piece, count);
    count += piece.length;
    await turns.breathe();
  }
  return places.slice(0, count);
}
