/**
 * The tree that an import should produce: every subnet once, nested, with its holder, in flat columns. A subnet's place
 * is its number within its family in tree order.
 */
import { type HolderIdentity, type HolderSource, holderOf } from "#coordinator/place/subnets/holder-name";
import type { RangeColumns } from "#coordinator/place/subnets/range-columns";
import { packCountry, type Registry, registries, unpackCountry } from "#coordinator/place/subnets/subnet";
import { GrowingColumn, TextPool } from "#core/text-pool";
import type { HolderReference, OrganisationRecord } from "../formats/record.ts";

/** One family's columns by place. */
export interface FamilyState {
  readonly columns: RangeColumns;
  /** The parent's place, or −1. */
  readonly parents: Int32Array;
  /** An index into the state's holders, or −1. */
  readonly holders: Int32Array;
  /** Packed as in subnets/subnet. 0 means no country. */
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
  /** Records merged into another record of the same range. */
  readonly duplicates: number;
  readonly deepest: number;
  /** Pairs of crossing ranges. Of a tangle's n² possible pairs at most 2n are counted. */
  readonly crossings: number;
  /** The first pairs, at most a thousand. The range `earlier` starts first. */
  readonly crossingSamples: readonly { readonly earlier: string; readonly later: string }[];
}

// The distinct holders of a state as columns of text ids.

export interface Holder {
  readonly key: string;
  readonly name: string;
  readonly handle: string | null;
  readonly registry: string | null;
}

interface ResolvedHolder extends HolderIdentity {
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

  constructor(texts: TextPool) {
    this.#texts = texts;
  }

  get count(): number {
    return this.#names.length;
  }

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

/** A reference without its text. There are a few hundred different ones at most. */
interface Context {
  readonly type: HolderReference["type"];
  readonly registry: Registry | null;
  readonly country: string | null;
  /** The file in which an opaque-id is valid. Null for other references. */
  readonly file: string | null;
}

const int32 = (length: number) => new Int32Array(length);

export class HolderReferences {
  readonly #texts: TextPool;
  readonly #contexts: Context[] = [];
  readonly #contextByKey = new Map<string, number>();
  /** Distinct `context text` entries. Their number is the index of the reference. */
  readonly #references = new TextPool();
  /** The name that the first record with this reference gave besides the handle, or `none`. */
  readonly #ownNames = new GrowingColumn(int32);
  /** Distinct `registry handle` entries. Their number is the index of the organisation. */
  readonly #organisations = new TextPool();
  readonly #organisationNames = new GrowingColumn(int32);
  readonly #organisationCountries = new GrowingColumn((length) => new Uint16Array(length));
  readonly #organisationParents = new GrowingColumn(int32);
  /** Each registry's files that contain opaque-ids, in order. */
  readonly #opaqueFiles = new Map<Registry | null, string[]>();

  constructor(texts: TextPool) {
    this.#texts = texts;
  }

  /** Of two organisations with the same handle, the first one counts. */
  addOrganisation({ registry, handle, name, country, parentHandle }: OrganisationRecord): void {
    const index = this.#organisations.intern(organisationKey(registry, handle));
    if (index < this.#organisationNames.length) return;
    this.#organisationNames.push(this.#texts.intern(name));
    this.#organisationCountries.push(packCountry(country));
    this.#organisationParents.push(parentHandle ? this.#texts.intern(parentHandle) : none);
  }

  /** Equal references have the same index. `file` is where the reference was found. */
  indexOf(reference: HolderReference, file: string): number {
    const index = this.#references.intern(`${this.#contextOf(reference, file)} ${textOf(reference)}`);
    if (index < this.#ownNames.length) return index;
    const ownName = reference.type === "handle" ? reference.name : null;
    this.#ownNames.push(ownName === null ? none : this.#texts.intern(ownName));
    return index;
  }

  /** Returns a function that gives the table's holder for a reference index and adds the holder on first use. */
  joined(table: HolderTable): (index: number) => number {
    const unasked = -2;
    const known = new Int32Array(this.#references.count).fill(unasked);
    return (index) => {
      if (index < 0) return none;
      if (known[index] === unasked) {
        const holder = this.#resolve(index);
        known[index] = holder === null ? none : table.indexOf(holder);
      }
      return known[index] as number;
    };
  }

  #resolve(index: number): ResolvedHolder | null {
    const key = this.#references.textAt(index);
    const space = key.indexOf(" ");
    const { type, registry, country, file } = this.#contexts[Number(key.slice(0, space))] as Context;
    const text = key.slice(space + 1);
    if (type === "handle") return this.#resolveHandle(index, registry, text);
    if (type === "name") return resolved({ name: text, registry, country }, null);
    return resolved({ registry, opaqueId: `${text}${this.#scopeOf(registry, file)}` }, null);
  }

  #resolveHandle(index: number, registry: Registry | null, handle: string): ResolvedHolder | null {
    const organisation = this.#organisations.find(organisationKey(registry, handle));
    if (organisation < 0) {
      const ownName = this.#ownNames.at(index);
      const name = ownName === none ? null : this.#texts.textAt(ownName);
      return resolved({ registry, handle, name }, null);
    }
    const name = this.#texts.textAt(this.#organisationNames.at(organisation));
    const country = unpackCountry(this.#organisationCountries.at(organisation));
    const parent = this.#organisationParents.at(organisation);
    const isCustomer = registry === "arin" && parent !== none && customerHandle.test(handle);
    const parentHandle = isCustomer ? this.#texts.textAt(parent) : null;
    return resolved({ registry, handle, parentHandle, name }, country);
  }

  #contextOf(reference: HolderReference, source: string): number {
    const { type, registry } = reference;
    const country = type === "name" ? reference.country : null;
    const file = type === "opaque-id" ? source : null;
    const key = `${type} ${registry} ${country} ${file ?? ""}`;
    const known = this.#contextByKey.get(key);
    if (known !== undefined) return known;
    if (file !== null) this.#opaqueFiles.set(registry, [...(this.#opaqueFiles.get(registry) ?? []), file]);
    this.#contextByKey.set(key, this.#contexts.length);
    return this.#contexts.push({ type, registry, country, file }) - 1;
  }

  /**
   * Opaque-ids are valid within one file only. A registry's first file has an empty scope, so that its ids stay the
   * same between imports. The scopes of further files are @2, @3 …
   */
  #scopeOf(registry: Registry | null, file: string | null): string {
    const position = this.#opaqueFiles.get(registry)?.indexOf(file ?? "") ?? 0;
    return position <= 0 ? "" : `@${position + 1}`;
  }
}

const organisationKey = (registry: Registry | null, handle: string) => `${registry} ${handle}`;

/** Handles of ARIN's customers. Those of organisations look different (`EXAMP-12`). */
const customerHandle = /^C\d+$/;

function textOf(reference: HolderReference): string {
  if (reference.type === "handle") return reference.handle;
  return reference.type === "name" ? reference.name : reference.id;
}

function resolved(source: HolderSource, country: string | null): ResolvedHolder | null {
  const identity = holderOf(source);
  if (identity === null) return null;
  const { key, name, handle } = identity;
  return { key, name, handle, registry: (source.registry ?? null) as Registry | null, country };
}
