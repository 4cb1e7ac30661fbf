/**
 * Finds an import's changes in memory by walking the wanted and current ranges together in tree order. Every wanted
 * subnet gets its id here. A range that existed before, even if it was removed since, keeps its id.
 */

import type { PoolClient } from "pg";
import { compareWords, type RangeColumns } from "#coordinator/place/subnets/range-columns";
import { registries, unpackCountry } from "#coordinator/place/subnets/subnet";
import { type CopyWriter, writeCopy } from "#db/copy";
import type { FamilyState, HolderTable, RegistryState } from "../tree/registry-state.ts";
import type { CurrentFamily, CurrentHolders, CurrentTree } from "./current-tree.ts";

/** The change of a wanted subnet, by its number in `FamilyDifference.kinds`. */
export const changeKinds = ["unchanged", "added", "returned", "changed", "moved"] as const;

export type ChangeKind = (typeof changeKinds)[number];
const [unchanged, added, returned, changed, moved] = [0, 1, 2, 3, 4];

export interface FamilyDifference {
  readonly wanted: FamilyState;
  readonly current: CurrentFamily;
  /** The id, the change, and the row in `current` (or −1) of each wanted subnet. */
  readonly ids: Int32Array;
  readonly kinds: Uint8Array;
  readonly rows: Int32Array;
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
  /** Removed subnets that are back, with their old id and delegation. */
  readonly returned: number;
  /** Subnets whose holder, country, registry or name differs. */
  readonly changed: number;
  /** Subnets of which only the parent or the crossings differ. */
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

/** The tree is ordered by first address. Of equal first addresses, the widest range comes first. */
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

// Compares holders by key: new ones, changed names, and ids. It also finds mergers (the subnets of two holders now have
// one holder, and one of the two is gone) and splits (one holder's subnets now have several, some of them new).

interface HolderDifference {
  readonly wanted: HolderTable;
  readonly current: CurrentHolders;
  readonly ids: Int32Array;
  readonly added: readonly number[];
  /** Wanted holders whose name or handle differs from the database. */
  readonly renamed: readonly number[];
}

function compareHolders(wanted: HolderTable, current: CurrentHolders): HolderDifference {
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
  readonly added: number;
  readonly gone: number;
  readonly renamed: number;
  readonly merged: number;
  readonly split: number;
  readonly mergedSamples: readonly HolderSample[];
  readonly splitSamples: readonly HolderSample[];
}

interface HolderSample {
  readonly from: string;
  /** The names after the import, at most ten. */
  readonly to: readonly string[];
}

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

/** Marks by id the holders that have a subnet, before and after the import. */
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

function wantedNames({ wanted, ids }: HolderDifference, nameOf: (text: number) => string) {
  return (id: number) => nameOf(wanted.nameId(ids.indexOf(id)));
}

/** Maps each holder that lost remaining subnets to their new holders, including itself while it keeps some subnets. */
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

/** Counts the vanished holders that each heir took over entirely. */
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

// Writes a difference into the tree in the caller's transaction. The previous state goes to `subnet_before` and
// `holder_before`, which suffice to undo a generation. Only rows that differ are written, and all others keep their id and
// delegation. Rows are never deleted.

export interface Writing {
  readonly client: PoolClient;
  readonly generation: number;
  readonly state: RegistryState;
  readonly difference: TreeDifference;
  readonly onRows: (done: number, total: number) => void;
}

export async function writeDifference(writing: Writing): Promise<void> {
  const { client, generation, difference } = writing;
  const rows = new RowCounter(writing);
  await client.query(createTables);
  await writeHolders(writing, rows);
  await writeAdded(writing, rows);
  await stageUpdates(writing, rows);
  await client.query("analyze staged_subnet");
  for (const sql of updates) await client.query(sql, sql.includes("$1") ? [generation] : []);
  if (difference.counts.added + difference.holders.added.length > 0) await client.query(setSequences);
  rows.finish();
}

const createTables = `
  create temporary table staged_holder (
    holder_id integer primary key, name text not null, handle text
  ) on commit drop;
  create temporary table staged_subnet (
    subnet_id integer primary key,
    change text not null,
    parent_id integer,
    holder_id integer,
    country text,
    registry text,
    name text,
    crosses boolean
  ) on commit drop`;

const setSequences = `
  select setval(pg_get_serial_sequence('subnet', 'subnet_id'), greatest(max(subnet_id), 1)) from subnet
  union all
  select setval(pg_get_serial_sequence('holder', 'holder_id'), greatest(max(holder_id), 1)) from holder`;

/** Ordered so that each statement sees what it needs. $1 is the generation. */
const updates: readonly string[] = [
  `insert into holder_before (generation, holder_id, name, handle)
   select $1, holder_id, h.name, h.handle from staged_holder join holder h using (holder_id)`,

  `update holder h set name = s.name, handle = s.handle
   from staged_holder s
   where h.holder_id = s.holder_id`,

  `insert into subnet_before
     (generation, subnet_id, change, parent_id, holder_id, country, registry, name, crosses, removed_in)
   select $1, subnet_id, s.change, c.parent_id, c.holder_id, c.country, c.registry, c.name, c.crosses, c.removed_in
   from staged_subnet s
   join subnet c using (subnet_id)`,

  `update subnet c
   set parent_id = s.parent_id, holder_id = s.holder_id, country = s.country, registry = s.registry,
     name = s.name, crosses = s.crosses, removed_in = null
   from staged_subnet s
   where c.subnet_id = s.subnet_id and s.change <> 'removed'`,

  `update subnet c set removed_in = $1
   from staged_subnet s
   where c.subnet_id = s.subnet_id and s.change = 'removed'`,
];

async function writeHolders({ client, state, difference }: Writing, rows: RowCounter): Promise<void> {
  const { holders } = difference;
  const columns = ["holder_id", "holder_key", "name", "handle", "registry"];
  await writeCopy(client, { table: "holder", columns }, async (out) => {
    for (const index of holders.added) {
      const { key, name, handle, registry } = state.holders.at(index);
      out.row();
      out.int32(holders.ids[index] as number);
      out.text(key);
      out.text(name);
      putText(out, handle);
      putText(out, registry);
      rows.next();
      if (out.isFull) await out.flush();
    }
  });
  await stageRenamed(client, state, holders, rows);
}

async function stageRenamed(
  client: PoolClient,
  state: RegistryState,
  holders: HolderDifference,
  rows: RowCounter,
): Promise<void> {
  const columns = ["holder_id", "name", "handle"];
  await writeCopy(client, { table: "staged_holder", columns }, async (out) => {
    for (const index of holders.renamed) {
      const { name, handle } = state.holders.at(index);
      out.row();
      out.int32(holders.ids[index] as number);
      out.text(name);
      putText(out, handle);
      rows.next();
      if (out.isFull) await out.flush();
    }
  });
}

const subnetColumns = ["parent_id", "holder_id", "country", "registry", "name", "crosses"];

/** Writes in the order of ids and of the tree, so that the indexes grow at their ends. */
async function writeAdded(writing: Writing, rows: RowCounter): Promise<void> {
  const { client, difference, generation } = writing;
  const columns = ["subnet_id", "first_address", "last_address", "added_in", ...subnetColumns];
  await writeCopy(client, { table: "subnet", columns }, async (out) => {
    for (const family of [difference.ipv4, difference.ipv6]) {
      const { columns: ranges } = family.wanted;
      const { kinds } = family;
      for (let place = 0; place < kinds.length; place += 1) {
        if (kinds[place] !== added) continue;
        out.row();
        out.int32(family.ids[place] as number);
        out.inet(ranges.first, place * ranges.words, ranges.words);
        out.inet(ranges.last, place * ranges.words, ranges.words);
        out.int32(generation);
        putSubnet(out, writing, family, place);
        rows.next();
        if (out.isFull) await out.flush();
      }
    }
  });
}

async function stageUpdates(writing: Writing, rows: RowCounter): Promise<void> {
  const { client, difference } = writing;
  const columns = ["subnet_id", "change", ...subnetColumns];
  await writeCopy(client, { table: "staged_subnet", columns }, async (out) => {
    for (const family of [difference.ipv4, difference.ipv6]) {
      for (const [place, kind] of family.kinds.entries()) {
        if (kind === unchanged || kind === added) continue;
        out.row();
        out.int32(family.ids[place] as number);
        out.text(changeKinds[kind] as string);
        putSubnet(out, writing, family, place);
        rows.next();
        if (out.isFull) await out.flush();
      }
      for (const row of family.removed) {
        out.row();
        out.int32(family.current.ids[row] as number);
        out.text("removed");
        for (const _ of subnetColumns) out.null();
        rows.next();
        if (out.isFull) await out.flush();
      }
    }
  });
}

function putSubnet(
  out: CopyWriter,
  { state, difference }: Writing,
  { wanted, ids }: FamilyDifference,
  place: number,
): void {
  const parent = wanted.parents[place] as number;
  const holder = wanted.holders[place] as number;
  putInt32(out, parent < 0 ? null : (ids[parent] as number));
  putInt32(out, holder < 0 ? null : (difference.holders.ids[holder] as number));
  putText(out, unpackCountry(wanted.countries[place] as number));
  out.text(registries[wanted.registries[place] as number] as string);
  out.text(state.texts.textAt(wanted.names[place] as number));
  out.boolean(wanted.crosses[place] === 1);
}

function putInt32(out: CopyWriter, value: number | null): void {
  if (value === null) out.null();
  else out.int32(value);
}

function putText(out: CopyWriter, value: string | null): void {
  if (value === null) out.null();
  else out.text(value);
}

const rowsPerReport = 20_000;

class RowCounter {
  readonly #onRows: Writing["onRows"];
  readonly #total: number;
  #done = 0;

  constructor({ difference, onRows }: Writing) {
    const { added, returned, changed, moved, removed } = difference.counts;
    const holders = difference.holders.added.length + difference.holders.renamed.length;
    this.#total = added + returned + changed + moved + removed + holders;
    this.#onRows = onRows;
  }

  next(): void {
    this.#done += 1;
    if (this.#done % rowsPerReport === 0) this.#onRows(this.#done, this.#total);
  }

  finish(): void {
    this.#onRows(this.#total, this.#total);
  }
}
