/**
 * Subnets that match a filter, paged by address or the first few by another value, and levels of the tree. Works in short
 * turns. Counts are bounded, and larger ones are reported as "more than".
 */

import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import { formatRange, type IpRange } from "#core/ip/range";
import { countryOf, registryOf } from "../../place/subnets/subnet.ts";
import type { ListAnswer, SubnetFilter, TreeAnswer } from "./explore-api.ts";
import { blockOf, type ExploredWorld, nobody, placesPerBlock, type WorkTurns } from "./explored-world.ts";
import {
  parentPlace,
  placeHolding,
  rangeAtPlace,
  type Span,
  spanOfFamily,
  spanOfPlace,
  spanStartingIn,
} from "./places.ts";

export interface LevelAsked {
  readonly at: IpRange;
  /** Continues after this range; null means from the beginning. */
  readonly after: IpRange | null;
  readonly sort: ListAnswer["sort"];
  readonly limit: number;
}

type Listed = Pick<ListAnswer, "count" | "isWholeCount" | "next"> & { readonly places: readonly number[] };

/** Counting stops at this many matches or, once the page is full, after this many blocks of a thousand. */
const mostCounted = 10_000;
const mostBlocks = 300;

/** With `at`, only subnets that start within it are listed. */
export async function listPlaces(
  world: ExploredWorld,
  asked: LevelAsked & { readonly filter: PlaceFilter },
  turns: WorkTurns,
): Promise<Listed> {
  const { limit, after, filter, sort } = asked;
  if (sort !== "address") return await byValue(world, { ...asked, sort }, turns);
  const places: number[] = [];
  let [count, blocks, isWholeCount] = [0, 0, true];
  for (const place of eachMatch(filter, spanAfter(world, asked))) {
    if (place !== null) {
      count += 1;
      if (places.length < limit) places.push(place);
    } else {
      blocks += 1;
      await turns.breathe();
    }
    isWholeCount = count < mostCounted && (places.length < limit || blocks < mostBlocks);
    if (!isWholeCount) break;
  }
  const isMore = count > places.length || !isWholeCount;
  // Earlier pages are not counted again, so from the second page on, the count covers the rest.
  return {
    places,
    count,
    isWholeCount: isWholeCount && after === null,
    next: isMore ? rangeText(world, places) : null,
  };
}

/** Lists only subnets that have the value: a load requires pages, an RTT a delegation and measurement of their own. */
async function byValue(
  world: ExploredWorld,
  { at, filter, limit, sort }: LevelAsked & { readonly filter: PlaceFilter; readonly sort: "load" | "rtt" },
  turns: WorkTurns,
): Promise<Listed> {
  const { from, to } = spanStartingIn(world.columns, at);
  const best = new Best(limit);
  let [count, looked] = [0, 0];
  for (const [place, value] of sort === "load" ? eachLoad(world) : eachRtt(world)) {
    looked += 1;
    if (looked % placesPerBlock === 0) await turns.breathe();
    if (place < from || place >= to || !(value > 0) || !filter.matches(place)) continue;
    count += 1;
    best.offer(place, value);
  }
  return { places: best.places(), count, isWholeCount: true, next: null };
}

function* eachLoad({ loads }: ExploredWorld): Generator<readonly [place: number, value: number]> {
  for (const place of loads.places) yield [place, loads.pagesPerDayAt(place)];
}

function* eachRtt(world: ExploredWorld): Generator<readonly [place: number, value: number]> {
  const { table } = world;
  for (let row = 0; row < table.size; row += 1)
    yield [world.placeOf(table.subnetAt(row)), table.rttMsAt(row)];
}

function spanAfter(world: ExploredWorld, { at, after }: Pick<LevelAsked, "at" | "after">): Span {
  const { from, to } = spanStartingIn(world.columns, at);
  if (after === null || after.family !== at.family) return { from, to };
  let start = spanStartingIn(world.columns, { ...after, last: after.first } as IpRange).from;
  while (start < to && !isBehind(world, start, after)) start += 1;
  return { from: Math.max(from, start), to };
}

