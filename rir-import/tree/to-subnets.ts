/**
 * Builds subnets from records: equal ranges are merged (tree/precedence.ts decides how), holders joined, and ranges
 * nested. Crossing ranges are all kept, listed, and nested by the rule of subnets/nest.
 */
import { type Nesting, nest } from "#coordinator/place/subnets/nest";
import {
  compareWords,
  emptyColumns,
  type RangeColumns,
  rangeAt,
  sortedOrder,
  writeRange,
} from "#coordinator/place/subnets/range-columns";
import { packCountry, type Registry, registries } from "#coordinator/place/subnets/subnet";
import { formatRange } from "#core/ip/range";
import { TextPool } from "#core/text-pool";
import type { GeofeedReference, NetworkRecord, OrganisationRecord, SourceKind } from "../formats/record.ts";
import type { RecordReceiver } from "../read/read-sources.ts";
import { rankOf } from "./precedence.ts";
import { type FamilyState, HolderReferences, HolderTable, type RegistryState } from "./registry-state.ts";

/**
 * Maximum number of ranges that cross at one address. Registry files have a handful. With 1000, each range costs 20 µs,
 * so ten million take minutes.
 */
const mostTangled = 1000;
const maxCrossingSamples = 1000;
const ianaIndex = registries.indexOf("iana");

