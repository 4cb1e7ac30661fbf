/**
 * A part of the index: up to 32,768 pages, numbered from 0, with the lists of their words. It never changes, except
 * that pages are removed; changed pages go into another segment. Small segments are joined into larger ones.
 */
import { OccurrenceLog, Postings, weightOf } from "./postings.ts";
import type { TermTable } from "./term-table.ts";

export const segmentPages = 1 << 15;

/** What is known of a page besides its words; names and long numbers are given as the index's numbers. */
interface DocumentFacts {
  readonly hostHash: bigint;
  readonly urlHash: bigint;
  readonly host: number;
  readonly language: number;
  readonly configuration: number;
  readonly crawler: number;
  /** Seconds since 1970; NaN: the page does not say. */
  readonly publishedS: number;
  readonly fetchedS: number;
  readonly linkingHosts: number;
  readonly isLaterCopy: boolean;
  /** 0: too short to compare. */
  readonly textGroup: number;
  /** Number of a list of statements; 0: none. */
  readonly preferenceSet: number;
  readonly contentType: number;
}

/** Its words as Postgres sends a tsvector, and those of its address with their places. */
export interface DocumentWords {
  readonly lexemes: Uint8Array;
  readonly address: Uint8Array;
}

const columnTypes = {
  hostHash: BigInt64Array,
  urlHash: BigInt64Array,
  host: Uint32Array,
  language: Uint16Array,
  configuration: Uint8Array,
  crawler: Uint16Array,
  publishedS: Float64Array,
  fetchedS: Float64Array,
  linkingHosts: Uint16Array,
  isLaterCopy: Uint8Array,
  textGroup: Uint32Array,
  preferenceSet: Uint32Array,
  contentType: Uint8Array,
  /** Places in the text, as many as in its tsvector. */
  length: Uint32Array,
} as const;

type ColumnName = keyof typeof columnTypes;
export type Columns = { readonly [Name in ColumnName]: InstanceType<(typeof columnTypes)[Name]> };

const columnNames = Object.keys(columnTypes) as ColumnName[];

function columnsFor(pages: number): Columns {
  return Object.fromEntries(
    columnNames.map((name) => [name, new columnTypes[name](pages)]),
  ) as unknown as Columns;
}

function copyRow(to: Columns, at: number, from: Columns, source: number): void {
  for (const name of columnNames) to[name][at] = from[name][source]!;
}

export class Segment {
  readonly size: number;
  readonly columns: Columns;
  /**
   * The heaviest occurrence of each word on each page, or the first of equal ones: its weight is the word's weight on
   * the page.
   */
  readonly first: Postings;
  /** All other occurrences. */
  readonly further: Postings;
  /** Words of the address. */
  readonly address: Postings;
  /** A bit for each page still in the index. */
  readonly live: Uint32Array;
  /** The pages of each configuration, as bits. */
  readonly configurations: ReadonlyMap<number, Uint32Array>;
  #livePages: number;
  /** Pages in the order of their keys. */
  readonly #byKey: Uint16Array;

  constructor(parts: Pick<Segment, "columns" | "first" | "further" | "address">) {
    ({ columns: this.columns, first: this.first, further: this.further, address: this.address } = parts);
    this.size = this.columns.host.length;
    this.#livePages = this.size;
    this.live = new Uint32Array((this.size + 31) >>> 5);
    for (let doc = 0; doc < this.size; doc++) this.live[doc >>> 5]! |= 1 << (doc & 31);
    this.configurations = bitsByValue(this.columns.configuration);
    const { hostHash, urlHash } = this.columns;
    this.#byKey = Uint16Array.from({ length: this.size }, (_, doc) => doc).sort(
      (a, b) => compare(hostHash[a]!, hostHash[b]!) || compare(urlHash[a]!, urlHash[b]!),
    );
  }

  get livePages(): number {
    return this.#livePages;
  }

  get byteLength(): number {
    const columns = columnNames.reduce((sum, name) => sum + this.columns[name].byteLength, 0);
    const bits = this.live.byteLength * (1 + this.configurations.size);
    const lists = this.first.byteLength + this.further.byteLength + this.address.byteLength;
    return columns + bits + lists + this.#byKey.byteLength;
  }

  isLive(doc: number): boolean {
    return (this.live[doc >>> 5]! & (1 << (doc & 31))) !== 0;
  }

  /** Removes the page. Returns false if it was not there. */
  remove(hostHash: bigint, urlHash: bigint): boolean {
    const { hostHash: hosts, urlHash: urls } = this.columns;
    let [low, high] = [0, this.size];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const doc = this.#byKey[middle]!;
      if ((compare(hosts[doc]!, hostHash) || compare(urls[doc]!, urlHash)) < 0) low = middle + 1;
      else high = middle;
    }
    const doc = this.#byKey[low];
    if (doc === undefined || hosts[doc] !== hostHash || urls[doc] !== urlHash || !this.isLive(doc))
      return false;
    this.live[doc >>> 5]! &= ~(1 << (doc & 31));
    this.#livePages -= 1;
    return true;
  }
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