/** Places are ordered by first address, widest first. */
function isBehind(world: ExploredWorld, place: number, after: IpRange): boolean {
  const range = rangeAtPlace(world.columns, place);
  return range.first > after.first || (range.first === after.first && range.last < after.last);
}

/** Yields matching places in order, and null now and then to pause. */
function* eachMatch(filter: PlaceFilter, { from, to }: Span): Generator<number | null> {
  if (filter.candidates !== null) {
    for (const [at, place] of filter.candidates.entries()) {
      if (place >= from && place < to && filter.matches(place)) yield place;
      if (at % placesPerBlock === 0) yield null;
    }
    return;
  }
  for (let start = from; start < to; ) {
    const block = blockOf(start);
    const end = Math.min(to, (block + 1) * placesPerBlock);
    if (filter.mayHold(block))
      for (let place = start; place < end; place += 1) if (filter.matches(place)) yield place;
    yield null;
    start = end;
  }
}

/** Yields the matches in pieces for files, at most `limit`. */
export async function* everyMatch(
  world: ExploredWorld,
  { filter, at, limit }: Pick<LevelAsked, "at" | "limit"> & { readonly filter: PlaceFilter },
  turns: WorkTurns,
): AsyncGenerator<number[]> {
  let piece: number[] = [];
  let left = limit;
  for (const place of eachMatch(filter, spanStartingIn(world.columns, at))) {
    if (place === null) await turns.breathe();
    else {
      piece.push(place);
      left -= 1;
    }
    if (left === 0) break;
    if (piece.length < 1000) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

type TreeLevel = Pick<TreeAnswer, "childCount" | "next"> & {
  /** The smallest subnet that holds the requested range, or −1 for the family's root. */
  readonly node: number;
  /** The subnets above it, from the largest to its parent. */
  readonly above: readonly number[];
  readonly children: readonly number[];
};

export async function treeLevel(
  world: ExploredWorld,
  { at, after, sort, limit }: LevelAsked,
  turns: WorkTurns,
): Promise<TreeLevel> {
  const { columns, loads } = world;
  const node = placeHolding(columns, at);
  const above: number[] = [];
  for (let place = node; place >= 0; ) {
    place = parentPlace(columns, place);
    if (place >= 0) above.unshift(place);
  }
  const { from, to } = node < 0 ? spanOfFamily(columns, at.family) : spanOfPlace(columns, node);
  const best = new Best(limit);
  const children: number[] = [];
  let childCount = 0;
  for (let place = node < 0 ? from : from + 1; place < to; place += 1) {
    if (place % (16 * placesPerBlock) === 0) await turns.breathe();
    if (parentPlace(columns, place) !== node) continue;
    childCount += 1;
    if (sort === "load") best.offer(place, loads.pagesPerDay(spanOfPlace(columns, place)));
    else if (children.length <= limit && (after === null || isBehind(world, place, after)))
      children.push(place);
  }
  if (sort === "load") return { node, above, children: best.places(), childCount, next: null };
  const shown = children.slice(0, limit);
  const next = children.length > limit ? rangeText(world, shown) : null;
  return { node, above, children: shown, childCount, next };
}

function rangeText(world: ExploredWorld, places: readonly number[]): string | null {
  const last = places.at(-1);
  return last === undefined ? null : formatRange(rangeAtPlace(world.columns, last));
}

/** Keeps the largest values. Equal ones are in order of arrival. */
class Best {
  readonly #room: number;
  readonly #entries: { readonly place: number; readonly value: number }[] = [];

  constructor(room: number) {
    this.#room = room;
  }

  offer(place: number, value: number): void {
    const entries = this.#entries;
    if (entries.length === this.#room && value <= (entries.at(-1)?.value ?? 0)) return;
    const at = entries.findIndex((one) => one.value < value);
    entries.splice(at < 0 ? entries.length : at, 0, { place, value });
    if (entries.length > this.#room) entries.pop();
  }

  places(): number[] {
    return this.#entries.map(({ place }) => place);
  }
}

// A list's filter, compiled for one tree.

/** Null means that every place matches. */
export interface PlaceFilter {
  matches(place: number): boolean;
  /** False if nothing in this block of a thousand places matches. */
  mayHold(block: number): boolean;
  /** A superset of the matches in tree order; null if they may be anywhere. */
  readonly candidates: Int32Array | null;
}

/** Names of the filter, which are looked up because they are not in the tree. */
interface KnownNames {
  /** Null if no crawler has this name. */
  readonly crawlerId: CrawlerId | null;
  readonly holderIds: readonly HolderId[];
}

type Test = (place: number) => boolean;

export function filterPlaces(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): PlaceFilter {
  const tests = testsOf(world, filter, names);
  const crawler = filter.state === "none" ? nobody : filter.crawler === undefined ? null : names.crawlerId;
  return {
    matches: (place) => tests.every((test) => test(place)),
    mayHold: (block) => crawler === null || world.crawlers.has(block, crawler),
    candidates: candidatesFor(world, filter, names),
  };
}

function testsOf(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): Test[] {
  const { labels, holderIds, ids } = world.columns;
  const { crawler, state, registry, country, holder, minRttMs, minLoad } = filter;
  const idAt = (place: number) => ids[place] as SubnetId;
  const states: Readonly<Record<NonNullable<SubnetFilter["state"]>, Test>> = {
    delegated: (place) => world.isOwn(place),
    inherited: (place) => !world.isOwn(place) && world.crawlers.at(place) !== nobody,
    waiting: (place) => !world.isOwn(place) && world.loads.dueHostsAt(place) > 0,
    none: (place) => world.crawlers.at(place) === nobody,
    anycast: (place) => world.anycast.has(idAt(place)),
    finer: (place) => world.finer.has(idAt(place)),
  };
  const tests: Test[] = [];
  if (registry !== undefined) tests.push((place) => registryOf(labels[place] as number) === registry);
  if (country !== undefined) tests.push((place) => countryOf(labels[place] as number) === country);
  if (holder !== undefined) {
    const wanted = new Set<number>(names.holderIds);
    tests.push((place) => wanted.has(holderIds[place] as number));
  }
  if (minLoad !== undefined) tests.push((place) => world.loads.pagesPerDayAt(place) >= minLoad);
  if (state !== undefined) tests.push(states[state]);
  if (crawler !== undefined) tests.push((place) => world.crawlers.at(place) === names.crawlerId);
  if (minRttMs !== undefined) tests.push((place) => world.rttMsAt(place) >= minRttMs);
  return tests;
}

function candidatesFor(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): Int32Array | null {
  const placesOf = (subnetIds: Iterable<SubnetId>) =>
    Int32Array.from([...subnetIds].map((id) => world.placeOf(id)).filter((place) => place >= 0)).sort();
  if (filter.state === "anycast") return placesOf(world.anycast);
  if (filter.state === "finer") return placesOf(world.finer);
  if (filter.state === "waiting" || (filter.minLoad ?? 0) > 0) return world.loads.places;
  if (filter.holder !== undefined) return placesOfHolders(world, names.holderIds);
  return null;
}

/** Scans the whole tree, which takes 10 ms for ten million places and each holder. */
function placesOfHolders({ columns }: ExploredWorld, wanted: readonly HolderId[]): Int32Array {
  const found: number[] = [];
  for (const holderId of wanted) {
    const { holderIds } = columns;
    for (let place = holderIds.indexOf(holderId); place >= 0; place = holderIds.indexOf(holderId, place + 1))
      found.push(place);
  }
  return Int32Array.from(found).sort();
}
