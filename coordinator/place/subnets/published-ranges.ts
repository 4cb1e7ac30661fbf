/**
 * The locations that networks publish for their ranges, in flat columns: geofeeds (RFC 8805) and the cloud providers' lists
 * of ranges by region. Every published range is a prefix, so any two are nested or disjoint, and one search finds all that
 * contain a subnet:
 *
 *     sorted by first address, widest first; each row knows the next wider row that contains it
 *       3.64.0.0/12    aws eu-central-1      ◄─┐
 *       3.64.0.0/15    geofeed DE Frankfurt  ──┘ ◄─┐
 *       3.64.8.0/24    aws eu-central-1-ham-1    ──┘   a look-up of 3.64.8.0/25 begins here and climbs
 *
 * All geofeeds named by registry objects count as one source. Within it the most specific range wins (RFC 9632 section 3).
 * Every other list is a source of its own.
 */
import type { IpRange } from "#core/ip/range";
import { GrowingColumn } from "#core/text-pool";
import {
  columnsOf,
  compareWords,
  GrowingRanges,
  type RangeColumns,
  rangeAt,
  reordered,
  sortedOrder,
} from "./range-columns.ts";

/** Maximum published ranges, at some 32 bytes each. */
export const mostPublishedRanges = 1_000_000;

/** A subnet with more published ranges than this is too wide to be located by them. */
const mostWithin = 65_536;

const publishedKinds = ["geofeed", "aws", "google", "azure", "oracle", "cloudflare"] as const;
export type PublishedKind = (typeof publishedKinds)[number];

export interface PublishedList {
  /** Name for display: `geofeed https://example.net/geofeed.csv`, `aws`. */
  readonly source: string;
  readonly kind: PublishedKind;
  /** True for a geofeed named by registry objects (RFC 9632), which is checked against their ranges. */
  readonly isNamedByObjects: boolean;
  /** ISO date stated by the list or, if there is none, that of its last change. */
  readonly listDate: string | null;
  /** The list's own version number or token, or null. */
  readonly version: string | null;
}

export interface PublishedWord {
  readonly list: PublishedList;
  /** `aws eu-central-1`, `GR-I Athens`. Null if the source names no single place, as for anycast. */
  readonly place: string | null;
  /** The published range. If several are within the requested one, the first. */
  readonly range: IpRange;
  /** The registry object's range that authorises the geofeed. Null if none is needed. */
  readonly within: string | null;
}

/** The rows of one family, in the order of the drawing above. */
export interface PublishedFamily {
  readonly columns: RangeColumns;
  readonly lists: Int32Array;
  /** Index into the texts. 0 if there is no place. */
  readonly places: Int32Array;
  /** Index into the texts. 0 for none. */
  readonly withins: Int32Array;
  /** The next wider containing row of any list, or −1. */
  readonly parents: Int32Array;
}

export class PublishedRanges {
  readonly ipv4: PublishedFamily;
  readonly ipv6: PublishedFamily;
  readonly lists: readonly PublishedList[];
  /** Index 0 is reserved for "none". */
  readonly texts: readonly string[];
  /** Lists of one layer count as one source. */
  readonly #layers: Int32Array;
  readonly #layerCount: number;

  constructor(rows: Pick<PublishedRanges, "ipv4" | "ipv6" | "lists" | "texts">) {
    this.ipv4 = rows.ipv4;
    this.ipv6 = rows.ipv6;
    this.lists = rows.lists;
    this.texts = rows.texts;
    let count = 1;
    this.#layers = Int32Array.from(rows.lists, ({ isNamedByObjects }) => (isNamedByObjects ? 0 : count++));
    this.#layerCount = count;
  }

  get count(): number {
    return this.ipv4.columns.count + this.ipv6.columns.count;
  }

