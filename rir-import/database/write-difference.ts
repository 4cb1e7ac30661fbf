/**
 * Writes a difference into the tree in the caller's transaction, and the previous state into `subnet_before` and
 * `holder_before`, which suffice to undo a generation. Only differing rows are written; others keep their row, id and
 * delegation. Rows are never deleted.
 */
import type { PoolClient } from "pg";
import { registries } from "#coordinator/place/subnets/subnet";
import { unpackCountry } from "#coordinator/place/subnets/subnet-rows";
import { type CopyWriter, writeCopy } from "#db/copy";
import type { RegistryState } from "../tree/registry-state.ts";
import {
  changeKinds,
  type FamilyDifference,
  type HolderDifference,
  type TreeDifference,
} from "./tree-difference.ts";

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

/** Ordered so that each sees what it needs; $1 is the generation. */
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
const added = changeKinds.indexOf("added");
const unchanged = changeKinds.indexOf("unchanged");

/** Writes in the order of ids and of the tree, so that indexes grow at their ends. */
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
