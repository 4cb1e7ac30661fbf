/**
 * Collects one family's network records in growing flat columns before merging: tens of bytes a record instead of an
 * object, so that ten million fit.
 */
import { emptyColumns, type RangeColumns, writeRange } from "#coordinator/place/subnets/range-columns";
import { type Registry, registries } from "#coordinator/place/subnets/subnet";
import { packCountry } from "#coordinator/place/subnets/subnet-rows";
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
  #names = new Int32Array(0);

  constructor(family: 4 | 6) {
    this.family = family;
    this.#columns = emptyColumns(family, 0);
  }

  /** `holder` is an index into the holder references, or −1; `name` an id of the import's texts. */
  add(record: NetworkRecord, { holder, name }: { readonly holder: number; readonly name: number }): void {
    if (this.count === this.#holders.length) this.#grow(Math.max(1024, this.count * 2));
    const index = this.count++;
    writeRange(this.#columns, index, record.range);
    this.#holders[index] = holder;
    this.#countries[index] = packCountry(record.country);
    this.#registries[index] = record.registry === null ? noRegistry : registries.indexOf(record.registry);
    this.#sources[index] = sourceKinds.indexOf(record.source);
    this.#names[index] = name;
  }

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

  country(index: number): number {
    return this.#countries[index] ?? 0;
  }

  registry(index: number): Registry | null {
    return registries[this.#registries[index] ?? noRegistry] ?? null;
  }

  source(index: number): SourceKind {
    return sourceKinds[this.#sources[index] ?? 0] ?? "whois";
  }

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
