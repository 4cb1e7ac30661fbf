/** Where the changes of an import lie: by registry, by country, and the largest ranges among them. */
import type { RangeColumns } from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import { unpackCountry } from "#coordinator/subnets/subnet-rows";
import type { RegistryState } from "../tree/registry-state.ts";
import type { CurrentTree } from "./current-tree.ts";
import { type Difference, FamilyWords } from "./differences.ts";
import { countState, countTree, type RegistryCounts } from "./registry-counts.ts";
import { changeKinds, type FamilyDifference, type TreeDifference } from "./tree-difference.ts";

export interface RegistryChange {
  readonly registry: Registry;
  /** Null: it has no subnet then. */
  readonly before: RegistryCounts | null;
  readonly after: RegistryCounts | null;
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  readonly moved: number;
}

export interface CountryChange {
  /** Null: the registry states none. */
  readonly country: string | null;
  readonly added: number;
  readonly removed: number;
  /** Changed subnets count for the country that they have afterwards. */
  readonly changed: number;
}

export interface ChangeBreakdown {
  /** Every registry that has or had a subnet. `added` counts those that return, too. */
  readonly registries: readonly RegistryChange[];
  /** The countries with the most changes. */
  readonly countries: readonly CountryChange[];
  /** The largest ranges that are added, removed or changed: first of IPv4, then of IPv6, each by size. */
  readonly largest: readonly Difference[];
}

const countriesShown = 40;

export function breakDown(
  state: RegistryState,
  { tree, difference, limit }: { tree: CurrentTree; difference: TreeDifference; limit: number },
): ChangeBreakdown {
  const families = [difference.ipv4, difference.ipv6];
  return {
    registries: registryChanges(families, countTree(tree), countState(state)),
    countries: countryChanges(families),
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

function countryChanges(families: readonly FamilyDifference[]): readonly CountryChange[] {
  const sums = new Map<number, Sums>();
  eachChange(families, ({ kind, family, row, place }) => {
    if (kind === "moved") return;
    const country = (place < 0 ? family.current.countries[row] : family.wanted.countries[place]) as number;
    const sum = sums.get(country) ?? noChanges();
    sum[kind] += 1;
    sums.set(country, sum);
  });
  const total = ({ added, removed, changed }: Sums) => added + removed + changed;
  return [...sums]
    .sort(([, one], [, other]) => total(other) - total(one))
    .slice(0, countriesShown)
    .map(([country, { added, removed, changed }]) => ({
      country: unpackCountry(country),
      ...{ added, removed, changed },
    }));
}

interface Change {
  readonly kind: Counted;
  readonly family: FamilyDifference;
  /** In the tree in force; −1: it was not there. */
  readonly row: number;
  /** In the wanted state; −1: it is removed. */
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

/** About: to tell which range is larger, the leading bits are enough. */
function sizeOf({ words, first, last }: RangeColumns, row: number): number {
  let size = 0;
  for (let word = 0; word < words; word += 1) {
    const at = row * words + word;
    size = size * 0x1_0000_0000 + ((last[at] as number) - (first[at] as number));
  }
  return size;
}
