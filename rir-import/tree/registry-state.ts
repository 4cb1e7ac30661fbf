/**
 * What an import wants the tree to be: every subnet once, nested, with its holder, in flat columns. A subnet's
 * place is its number within its family, in the order of the tree.
 */
import type { HolderIdentity } from "#coordinator/subnets/holder-name";
import type { RangeColumns } from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { packCountry } from "#coordinator/subnets/subnet-rows";
import { GrowingColumn, type TextPool } from "#core/text-pool";
import { PairIndex } from "./pair-index.ts";

/** One family, each column indexed by the subnet's place within the family. */
export interface FamilyState {
  readonly columns: RangeColumns;
  /** Place of the parent, or −1. */
  readonly parents: Int32Array;
  /** Index into the state's holders, or −1. */
  readonly holders: Int32Array;
  /** Packed (subnets/subnet-rows); 0 for none. */
  readonly countries: Uint16Array;
  /** Index into `registries`. */
  readonly registries: Uint8Array;
  /** Id of the state's texts. */
  readonly names: Int32Array;
  /** 1 for a subnet that crosses another. */
  readonly crosses: Uint8Array;
}

export interface RegistryState {
  readonly ipv4: FamilyState;
  readonly ipv6: FamilyState;
  readonly holders: HolderTable;
  /** Names of subnets and holders, by id. */
  readonly texts: TextPool;
  readonly summary: StateSummary;
}

export interface StateSummary {
  readonly subnets: number;
  readonly ipv4Subnets: number;
  readonly ipv6Subnets: number;
  readonly holders: number;
  readonly withoutHolder: number;
  /** Records that spoke of a range another record has already, and were merged with it. */
  readonly duplicates: number;
  readonly deepest: number;
  /** Pairs of crossing ranges; a tangle of n ranges may have n² pairs, of which at most 2n count. */
  readonly crossings: number;
  /** The first pairs, at most a thousand; `earlier` starts first. */
  readonly crossingSamples: readonly { readonly earlier: string; readonly later: string }[];
}

// The holders of a state, each key once, as columns of text ids. A key is a prefix, of which there are a few hundred
// (`ripencc:org-handle:`), and a text.

export interface Holder {
  readonly key: string;
  readonly name: string;
  readonly handle: string | null;
  readonly registry: string | null;
}

/** What a reference to a holder means. */
export interface ResolvedHolder extends HolderIdentity {
  readonly registry: Registry | null;
  /** Where the organisation is, for ranges that state no country. */
  readonly country: string | null;
}

/** A holder by ids of the texts: `key` is what stands behind the prefix, `handle` −1 where there is none. */
export interface InternedHolder {
  readonly prefix: number;
  readonly key: number;
  readonly name: number;
  readonly handle: number;
  readonly registry: Registry | null;
  /** Packed. */
  readonly country: number;
}

/** What a holder has besides its key. */
interface HolderFacts {
  readonly name: number;
  readonly handle: number;
  /** Index into `registries`, 255 for none. */
  readonly registry: number;
  readonly country: number;
}

const none = -1;
const prefixOfKey = /^(?:name:(?:[^:]*:[^:]*:)?|[^:]*:[^:]*:)/;

export class HolderTable {
  readonly #texts: TextPool;
  readonly #prefixes: string[] = [];
  readonly #prefixNumbers = new Map<string, number>();
  /** Keys as pairs of a prefix and a text, and of each the holder. */
  readonly #keys = new PairIndex();
  readonly #holders = new GrowingColumn((length) => new Int32Array(length));
  readonly #keyNumbers = new GrowingColumn((length) => new Int32Array(length));
  readonly #names = new GrowingColumn((length) => new Int32Array(length));
  readonly #handles = new GrowingColumn((length) => new Int32Array(length));
  readonly #registries = new GrowingColumn((length) => new Uint8Array(length));
  readonly #countries = new GrowingColumn((length) => new Uint16Array(length));

  /** Keys, names and handles are kept among these texts. */
  constructor(texts: TextPool) {
    this.#texts = texts;
  }

  get count(): number {
    return this.#keyNumbers.length;
  }

  /** The number of what keys begin with. */
  prefix(text: string): number {
    const known = this.#prefixNumbers.get(text);
    if (known !== undefined) return known;
    this.#prefixNumbers.set(text, this.#prefixes.length);
    return this.#prefixes.push(text) - 1;
  }

