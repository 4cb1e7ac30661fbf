/**
 * From records to subnets: equal ranges become one (tree/precedence.ts says whose word counts), holders are
 * joined, and the ranges are nested. Crossing ranges are both kept, placed by the rule of core/subnet/nest,
 * and listed.
 */
import { formatRange } from "#core/ip/range";
import { type Nesting, nest } from "#core/subnet/nest";
import {
  compareWords,
  emptyColumns,
  type RangeColumns,
  rangeAt,
  sortedOrder,
} from "#core/subnet/range-columns";
import type { Registry } from "#core/subnet/subnet";
import type { NetworkRecord, OrganisationRecord } from "../formats/record.ts";
import { CandidateTable } from "./candidate-table.ts";
import { HolderReferences, type ResolvedHolder } from "./holder-references.ts";
import { rankOf } from "./precedence.ts";
import type { FamilyState, RegistryState } from "./registry-state.ts";
import { responsibleRegistries } from "./responsible-registry.ts";

const maxCrossingSamples = 50;

/** Takes the records of all files, then builds the state they describe. */
export class SubnetBuilder {
  readonly #ipv4 = new CandidateTable(4);
  readonly #ipv6 = new CandidateTable(6);
  readonly #references = new HolderReferences();

  get organisationCount(): number {
    return this.#references.organisationCount;
  }

  addNetwork(record: NetworkRecord, file: string): void {
    const table = record.range.family === 4 ? this.#ipv4 : this.#ipv6;
    table.add(record, this.#references.indexOf(record.holder, file));
  }

  addOrganisation(record: OrganisationRecord): void {
    this.#references.addOrganisation(record);
  }

  build(): RegistryState {
    const holders = new HolderList(this.#references);
    const ipv4 = buildFamily(this.#ipv4, holders);
    const ipv6 = buildFamily(this.#ipv6, holders);
    const families = [ipv4, ipv6];
    return {
      ipv4: ipv4.state,
      ipv6: ipv6.state,
      holders: holders.list,
      summary: {
        subnets: ipv4.state.columns.count + ipv6.state.columns.count,
        ipv4Subnets: ipv4.state.columns.count,
        ipv6Subnets: ipv6.state.columns.count,
        holders: holders.list.length,
        withoutHolder: sum(families, ({ state }) =>
          state.holders.reduce((count, holder) => count + (holder < 0 ? 1 : 0), 0),
        ),
        duplicates: sum(families, ({ duplicates }) => duplicates),
        deepest: Math.max(...families.map(({ state }) => depthOf(state.parents))),
        crossings: sum(families, ({ crossings }) => crossings.length),
        crossingSamples: families.flatMap(crossingSamples).slice(0, maxCrossingSamples),
      },
    };
  }
}

/** Holders in the order in which subnets name them; references that come to one key are one holder. */
class HolderList {
  readonly list: ResolvedHolder[] = [];
  readonly #references: HolderReferences;
  readonly #indexByReference = new Map<number, number>();
  readonly #indexByKey = new Map<string, number>();

  constructor(references: HolderReferences) {
    this.#references = references;
  }

  /** The holder's index for a reference's, or −1. */
  indexOf(reference: number): number {
    if (reference < 0) return -1;
    const known = this.#indexByReference.get(reference);
    if (known !== undefined) return known;
    const index = this.#add(this.#references.resolve(reference));
    this.#indexByReference.set(reference, index);
    return index;
  }

  #add(holder: ResolvedHolder | null): number {
    if (holder === null) return -1;
    const known = this.#indexByKey.get(holder.key);
    if (known !== undefined) return known;
    this.#indexByKey.set(holder.key, this.list.length);
    return this.list.push(holder) - 1;
  }
}

interface BuiltFamily {
  readonly state: FamilyState;
  readonly duplicates: number;
  readonly crossings: Nesting["crossings"];
}

function buildFamily(table: CandidateTable, holders: HolderList): BuiltFamily {
  const columns = table.columns();
  const order = sortedOrder(columns);
  const responsible = responsibleRegistries(table, columns, order);
  const merged = new MergedColumns(table, holders);
  for (let from = 0; from < order.length; ) {
    let to = from + 1;
    while (to < order.length && isSameRange(columns, order[from] as number, order[to] as number)) to++;
    merged.add(order.subarray(from, to), responsible);
    from = to;
  }
  const state = merged.state(columns);
  const { parents, crossings } = nest(state.columns);
  return { state: { ...state, parents }, duplicates: columns.count - state.columns.count, crossings };
}

function isSameRange({ first, last, words }: RangeColumns, i: number, j: number): boolean {
  return compareWords(first, i, first, j, words) === 0 && compareWords(last, i, last, j, words) === 0;
}

/** One row per range, from the best-ranked of its records and, where that is silent, the next. */
class MergedColumns {
  readonly #table: CandidateTable;
  readonly #holders: HolderList;
  readonly #candidates: number[] = [];
  readonly #holderIndexes: number[] = [];
  readonly #countries: (string | null)[] = [];
  readonly #registries: Registry[] = [];
  readonly #names: string[] = [];

  constructor(table: CandidateTable, holders: HolderList) {
    this.#table = table;
    this.#holders = holders;
  }

  add(candidates: Int32Array, responsible: (candidate: number) => Registry | null): void {
    const table = this.#table;
    const first = candidates[0] as number;
    const owner = responsible(first);
    const ranked = candidates.length === 1 ? [first] : byRank(table, candidates, owner);
    const best = ranked[0] as number;
    const holder = this.#holderOf(ranked);
    this.#candidates.push(first);
    this.#holderIndexes.push(holder);
    this.#countries.push(
      firstOf(ranked, (at) => table.country(at)) ?? this.#holders.list[holder]?.country ?? null,
    );
    this.#registries.push(table.source(best) === "iana" ? "iana" : (table.registry(best) ?? owner ?? "iana"));
    this.#names.push(firstOf(ranked, (at) => table.name(at) || null) ?? "");
  }

  #holderOf(ranked: readonly number[]): number {
    return (
      firstOf(ranked, (at) => {
        const index = this.#holders.indexOf(this.#table.holder(at));
        return index < 0 ? null : index;
      }) ?? -1
    );
  }

  state(source: RangeColumns): FamilyState {
    const columns = emptyColumns(source.family, this.#candidates.length);
    const { words } = columns;
    this.#candidates.forEach((candidate, index) => {
      for (let word = 0; word < words; word++) {
        columns.first[index * words + word] = source.first[candidate * words + word] as number;
        columns.last[index * words + word] = source.last[candidate * words + word] as number;
      }
    });
    return {
      columns,
      parents: new Int32Array(0),
      holders: Int32Array.from(this.#holderIndexes),
      countries: this.#countries,
      registries: this.#registries,
      names: this.#names,
    };
  }
}

function byRank(
  table: CandidateTable,
  candidates: Int32Array,
  responsible: Registry | null,
): readonly number[] {
  const rank = (at: number) =>
    rankOf({ source: table.source(at), registry: table.registry(at), responsible });
  return [...candidates].sort((a, b) => rank(a) - rank(b) || a - b);
}

function firstOf<T>(candidates: readonly number[], read: (candidate: number) => T | null): T | null {
  for (const candidate of candidates) {
    const value = read(candidate);
    if (value !== null) return value;
  }
  return null;
}

/** Parents stand before their children, so one pass is enough. */
function depthOf(parents: Int32Array): number {
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