function bitsByValue(values: Uint8Array): Map<number, Uint32Array> {
  const bits = new Map<number, Uint32Array>();
  for (let doc = 0; doc < values.length; doc++) {
    const value = values[doc]!;
    const known = bits.get(value) ?? new Uint32Array((values.length + 31) >>> 5);
    if (!bits.has(value)) bits.set(value, known);
    known[doc >>> 5]! |= 1 << (doc & 31);
  }
  return bits;
}

/** Builds a segment from pages added one by one. It can be used again and keeps its buffers. */
export class SegmentBuilder {
  readonly #terms: TermTable;
  readonly #columns = columnsFor(segmentPages);
  readonly #first = new OccurrenceLog();
  readonly #further = new OccurrenceLog();
  readonly #address = new OccurrenceLog();
  #size = 0;

  constructor(terms: TermTable) {
    this.#terms = terms;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size === segmentPages;
  }

  add(facts: DocumentFacts, { lexemes, address }: DocumentWords): void {
    const doc = this.#size;
    const columns = this.#columns;
    columns.hostHash[doc] = facts.hostHash;
    columns.urlHash[doc] = facts.urlHash;
    columns.host[doc] = facts.host;
    columns.language[doc] = facts.language;
    columns.configuration[doc] = facts.configuration;
    columns.crawler[doc] = facts.crawler;
    columns.publishedS[doc] = facts.publishedS;
    columns.fetchedS[doc] = facts.fetchedS;
    columns.linkingHosts[doc] = facts.linkingHosts;
    columns.isLaterCopy[doc] = facts.isLaterCopy ? 1 : 0;
    columns.textGroup[doc] = facts.textGroup;
    columns.preferenceSet[doc] = facts.preferenceSet;
    columns.contentType[doc] = facts.contentType;
    columns.length[doc] = this.#addText(doc, lexemes);
    this.#addAddress(doc, address);
    this.#size += 1;
  }

