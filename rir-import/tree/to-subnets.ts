/**
 * From records to subnets: equal ranges become one (tree/precedence.ts says whose word counts), holders are
 * joined, and the ranges are nested. Crossing ranges are both kept, placed by the rule of subnets/nest,
 * and listed.
 */
import { type Nesting, nest } from "#coordinator/subnets/nest";
import {
  compareWords,
  emptyColumns,
  type RangeColumns,
  rangeAt,
  sortedOrder,
} from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { formatRange } from "#core/ip/range";
import { TextPool, type TextPoolParts } from "#core/text-pool";
import type {
  GeofeedReference,
  HolderBytes,
  HolderReference,
  NetworkRecord,
  OrganisationRecord,
  SourceKind,
} from "../formats/record.ts";
import type { PieceReceiver } from "../read/read-in-pieces.ts";
import { type CandidateParts, CandidateTable, type JoinedTable } from "./candidate-table.ts";
import { HolderReferences, type PendingReferences, type ReferenceParts } from "./holder-references.ts";
import { PendingTexts } from "./pending-texts.ts";
import { rankOf } from "./precedence.ts";
import {
  type DescribedHolders,
  type FamilyState,
  HolderTable,
  type RegistryState,
} from "./registry-state.ts";

const maxCrossingSamples = 1000;
const ianaIndex = registries.indexOf("iana");

/** The state that the records describe. */
export function buildState(store: RecordStore): RegistryState {
  store.finish();
  const { texts } = store;
  const joined = store.references.describe(new HolderTable(texts));
  const ipv4 = buildFamily(store.ipv4, joined, texts);
  const ipv6 = buildFamily(store.ipv6, joined, texts);
  const families = [ipv4, ipv6];
  return {
    ipv4: ipv4.state,
    ipv6: ipv6.state,
    holders: joined.table,
    texts,
    summary: {
      subnets: ipv4.state.columns.count + ipv6.state.columns.count,
      ipv4Subnets: ipv4.state.columns.count,
      ipv6Subnets: ipv6.state.columns.count,
      holders: joined.table.count,
      withoutHolder: sum(families, ({ state }) =>
        state.holders.reduce((count, holder) => count + (holder < 0 ? 1 : 0), 0),
      ),
      duplicates: sum(families, ({ duplicates }) => duplicates),
      deepest: Math.max(...families.map(({ state }) => depthOf(state))),
      crossings: sum(families, ({ crossings }) => crossings.length),
      crossingSamples: families.flatMap(crossingSamples).slice(0, maxCrossingSamples),
    },
  };
}

interface BuiltFamily {
  readonly state: FamilyState;
  readonly duplicates: number;
  readonly crossings: Nesting["crossings"];
}

function buildFamily(table: CandidateTable, joined: DescribedHolders, texts: TextPool): BuiltFamily {
  const columns = table.columns();
  const order = sortedOrder(columns);
  const responsible = responsibleRegistries(table, columns, order);
  const merged = new MergedColumns({ table, joined, emptyName: texts.intern("") });
  for (let from = 0; from < order.length; ) {
    let to = from + 1;
    while (to < order.length && isSameRange(columns, order[from] as number, order[to] as number)) to++;
    if (to - from === 1) merged.addOne(order[from] as number, responsible);
    else merged.add(order.subarray(from, to), responsible);
    from = to;
  }
  const state = merged.state(columns);
  const { parents, crossings } = nest(state.columns);
  const crosses = new Uint8Array(state.columns.count);
  for (const { earlier, later } of crossings) crosses[earlier] = crosses[later] = 1;
  const duplicates = columns.count - state.columns.count;
  return { state: { ...state, parents, crosses }, duplicates, crossings };
}

function isSameRange({ first, last, words }: RangeColumns, i: number, j: number): boolean {
  return compareWords(first, i, first, j, words) === 0 && compareWords(last, i, last, j, words) === 0;
}

/** One row per range, from the best-ranked of its records and, where that is silent, the next. */
class MergedColumns {
  readonly #table: CandidateTable;
  readonly #joined: DescribedHolders;
  readonly #emptyName: number;
  #count = 0;
  readonly #candidates: Int32Array;
  readonly #holders: Int32Array;
  readonly #countries: Uint16Array;
  readonly #registries: Uint8Array;
  readonly #names: Int32Array;

