/**
 * The subnets that a filter lets through, in the order of addresses from a place on, or the first few by something
 * else. All of it in short turns, and the count bounded: past a bound it is "more than".
 */

import { formatRange, type IpRange } from "#core/ip/range";
import type { ExploredWorld } from "./explored-tree.ts";
import type { PlaceFilter } from "./filter.ts";
import { placesStartingIn, rangeAtPlace, sizeBits } from "./places.ts";
import { blockOf, placesPerBlock } from "./roll-ups.ts";
import type { WorkTurns } from "./time-slices.ts";

export const listOrders = ["address", "size", "load", "rtt", "age"] as const;
export type ListOrder = (typeof listOrders)[number];

export interface ListAsked {
  readonly filter: PlaceFilter;
  /** Subnets that start within. */
  readonly within: IpRange;
  /** Go on behind this one; null: from the beginning. */
  readonly after: IpRange | null;
  readonly order: ListOrder;
  readonly limit: number;
}

export interface ListedPlaces {
  readonly places: readonly number[];
  /** Of all that match within the range, as far as counted. */
  readonly count: number;
  /** False: there are more than `count`. */
  readonly isWholeCount: boolean;
  /** The last one shown, where more follow: the next page's `after`. */
  readonly next: string | null;
}

/** Counting ends at so many that match, or so many that were looked at once the page is full. */
const mostCounted = 10_000;
const mostLookedAt = 300_000;
const placesPerPiece = 4096;

export async function listPlaces(
  world: ExploredWorld,
  asked: ListAsked,
  turns: WorkTurns,
): Promise<ListedPlaces> {
  return asked.order === "address"
    ? await byAddress(world, asked, turns)
    : await byValue(world, { ...asked, order: asked.order }, turns);
}

async function byAddress(world: ExploredWorld, asked: ListAsked, turns: WorkTurns): Promise<ListedPlaces> {
  const { limit, after } = asked;
  const places: number[] = [];
  let [count, looked, isWholeCount] = [0, 0, true];
  const span = spanOf(world, asked);
  for (const place of eachMatch(asked.filter, { ...span, looked: (many) => (looked += many) })) {
    if (place === null) {
      await turns.breathe();
      if (places.length < limit || looked < mostLookedAt) continue;
      isWholeCount = false;
      break;
    }
    count += 1;
    if (places.length < limit) places.push(place);
    if (count < mostCounted) continue;
    isWholeCount = false;
    break;
  }
  const more = count > places.length || !isWholeCount;
  const last = places.at(-1);
  const next = more && last !== undefined ? formatRange(rangeAtPlace(world.columns, last)) : null;
  // What came before is not counted again: from the second page on the count is of what is left.
  return { places, count, isWholeCount: isWholeCount && after === null, next };
}

async function byValue(
  world: ExploredWorld,
  asked: ListAsked & { readonly order: Exclude<ListOrder, "address"> },
  turns: WorkTurns,
): Promise<ListedPlaces> {
  const weightOf = weightIn(world, asked.order);
  const mostIn = mostOfBlock(world, asked.order);
  const best = new Best(asked.limit);
  const span = spanOf(world, asked);
  let [count, isWholeCount] = [0, true];
  // Where the best are found already, thousands that hold nothing better are passed over.
  const mayHold = (block: number) => {
    if (!asked.filter.mayHold(block)) return false;
    if (mostIn(block) > best.least) return true;
    isWholeCount = false;
    return false;
  };
  const filter = { ...asked.filter, mayHold };
  for (const place of eachMatch(filter, { ...span, looked: () => {} })) {
    if (place === null) {
      await turns.breathe();
      continue;
    }
    count += 1;
    best.offer(place, weightOf(place));
  }
  if (asked.filter.isEmpty)
    return { places: best.places(), count: span.to - span.from, isWholeCount: true, next: null };
  return { places: best.places(), count, isWholeCount, next: null };
}

/** No place of the block has more; with a little room for how numbers are rounded. */
function mostOfBlock(world: ExploredWorld, order: Exclude<ListOrder, "address">): (block: number) => number {
  const { summaries } = world;
  if (order === "size") return (block) => summaries.largestBits(block) + 0.001;
  if (order === "rtt") return (block) => summaries.highestRttMs(block) + 0.01;
  if (order === "age") return (block) => 1 - summaries.oldest(block);
  return () => Number.POSITIVE_INFINITY;
}

