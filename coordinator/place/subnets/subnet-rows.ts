/**
 * Subnets in the order in which they arrive, in typed arrays: 22 bytes each plus the name (IPv6: 46). The tree is
 * built from these rows.
 */

import type { IpRange } from "#core/ip/range";
import { GrowingColumn, TextPool } from "#core/text-pool";
import { columnsOf, type RangeColumns } from "./range-columns.ts";
import { packLabel, type Registry } from "./subnet.ts";

/** Stands for null in a column of ids. */
export const noId = -1;

interface SubnetFacts {
  readonly id: number;
  readonly holderId: number | null;
  readonly country: string | null;
  readonly registry: Registry;
  readonly name: string;
}

export class SubnetRows {
  readonly ipv4 = new FamilyRows(4);
  readonly ipv6 = new FamilyRows(6);
  readonly names = new TextPool();

  get count(): number {
    return this.ipv4.ids.length + this.ipv6.ids.length;
  }

  /** Addresses as unsigned 32-bit numbers. */
  addIpv4(first: number, last: number, facts: SubnetFacts): void {
    if (first > last) throw new RangeError(`subnet ${facts.id} ends before it starts`);
    this.ipv4.first.push(first);
    this.ipv4.last.push(last);
    this.#addFacts(this.ipv4, facts);
  }

  /** Addresses as four 32-bit words, the most significant first. */
  addIpv6(first: ArrayLike<number>, last: ArrayLike<number>, facts: SubnetFacts): void {
    if (isBehind(first, last)) throw new RangeError(`subnet ${facts.id} ends before it starts`);
    for (let word = 0; word < 4; word += 1) {
      this.ipv6.first.push(first[word] as number);
      this.ipv6.last.push(last[word] as number);
    }
    this.#addFacts(this.ipv6, facts);
  }

  addRange(range: IpRange, facts: SubnetFacts): void {
    if (range.family === 4) {
      this.addIpv4(range.first, range.last, facts);
      return;
    }
    const { first, last } = columnsOf([range]);
    this.addIpv6(first, last, facts);
  }

  #addFacts(rows: FamilyRows, { id, holderId, country, registry, name }: SubnetFacts): void {
    rows.ids.push(checkedId(id));
    rows.holderIds.push(holderId === null ? noId : checkedId(holderId));
    rows.labels.push(packLabel(country, registry));
    rows.nameIds.push(this.names.intern(name));
  }
}

/** One column per fact, for one family. */
export class FamilyRows {
  readonly family: 4 | 6;
  readonly first = new GrowingColumn((length) => new Uint32Array(length));
  readonly last = new GrowingColumn((length) => new Uint32Array(length));
  readonly ids = new GrowingColumn((length) => new Int32Array(length));
  readonly holderIds = new GrowingColumn((length) => new Int32Array(length));
  readonly labels = new GrowingColumn((length) => new Uint16Array(length));
  readonly nameIds = new GrowingColumn((length) => new Int32Array(length));

  constructor(family: 4 | 6) {
    this.family = family;
  }

  ranges(): RangeColumns {
    const words = this.family === 4 ? 1 : 4;
    const [first, last] = [this.first.values(), this.last.values()];
    return { family: this.family, words, count: this.ids.length, first, last };
  }
}

/** Two letters in 16 bits; 0 for none. */
export function packCountry(country: string | null): number {
  if (country === null) return 0;
  const first = country.charCodeAt(0);
  const second = country.charCodeAt(1);
  if (country.length !== 2 || !isCapital(first) || !isCapital(second))
    throw new RangeError(`not a country code of two capital letters: ${country}`);
  return (first << 8) | second;
}

const isCapital = (code: number) => code >= 0x41 && code <= 0x5a;

export function unpackCountry(packed: number): string | null {
  return packed === 0 ? null : String.fromCharCode(packed >> 8, packed & 255);
}

function isBehind(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  for (let word = 0; word < 4; word += 1) {
    if (a[word] !== b[word]) return (a[word] as number) > (b[word] as number);
  }
  return false;
}

function checkedId(id: number): number {
  if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff) throw new RangeError(`not an id: ${id}`);
  return id;
}