  /** Empties itself. */
  build(): Segment {
    const columns = columnsFor(this.#size);
    for (const name of columnNames)
      (columns[name] as Uint8Array).set(this.#columns[name].subarray(0, this.#size) as Uint8Array);
    const segment = new Segment({
      columns,
      first: this.#first.sorted(),
      further: this.#further.sorted(),
      address: this.#address.sorted(),
    });
    for (const log of [this.#first, this.#further, this.#address]) log.clear();
    this.#size = 0;
    return segment;
  }

  // tsvectorsend: a count of four bytes, then for each lexeme its letters, a 0, a count of two bytes and that many
  // places.

  /** Returns how many places it has. A word without places counts as one. */
  #addText(doc: number, vector: Uint8Array): number {
    let length = 0;
    for (let at = vectorHead; at < vector.length; ) {
      const term = this.#terms.add(vector, at);
      at = this.#terms.end + 1;
      const count = twoBytes(vector, at);
      at += 2;
      if (count < 2) {
        this.#first.add(term, doc, count === 0 ? noPlace : twoBytes(vector, at));
        length += 1;
      } else {
        this.#addPlaces(term, doc, { vector, at, count });
        length += count;
      }
      at += 2 * count;
    }
    return length;
  }

  #addPlaces(
    term: number,
    doc: number,
    { vector, at, count }: { readonly vector: Uint8Array; readonly at: number; readonly count: number },
  ): void {
    let heaviest = 0;
    for (let number = 1; number < count; number++) {
      const isHeavier =
        weightOf(twoBytes(vector, at + 2 * number)) > weightOf(twoBytes(vector, at + 2 * heaviest));
      if (isHeavier) heaviest = number;
    }
    for (let number = 0; number < count; number++) {
      const log = number === heaviest ? this.#first : this.#further;
      log.add(term, doc, twoBytes(vector, at + 2 * number));
    }
  }

  #addAddress(doc: number, vector: Uint8Array): void {
    for (let at = vectorHead; at < vector.length; ) {
      const term = this.#terms.add(vector, at);
      at = this.#terms.end + 1;
      const end = at + 2 + 2 * twoBytes(vector, at);
      for (at += 2; at < end; at += 2) this.#address.add(term, doc, twoBytes(vector, at));
    }
  }
}

const vectorHead = 4;

/** What Postgres ranks a word without places by. */
const noPlace = 0x3ffe;

const twoBytes = (vector: Uint8Array, at: number): number => (vector[at]! << 8) | vector[at + 1]!;

// Joins segments in slices, so that the process can answer in between.

/** This many words' lists are copied per slice: about a millisecond. */
const termsPerSlice = 2000;

/**
 * Makes one segment of the pages in the index when it begins. A page that is removed meanwhile must be removed from
 * the result, too. Yields between slices.
 */
export function* joined(segments: readonly Segment[]): Generator<void, Segment> {
  const maps = segments.map((segment) => new Uint16Array(segment.size).fill(gone));
  const pages = segments.reduce((sum, { livePages }) => sum + livePages, 0);
  const columns = columnsFor(pages);
  let size = 0;
  for (const [number, segment] of segments.entries()) {
    for (let doc = 0; doc < segment.size; doc++) {
      if (!segment.isLive(doc)) continue;
      copyRow(columns, size, segment.columns, doc);
      maps[number]![doc] = size++;
    }
    yield;
  }
  const first = yield* joinedPostings(
    segments.map((one) => one.first),
    maps,
  );
  const further = yield* joinedPostings(
    segments.map((one) => one.further),
    maps,
  );
  const address = yield* joinedPostings(
    segments.map((one) => one.address),
    maps,
  );
  return new Segment({ columns, first, further, address });
}

const gone = 0xffff;

function* joinedPostings(
  lists: readonly Postings[],
  maps: readonly Uint16Array[],
): Generator<void, Postings> {
  const places = lists.reduce((sum, list) => sum + list.docs.length, 0);
  const most = lists.reduce((sum, list) => sum + list.terms.length, 0);
  const made = {
    terms: new Uint32Array(most),
    starts: new Uint32Array(most + 1),
    docs: new Uint16Array(places),
    places: new Uint16Array(places),
  };
  const next = lists.map(() => 0);
  let [terms, used, sinceYield] = [0, 0, 0];
  for (;;) {
    let term = Number.POSITIVE_INFINITY;
    for (let number = 0; number < lists.length; number++) {
      term = Math.min(term, lists[number]!.terms[next[number]!] ?? Number.POSITIVE_INFINITY);
    }
    if (term === Number.POSITIVE_INFINITY) break;
    const start = used;
    for (let number = 0; number < lists.length; number++) {
      const list = lists[number]!;
      const at = next[number]!;
      if (list.terms[at] !== term) continue;
      next[number] = at + 1;
      const map = maps[number]!;
      for (let entry = list.starts[at]!, end = list.starts[at + 1]!; entry < end; entry++) {
        const doc = map[list.docs[entry]!]!;
        if (doc === gone) continue;
        made.docs[used] = doc;
        made.places[used++] = list.places[entry]!;
      }
    }
    if (used > start) {
      made.terms[terms] = term;
      made.starts[terms++] = start;
    }
    if (++sinceYield === termsPerSlice) {
      sinceYield = 0;
      yield;
    }
  }
  made.starts[terms] = used;
  return new Postings({
    terms: made.terms.slice(0, terms),
    starts: made.starts.slice(0, terms + 1),
    docs: made.docs.slice(0, used),
    places: made.places.slice(0, used),
  });
}
