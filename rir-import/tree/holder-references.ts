/**
 * The ways in which records name their holders, each once, and the organisations that were read. After the
 * last file every reference is joined with its organisation and becomes a holder: by handle, by opaque-id,
 * only then by name. Kept as bytes, not as objects: a registry has millions of both.
 *
 * ARIN gives every reassignment to a customer a handle of its own (C01234567), so a customer with several
 * ranges has several. Such a customer is known by its parent's handle together with its name instead.
 */
import { type HolderSource, holderOf } from "#coordinator/subnets/holder-name";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { packCountry, unpackCountry } from "#coordinator/subnets/subnet-rows";
import { GrowingColumn, type TextPool } from "#core/text-pool";
import type { HolderBytes, HolderReference, OrganisationRecord } from "../formats/record.ts";
import { PairIndex, type PairParts } from "./pair-index.ts";
import { DescribedHolders, type HolderTable, type ResolvedHolder } from "./registry-state.ts";

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
  readonly contextPieces: readonly number[];
  readonly references: PairParts;
  readonly ownNames: Int32Array;
  readonly referencePieces: Float64Array;
  readonly organisations: PairParts;
  readonly organisationNames: Int32Array;
  readonly organisationCountries: Uint16Array;
  readonly organisationParents: Int32Array;
  readonly organisationPieces: Float64Array;
}

/** References as they come, each by its context, its text and the name beside it (or −1). */
export interface PendingReferences {
  readonly contexts: Int32Array;
  readonly texts: Int32Array;
  readonly ownNames: Int32Array;
  /** What comes of them. */
  readonly indexes: Int32Array;
}

const int32 = (length: number) => new Int32Array(length);
const uint16 = (length: number) => new Uint16Array(length);
const float64 = (length: number) => new Float64Array(length);
const none = -1;

export class HolderReferences {
  readonly #texts: TextPool;
  /** The piece (a file, or a part of one) that is read now; of two records the one in the earlier piece counts. */
  #piece = 0;
  /** True where a piece was read behind a later one: only then the first seen need not be the first. */
  #isOutOfOrder = false;
  readonly #contexts: Context[] = [];
  /** The first piece with that context. */
  readonly #contextPieces: number[] = [];
  readonly #contextByKey = new Map<string, number>();
  /** Contexts by type, registry and country, where that is all there is to them. */
  readonly #plainContexts = new Map<number, number>();
  /** What most references have in common with the one before. */
  #latest: { readonly context: Context; readonly index: number } | null = null;
  /** References as pairs of a context and the text's id. */
  readonly #references = new PairIndex();
  /** The name that the first record with this reference gave beside the handle, or `none`. */
  readonly #ownNames = new GrowingColumn(int32);
  readonly #referencePieces = new GrowingColumn(float64);
  /** Organisations as pairs of a registry and the handle's id among the texts. */
  readonly #organisations = new PairIndex();
  readonly #organisationNames = new GrowingColumn(int32);
  readonly #organisationCountries = new GrowingColumn(uint16);
  readonly #organisationParents = new GrowingColumn(int32);
  readonly #organisationPieces = new GrowingColumn(float64);
  #filesOfRegistry = { count: 0, files: new Map<string | null, readonly string[]>() };

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

  /** What is added from now on belongs to this piece. */
  begin(piece: number): void {
    if (piece < this.#piece) this.#isOutOfOrder = true;
    this.#piece = piece;
    this.#latest = null;
  }

  /** Of two organisations with one handle the first counts. */
  addOrganisation({ registry, handle, name, country, parentHandle }: OrganisationRecord): void {
    const texts = this.#texts;
    const index = this.#organisations.intern(registryNumber(registry), texts.intern(handle));
    const isNew = index === this.#organisationNames.length;
    if (!isNew && !(this.#isOutOfOrder && this.#piece < this.#organisationPieces.at(index))) return;
    this.#setOrganisation(index, {
      name: texts.intern(name),
      country: packCountry(country),
      parent: parentHandle ? texts.intern(parentHandle) : none,
      piece: this.#piece,
    });
  }

  #setOrganisation(
    index: number,
    organisation: { name: number; country: number; parent: number; piece: number },
  ): void {
    this.#organisationNames.set(index, organisation.name);
    this.#organisationCountries.set(index, organisation.country);
    this.#organisationParents.set(index, organisation.parent);
    this.#organisationPieces.set(index, organisation.piece);
  }

  parts(): ReferenceParts {
    return {
      contexts: this.#contexts,
      contextPieces: this.#contextPieces,
      references: this.#references.parts(),
      ownNames: this.#ownNames.values(),
      referencePieces: this.#referencePieces.values(),
      organisations: this.#organisations.parts(),
      organisationNames: this.#organisationNames.values(),
      organisationCountries: this.#organisationCountries.values(),
      organisationParents: this.#organisationParents.values(),
      organisationPieces: this.#organisationPieces.values(),
    };
  }