/** Largest first. */
function weightIn(world: ExploredWorld, order: Exclude<ListOrder, "address">): (place: number) => number {
  if (order === "size") return (place) => sizeBits(world.columns, place);
  if (order === "load") return (place) => world.loads.pagesPerDayAt(place);
  return (place) => {
    const row = world.rows[place] as number;
    if (row < 0) return Number.NEGATIVE_INFINITY;
    if (order === "rtt") return ofNumber(world.rttMsAt(row));
    const since = world.sinceAt(row);
    return since === 0 ? Number.NEGATIVE_INFINITY : -since;
  };
}

const ofNumber = (value: number) => (Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value);

function spanOf(world: ExploredWorld, { within, after }: ListAsked): { from: number; to: number } {
  const [from, to] = placesStartingIn(world.columns, within);
  if (after === null || after.family !== within.family) return { from, to };
  let [start, end] = placesStartingIn(world.columns, { ...after, last: after.first } as IpRange);
  // Of those that start with it, the widest come first.
  while (start < end && rangeAtPlace(world.columns, start).last >= after.last) start += 1;
  end = Math.max(from, start);
  return { from: end, to };
}

/** Places that match, in order; null now and then, for a breath. */
function* eachMatch(
  filter: PlaceFilter,
  {
    from,
    to,
    looked,
  }: { readonly from: number; readonly to: number; readonly looked: (many: number) => void },
): Generator<number | null> {
  if (filter.candidates !== null) {
    yield* ofCandidates(filter, filter.candidates, { from, to, looked });
    return;
  }
  for (let start = from; start < to; ) {
    const end = Math.min(to, (blockOf(start) + 1) * placesPerBlock);
    if (filter.mayHold(blockOf(start))) {
      for (let place = start; place < end; place += 1) if (filter.matches(place)) yield place;
      looked(end - start);
      yield null;
    } else if (blockOf(start) % 256 === 0) yield null;
    start = end;
  }
}

function* ofCandidates(
  filter: PlaceFilter,
  candidates: Int32Array,
  {
    from,
    to,
    looked,
  }: { readonly from: number; readonly to: number; readonly looked: (many: number) => void },
): Generator<number | null> {
  let since = 0;
  for (const place of candidates) {
    if (place >= from && place < to && filter.matches(place)) yield place;
    since += 1;
    if (since < placesPerPiece) continue;
    looked(since);
    since = 0;
    yield null;
  }
}

/** Every match, for files: at most `limit`. */
export async function* everyMatch(
  world: ExploredWorld,
  asked: Pick<ListAsked, "filter" | "within" | "limit">,
  turns: WorkTurns,
): AsyncGenerator<number[]> {
  const [from, to] = placesStartingIn(world.columns, asked.within);
  yield* matchesAmong(asked.filter, { from, to, limit: asked.limit }, turns);
}

/** Every match of either family. */
export async function* matchesOfAll(
  world: ExploredWorld,
  filter: PlaceFilter,
  turns: WorkTurns,
): AsyncGenerator<number[]> {
  yield* matchesAmong(filter, { from: 0, to: world.rows.length, limit: Number.POSITIVE_INFINITY }, turns);
}

async function* matchesAmong(
  filter: PlaceFilter,
  { from, to, limit }: { readonly from: number; readonly to: number; readonly limit: number },
  turns: WorkTurns,
): AsyncGenerator<number[]> {
  let piece: number[] = [];
  let left = limit;
  for (const place of eachMatch(filter, { from, to, looked: () => {} })) {
    if (place === null) {
      await turns.breathe();
      continue;
    }
    piece.push(place);
    left -= 1;
    if (left === 0) break;
    if (piece.length < 1000) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

/** The few with the largest values, those alike in the order in which they came. */
export class Best {
  readonly #room: number;
  readonly #entries: { readonly place: number; readonly value: number }[] = [];

  constructor(room: number) {
    this.#room = room;
  }

  /** What is not above it does not come in any more. */
  get least(): number {
    return this.#entries.length < this.#room
      ? Number.NEGATIVE_INFINITY
      : (this.#entries.at(-1)?.value ?? Number.POSITIVE_INFINITY);
  }

  offer(place: number, value: number): void {
    const entries = this.#entries;
    if (value <= this.least && entries.length === this.#room) return;
    let at = entries.length;
    while (at > 0 && (entries[at - 1] as { value: number }).value < value) at -= 1;
    entries.splice(at, 0, { place, value });
    if (entries.length > this.#room) entries.pop();
  }

  places(): number[] {
    return this.#entries.map(({ place }) => place);
  }
}