  /** A holder by ids. */
  interned({ key, name, handle, registry, country }: ResolvedHolder): InternedHolder {
    const prefix = prefixOf(key);
    return {
      prefix: this.prefix(prefix),
      key: this.#texts.intern(key.slice(prefix.length)),
      name: this.#texts.intern(name),
      handle: handle === null ? none : this.#texts.intern(handle),
      registry,
      country: packCountry(country),
    };
  }

  /** The number of a key, whether or not there is a holder with it. */
  keyNumber(prefix: number, key: number): number {
    const number = this.#keys.intern(prefix, key);
    if (number === this.#holders.length) this.#holders.push(none);
    return number;
  }

  /** Index of the holder with the key of this number, or −1. */
  withKey(number: number): number {
    return this.#holders.at(number);
  }

  /** Adds the holder with the key of this number, which is not there yet; its index. */
  add(number: number, { name, handle, registry, country }: HolderFacts): number {
    const index = this.count;
    this.#holders.set(number, index);
    this.#keyNumbers.push(number);
    this.#names.push(name);
    this.#handles.push(handle);
    this.#registries.push(registry);
    this.#countries.push(country);
    return index;
  }

  /** Index of the holder with this key, or −1. */
  find(key: string): number {
    const prefix = prefixOf(key);
    const [first, second] = [this.#prefixNumbers.get(prefix), this.#texts.find(key.slice(prefix.length))];
    const number = first === undefined || second < 0 ? none : this.#keys.find(first, second);
    return number < 0 ? none : this.#holders.at(number);
  }

  *all(): Generator<Holder> {
    for (let index = 0; index < this.count; index += 1) yield this.at(index);
  }

  at(index: number): Holder {
    const handle = this.handleId(index);
    const number = this.#keyNumbers.at(index);
    const prefix = this.#prefixes[this.#keys.firstAt(number)] ?? "";
    return {
      key: `${prefix}${this.#texts.textAt(this.#keys.secondAt(number))}`,
      name: this.#texts.textAt(this.nameId(index)),
      handle: handle === none ? null : this.#texts.textAt(handle),
      registry: registries[this.#registries.at(index)] ?? null,
    };
  }

  /** Id of the name among the texts. */
  nameId(index: number): number {
    return this.#names.at(index);
  }

  /** Id of the handle among the texts, or −1. */
  handleId(index: number): number {
    return this.#handles.at(index);
  }

  /** Where the holder is, packed; 0 where that is not known. */
  country(index: number): number {
    return this.#countries.at(index);
  }
}

const prefixOf = (key: string) => prefixOfKey.exec(key)?.[0] ?? "";

/** Of each reference to a holder the number of its key in the table (−1 where it means nobody) and what it says besides. */
export class DescribedHolders {
  readonly table: HolderTable;
  readonly #keyNumbers: Int32Array;
  readonly #names: Int32Array;
  readonly #handles: Int32Array;
  readonly #registries: Uint8Array;
  readonly #countries: Uint16Array;

  constructor(count: number, table: HolderTable) {
    this.table = table;
    this.#keyNumbers = new Int32Array(count).fill(none);
    this.#names = new Int32Array(count);
    this.#handles = new Int32Array(count);
    this.#registries = new Uint8Array(count);
    this.#countries = new Uint16Array(count);
  }

  set(reference: number, { prefix, key, name, handle, registry, country }: InternedHolder): void {
    this.#keyNumbers[reference] = this.table.keyNumber(prefix, key);
    this.#names[reference] = name;
    this.#handles[reference] = handle;
    this.#registries[reference] = registries.indexOf(registry as Registry) & 0xff;
    this.#countries[reference] = country;
  }

  /** The index in the table of the holder that a reference means, or −1: the first reference to a holder adds it. */
  indexOf(reference: number): number {
    const number = reference < 0 ? none : (this.#keyNumbers[reference] as number);
    if (number < 0) return none;
    const known = this.table.withKey(number);
    return known !== none ? known : this.table.add(number, this.#factsOf(reference));
  }

  #factsOf(reference: number): HolderFacts {
    return {
      name: this.#names[reference] as number,
      handle: this.#handles[reference] as number,
      registry: this.#registries[reference] as number,
      country: this.#countries[reference] as number,
    };
  }
}