  /**
   * Takes over what another thread read; `texts` gives the id here of each text there. Returns the index here of
   * each reference there.
   */
  absorb(parts: ReferenceParts, texts: Int32Array): Int32Array {
    const textHere = (text: number) => (text === none ? none : (texts[text] as number));
    const contexts = parts.contexts.map((context, at) =>
      this.#indexOfContext(context, parts.contextPieces[at] as number),
    );
    const { firsts, seconds } = parts.references;
    const indexes = new Int32Array(firsts.length);
    this.#references.internMany(
      firsts.map((context) => contexts[context] as number),
      seconds.map(textHere),
      indexes,
      indexes.length,
    );
    indexes.forEach((index, reference) => {
      const piece = parts.referencePieces[reference] as number;
      if (index >= this.#ownNames.length || piece < this.#referencePieces.at(index))
        this.#setReference(index, textHere(parts.ownNames[reference] as number), piece);
    });
    parts.organisations.firsts.forEach((registry, at) => {
      const handle = textHere(parts.organisations.seconds[at] as number);
      const index = this.#organisations.intern(registry, handle);
      const piece = parts.organisationPieces[at] as number;
      if (index < this.#organisationNames.length && piece >= this.#organisationPieces.at(index)) return;
      this.#setOrganisation(index, {
        name: textHere(parts.organisationNames[at] as number),
        country: parts.organisationCountries[at] as number,
        parent: textHere(parts.organisationParents[at] as number),
        piece,
      });
    });
    return indexes;
  }

  #setReference(index: number, ownName: number, piece: number): void {
    this.#ownNames.set(index, ownName);
    this.#referencePieces.set(index, piece);
  }

  /** Gives the index of each of the first `count` references, in their order; the same for the same reference. */
  indexMany({ contexts, texts, ownNames, indexes }: PendingReferences, count: number): Int32Array {
    this.#references.internMany(contexts, texts, indexes, count);
    for (let at = 0; at < count; at += 1) {
      const index = indexes[at] as number;
      if (this.#isFirst(index)) this.#setReference(index, ownNames[at] as number, this.#piece);
    }
    return indexes;
  }

  #isFirst(index: number): boolean {
    if (index >= this.#ownNames.length) return true;
    return this.#isOutOfOrder && this.#piece < this.#referencePieces.at(index);
  }

  /** Which holder each reference means, and what it says of it. */
  describe(table: HolderTable): DescribedHolders {
    const described = new DescribedHolders(this.count, table);
    for (let index = 0; index < this.count; index += 1) {
      const holder = this.resolve(index);
      if (holder !== null) described.set(index, table.interned(holder));
    }
    return described;
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

  /** The number of all that a reference is but its texts. */
  contextOf(reference: HolderReference | HolderBytes, file: string): number {
    const { type, registry } = reference;
    const country = reference.type === "name" ? reference.country : null;
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
    this.#latest = { context, index: this.#indexOf(context) };
    return this.#latest.index;
  }

  #indexOf(context: Context): number {
    if (context.file !== null) return this.#indexOfContext(context, this.#piece);
    const { type, registry, country } = context;
    const key =
      ((registryNumber(registry) + 1) * 2 + (type === "name" ? 1 : 0)) * 0x10000 + packCountry(country);
    const known = this.#plainContexts.get(key);
    if (known !== undefined) return known;
    const index = this.#indexOfContext(context, this.#piece);
    this.#plainContexts.set(key, index);
    return index;
  }

  #indexOfContext(context: Context, piece: number): number {
    const { type, registry, country, file } = context;
    const key = JSON.stringify([type, registry, country, file]);
    const known = this.#contextByKey.get(key);
    if (known !== undefined) {
      this.#contextPieces[known] = Math.min(this.#contextPieces[known] as number, piece);
      return known;
    }
    this.#contextByKey.set(key, this.#contexts.length);
    this.#contextPieces.push(piece);
    return this.#contexts.push(context) - 1;
  }

  /**
   * Opaque-ids mean something within one file only. Empty for a registry's first file, so that ids stay the
   * same from import to import; then @2, @3 …
   */
  #scopeOf(registry: string | null, file: string | null): string {
    const position = this.#filesOf(registry).indexOf(file ?? "");
    return position <= 0 ? "" : `@${position + 1}`;
  }

  /** The files with opaque-ids of a registry, in the order in which they come. */
  #filesOf(registry: string | null): readonly string[] {
    if (this.#filesOfRegistry.count !== this.#contexts.length) {
      this.#filesOfRegistry = { count: this.#contexts.length, files: new Map() };
    }
    const { files } = this.#filesOfRegistry;
    const known = files.get(registry);
    if (known !== undefined) return known;
    const found = this.#contexts
      .map((context, index) => ({ ...context, piece: this.#contextPieces[index] as number }))
      .filter((context) => context.registry === registry && context.file !== null)
      .sort((a, b) => a.piece - b.piece)
      .map(({ file }) => file as string);
    files.set(registry, found);
    return found;
  }
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
  return { key, name, handle, registry: (source.registry ?? null) as Registry | null, country };
}
