/**
 * One subnet made anew from what its registry says today (RDAP), between two imports: a generation of its
 * own, so that it has a history and can be rolled back. The subnet keeps its id and delegation; one that was
 * not there is put under the most specific subnet that holds it, above those that lie in it. The next import
 * of the registries' files has the last word again.
 */
import { createHash } from "node:crypto";
import type { PoolClient } from "pg";
import { UsageError } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, lastAddress, parseRange } from "#core/ip/range";
import { rangeText } from "#db/range-text";
import type { Database } from "#db/server-database";
import {
  beginGeneration,
  clearInterrupted,
  currentGeneration,
  dropGeneration,
  notifyRegistryChange,
  putInForce,
} from "./database/generations.ts";
import { inTransaction, withImportLock } from "./database/import-lock.ts";
import type { NetworkRecord } from "./formats/record.ts";
import { lookUp } from "./lookup.ts";
import { reasonToDrop } from "./tree/precedence.ts";
import type { Holder } from "./tree/registry-state.ts";
import { buildState, RecordStore } from "./tree/to-subnets.ts";

export interface RefreshedSubnet {
  readonly generation: number;
  readonly range: string;
  readonly event: "added" | "returned" | "changed";
  /** Subnets that lie under it now and were elsewhere before. */
  readonly moved: number;
}

/**
 * `source` is where the record came from, `date` its day. Throws UsageError before the first import, and for
 * a record that is no subnet (a placeholder, special-purpose space) or a new one that would cross another;
 * DatabaseError when an import is running.
 */
export async function refreshSubnet(
  database: Database,
  record: NetworkRecord,
  from: { readonly source: string; readonly date: Date },
): Promise<RefreshedSubnet> {
  const reason = reasonToDrop(record);
  if (reason !== null) throw new UsageError(`${formatRange(record.range)} is not taken over: ${reason}`);
  return await withImportLock(database, async (client) => {
    await clearInterrupted(client);
    const before = await currentGeneration(client);
    if (before === null) throw new UsageError("there is no import yet that a range could be refreshed in");
    const parentId = await parentOf(database, record);
    const crossed = await crossedBy(database, record);
    const generation = await beginGeneration(database.pool);
    try {
      return await inTransaction(client, async () => {
        const refreshed = await write(client, { record, generation, parentId, crossed });
        await copySources(client, { before, generation, record, ...from });
        await putInForce(client, generation, { changes: { [refreshed.event]: 1, moved: refreshed.moved } });
        await notifyRegistryChange(client, database.schema, generation);
        return refreshed;
      });
    } catch (error) {
      await dropGeneration(database.pool, generation).catch(() => {});
      throw error;
    }
  });
}

const boundsOf = ({ range }: NetworkRecord) => [
  formatAddress(firstAddress(range)),
  formatAddress(lastAddress(range)),
];

/** Id of the most specific other subnet that holds the range, or null. */
async function parentOf(database: Database, record: NetworkRecord): Promise<number | null> {
  const range = formatRange(record.range);
  const { chain } = await lookUp(database, range);
  return chain.filter((subnet) => subnet.range !== range).at(-1)?.subnetId ?? null;
}

/** A subnet in force that the range overlaps without one holding the other, or null. */
async function crossedBy(database: Database, record: NetworkRecord): Promise<string | null> {
  const [first = "", last = ""] = boundsOf(record);
  const { rows } = await database.pool.query<{ first: string; last: string }>(
    `select host(first_address) as first, host(last_address) as last
     from subnet
     where removed_in is null and first_address > $1::inet and first_address <= $2::inet
       and last_address > $2::inet
     limit 1`,
    [first, last],
  );
  if (rows[0]) return rangeText(rows[0].first, rows[0].last);
  const { chain, crossing } = await lookUp(database, first);
  const holding = new Set(
    (await lookUp(database, formatRange(record.range))).chain.map(({ range }) => range),
  );
  const earlier = [...chain, ...crossing].find(({ range }) => {
    const other = parseRange(range);
    return other !== null && other.first < record.range.first && !holding.has(range);
  });
  return earlier?.range ?? null;
}

interface Writing {
  readonly record: NetworkRecord;
  readonly generation: number;
  readonly parentId: number | null;
  readonly crossed: string | null;
}