  constructor(from: {
    readonly table: CandidateTable;
    readonly joined: DescribedHolders;
    readonly emptyName: number;
  }) {
    const { count } = from.table;
    this.#table = from.table;
    this.#joined = from.joined;
    this.#emptyName = from.emptyName;
    this.#candidates = new Int32Array(count);
    this.#holders = new Int32Array(count);
    this.#countries = new Uint16Array(count);
    this.#registries = new Uint8Array(count);
    this.#names = new Int32Array(count);
  }

  /** A range that a single record has: nearly all. */
  addOne(candidate: number, responsible: (candidate: number) => Registry | null): void {
    const table = this.#table;
    const holder = this.#joined.indexOf(table.holder(candidate));
    const country = table.country(candidate);
    const at = this.#count++;
    this.#candidates[at] = candidate;
    this.#holders[at] = holder;
    this.#countries[at] = country === 0 && holder >= 0 ? this.#joined.table.country(holder) : country;
    this.#registries[at] = this.#registryOf(candidate, responsible(candidate));
    this.#names[at] = table.name(candidate);
  }

  /** Several records of one range. */
  add(candidates: Int32Array, responsible: (candidate: number) => Registry | null): void {
    const table = this.#table;
    const first = candidates[0] as number;
    const owner = responsible(first);
    const ranked = byRank(table, candidates, owner);
    const best = ranked[0] as number;
    const holder = firstOf(ranked, -1, (at) => this.#joined.indexOf(table.holder(at)));
    const country = firstOf(ranked, 0, (at) => table.country(at));
    const at = this.#count++;
    this.#candidates[at] = first;
    this.#holders[at] = holder;
    this.#countries[at] = country === 0 && holder >= 0 ? this.#joined.table.country(holder) : country;
    this.#registries[at] = this.#registryOf(best, owner);
    this.#names[at] = firstOf(ranked, this.#emptyName, (candidate) => table.name(candidate));
  }

  #registryOf(best: number, owner: Registry | null): number {
    const table = this.#table;
    if (table.source(best) === "iana") return ianaIndex;
    return registries.indexOf(table.registry(best) ?? owner ?? "iana");
  }

  state(source: RangeColumns): Omit<FamilyState, "parents" | "crosses"> {
    const count = this.#count;
    const columns = emptyColumns(source.family, count);
    const { words } = columns;
    for (let at = 0; at < count; at += 1) {
      const candidate = this.#candidates[at] as number;
      for (let word = 0; word < words; word += 1) {
        columns.first[at * words + word] = source.first[candidate * words + word] as number;
        columns.last[at * words + word] = source.last[candidate * words + word] as number;
      }
    }
    return {
      columns,
      holders: this.#holders.subarray(0, count),
      countries: this.#countries.subarray(0, count),
      registries: this.#registries.subarray(0, count),
      names: this.#names.subarray(0, count),
    };
  }
}

function byRank(table: CandidateTable, candidates: Int32Array, responsible: Registry | null): Int32Array {
  const rank = (at: number) =>
    rankOf({ source: table.source(at), registry: table.registry(at), responsible });
  return candidates.slice().sort((a, b) => rank(a) - rank(b) || a - b);
}

/** The first value that says something; `silent` where none does. */
function firstOf(candidates: Int32Array, silent: number, read: (candidate: number) => number): number {
  for (const candidate of candidates) {
    const value = read(candidate);
    if (value !== silent) return value;
  }
  return silent;
}

/** Parents stand before their children, so one pass is enough. */
function depthOf({ parents }: FamilyState): number {
  const depths = new Uint16Array(parents.length);
  let deepest = 0;
  parents.forEach((parent, index) => {
    depths[index] = parent < 0 ? 1 : (depths[parent] as number) + 1;
    deepest = Math.max(deepest, depths[index] as number);
  });
  return deepest;
}

function crossingSamples({ state, crossings }: BuiltFamily) {
  const text = (index: number) => formatRange(rangeAt(state.columns, index));
  return crossings
    .slice(0, maxCrossingSamples)
    .map(({ earlier, later }) => ({ earlier: text(earlier), later: text(later) }));
}

function sum<T>(values: readonly T[], numberOf: (value: T) => number): number {
  return values.reduce((total, value) => total + numberOf(value), 0);
}

