/**
 * Subnets as they arrive, in typed arrays: about 25 bytes each besides the name (IPv6: 49). The tree is laid
 * out from these rows.
 */
import type { IpRange } from "../ip/range.ts";
import { GrowingColumn } from "./growing-column.ts";
import { columnsOf, type RangeColumns } from "./range-columns.ts";
import { type Registry, registries, type Subnet } from "./subnet.ts";

const int32 = (length: number) => new Int32Array(length);
const uint32 = (length: number) => new Uint32Array(length);
const uint16 = (length: number) => new Uint16Array(length);
const uint8 = (length: number) => new Uint8Array(length);

/** What stands for null in a column of ids. */
export const noId = -1;

export class SubnetRows {
  readonly ids = new GrowingColumn(int32);
  readonly parentIds = new GrowingColumn(int32);
  readonly holderIds = new GrowingColumn(int32);
  readonly countries = new GrowingColumn(uint16);
  readonly registries = new GrowingColumn(uint8);
  readonly names: string[] = [];
  /** For each family the rows that belong to it, and their ranges in the same order. */
  readonly #rows = { 4: new GrowingColumn(int32), 6: new GrowingColumn(int32) };
  readonly #first = { 4: new GrowingColumn(uint32), 6: new GrowingColumn(uint32) };
  readonly #last = { 4: new GrowingColumn(uint32), 6: new GrowingColumn(uint32) };

  add(subnet: Subnet): void {
    this.#addRange(subnet.range);
    this.ids.push(checkedId(subnet.id));
    this.parentIds.push(subnet.parentId === null ? noId : checkedId(subnet.parentId));
    this.holderIds.push(subnet.holderId === null ? noId : checkedId(subnet.holderId));
    this.countries.push(packCountry(subnet.country));
    this.registries.push(registries.indexOf(subnet.registry));
    this.names.push(subnet.name);
  }

  #addRange(range: IpRange): void {
    this.#rows[range.family].push(this.ids.length);
    if (range.family === 4) {
      this.#first[4].push(range.first);
      this.#last[4].push(range.last);
      return;
    }
    const { first, last } = columnsOf([range]);
    for (const word of first) this.#first[6].push(word);
    for (const word of last) this.#last[6].push(word);
  }

  rowsOf(family: 4 | 6): Int32Array {
    return this.#rows[family].values();
  }

  columnsOf(family: 4 | 6): RangeColumns {
    const first = this.#first[family].values();
    const last = this.#last[family].values();
    return { family, words: family === 4 ? 1 : 4, count: this.#rows[family].length, first, last };
  }
}

/** Two letters in 16 bits; 0 for none. */
export function packCountry(country: string | null): number {
  if (country === null) return 0;
  if (!/^[A-Z]{2}$/.test(country))
    throw new RangeError(`not a country code of two capital letters: ${country}`);
  return (country.charCodeAt(0) << 8) | country.charCodeAt(1);
}

export function unpackCountry(packed: number): string | null {
  return packed === 0 ? null : String.fromCharCode(packed >> 8, packed & 255);
}

export function registryAt(index: number): Registry {
  return registries[index] as Registry;
}

function checkedId(id: number): number {
  if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff) throw new RangeError(`not an id: ${id}`);
  return id;
}
