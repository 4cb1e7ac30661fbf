/**
 * Network records of one family in growing flat columns, before they are merged: tens of bytes a record
 * instead of an object each, so that ten million fit.
 */
import { emptyColumns, type RangeColumns, writeRange } from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { packCountry } from "#coordinator/subnets/subnet-rows";
import type { NetworkRecord, SourceKind } from "../formats/record.ts";

/** A table's columns as they lie in memory: what goes from one thread to another. */
export interface CandidateParts {
  readonly first: Uint32Array;
  readonly last: Uint32Array;
  readonly holders: Int32Array;
  readonly countries: Uint16Array;
  readonly registries: Uint8Array;
  readonly sources: Uint8Array;
  readonly names: Int32Array;
  /** Of each piece (a file, or a part of one) its number, and the first of its records. */
  readonly pieces: readonly Piece[];
}

interface Piece {
  readonly piece: number;
  readonly start: number;
}

/** A table, and the number here of each holder and name there. */
export interface JoinedTable {
  readonly parts: CandidateParts;
  readonly holders: Int32Array | null;
  readonly names: Int32Array | null;
}

const sourceKinds: readonly SourceKind[] = ["whois", "statistics", "iana"];
const noRegistry = 255;

export class CandidateTable {
  readonly family: 4 | 6;
  count = 0;
  #columns: RangeColumns;
  #holders = new Int32Array(0);
  #countries = new Uint16Array(0);
  #registries = new Uint8Array(0);
  #sources = new Uint8Array(0);
  #names = new Int32Array(0);
  readonly #pieces: Piece[] = [];

  constructor(family: 4 | 6) {
    this.family = family;
    this.#columns = emptyColumns(family, 0);
  }

  /** The records of these tables in the order of their pieces. */
  static joined(family: 4 | 6, tables: readonly JoinedTable[]): CandidateTable {
    const joined = new CandidateTable(family);
    joined.#grow(tables.reduce((sum, { parts }) => sum + parts.holders.length, 0));
    const pieces = tables.flatMap(({ parts }, table) =>
      parts.pieces.map(({ piece, start }, at) => {
        const end = parts.pieces[at + 1]?.start ?? parts.holders.length;
        return { piece, table, start, end };
      }),
    );
    pieces.sort((a, b) => a.piece - b.piece);
    for (const { piece, table, start, end } of pieces) {
      joined.begin(piece);
      joined.#append(tables[table] as JoinedTable, start, end);
    }
    return joined;
  }

  /** What is added from now on belongs to this piece. */
  begin(piece: number): void {
    this.#pieces.push({ piece, start: this.count });
  }

  /** All but holder and name, which follow by `setTexts`. */
  add(record: NetworkRecord): void {
    if (this.count === this.#holders.length) this.#grow(Math.max(1024, this.count * 2));
    const index = this.count++;
    const words = record.ipv6Words ?? null;
    if (words === null) writeRange(this.#columns, index, record.range);
    else this.#writeWords(index, words);
    this.#countries[index] = packCountry(record.country);
    this.#registries[index] = record.registry === null ? noRegistry : registries.indexOf(record.registry);
    this.#sources[index] = sourceKinds.indexOf(record.source);
  }

  /** `holder` is an index into the holder references, or −1; `name` an id of the import's texts. */
  setTexts(index: number, holder: number, name: number): void {
    this.#holders[index] = holder;
    this.#names[index] = name;
  }

  /** The ranges so far, in the order in which they were added. */
  columns(): RangeColumns {
    const { family, words, first, last } = this.#columns;
    const length = this.count * words;
    return {
      family,
      words,
      count: this.count,
      first: first.subarray(0, length),
      last: last.subarray(0, length),
    };
  }

  parts(): CandidateParts {
    const { first, last } = this.columns();
    return {
      first,
      last,
      holders: this.#holders.subarray(0, this.count),
      countries: this.#countries.subarray(0, this.count),
      registries: this.#registries.subarray(0, this.count),
      sources: this.#sources.subarray(0, this.count),
      names: this.#names.subarray(0, this.count),
      pieces: this.#pieces,
    };
  }

  #append({ parts, holders, names }: JoinedTable, start: number, end: number): void {
    const to = this.count;
    this.count += end - start;
    const { words, first, last } = this.#columns;
    first.set(parts.first.subarray(start * words, end * words), to * words);
    last.set(parts.last.subarray(start * words, end * words), to * words);
    this.#countries.set(parts.countries.subarray(start, end), to);
    this.#registries.set(parts.registries.subarray(start, end), to);
    this.#sources.set(parts.sources.subarray(start, end), to);
    copyNumbers(this.#holders, to, parts.holders.subarray(start, end), holders);
    copyNumbers(this.#names, to, parts.names.subarray(start, end), names);
  }

  #writeWords(index: number, words: Uint32Array): void {
    const { first, last } = this.#columns;
    for (let word = 0; word < 4; word += 1) {
      first[index * 4 + word] = words[word] as number;
      last[index * 4 + word] = words[word + 4] as number;
    }
  }

  holder(index: number): number {
    return this.#holders[index] ?? -1;
  }

  /** Packed; 0 for none. */
  country(index: number): number {
    return this.#countries[index] ?? 0;
  }

  registry(index: number): Registry | null {
    return registries[this.#registries[index] ?? noRegistry] ?? null;
  }

  source(index: number): SourceKind {
    return sourceKinds[this.#sources[index] ?? 0] ?? "whois";
  }

  /** Id of the import's texts. */
  name(index: number): number {
    return this.#names[index] ?? 0;
  }

  #grow(capacity: number): void {
    const columns = emptyColumns(this.family, capacity);
    columns.first.set(this.#columns.first);
    columns.last.set(this.#columns.last);
    this.#columns = columns;
    this.#holders = grown(this.#holders, new Int32Array(capacity));
    this.#countries = grown(this.#countries, new Uint16Array(capacity));
    this.#registries = grown(this.#registries, new Uint8Array(capacity));
    this.#sources = grown(this.#sources, new Uint8Array(capacity));
    this.#names = grown(this.#names, new Int32Array(capacity));
  }
}

function grown<Column extends { set(values: Column): void }>(old: Column, larger: Column): Column {
  larger.set(old);
  return larger;
}

/** `numbers`: what each is here; null where they are the same. Those below zero stay. */
function copyNumbers(into: Int32Array, to: number, from: Int32Array, numbers: Int32Array | null): void {
  if (numbers === null) into.set(from, to);
  else
    for (let at = 0; at < from.length; at += 1) {
      const number = from[at] as number;
      into[to + at] = number < 0 ? number : (numbers[number] as number);
    }
}
