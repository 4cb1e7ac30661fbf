/** Lists differences one by one for people: as samples, and on the page that shows all of them. */

import { type RangeColumns, rangeAt } from "#coordinator/place/subnets/range-columns";
import { type Registry, registries, unpackCountry } from "#coordinator/place/subnets/subnet";
import { formatRange } from "#core/ip/range";
import type { Difference, RegistryChange, RegistryCounts, SubnetWords } from "../read/status-api.ts";
import type { FamilyState, RegistryState } from "../tree/registry-state.ts";
import type { CurrentFamily, CurrentTree } from "./current-tree.ts";
import { changeKinds, type FamilyDifference, type TreeDifference } from "./tree-difference.ts";

export function* differencesOf(
  state: RegistryState,
  difference: TreeDifference,
  kind: Difference["kind"],
): Generator<Difference> {
  for (const family of [difference.ipv4, difference.ipv6]) {
    const words = new FamilyWords(state, difference, family);
    if (kind === "removed") {
      for (const row of family.removed) yield words.removed(row);
      continue;
    }
    const wantedKind = changeKinds.indexOf(kind);
    for (
      let place = family.kinds.indexOf(wantedKind);
      place >= 0;
      place = family.kinds.indexOf(wantedKind, place + 1)
    ) {
      yield words.wanted(place, family.rows[place] as number);
    }
  }
}

export function sampleDifferences(
  state: RegistryState,
  difference: TreeDifference,
  limit: number,
): Readonly<Record<Difference["kind"], readonly Difference[]>> {
  const sample = (kind: Difference["kind"]) => first(differencesOf(state, difference, kind), limit);
  const kinds = ["added", "returned", "changed", "moved", "removed"] as const;
  return Object.fromEntries(kinds.map((kind) => [kind, sample(kind)])) as Record<
    Difference["kind"],
    readonly Difference[]
  >;
}

class FamilyWords {
  readonly #state: RegistryState;
  readonly #difference: TreeDifference;
  readonly #family: FamilyDifference;
  #rowById: Int32Array | null = null;

  constructor(state: RegistryState, difference: TreeDifference, family: FamilyDifference) {
    this.#state = state;
    this.#difference = difference;
    this.#family = family;
  }