// Which registry is responsible for each range: the one whose statistics cover it, else the one that IANA
// gave the block to. One walk over the ranges in order beside the covering ones, which hardly overlap.

const unknown = 255;

/** Gives the responsible registry of a record, by its index; null where neither source covers its range. */
function responsibleRegistries(
  table: CandidateTable,
  columns: RangeColumns,
  order: Int32Array,
): (index: number) => Registry | null {
  const answers = new Uint8Array(columns.count).fill(unknown);
  for (const source of ["iana", "statistics"] as const)
    markCovered({ table, columns, order, source, answers });
  return (index) => registries[answers[index] ?? unknown] ?? null;
}

function markCovered(work: {
  readonly table: CandidateTable;
  readonly columns: RangeColumns;
  readonly order: Int32Array;
  readonly source: SourceKind;
  readonly answers: Uint8Array;
}): void {
  const { table, columns, order, source, answers } = work;
  const covering = order.filter((index) => table.source(index) === source);
  let next = 0;
  /** The latest covering range that starts at or before the current one. */
  let current = -1;
  for (const index of order) {
    while (next < covering.length && startsAtOrBefore(columns, covering[next] as number, index)) {
      current = wider(columns, current, covering[next++] as number);
    }
    if (current < 0 || !endsAtOrBehind(columns, current, index)) continue;
    const registry = table.registry(current);
    if (registry !== null) answers[index] = registries.indexOf(registry);
  }
}

/** Of equal starts the one that ends last; else the later start. */
function wider({ first, last, words }: RangeColumns, current: number, next: number): number {
  if (current < 0 || compareWords(first, current, first, next, words) !== 0) return next;
  return compareWords(last, current, last, next, words) >= 0 ? current : next;
}

const startsAtOrBefore = ({ first, words }: RangeColumns, a: number, b: number) =>
  compareWords(first, a, first, b, words) <= 0;

const endsAtOrBehind = ({ last, words }: RangeColumns, a: number, b: number) =>
  compareWords(last, a, last, b, words) >= 0;

// What the readers yield, kept as columns and bytes until all files are read: networks by family, the ways in
// which they name their holders, organisations. Several threads fill one each; the first absorbs the others
// in the order of their files, and it is as if one had read them all.

export interface RecordParts {
  readonly texts: TextPoolParts;
  readonly references: ReferenceParts;
  readonly ipv4: CandidateParts;
  readonly ipv6: CandidateParts;
  readonly geofeeds: readonly GeofeedReference[];
}

/** Objects beyond these that name geofeeds are read over: some ten thousand do. */
const mostGeofeeds = 500_000;

/** Enough that the waits for memory overlap, few enough that what was read ahead is still in the cache. */
const mostPending = 256;
const none = -1;

