/**
 * The ways in which records name their holders, each once, and the organisations that were read. After the
 * last file every reference is joined with its organisation and becomes a holder: by handle, by opaque-id,
 * only then by name. Kept as bytes, not as objects: a registry has millions of both.
 *
 * ARIN gives every reassignment to a customer a handle of its own (C01234567), so a customer with several
 * ranges has several. Such a customer is known by its parent's handle together with its name instead.
 */
import { type HolderIdentity, type HolderSource, holderOf } from "#coordinator/subnets/holder-name";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { packCountry, unpackCountry } from "#coordinator/subnets/subnet-rows";
import { GrowingColumn, type TextPool } from "#core/text-pool";
import type { HolderReference, OrganisationRecord } from "../formats/record.ts";

export interface ResolvedHolder extends HolderIdentity {
  readonly registry: string | null;
  /** Where the organisation is, for ranges that state no country. */
  readonly country: string | null;
}

/** What a reference's text means: all but the text itself. There are a few hundred of these at most. */
interface Context {
  readonly type: HolderReference["type"];
  readonly registry: Registry | null;
  readonly country: string | null;
  /** Of an opaque-id: the file that it has a meaning in; else null. */
  readonly file: string | null;
}

/** Everything in plain arrays: what goes from one thread to another. */
export interface ReferenceParts {
  readonly contexts: readonly Context[];
  readonly references: PairParts;
  readonly ownNames: Int32Array;
  readonly organisations: PairParts;
  readonly organisationNames: Int32Array;
  readonly organisationCountries: Uint16Array;
  readonly organisationParents: Int32Array;
}

const int32 = (length: number) => new Int32Array(length);
const uint16 = (length: number) => new Uint16Array(length);
const none = -1;

export class HolderReferences {
  readonly #texts: TextPool;
  readonly #contexts: Context[] = [];
  readonly #contextByKey = new Map<string, number>();
  /** What most references have in common with the one before. */
  #latest: { readonly context: Context; readonly index: number } | null = null;
  /** References as pairs of a context and the text's id. */
  readonly #references = new PairIndex();
  /** The name that the first record with this reference gave beside the handle, or `none`. */
  readonly #ownNames = new GrowingColumn(int32);
  /** Organisations as pairs of a registry and the handle's id among the texts. */
  readonly #organisations = new PairIndex();
  readonly #organisationNames = new GrowingColumn(int32);
  readonly #organisationCountries = new GrowingColumn(uint16);
  readonly #organisationParents = new GrowingColumn(int32);
  readonly #filesOfRegistry = new Map<string, string[]>();

  /** Names, handles and ids are kept among these texts. */
  constructor(texts: TextPool) {
    this.#texts = texts;
  }

  /** Indexes of references are below. */
  get count(): number {
    return this.#references.count;
  }

  get organisationCount(): number {
    return this.#organisations.count;
  }