  removed(row: number): Difference {
    const range = textOf(this.#family.current.columns, row);
    return { kind: "removed", range, before: this.#before(row), after: null };
  }

  /** Describes a wanted subnet that differs. `row` is its row in the current tree, or −1 if it has none. */
  wanted(place: number, row: number): Difference {
    const kind = changeKinds[this.#family.kinds[place] as number] as Difference["kind"];
    const range = textOf(this.#family.wanted.columns, place);
    return { kind, range, before: row < 0 ? null : this.#before(row), after: this.#after(place) };
  }

  #before(row: number): SubnetWords {
    const { current } = this.#family;
    const { texts } = this.#state;
    const holder = current.holderIds[row] as number;
    const parent = current.parentIds[row] as number;
    return {
      holder: holder === 0 ? null : texts.textAt(this.#difference.holders.current.names[holder] as number),
      country: unpackCountry(current.countries[row] as number),
      registry: registries[current.registries[row] as number] ?? "",
      name: texts.textAt(current.names[row] as number),
      under: parent === 0 ? null : textOf(current.columns, this.#rowOf(parent)),
    };
  }

  #after(place: number): SubnetWords {
    const { wanted } = this.#family;
    const { texts, holders } = this.#state;
    const holder = wanted.holders[place] as number;
    const parent = wanted.parents[place] as number;
    return {
      holder: holder < 0 ? null : texts.textAt(holders.nameId(holder)),
      country: unpackCountry(wanted.countries[place] as number),
      registry: registries[wanted.registries[place] as number] ?? "",
      name: texts.textAt(wanted.names[place] as number),
      under: parent < 0 ? null : textOf(wanted.columns, parent),
    };
  }

  #rowOf(id: number): number {
    this.#rowById ??= rowsById(this.#family.current.ids);
    return this.#rowById[id] as number;
  }
}

function rowsById(ids: Int32Array): Int32Array {
  const largest = ids.reduce((most, id) => Math.max(most, id), 0);
  const rows = new Int32Array(largest + 1);
  ids.forEach((id, row) => {
    rows[id] = row;
  });
  return rows;
}

const textOf = (columns: RangeColumns, index: number) => formatRange(rangeAt(columns, index));

function first<T>(values: Generator<T>, limit: number): readonly T[] {
  const found: T[] = [];
  if (limit === 0) return found;
  for (const value of values) if (found.push(value) === limit) break;
  return found;
}

// Breaks down an import's changes by registry and lists the largest ranges.

export interface ChangeBreakdown {
  /** Every registry that has or had a subnet. `added` includes returned subnets. */
  readonly registries: readonly RegistryChange[];
  /** Largest added, removed or changed ranges. IPv4 ranges come before IPv6 ranges. */
  readonly largest: readonly Difference[];
}

export function breakDown(
  state: RegistryState,
  { tree, difference, limit }: { tree: CurrentTree; difference: TreeDifference; limit: number },
): ChangeBreakdown {
  const families = [difference.ipv4, difference.ipv6];
  return {
    registries: registryChanges(
      families,
      countFamilies([tree.ipv4, tree.ipv6].map(rowsOfTree)),
      countFamilies([state.ipv4, state.ipv6].map(rowsOfState)),
    ),
    largest: families.flatMap((family) => largestOf(state, difference, { family, limit })),
  };
}

type Counted = "added" | "removed" | "changed" | "moved";
type Sums = Record<Counted, number>;
const noChanges = (): Sums => ({ added: 0, removed: 0, changed: 0, moved: 0 });

function registryChanges(
  families: readonly FamilyDifference[],
  before: readonly RegistryCounts[],
  after: readonly RegistryCounts[],
): readonly RegistryChange[] {
  const sums = registries.map(noChanges);
  eachChange(families, ({ kind, family, row, place }) => {
    const registry = place < 0 ? family.current.registries[row] : family.wanted.registries[place];
    (sums[registry as number] as Sums)[kind] += 1;
  });
  const countsOf = (counts: readonly RegistryCounts[], registry: Registry) =>
    counts.find((one) => one.registry === registry) ?? null;
  return registries
    .map((registry, index) => ({
      registry,
      before: countsOf(before, registry),
      after: countsOf(after, registry),
      ...(sums[index] as Sums),
    }))
    .filter((change) => change.before !== null || change.after !== null);
}

interface Change {
  readonly kind: Counted;
  readonly family: FamilyDifference;
  readonly row: number;
  readonly place: number;
}

const countedAs: readonly (Counted | null)[] = changeKinds.map((kind) =>
  kind === "unchanged" ? null : kind === "returned" ? "added" : kind,
);

function eachChange(families: readonly FamilyDifference[], visit: (change: Change) => void): void {
  for (const family of families) {
    for (let place = 0; place < family.kinds.length; place += 1) {
      const kind = countedAs[family.kinds[place] as number];
      if (kind) visit({ kind, family, row: family.rows[place] as number, place });
    }
    for (const row of family.removed) visit({ kind: "removed", family, row, place: -1 });
  }
}

function largestOf(
  state: RegistryState,
  difference: TreeDifference,
  { family, limit }: { readonly family: FamilyDifference; readonly limit: number },
): readonly Difference[] {
  const largest: { readonly change: Change; readonly size: number }[] = [];
  eachChange([family], (change) => {
    if (change.kind === "moved") return;
    const size =
      change.place < 0
        ? sizeOf(family.current.columns, change.row)
        : sizeOf(family.wanted.columns, change.place);
    if (largest.length === limit && size <= (largest.at(-1)?.size ?? Number.POSITIVE_INFINITY)) return;
    const at = largest.findIndex((one) => one.size < size);
    largest.splice(at < 0 ? largest.length : at, 0, { change, size });
    if (largest.length > limit) largest.pop();
  });
  const words = new FamilyWords(state, difference, family);
  return largest.map(({ change: { row, place } }) =>
    place < 0 ? words.removed(row) : words.wanted(place, row),
  );
}

/** Approximates the size. The leading bits are enough for a comparison. */
function sizeOf({ words, first, last }: RangeColumns, row: number): number {
  let size = 0;
  for (let word = 0; word < words; word += 1) {
    const at = row * words + word;
    size = size * 0x1_0000_0000 + ((last[at] as number) - (first[at] as number));
  }
  return size;
}

// Counts each registry's subnets, holders, crossing ranges and addresses. An address in several subnets of one registry
// counts once. IPv6 is counted in /48 blocks, the size of one site (RFC 6177).

interface FamilyRows {
  readonly columns: RangeColumns;
  readonly rowAt: (position: number) => number;
  readonly isThere: (row: number) => boolean;
  readonly registries: Uint8Array;
  /** Returns a negative number when the row has no holder. */
  readonly holderOf: (row: number) => number;
  readonly crosses: Uint8Array;
}

function rowsOfState(family: FamilyState): FamilyRows {
  return {
    ...family,
    rowAt: (position) => position,
    isThere: () => true,
    holderOf: (row) => family.holders[row] as number,
  };
}

function rowsOfTree(family: CurrentFamily): FamilyRows {
  return {
    ...family,
    rowAt: (position) => family.order[position] as number,
    isThere: (row) => family.removedIn[row] === 0,
    holderOf: (row) => (family.holderIds[row] as number) - 1,
  };
}

type CountedSums = { -readonly [name in keyof Omit<RegistryCounts, "registry">]: number };

function countFamilies(families: readonly FamilyRows[]): readonly RegistryCounts[] {
  const sums = registries.map(
    (): CountedSums => ({
      ...{ subnets: 0, ipv4Subnets: 0, ipv6Subnets: 0, holders: 0 },
      ...{ crossing: 0, ipv4Addresses: 0, ipv6Slash48s: 0 },
    }),
  );
  for (const family of families) addFamily(sums, family);
  countHolders(sums, families);
  return registries
    .map((registry, index) => ({ registry, ...(sums[index] as CountedSums) }))
    .filter(({ subnets }) => subnets > 0);
}

/** Walks in address order: only what lies beyond the furthest end so far is new. */
function addFamily(sums: readonly CountedSums[], family: FamilyRows): void {
  const isIpv4 = family.columns.family === 4;
  const covered = new Float64Array(registries.length).fill(-1);
  for (let position = 0; position < family.columns.count; position += 1) {
    const row = family.rowAt(position);
    if (!family.isThere(row)) continue;
    const registry = family.registries[row] as number;
    const sum = sums[registry] as CountedSums;
    const first = Math.max(blockOf(family.columns, "first", row), (covered[registry] as number) + 1);
    const last = blockOf(family.columns, "last", row);
    const fresh = Math.max(0, last - first + 1);
    covered[registry] = Math.max(covered[registry] as number, last);
    sum.subnets += 1;
    sum.crossing += family.crosses[row] as number;
    sum[isIpv4 ? "ipv4Subnets" : "ipv6Subnets"] += 1;
    sum[isIpv4 ? "ipv4Addresses" : "ipv6Slash48s"] += fresh;
  }
}

/** Returns the address, or the first 48 bits of an IPv6 address. A double represents either exactly. */
function blockOf(columns: RangeColumns, end: "first" | "last", row: number): number {
  const words = columns[end];
  if (columns.words === 1) return words[row] as number;
  return (words[row * 4] as number) * 0x1_0000 + ((words[row * 4 + 1] as number) >>> 16);
}

/** A holder with subnets of several registries counts for each. */
function countHolders(sums: readonly CountedSums[], families: readonly FamilyRows[]): void {
  const seen = new Map<number, number>();
  for (const family of families) {
    for (let row = 0; row < family.columns.count; row += 1) {
      const holder = family.holderOf(row);
      if (holder < 0 || !family.isThere(row)) continue;
      const bit = 1 << (family.registries[row] as number);
      const known = seen.get(holder) ?? 0;
      if ((known & bit) !== 0) continue;
      seen.set(holder, known | bit);
      (sums[family.registries[row] as number] as CountedSums).holders += 1;
    }
  }
}