  /**
   * What each source says about the range: its most specific published range that contains it or, failing that, the place
   * that covers at least half of it. Sources with neither are left out.
   */
  of(range: IpRange): readonly PublishedWord[] {
    const family = range.family === 4 ? this.ipv4 : this.ipv6;
    const { columns, parents } = family;
    if (columns.count === 0) return [];
    const asked = columnsOf([range]);
    const behind = rowsUpTo(columns, asked);
    const words: PublishedWord[] = [];
    const spoken = new Uint8Array(this.#layerCount);
    for (let row = behind - 1; row >= 0; row = parents[row] as number) {
      if (compareWords(columns.last, row, asked.last, 0, columns.words) < 0) continue;
      const layer = this.#layerOf(family, row);
      if (spoken[layer]) continue;
      spoken[layer] = 1;
      words.push(this.#wordOf(family, row, family.places[row] as number));
    }
    return [...words, ...this.#mostlyCovered(family, asked, { behind, spoken })];
  }

  /** Finds the majority place for layers in which no single range contains the request. */
  #mostlyCovered(
    family: PublishedFamily,
    asked: RangeColumns,
    { behind, spoken }: { readonly behind: number; readonly spoken: Uint8Array },
  ): readonly PublishedWord[] {
    const { columns, parents } = family;
    const covered = new Map<number, { row: number; size: number }>();
    const add = (row: number, place: number, size: number) => {
      const key = this.#layerOf(family, row) * this.texts.length + place;
      const known = covered.get(key);
      if (known) known.size += size;
      else covered.set(key, { row, size });
    };
    const visit = (row: number) => {
      const layer = this.#layerOf(family, row);
      if (spoken[layer]) return;
      const size = sizeWithin(columns, row, asked);
      add(row, family.places[row] as number, size);
      // Within a layer, a more specific range overrides a wider one.
      let above = parents[row] as number;
      while (above >= 0 && this.#layerOf(family, above) !== layer) above = parents[above] as number;
      if (above >= 0) add(above, family.places[above] as number, -size);
    };
    for (let row = behind - 1; row >= 0; row = parents[row] as number) {
      const reaches = compareWords(columns.last, row, asked.first, 0, columns.words) >= 0;
      const holds = compareWords(columns.last, row, asked.last, 0, columns.words) >= 0;
      if (reaches && !holds) visit(row);
    }
    let row = behind;
    for (; row < columns.count; row += 1) {
      if (compareWords(columns.first, row, asked.last, 0, columns.words) > 0) break;
      if (row - behind >= mostWithin) return [];
      visit(row);
    }
    const half = sizeWithin(asked, 0, asked) / 2;
    const words: PublishedWord[] = [];
    const best = new Map<number, { row: number; place: number; size: number }>();
    for (const [key, { row, size }] of covered) {
      const layer = Math.floor(key / this.texts.length);
      if (size < half || size <= (best.get(layer)?.size ?? 0)) continue;
      best.set(layer, { row, place: key % this.texts.length, size });
    }
    for (const { row, place } of best.values()) words.push(this.#wordOf(family, row, place));
    return words;
  }

  #layerOf(family: PublishedFamily, row: number): number {
    return this.#layers[family.lists[row] as number] as number;
  }

  #wordOf(family: PublishedFamily, row: number, place: number): PublishedWord {
    return {
      list: this.lists[family.lists[row] as number] as PublishedList,
      place: this.texts[place] || null,
      range: rangeAt(family.columns, row),
      within: this.texts[family.withins[row] as number] || null,
    };
  }
}

function rowsUpTo({ first, last, words, count }: RangeColumns, asked: RangeColumns): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const byFirst = compareWords(first, middle, asked.first, 0, words);
    const isBehind = byFirst > 0 || (byFirst === 0 && compareWords(last, middle, asked.last, 0, words) < 0);
    if (isBehind) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Number of the row's addresses within the requested range. Approximate for IPv6. */
function sizeWithin(columns: RangeColumns, row: number, asked: RangeColumns): number {
  const { words } = columns;
  const startsBefore = compareWords(columns.first, row, asked.first, 0, words) < 0;
  const endsBehind = compareWords(columns.last, row, asked.last, 0, words) > 0;
  let size = 0;
  for (let word = 0; word < words; word += 1) {
    const first = startsBefore
      ? (asked.first[word] as number)
      : (columns.first[row * words + word] as number);
    const last = endsBehind ? (asked.last[word] as number) : (columns.last[row * words + word] as number);
    size = size * 0x1_0000_0000 + (last - first);
  }
  return size + 1;
}

class GrowingFamily extends GrowingRanges {
  readonly lists = new GrowingColumn((length) => new Int32Array(length));
  readonly places = new GrowingColumn((length) => new Int32Array(length));
  readonly withins = new GrowingColumn((length) => new Int32Array(length));

  sorted(): PublishedFamily {
    const read = this.ranges();
    const order = sortedOrder(read);
    const columns = reordered(read, order);
    const inOrder = (column: Int32Array) => Int32Array.from(order, (row) => column[row] as number);
    return {
      columns,
      lists: inOrder(this.lists.values()),
      places: inOrder(this.places.values()),
      withins: inOrder(this.withins.values()),
      parents: parentsOf(columns),
    };
  }
}

/** Walks the rows once, with a stack of the rows that contain the current one. */
function parentsOf({ first, last, words, count }: RangeColumns): Int32Array {
  const parents = new Int32Array(count).fill(-1);
  for (let row = 1; row < count; row += 1) {
    let above = row - 1;
    while (above >= 0 && compareWords(last, above, first, row, words) < 0) above = parents[above] as number;
    parents[row] = above;
  }
  return parents;
}

export class PublishedRangesBuilder {
  readonly #ipv4 = new GrowingFamily(4);
  readonly #ipv6 = new GrowingFamily(6);
  readonly #lists: PublishedList[] = [];
  readonly #texts: string[] = [""];
  readonly #textIndexes = new Map<string, number>();

  get count(): number {
    return this.#ipv4.lists.length + this.#ipv6.lists.length;
  }

  /** Returns the index that rows use for the list. */
  addList(list: PublishedList): number {
    return this.#lists.push(list) - 1;
  }

  add(
    list: number,
    range: IpRange,
    said: { readonly place: string | null; readonly within: string | null },
  ): void {
    this.addWords(list, columnsOf([range]), said);
  }

  /** Does what `add` does, for the first range in the columns. */
  addWords(
    list: number,
    { family, words, first, last }: Omit<RangeColumns, "count">,
    { place, within }: { readonly place: string | null; readonly within: string | null },
  ): void {
    const rows = family === 4 ? this.#ipv4 : this.#ipv6;
    for (let word = 0; word < words; word += 1) {
      rows.first.push(first[word] as number);
      rows.last.push(last[word] as number);
    }
    rows.lists.push(list);
    rows.places.push(this.#intern(place));
    rows.withins.push(this.#intern(within));
  }

  build(): PublishedRanges {
    const { ipv4, ipv6 } = { ipv4: this.#ipv4.sorted(), ipv6: this.#ipv6.sorted() };
    return new PublishedRanges({ ipv4, ipv6, lists: this.#lists, texts: this.#texts });
  }

  #intern(text: string | null): number {
    if (text === null || text === "") return 0;
    const known = this.#textIndexes.get(text);
    if (known !== undefined) return known;
    this.#textIndexes.set(text, this.#texts.length);
    return this.#texts.push(text) - 1;
  }
}

export const nothingPublished = new PublishedRangesBuilder().build();