export class RecordStore implements PieceReceiver {
  readonly texts = new TextPool();
  readonly references = new HolderReferences(this.texts);
  ipv4 = new CandidateTable(4);
  ipv6 = new CandidateTable(6);
  /** In no order. */
  readonly geofeeds: GeofeedReference[] = [];
  /** Of records whose texts wait to be interned: the row (its complement for IPv6) and the numbers of texts, or −1. */
  readonly #pending = new PendingTexts(3 * mostPending);
  #pendingCount = 0;
  readonly #rows = new Int32Array(mostPending);
  readonly #names = new Int32Array(mostPending);
  readonly #contexts = new Int32Array(mostPending);
  readonly #holders = new Int32Array(mostPending);
  readonly #ownNames = new Int32Array(mostPending);
  readonly #pendingReferences: PendingReferences = {
    contexts: new Int32Array(mostPending),
    texts: new Int32Array(mostPending),
    ownNames: new Int32Array(mostPending),
    indexes: new Int32Array(mostPending),
  };

  /** What is added from now on is of this piece: a file, or a part of one. The smaller number counts as read first. */
  begin(piece: number): void {
    this.finish();
    this.references.begin(piece);
    this.ipv4.begin(piece);
    this.ipv6.begin(piece);
  }

  addNetwork(record: NetworkRecord, file: string): void {
    // Asked first: an IPv6 record makes its `range` of big integers only when that is read.
    const isIpv6 = (record.ipv6Words ?? null) !== null || record.range.family === 6;
    const table = isIpv6 ? this.ipv6 : this.ipv4;
    const { nameBytes: name = null, holderBytes = null } = record;
    const pending = this.#pending;
    const at = this.#pendingCount++;
    this.#rows[at] = isIpv6 ? ~table.count : table.count;
    this.#names[at] = name === null ? pending.addText(record.name) : pending.add(name);
    if (holderBytes === null) this.#addHolder(at, record.holder, file);
    else this.#addHolderBytes(at, holderBytes, file);
    table.add(record);
    const url = record.geofeed ?? null;
    // The range that a record gives may be the next one's, too.
    if (url !== null && this.geofeeds.length < mostGeofeeds)
      this.geofeeds.push({ url, range: { ...record.range } });
    if (this.#pendingCount === mostPending) this.finish();
  }

  #addHolderBytes(at: number, holder: HolderBytes, file: string): void {
    const pending = this.#pending;
    this.#contexts[at] = this.references.contextOf(holder, file);
    this.#holders[at] = pending.add(holder.text);
    this.#ownNames[at] = holder.ownName === null ? none : pending.add(holder.ownName);
  }

  #addHolder(at: number, holder: HolderReference | null, file: string): void {
    const pending = this.#pending;
    this.#holders[at] = holder === null ? none : pending.addText(textOf(holder));
    this.#contexts[at] = holder === null ? none : this.references.contextOf(holder, file);
    const ownName = holder?.type === "handle" ? holder.name : null;
    this.#ownNames[at] = ownName === null ? none : pending.addText(ownName);
  }

  /** Interns the texts that wait for it. */
  finish(): void {
    const count = this.#pendingCount;
    if (count === 0) return;
    this.#pendingCount = 0;
    const ids = this.#pending.intern(this.texts);
    this.#finishHolders(count, ids);
    for (let at = 0; at < count; at += 1) {
      const row = this.#rows[at] as number;
      const table = row < 0 ? this.ipv6 : this.ipv4;
      const name = ids[this.#names[at] as number] as number;
      table.setTexts(row < 0 ? ~row : row, this.#holders[at] as number, name);
    }
  }

  /** From the numbers of texts to the indexes of references. */
  #finishHolders(count: number, ids: Int32Array): void {
    const { contexts, texts, ownNames } = this.#pendingReferences;
    let held = 0;
    for (let at = 0; at < count; at += 1) {
      const text = this.#holders[at] as number;
      if (text === none) continue;
      const ownName = this.#ownNames[at] as number;
      contexts[held] = this.#contexts[at] as number;
      texts[held] = ids[text] as number;
      ownNames[held++] = ownName === none ? none : (ids[ownName] as number);
    }
    const indexes = this.references.indexMany(this.#pendingReferences, held);
    let next = 0;
    for (let at = 0; at < count; at += 1)
      if (this.#holders[at] !== none) this.#holders[at] = indexes[next++] as number;
  }

  addOrganisation(record: OrganisationRecord): void {
    this.references.addOrganisation(record);
  }

  /** Without a copy: valid until the next record. */
  parts(): RecordParts {
    this.finish();
    return {
      texts: this.texts.parts(),
      references: this.references.parts(),
      ipv4: this.ipv4.parts(),
      ipv6: this.ipv6.parts(),
      geofeeds: this.geofeeds,
    };
  }

  /** Takes over what other threads read; each is let go of as soon as its texts are here. */
  absorb(others: RecordParts[]): void {
    this.finish();
    const ipv4: JoinedTable[] = [{ parts: this.ipv4.parts(), holders: null, names: null }];
    const ipv6: JoinedTable[] = [{ parts: this.ipv6.parts(), holders: null, names: null }];
    for (let other = others.shift(); other !== undefined; other = others.shift()) {
      const names = this.texts.absorb(other.texts);
      const holders = this.references.absorb(other.references, names);
      ipv4.push({ parts: other.ipv4, holders, names });
      ipv6.push({ parts: other.ipv6, holders, names });
      for (const geofeed of other.geofeeds) this.geofeeds.push(geofeed);
    }
    this.ipv4 = CandidateTable.joined(4, ipv4);
    this.ipv6 = CandidateTable.joined(6, ipv6);
  }
}

function textOf(reference: HolderReference): string {
  if (reference.type === "handle") return reference.handle;
  return reference.type === "name" ? reference.name : reference.id;
}
