/**
 * The tree that an import wants: every subnet once, nested, with its holder, in flat columns. A subnet's place is its
 * number within its family in the order of the tree.
 */
import type { HolderIdentity } from "#coordinator/place/subnets/holder-name";
import type { RangeColumns } from "#coordinator/place/subnets/range-columns";
import { type Registry, registries } from "#coordinator/place/subnets/subnet";
import { packCountry } from "#coordinator/place/subnets/subnet-rows";
import { GrowingColumn, TextPool } from "#core/text-pool";

/** The columns of one family by place. */
export interface FamilyState {
  readonly columns: RangeColumns;
  /** The parent's place, or −1. */
  readonly parents: Int32Array;
  /** An index into the state's holders, or −1. */
  readonly holders: Int32Array;
  /** Packed (subnets/subnet-rows); 0 for none. */
  readonly countries: Uint16Array;
  /** An index into `registries`. */
  readonly registries: Uint8Array;
  /** An id of the state's texts. */
  readonly names: Int32Array;
  /** 1 for a subnet that crosses another. */
  readonly crosses: Uint8Array;
}

export interface RegistryState {
  readonly ipv4: FamilyState;
  readonly ipv6: FamilyState;
  readonly holders: HolderTable;
  /** Names of subnets and holders by id. */
  readonly texts: TextPool;
  readonly summary: StateSummary;
}

export interface StateSummary {
  readonly subnets: number;
  readonly ipv4Subnets: number;
  readonly ipv6Subnets: number;
  readonly holders: number;
  readonly withoutHolder: number;
  /** Records merged with another record of the same range. */
  readonly duplicates: number;
  readonly deepest: number;
  /** Pairs of crossing ranges; of the possible n² of a tangle at most 2n are counted. */
  readonly crossings: number;
  /** The first pairs, at most a thousand; `earlier` starts first. */
  readonly crossingSamples: readonly { readonly earlier: string; readonly later: string }[];
}

// The distinct holders of a state as columns of text ids.

export interface Holder {
  readonly key: string;
  readonly name: string;
  readonly handle: string | null;
  readonly registry: string | null;
}

export interface ResolvedHolder extends HolderIdentity {
  readonly registry: Registry | null;
  readonly country: string | null;
}

const none = -1;

export class HolderTable {
  readonly #texts: TextPool;
  /** A holder's index is the number of its key. */
  readonly #keys = new TextPool();
  readonly #names = new GrowingColumn((length) => new Int32Array(length));
  readonly #handles = new GrowingColumn((length) => new Int32Array(length));
  readonly #registries = new GrowingColumn((length) => new Uint8Array(length));
  readonly #countries = new GrowingColumn((length) => new Uint16Array(length));

  /** Names and handles are stored among these texts. */
  constructor(texts: TextPool) {
    this.#texts = texts;
  }

  get count(): number {
    return this.#names.length;
  }

  /** Adds the holder if its key is new. */
  indexOf({ key, name, handle, registry, country }: ResolvedHolder): number {
    const index = this.#keys.intern(key);
    if (index < this.count) return index;
    this.#names.push(this.#texts.intern(name));
    this.#handles.push(handle === null ? none : this.#texts.intern(handle));
    this.#registries.push(registries.indexOf(registry as Registry) & 0xff);
    this.#countries.push(packCountry(country));
    return index;
  }

  find(key: string): number {
    return this.#keys.find(key);
  }

  *all(): Generator<Holder> {
    for (let index = 0; index < this.count; index += 1) yield this.at(index);
  }

  at(index: number): Holder {
    const handle = this.handleId(index);
    return {
      key: this.#keys.textAt(index),
      name: this.#texts.textAt(this.nameId(index)),
      handle: handle === none ? null : this.#texts.textAt(handle),
      registry: registries[this.#registries.at(index)] ?? null,
    };
  }

  nameId(index: number): number {
    return this.#names.at(index);
  }

  handleId(index: number): number {
    return this.#handles.at(index);
  }

  country(index: number): number {
    return this.#countries.at(index);
  }
}
