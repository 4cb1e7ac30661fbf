/**
 * Holders compared by their keys: which are new, which have another name, and which ids they have. And what
 * an import means for companies: merged (two holders' subnets are one holder's now, and one of the two is
 * gone) or split (one holder's subnets are with several now, some of them new).
 */
import type { HolderTable } from "../tree/registry-state.ts";
import type { CurrentHolders } from "./current-tree.ts";
import type { FamilyDifference, TreeDifference } from "./tree-difference.ts";

export interface HolderDifference {
  readonly wanted: HolderTable;
  readonly current: CurrentHolders;
  /** For each wanted holder its id. */
  readonly ids: Int32Array;
  /** Wanted holders that the database does not have yet. */
  readonly added: readonly number[];
  /** Wanted holders whose name or handle is another than the database's. */
  readonly renamed: readonly number[];
}

/** Gives every wanted holder its id: the one it has, or the next. */
export function compareHolders(wanted: HolderTable, current: CurrentHolders): HolderDifference {
  const ids = new Int32Array(wanted.count);
  const renamed: number[] = [];
  for (const id of current.ids) {
    const index = current.wanted[id] as number;
    if (index < 0) continue;
    ids[index] = id;
    const isSame =
      current.names[id] === wanted.nameId(index) && current.handles[id] === wanted.handleId(index);
    if (!isSame) renamed.push(index);
  }
  const added: number[] = [];
  let nextId = current.largestId + 1;
  ids.forEach((id, index) => {
    if (id !== 0) return;
    ids[index] = nextId++;
    added.push(index);
  });
  return { wanted, current, ids, added, renamed };
}

export interface HolderChanges {
  /** In force now, not before. */
  readonly added: number;
  readonly gone: number;
  readonly renamed: number;
  readonly merged: number;
  readonly split: number;
  readonly mergedSamples: readonly HolderSample[];
  readonly splitSamples: readonly HolderSample[];
}

export interface HolderSample {
  /** Before. */
  readonly from: string;
  /** After, at most ten. */
  readonly to: readonly string[];
}

/** `nameOf` gives a text by its id. */
export function describeHolders(
  difference: TreeDifference,
  nameOf: (text: number) => string,
  limit: number,
): HolderChanges {
  const { holders } = difference;
  const families = [difference.ipv4, difference.ipv6];
  const { before, after } = holdersInForce(families, holders);
  const heirs = heirsOf(families, holders);
  const taken = countTakenOver(heirs, after);
  const isNew = (id: number) => before[id] === 0;
  const merged = [...heirs].filter(([from, to]) => {
    const [heir = 0] = to;
    return after[from] === 0 && to.size === 1 && (!isNew(heir) || (taken.get(heir) ?? 0) > 1);
  });
  const split = [...heirs].filter(([, to]) => to.size > 1 && [...to].some(isNew));
  const nameAfter = wantedNames(holders, nameOf);
  const sampleOf = ([from, to]: readonly [number, ReadonlySet<number>]): HolderSample => ({
    from: nameOf(holders.current.names[from] as number),
    to: [...to].slice(0, 10).map(nameAfter),
  });
  return {
    added: after.reduce((sum, isHere, id) => sum + (isHere === 1 && before[id] === 0 ? 1 : 0), 0),
    gone: before.reduce((sum, wasHere, id) => sum + (wasHere === 1 && after[id] === 0 ? 1 : 0), 0),
    renamed: holders.renamed.length,
    merged: merged.length,
    split: split.length,
    mergedSamples: merged.slice(0, limit).map(sampleOf),
    splitSamples: split.slice(0, limit).map(sampleOf),
  };
}

/** By id, 1 for a holder that has a subnet in force before, and after. */
function holdersInForce(families: readonly FamilyDifference[], { ids, current, added }: HolderDifference) {
  const before = new Uint8Array(current.largestId + added.length + 1);
  const after = before.slice();
  for (const family of families) {
    family.current.holderIds.forEach((id, row) => {
      if (id !== 0 && family.current.removedIn[row] === 0) before[id] = 1;
    });
    for (const holder of family.wanted.holders) if (holder >= 0) after[ids[holder] as number] = 1;
  }
  return { before, after };
}

/** Name of a wanted holder by its id. */
function wantedNames({ wanted, ids }: HolderDifference, nameOf: (text: number) => string) {
  return (id: number) => nameOf(wanted.nameId(ids.indexOf(id)));
}

/** For each holder that lost subnets which stay: who has those now, itself included while it keeps some. */
function heirsOf(families: readonly FamilyDifference[], { ids }: HolderDifference): Map<number, Set<number>> {
  const heirs = new Map<number, Set<number>>();
  const each = (visit: (from: number, to: number) => void) => {
    for (const { wanted, current, rows } of families) {
      rows.forEach((row, place) => {
        const holder = wanted.holders[place] as number;
        if (row < 0 || holder < 0 || current.removedIn[row] !== 0 || current.holderIds[row] === 0) return;
        visit(current.holderIds[row] as number, ids[holder] as number);
      });
    }
  };
  each((from, to) => {
    if (from !== to) heirs.set(from, (heirs.get(from) ?? new Set()).add(to));
  });
  each((from, to) => {
    if (from === to) heirs.get(from)?.add(to);
  });
  return heirs;
}

/** How many holders that are gone each heir took over whole. */
function countTakenOver(
  heirs: ReadonlyMap<number, ReadonlySet<number>>,
  after: Uint8Array,
): ReadonlyMap<number, number> {
  const taken = new Map<number, number>();
  for (const [from, to] of heirs) {
    if (after[from] === 1 || to.size !== 1) continue;
    for (const heir of to) taken.set(heir, (taken.get(heir) ?? 0) + 1);
  }
  return taken;
}
