/**
 * Network records of one family in growing flat columns, before they are merged: tens of bytes a record
 * instead of an object each, so that ten million fit.
 */
import { emptyColumns, type RangeColumns, writeRange } from "#core/subnet/range-columns";
import { type Registry, registries } from "#core/subnet/subnet";
import type { NetworkRecord, SourceKind } from "../formats/record.ts";

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
  readonly #names: string[] = [];

  constructor(family: 4 | 6) {
    this.family = family;
    this.#columns = emptyColumns(family, 0);
  }

  /** `holder` is an index into the holder references, or −1. */
  add(record: NetworkRecord, holder: number): void {
    if (this.count === this.#holders.length) this.#grow(Math.max(1024, this.count * 2));
    const index = this.count++;
    writeRange(this.#columns, index, record.range);
    this.#holders[index] = holder;
    this.#countries[index] = packCountry(record.country);
    this.#registries[index] = record.registry === null ? noRegistry : registries.indexOf(record.registry);
    this.#sources[index] = sourceKinds.indexOf(record.source);
    this.#names.push(record.name);
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

  holder(index: number): number {
    return this.#holders[index] ?? -1;
  }

  country(index: number): string | null {
    return unpackCountry(this.#countries[index] ?? 0);
  }

  registry(index: number): Registry | null {
    return registries[this.#registries[index] ?? noRegistry] ?? null;
  }

  source(index: number): SourceKind {
    return sourceKinds[this.#sources[index] ?? 0] ?? "whois";
  }

  name(index: number): string {
    return this.#names[index] ?? "";
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
  }
}

function grown<Column extends { set(values: Column): void }>(old: Column, larger: Column): Column {
  larger.set(old);
  return larger;
}

/** Two letters in 16 bits; 0 for none. */
function packCountry(country: string | null): number {
  return country === null ? 0 : (country.charCodeAt(0) << 8) | country.charCodeAt(1);
}

function unpackCountry(packed: number): string | null {
  return packed === 0 ? null : String.fromCharCode(packed >> 8, packed & 255);
}