/** Throws TangledRanges when more ranges cross at one place than in any registry. */
export function buildState(store: RecordStore): RegistryState {
  const { texts } = store;
  const table = new HolderTable(texts);
  const joined = { table, indexOf: store.references.joined(table) };
  const ipv4 = buildFamily(store.ipv4, joined, texts);
  const ipv6 = buildFamily(store.ipv6, joined, texts);
  const families = [ipv4, ipv6];
  return {
    ipv4: ipv4.state,
    ipv6: ipv6.state,
    holders: table,
    texts,
    summary: {
      subnets: ipv4.state.columns.count + ipv6.state.columns.count,
      ipv4Subnets: ipv4.state.columns.count,
      ipv6Subnets: ipv6.state.columns.count,
      holders: table.count,
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

interface JoinedHolders {
  readonly table: HolderTable;
  indexOf(reference: number): number;
}

interface BuiltFamily {
  readonly state: FamilyState;
  readonly duplicates: number;
  readonly crossings: Nesting["crossings"];
}

function buildFamily(table: CandidateTable, joined: JoinedHolders, texts: TextPool): BuiltFamily {
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
  const { parents, crossings } = nest(state.columns, mostTangled);
  const crosses = new Uint8Array(state.columns.count);
  for (const { earlier, later } of crossings) crosses[earlier] = crosses[later] = 1;
  const duplicates = columns.count - state.columns.count;
  return { state: { ...state, parents, crosses }, duplicates, crossings };
}

function isSameRange({ first, last, words }: RangeColumns, i: number, j: number): boolean {
  return compareWords(first, i, first, j, words) === 0 && compareWords(last, i, last, j, words) === 0;
}

/** Has one row per range: the fields of its best-ranked record, and missing fields from the next. */
class MergedColumns {
  readonly #table: CandidateTable;
  readonly #joined: JoinedHolders;
  readonly #emptyName: number;
  #count = 0;
  readonly #candidates: Int32Array;
  readonly #holders: Int32Array;
  readonly #countries: Uint16Array;
  readonly #registries: Uint8Array;
  readonly #names: Int32Array;

  constructor(from: {
    readonly table: CandidateTable;
    readonly joined: JoinedHolders;
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

function firstOf(candidates: Int32Array, silent: number, read: (candidate: number) => number): number {
  for (const candidate of candidates) {
    const value = read(candidate);
    if (value !== silent) return value;
  }
  return silent;
}

/** Parents precede their children, so one pass suffices. */
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

// Determines the responsible registry of each range: the one whose statistics cover it, else the one of IANA's
// assignment. Walks the ordered ranges alongside the covering ones, which hardly overlap.

const unknown = 255;

/** Returns the responsible registry of a record by index, or null when neither source covers its range. */
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

/** Prefers the later start and, of equal starts, the later end. */
function wider({ first, last, words }: RangeColumns, current: number, next: number): number {
  if (current < 0 || compareWords(first, current, first, next, words) !== 0) return next;
  return compareWords(last, current, last, next, words) >= 0 ? current : next;
}

const startsAtOrBefore = ({ first, words }: RangeColumns, a: number, b: number) =>
  compareWords(first, a, first, b, words) <= 0;

const endsAtOrBehind = ({ last, words }: RangeColumns, a: number, b: number) =>
  compareWords(last, a, last, b, words) >= 0;

/** Objects that name geofeeds beyond this number are ignored. Some ten thousand exist. */
const mostGeofeeds = 500_000;

export class RecordStore implements RecordReceiver {
  readonly texts = new TextPool();
  readonly references = new HolderReferences(this.texts);
  readonly ipv4 = new CandidateTable(4);
  readonly ipv6 = new CandidateTable(6);
  readonly geofeeds: GeofeedReference[] = [];

  addNetwork(record: NetworkRecord, file: string): void {
    const { range, holder, geofeed } = record;
    (range.family === 4 ? this.ipv4 : this.ipv6).add(record, {
      holder: holder === null ? -1 : this.references.indexOf(holder, file),
      name: this.texts.intern(record.name),
    });
    if (geofeed && this.geofeeds.length < mostGeofeeds) this.geofeeds.push({ url: geofeed, range });
  }

  addOrganisation(record: OrganisationRecord): void {
    this.references.addOrganisation(record);
  }
}

// Network records of one family before they are merged, in growing flat columns. A record takes tens of bytes instead
// of an object, so that ten million fit into memory.

const sourceKinds: readonly SourceKind[] = ["whois", "statistics", "iana"];
const noRegistry = 255;

class CandidateTable {
  readonly family: 4 | 6;
  count = 0;
  #columns: RangeColumns;
  #holders = new Int32Array(0);
  #countries = new Uint16Array(0);
  #registries = new Uint8Array(0);
  #sources = new Uint8Array(0);
  #names = new Int32Array(0);

  constructor(family: 4 | 6) {
    this.family = family;
    this.#columns = emptyColumns(family, 0);
  }

  /** `holder` is an index of a holder reference, or −1. `name` is an id in the import's texts. */
  add(record: NetworkRecord, { holder, name }: { readonly holder: number; readonly name: number }): void {
    if (this.count === this.#holders.length) this.#grow(Math.max(1024, this.count * 2));
    const index = this.count++;
    writeRange(this.#columns, index, record.range);
    this.#holders[index] = holder;
    this.#countries[index] = packCountry(record.country);
    this.#registries[index] = record.registry === null ? noRegistry : registries.indexOf(record.registry);
    this.#sources[index] = sourceKinds.indexOf(record.source);
    this.#names[index] = name;
  }

  columns(): RangeColumns {
    const { family, words, first, last } = this.#columns;
    const length = this.count * words;
    return {
      family,
      words,
      count: this.count,
      first: first.subarray(0, length),
      last: last.subarray(0, length),
    };
  }

  holder(index: number): number {
    return this.#holders[index] ?? -1;
  }

  country(index: number): number {
    return this.#countries[index] ?? 0;
  }

  registry(index: number): Registry | null {
    return registries[this.#registries[index] ?? noRegistry] ?? null;
  }

  source(index: number): SourceKind {
    return sourceKinds[this.#sources[index] ?? 0] ?? "whois";
  }

  name(index: number): number {
    return this.#names[index] ?? 0;
  }

  #grow(capacity: number): void {
    const columns = emptyColumns(this.family, capacity);
    columns.first.set(this.#columns.first);
    columns.last.set(this.#columns.last);
    this.#columns = columns;
    this.#holders = grown(this.#holders, new Int32Array(capacity));
    this.#countries = grown(this.#countries, new Uint16Array(capacity));
    this.#registries = grown(this.#registries, new Uint8Array(capacity));
    this.#sources = grown(this.#sources, new Uint8Array(capacity));
    this.#names = grown(this.#names, new Int32Array(capacity));
  }
}

function grown<Column extends { set(values: Column): void }>(old: Column, larger: Column): Column {
  larger.set(old);
  return larger;
}