async function write(client: PoolClient, writing: Writing): Promise<RefreshedSubnet> {
  const { record, generation, parentId, crossed } = writing;
  const subnet = wantedSubnet(record);
  const holderId = subnet.holder && (await ensureHolder(client, generation, subnet.holder));
  const [first, last] = boundsOf(record);
  const { rows } = await client.query<{ subnet_id: number; removed_in: number | null }>(
    "select subnet_id, removed_in from subnet where first_address = $1::inet and last_address = $2::inet for update",
    [first, last],
  );
  const there = rows[0];
  const event = there === undefined ? "added" : there.removed_in === null ? "changed" : "returned";
  if (event !== "changed" && crossed !== null) {
    throw new UsageError(`${formatRange(record.range)} would cross ${crossed}: import the registries' files`);
  }
  const values = [holderId, subnet.country, subnet.registry, subnet.name];
  if (there !== undefined) {
    await remember(client, generation, { subnetIds: [there.subnet_id], change: event });
    await client.query(
      `update subnet
       set holder_id = $2, country = $3, registry = $4, name = $5, parent_id = $6,
         crosses = crosses and removed_in is null, removed_in = null
       where subnet_id = $1`,
      [there.subnet_id, ...values, parentId],
    );
    if (event === "changed") return { generation, range: formatRange(record.range), event, moved: 0 };
  }
  const subnetId = there?.subnet_id ?? (await insertSubnet(client, writing, values));
  const moved = await takeChildren(client, writing, subnetId);
  return { generation, range: formatRange(record.range), event, moved };
}

/** The record as an import would have it. */
function wantedSubnet(record: NetworkRecord) {
  const store = new RecordStore();
  store.addNetwork(record, "");
  const [holder = null] = buildState(store).holders.all();
  return { holder, country: record.country, registry: record.registry ?? "iana", name: record.name };
}

async function ensureHolder(client: PoolClient, generation: number, holder: Holder): Promise<number> {
  const { key, name, handle, registry } = holder;
  await client.query(
    `insert into holder_before (generation, holder_id, name, handle)
     select $1, holder_id, name, handle
     from holder
     where holder_key = $2 and (name <> $3 or handle is distinct from $4)`,
    [generation, key, name, handle],
  );
  const { rows } = await client.query<{ holder_id: number }>(
    `insert into holder (holder_key, name, handle, registry) values ($1, $2, $3, $4)
     on conflict (holder_key) do update set name = excluded.name, handle = excluded.handle
     returning holder_id`,
    [key, name, handle, registry],
  );
  return rows[0]!.holder_id;
}

async function remember(
  client: PoolClient,
  generation: number,
  { subnetIds, change }: { readonly subnetIds: readonly number[]; readonly change: string },
): Promise<void> {
  await client.query(
    `insert into subnet_before
       (generation, subnet_id, change, parent_id, holder_id, country, registry, name, crosses, removed_in)
     select $1, subnet_id, $3, parent_id, holder_id, country, registry, name, crosses, removed_in
     from subnet
     where subnet_id = any ($2)`,
    [generation, subnetIds, change],
  );
}

async function insertSubnet(
  client: PoolClient,
  { record, generation, parentId }: Writing,
  values: readonly unknown[],
): Promise<number> {
  const { rows } = await client.query<{ subnet_id: number }>(
    `insert into subnet
       (first_address, last_address, holder_id, country, registry, name, parent_id, added_in)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     returning subnet_id`,
    [...boundsOf(record), ...values, parentId, generation],
  );
  return rows[0]!.subnet_id;
}

/** What lay directly under the subnet above and lies within the new one moves under it. */
async function takeChildren(client: PoolClient, writing: Writing, subnetId: number): Promise<number> {
  const { rows } = await client.query<{ subnet_id: number }>(
    `select subnet_id
     from subnet
     where removed_in is null and subnet_id <> $3 and parent_id is not distinct from $4
       and first_address between $1::inet and $2::inet and last_address <= $2::inet`,
    [...boundsOf(writing.record), subnetId, writing.parentId],
  );
  const subnetIds = rows.map(({ subnet_id }) => subnet_id);
  await remember(client, writing.generation, { subnetIds, change: "moved" });
  await client.query("update subnet set parent_id = $1 where subnet_id = any ($2)", [subnetId, subnetIds]);
  return subnetIds.length;
}

/** The generation is made from what the one before was made from, and from the registry's answer. */
async function copySources(
  client: PoolClient,
  work: {
    readonly before: number;
    readonly generation: number;
    readonly record: NetworkRecord;
    readonly source: string;
    readonly date: Date;
  },
): Promise<void> {
  const { before, generation, record, source, date } = work;
  await client.query(
    `insert into registry_source (generation, file, format, registry, file_date, sha256, counts)
     select $2, file, format, registry, file_date, sha256, counts
     from registry_source
     where generation = $1 and file <> $3`,
    [before, generation, source],
  );
  const words = [formatRange(record.range), record.name, record.country, JSON.stringify(record.holder)];
  const sha256 = createHash("sha256").update(words.join("\n")).digest("hex");
  await client.query(
    `insert into registry_source (generation, file, format, registry, file_date, sha256, counts)
     values ($1, $2, 'rdap', $3, $4, $5, '{"kept": 1}')`,
    [generation, source, record.registry, date.toISOString().slice(0, 10), sha256],
  );
}
