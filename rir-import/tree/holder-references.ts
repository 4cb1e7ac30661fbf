/**
 * The ways in which records name their holders, each once, and the organisations that were read. After the
 * last file every reference is joined with its organisation and becomes a holder: by handle, by opaque-id,
 * only then by name. Kept as bytes, not as objects: a registry has millions of both.
 *
 * ARIN gives every reassignment to a customer a handle of its own (C01234567), so a customer with several
 * ranges has several. Such a customer is known by its parent's handle together with its name instead.
 */
import { GrowingColumn } from "#core/subnet/growing-column";
import { type HolderIdentity, type HolderSource, holderOf } from "#core/subnet/holder";
import { packCountry, unpackCountry } from "#core/subnet/subnet-rows";
import { TextPool } from "#core/text-pool";
import type { HolderReference, OrganisationRecord } from "../formats/record.ts";

export interface ResolvedHolder extends HolderIdentity {
  readonly registry: string | null;
  /** Where the organisation is, for ranges that state no country. */
  readonly country: string | null;
}

const int32 = (length: number) => new Int32Array(length);
const uint16 = (length: number) => new Uint16Array(length);
const none = -1;

export class HolderReferences {
  readonly #texts: TextPool;
  /** A reference's index is its key's id. */
  readonly #references = new TextPool();
  /** The name that the first record with this reference gave beside the handle, or `none`. */
  readonly #ownNames = new GrowingColumn(int32);
  readonly #organisations = new TextPool();
  readonly #organisationNames = new GrowingColumn(int32);
  readonly #organisationCountries = new GrowingColumn(uint16);
  readonly #organisationParents = new GrowingColumn(int32);
  readonly #filesOfRegistry = new Map<string, string[]>();

  /** Names are kept among these texts. */
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
    const id = this.#organisations.intern(handleKey(registry, handle));
    if (id < this.#organisationNames.length) return;
    this.#organisationNames.push(this.#texts.intern(name));
    this.#organisationCountries.push(packCountry(country));
    this.#organisationParents.push(parentHandle ? this.#texts.intern(parentHandle) : none);
  }

  /** The reference's index; the same for the same reference. −1 for none. */
  indexOf(reference: HolderReference | null, file: string): number {
    if (reference === null) return none;
    const index = this.#references.intern(this.#keyOf(reference, file));
    if (index === this.#ownNames.length) this.#ownNames.push(this.#ownNameOf(reference));
    return index;
  }

  /** The holder behind an index, or null when nothing there identifies one. */
  resolve(index: number): ResolvedHolder | null {
    const [type, registryText = "", country = "", scope = "", ...rest] = this.#references
      .textAt(index)
      .split(separator);
    const text = rest.join(separator);
    const registry = registryText === "" ? null : registryText;
    if (type === "name") return resolved({ name: text, registry, country: country || null }, null);
    if (type === "opaque-id") {
      return resolved({ registry, opaqueId: scope === "" ? text : `${text}@${scope}` }, null);
    }
    return this.#resolveHandle(index, registry, text);
  }

  #resolveHandle(index: number, registry: string | null, handle: string): ResolvedHolder | null {
    const ownName = this.#ownNames.values()[index] as number;
    const fallback = ownName === none ? null : this.#texts.textAt(ownName);
    const organisation = this.#organisations.find(handleKey(registry, handle));
    if (organisation < 0) return resolved({ registry, handle, name: fallback }, null);
    const name = this.#texts.textAt(this.#organisationNames.values()[organisation] as number);
    const country = unpackCountry(this.#organisationCountries.values()[organisation] as number);
    const parent = this.#organisationParents.values()[organisation] as number;
    const isCustomer = registry === "arin" && parent !== none && customerHandle.test(handle);
    const parentHandle = isCustomer ? this.#texts.textAt(parent) : null;
    return resolved({ registry, handle, parentHandle, name }, country);
  }

  #ownNameOf(reference: HolderReference): number {
    return reference.type === "handle" && reference.name !== null ? this.#texts.intern(reference.name) : none;
  }

  #keyOf(reference: HolderReference, file: string): string {
    const registry = reference.registry ?? "";
    if (reference.type === "name")
      return keyText("name", registry, reference.country ?? "", "", reference.name);
    if (reference.type === "handle") return keyText("handle", registry, "", "", reference.handle);
    return keyText("opaque-id", registry, "", this.#scopeOf(registry, file), reference.id);
  }

  /**
   * Opaque-ids mean something within one file only. Empty for a registry's first file, so that ids stay the
   * same from import to import; then 2, 3 …
   */
  #scopeOf(registry: string, file: string): string {
    const files = this.#filesOfRegistry.get(registry) ?? [];
    this.#filesOfRegistry.set(registry, files);
    if (!files.includes(file)) files.push(file);
    const position = files.indexOf(file);
    return position === 0 ? "" : String(position + 1);
  }
}

/** ARIN's handles of customers; organisations' end otherwise (`EXAMP-12`). */
const customerHandle = /^C\d+$/;
const separator = "\t";

/** The text comes last: it may hold separators itself. */
function keyText(type: string, registry: string, country: string, scope: string, text: string): string {
  return `${type}${separator}${registry}${separator}${country}${separator}${scope}${separator}${text}`;
}

function resolved(source: HolderSource, country: string | null): ResolvedHolder | null {
  const identity = holderOf(source);
  return identity && { ...identity, registry: source.registry ?? null, country };
}

const handleKey = (registry: string | null, handle: string) => `${registry ?? ""}:${handle}`;
