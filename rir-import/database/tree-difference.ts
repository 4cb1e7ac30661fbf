/**
 * What an import changes, found in memory: one walk over the wanted ranges beside those of the database,
 * both in the order of the tree. Every wanted subnet gets its id here; a range that was there before, even
 * one that was removed since, keeps the id that it had.
 */
import { compareWords, type RangeColumns } from "#coordinator/subnets/range-columns";
import type { FamilyState, RegistryState } from "../tree/registry-state.ts";
import type { CurrentFamily, CurrentHolders, CurrentTree } from "./current-tree.ts";
import { compareHolders, type HolderDifference } from "./holder-difference.ts";

/** What becomes of a wanted subnet, by its number in `FamilyDifference.kinds`. */
export const changeKinds = ["unchanged", "added", "returned", "changed", "moved"] as const;
export type ChangeKind = (typeof changeKinds)[number];
const [unchanged, added, returned, changed, moved] = [0, 1, 2, 3, 4];

export interface FamilyDifference {
  readonly wanted: FamilyState;
  readonly current: CurrentFamily;
  /** For each wanted subnet: its id, what becomes of it, and the row of `current` it stands in, or −1. */
  readonly ids: Int32Array;
  readonly kinds: Uint8Array;
  readonly rows: Int32Array;
  /** Rows of `current` that are in force and not wanted, in the order of the tree. */
  readonly removed: Int32Array;
}

export interface TreeDifference {
  readonly ipv4: FamilyDifference;
  readonly ipv6: FamilyDifference;
  readonly holders: HolderDifference;
  readonly counts: ChangeCounts;
}

export interface ChangeCounts {
  readonly added: number;
  /** Was there once, was removed, and is back: keeps its old id and delegation. */
  readonly returned: number;
  /** Holder, country, registry or name is another. */
  readonly changed: number;
  /** Only its place in the tree is another: the less specific subnet above it, or what it crosses. */
  readonly moved: number;
  readonly removed: number;
  readonly unchanged: number;
}

export function compareTrees(
  state: RegistryState,
  tree: CurrentTree,
  currentHolders: CurrentHolders,
): TreeDifference {
  const holders = compareHolders(state.holders, currentHolders);
  const [ipv4, nextId] = compareFamily(state.ipv4, tree.ipv4, holders, tree.largestId + 1);
  const [ipv6] = compareFamily(state.ipv6, tree.ipv6, holders, nextId);
  return { ipv4, ipv6, holders, counts: countsOf([ipv4, ipv6]) };
}

/** The difference, and the next id that is free. */
function compareFamily(
  wanted: FamilyState,
  current: CurrentFamily,
  holders: HolderDifference,
  firstNewId: number,
): readonly [FamilyDifference, number] {
  const { nextId, ...matched } = matchRanges(wanted, current, firstNewId);
  const kinds = kindsOf(wanted, current, matched, holders);
  return [{ wanted, current, ...matched, kinds }, nextId];
}

type Matched = Pick<FamilyDifference, "ids" | "rows" | "removed">;

function matchRanges(
  wanted: FamilyState,
  current: CurrentFamily,
  firstNewId: number,
): Matched & { readonly nextId: number } {
  const { count } = wanted.columns;
  const ids = new Int32Array(count);
  const rows = new Int32Array(count).fill(-1);
  const removed = new Int32Array(current.columns.count);
  let removals = 0;
  let nextId = firstNewId;
  let at = 0;
  const passOver = (row: number) => {
    if (current.removedIn[row] === 0) removed[removals++] = row;
  };
  for (let place = 0; place < count; place += 1) {
    let order = -1;
    while (at < current.order.length) {
      order = compareRanges(current.columns, current.order[at] as number, wanted.columns, place);
      if (order >= 0) break;
      passOver(current.order[at++] as number);
    }
    const row = order === 0 && at < current.order.length ? (current.order[at++] as number) : -1;
    rows[place] = row;
    ids[place] = row < 0 ? nextId++ : (current.ids[row] as number);
  }
  for (; at < current.order.length; at += 1) passOver(current.order[at] as number);
  return { ids, rows, removed: removed.slice(0, removals), nextId };
}

/** In the order of the tree: by first address, the widest first. */
function compareRanges(a: RangeColumns, i: number, b: RangeColumns, j: number): number {
  return compareWords(a.first, i, b.first, j, a.words) || compareWords(b.last, j, a.last, i, a.words);
}

function kindsOf(
  wanted: FamilyState,
  current: CurrentFamily,
  { ids, rows }: Matched,
  holders: HolderDifference,
): Uint8Array {
  return Uint8Array.from(rows, (row, place) => {
    if (row < 0) return added as number;
    if (current.removedIn[row] !== 0) return returned as number;
    const holder = wanted.holders[place] as number;
    const isSame =
      current.countries[row] === wanted.countries[place] &&
      current.registries[row] === wanted.registries[place] &&
      current.names[row] === wanted.names[place] &&
      current.holderIds[row] === (holder < 0 ? 0 : holders.ids[holder]);
    if (!isSame) return changed as number;
    const parent = wanted.parents[place] as number;
    const isPlaced =
      current.parentIds[row] === (parent < 0 ? 0 : ids[parent]) &&
      current.crosses[row] === wanted.crosses[place];
    return (isPlaced ? unchanged : moved) as number;
  });
}

function countsOf(families: readonly FamilyDifference[]): ChangeCounts {
  const counts = new Int32Array(changeKinds.length);
  for (const { kinds } of families) {
    for (const kind of kinds) counts[kind] = (counts[kind] as number) + 1;
  }
  const of = (kind: ChangeKind) => counts[changeKinds.indexOf(kind)] as number;
  return {
    added: of("added"),
    returned: of("returned"),
    changed: of("changed"),
    moved: of("moved"),
    removed: families.reduce((sum, { removed }) => sum + removed.length, 0),
    unchanged: of("unchanged"),
  };
}