  /** Of two organisations with one handle the first counts. */
  addOrganisation({ registry, handle, name, country, parentHandle }: OrganisationRecord): void {
    const index = this.#organisations.intern(registryNumber(registry), this.#texts.intern(handle));
    if (index < this.#organisationNames.length) return;
    this.#organisationNames.push(this.#texts.intern(name));
    this.#organisationCountries.push(packCountry(country));
    this.#organisationParents.push(parentHandle ? this.#texts.intern(parentHandle) : none);
  }

  parts(): ReferenceParts {
    return {
      contexts: this.#contexts,
      references: this.#references.parts(),
      ownNames: this.#ownNames.values(),
      organisations: this.#organisations.parts(),
      organisationNames: this.#organisationNames.values(),
      organisationCountries: this.#organisationCountries.values(),
      organisationParents: this.#organisationParents.values(),
    };
  }

  /**
   * Takes over what another thread read after what is here; `texts` gives the id here of each text there.
   * Returns the index here of each reference there.
   */
  absorb(parts: ReferenceParts, texts: Int32Array): Int32Array {
    const textHere = (text: number) => (text === none ? none : (texts[text] as number));
    const contexts = parts.contexts.map((context) => this.#indexOfContext(context));
    const { firsts, seconds } = parts.references;
    const indexes = firsts.map((context, reference) => {
      const index = this.#references.intern(
        contexts[context] as number,
        textHere(seconds[reference] as number),
      );
      if (index === this.#ownNames.length) this.#ownNames.push(textHere(parts.ownNames[reference] as number));
      return index;
    });
    parts.organisations.firsts.forEach((registry, at) => {
      const handle = textHere(parts.organisations.seconds[at] as number);
      if (this.#organisations.intern(registry, handle) < this.#organisationNames.length) return;
      this.#organisationNames.push(textHere(parts.organisationNames[at] as number));
      this.#organisationCountries.push(parts.organisationCountries[at] as number);
      this.#organisationParents.push(textHere(parts.organisationParents[at] as number));
    });
    return indexes;
  }

  /** The reference's index; the same for the same reference. −1 for none. */
  indexOf(reference: HolderReference | null, file: string): number {
    if (reference === null) return none;
    const text = this.#texts.intern(textOf(reference));
    const index = this.#references.intern(this.#contextOf(reference, file), text);
    if (index === this.#ownNames.length) this.#ownNames.push(this.#ownNameOf(reference));
    return index;
  }

  /** The holder behind an index, or null when nothing there identifies one. */
  resolve(index: number): ResolvedHolder | null {
    const context = this.#contexts[this.#references.firstAt(index)] as Context;
    const textId = this.#references.secondAt(index);
    const { type, registry, country, file } = context;
    if (type === "handle") return this.#resolveHandle(index, registry, textId);
    const text = this.#texts.textAt(textId);
    if (type === "name") return resolved({ name: text, registry, country }, null);
    return resolved({ registry, opaqueId: `${text}${this.#scopeOf(registry, file)}` }, null);
  }

  #resolveHandle(index: number, registry: Registry | null, handleId: number): ResolvedHolder | null {
    const handle = this.#texts.textAt(handleId);
    const organisation = this.#organisations.find(registryNumber(registry), handleId);
    if (organisation < 0) {
      const ownName = this.#ownNames.at(index);
      return resolved(
        { registry, handle, name: ownName === none ? null : this.#texts.textAt(ownName) },
        null,
      );
    }
    const name = this.#texts.textAt(this.#organisationNames.at(organisation));
    const country = unpackCountry(this.#organisationCountries.at(organisation));
    const parent = this.#organisationParents.at(organisation);
    const isCustomer = registry === "arin" && parent !== none && customerHandle.test(handle);
    const parentHandle = isCustomer ? this.#texts.textAt(parent) : null;
    return resolved({ registry, handle, parentHandle, name }, country);
  }

  #ownNameOf(reference: HolderReference): number {
    return reference.type === "handle" && reference.name !== null ? this.#texts.intern(reference.name) : none;
  }

  #contextOf(reference: HolderReference, file: string): number {
    const { type, registry } = reference;
    const country = type === "name" ? reference.country : null;
    const ofFile = type === "opaque-id" ? file : null;
    const latest = this.#latest;
    if (
      latest !== null &&
      latest.context.type === type &&
      latest.context.registry === registry &&
      latest.context.country === country &&
      latest.context.file === ofFile
    ) {
      return latest.index;
    }
    const context = { type, registry, country, file: ofFile };
    this.#latest = { context, index: this.#indexOfContext(context) };
    return this.#latest.index;
  }

  #indexOfContext(context: Context): number {
    const { type, registry, country, file } = context;
    const key = JSON.stringify([type, registry, country, file]);
    const known = this.#contextByKey.get(key);
    if (known !== undefined) return known;
    if (registry !== null && file !== null) this.#addFile(registry, file);
    this.#contextByKey.set(key, this.#contexts.length);
    return this.#contexts.push(context) - 1;
  }

  #addFile(registry: string, file: string): void {
    const files = this.#filesOfRegistry.get(registry) ?? [];
    this.#filesOfRegistry.set(registry, files);
    if (!files.includes(file)) files.push(file);
  }

  /**
   * Opaque-ids mean something within one file only. Empty for a registry's first file, so that ids stay the
   * same from import to import; then @2, @3 …
   */
  #scopeOf(registry: string | null, file: string | null): string {
    const files = this.#filesOfRegistry.get(registry ?? "") ?? [];
    const position = files.indexOf(file ?? "");
    return position <= 0 ? "" : `@${position + 1}`;
  }
}

