/**
 * The ways in which records name their holders, each once, and the organisations that were read. After the
 * last file every reference is joined with its organisation and becomes a holder: by handle, by opaque-id,
 * only then by name.
 */
import { type HolderIdentity, type HolderSource, holderOf } from "#core/subnet/holder";
import type { HolderReference, OrganisationRecord } from "../formats/record.ts";

export interface ResolvedHolder extends HolderIdentity {
  readonly registry: string | null;
  /** Where the organisation is, for ranges that state no country. */
  readonly country: string | null;
}

export class HolderReferences {
  readonly #references: HolderReference[] = [];
  /** Opaque-ids mean something within one file only: the second file of a registry has a scope of its own. */
  readonly #scopes: (string | null)[] = [];
  readonly #indexByKey = new Map<string, number>();
  readonly #organisations = new Map<string, OrganisationRecord>();
  readonly #filesOfRegistry = new Map<string, string[]>();

  get organisationCount(): number {
    return this.#organisations.size;
  }

  /** Of two organisations with one handle the first counts. */
  addOrganisation(record: OrganisationRecord): void {
    const key = handleKey(record.registry, record.handle);
    if (!this.#organisations.has(key)) this.#organisations.set(key, record);
  }

  /** The reference's index; the same for the same reference. −1 for none. */
  indexOf(reference: HolderReference | null, file: string): number {
    if (reference === null) return -1;
    const scope = reference.type === "opaque-id" ? this.#scopeOf(reference.registry, file) : null;
    const key = keyOf(reference, scope);
    const known = this.#indexByKey.get(key);
    if (known !== undefined) return known;
    this.#indexByKey.set(key, this.#references.length);
    this.#scopes.push(scope);
    return this.#references.push(reference) - 1;
  }

  /** The holder behind an index, or null when nothing there identifies one. */
  resolve(index: number): ResolvedHolder | null {
    const reference = this.#references[index];
    if (reference === undefined) return null;
    if (reference.type === "name") {
      const { name, registry, country } = reference;
      return resolved({ name, registry, country }, null);
    }
    if (reference.type === "opaque-id") {
      const { registry } = reference;
      const scope = this.#scopes[index];
      const opaqueId = scope ? `${reference.id}@${scope}` : reference.id;
      return resolved({ registry, opaqueId }, null);
    }
    const { registry, handle } = reference;
    const organisation = this.#organisations.get(handleKey(registry, handle));
    return resolved(
      { registry, handle, name: organisation?.name ?? reference.name },
      organisation?.country ?? null,
    );
  }

  /** Null for a registry's first file, so that ids stay the same from import to import; then 2, 3 … */
  #scopeOf(registry: string, file: string): string | null {
    const files = this.#filesOfRegistry.get(registry) ?? [];
    this.#filesOfRegistry.set(registry, files);
    if (!files.includes(file)) files.push(file);
    const position = files.indexOf(file);
    return position === 0 ? null : String(position + 1);
  }
}

function resolved(source: HolderSource, country: string | null): ResolvedHolder | null {
  const identity = holderOf(source);
  return identity && { ...identity, registry: source.registry ?? null, country };
}

const handleKey = (registry: string | null, handle: string) => `${registry ?? ""}:${handle}`;

function keyOf(reference: HolderReference, scope: string | null): string {
  if (reference.type === "name") {
    return `n:${reference.registry ?? ""}:${reference.country ?? ""}:${reference.name}`;
  }
  if (reference.type === "handle") return `h:${handleKey(reference.registry, reference.handle)}`;
  return `o:${reference.registry}:${scope ?? ""}:${reference.id}`;
}