function textOf(reference: HolderReference): string {
  if (reference.type === "handle") return reference.handle;
  return reference.type === "name" ? reference.name : reference.id;
}

/** −1 for none. */
const registryNumber = (registry: Registry | null) =>
  registry === null ? none : registries.indexOf(registry);

/** ARIN's handles of customers; organisations' end otherwise (`EXAMP-12`). */
const customerHandle = /^C\d+$/;

function resolved(source: HolderSource, country: string | null): ResolvedHolder | null {
  const identity = holderOf(source);
  if (identity === null) return null;
  const { key, name, handle } = identity;
  return { key, name, handle, registry: source.registry ?? null, country };
}

/**
 * Pairs of small numbers, each once, numbered 0, 1, 2 … in the order of first sight: 16 to 32 bytes a pair.
 * Open addressing over a table that is never more than half full.
 */

const firstPairs = 256;

/** The pairs by their numbers. */
interface PairParts {
  readonly firsts: Int32Array;
  readonly seconds: Int32Array;
}

export class PairIndex {
  #firsts = new Int32Array(firstPairs);
  #seconds = new Int32Array(firstPairs);
  /** Number + 1 at the place of the pair's hash or behind; 0 where none. */
  #table = new Int32Array(2 * firstPairs);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The pair's number; the same for the same pair. */
  intern(first: number, second: number): number {
    if (this.#count === this.#firsts.length) this.#grow();
    const place = this.#placeOf(first, second);
    const found = (this.#table[place] as number) - 1;
    if (found >= 0) return found;
    const number = this.#count++;
    this.#firsts[number] = first;
    this.#seconds[number] = second;
    this.#table[place] = number + 1;
    return number;
  }

  /** The pair's number, or −1 when it was never seen. */
  find(first: number, second: number): number {
    return (this.#table[this.#placeOf(first, second)] as number) - 1;
  }

  /** As they lie in memory, without a copy: valid until the next `intern`. */
  parts(): PairParts {
    return {
      firsts: this.#firsts.subarray(0, this.#count),
      seconds: this.#seconds.subarray(0, this.#count),
    };
  }

  firstAt(number: number): number {
    return this.#firsts[number] as number;
  }

  secondAt(number: number): number {
    return this.#seconds[number] as number;
  }

  #placeOf(first: number, second: number): number {
    const mask = this.#table.length - 1;
    for (let place = hashOf(first, second) & mask; ; place = (place + 1) & mask) {
      const number = (this.#table[place] as number) - 1;
      if (number < 0 || (this.#firsts[number] === first && this.#seconds[number] === second)) return place;
    }
  }

  #grow(): void {
    const firsts = new Int32Array(2 * this.#count);
    const seconds = new Int32Array(2 * this.#count);
    firsts.set(this.#firsts);
    seconds.set(this.#seconds);
    this.#firsts = firsts;
    this.#seconds = seconds;
    this.#table = new Int32Array(4 * this.#count);
    for (let number = 0; number < this.#count; number += 1) {
      this.#table[this.#placeOf(firsts[number] as number, seconds[number] as number)] = number + 1;
    }
  }
}

function hashOf(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
