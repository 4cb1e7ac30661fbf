/**
 * Copies a schema into an empty one on another server of any version: from the embedded database to a server, or
 * between servers. Every table goes by binary COPY directly from one connection to the other, in one transaction on
 * either side, so the copy is a consistent snapshot and a failure leaves nothing behind.
 */
import { pipeline } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { DatabaseError, UsageError } from "#core/errors";
import { migrate } from "./migrate.ts";
import { pendingMigrations } from "./schema-state.ts";
import type { Database } from "./server-database.ts";
import { partsOf, tableSizes } from "./table-sizes.ts";

export interface CopyProgress {
  readonly table: string;
  readonly bytes: number;
  /** The tables' size on the source's disk without indexes, roughly the amount of data sent. */
  readonly totalBytes: number;
}

export interface CopiedDatabase {
  readonly tables: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Throws a UsageError when the target is not empty or the source's schema is not of this program's version. */
export async function copyDatabase(
  source: Database,
  target: Database,
  onProgress: (progress: CopyProgress) => void = () => {},
): Promise<CopiedDatabase> {
  const missing = await pendingMigrations(source.pool);
  if (missing.length > 0)
    throw new UsageError(
      `${source.description} is of an older version: start the coordinator of this version on it once (missing: ${missing.join(", ")})`,
    );
  const { rows: encodings } = await target.pool.query<{ server_encoding: string }>("show server_encoding");
  if (encodings[0]!.server_encoding !== "UTF8")
    throw new UsageError(
      `${target.description} has the encoding ${encodings[0]!.server_encoding}: make it with createdb --encoding UTF8 --template template0`,
    );
  const { rows } = await target.pool.query<{ relations: number }>(
    "select count(*)::int as relations from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1",
    [target.schema],
  );
  if (rows[0]!.relations > 0)
    throw new UsageError(
      `schema "${target.schema}" of ${target.description} holds something already, and nothing was ` +
        "copied: take another database, or drop the schema if nothing of it is needed",
    );
  try {
    await migrate(target);
    return await copyTables(source, target, onProgress);
  } catch (error) {
    await target.pool.query(`drop schema "${target.schema}" cascade`);
    throw error;
  }
}

async function copyTables(
  source: Database,
  target: Database,
  onProgress: (progress: CopyProgress) => void,
): Promise<CopiedDatabase> {
  const [from, to] = [await source.pool.connect(), await target.pool.connect()];
  try {
    await from.query("begin isolation level repeatable read read only");
    await to.query("begin");
    const tables = inOrder(await tablesOf(from));
    const totalBytes = tables.reduce((sum, { bytes }) => sum + bytes, 0);
    await to.query(`truncate ${tables.map(({ name }) => `"${name}"`).join(", ")}`);
    await makeRanges(from, to);
    let [rows, bytes] = [0, 0];
    for (const table of tables) {
      const before = bytes;
      const copied = await copyTable(table, from, to, (sent) => {
        bytes = before + sent;
        onProgress({ table: table.name, bytes, totalBytes });
      });
      rows += copied;
    }
    await copySequences(from, to);
    await to.query("commit");
    await from.query("commit");
    await to.query("analyze");
    return { tables: tables.length, rows, bytes };
  } finally {
    // A failed copy leaves a transaction open, so the connections are closed instead of reused.
    from.release(true);
    to.release(true);
  }
}

interface CopiedTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly needs: readonly string[];
  readonly bytes: number;
}

/** Leaves out partitions, which are copied with their table, and the record of migrations, since either side has its own. */
async function tablesOf(client: PoolClient): Promise<CopiedTable[]> {
  const { rows } = await client.query<{ name: string; columns: string[]; needs: string[] }>(
    `select c.relname as name,
       (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       coalesce((select array_agg(distinct r.relname::text) from pg_constraint f
                 join pg_class r on r.oid = f.confrelid
                 where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid), '{}') as needs
     from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and c.relname <> 'migration'
     order by c.relname`,
  );
  const sizes = new Map((await tableSizes(client)).map(({ table, bytes }) => [table, bytes]));
  return rows.map((row) => ({ ...row, bytes: sizes.get(row.name) ?? 0 }));
}

/**
 * Creates the source's range partitions at the target, because they are created at run time (one a day for fetches) and
 * no migration knows them. The tables are still empty, so no rows move. A partition that is itself partitioned (old
 * fetches) becomes a plain table.
 */
async function makeRanges(from: PoolClient, to: PoolClient): Promise<void> {
  // Bounds must be written and read in the same time zone.
  for (const client of [from, to]) await client.query("set local timezone = 'UTC'");
  const { rows } = await from.query<{ parent: string }>(
    `select p.relname as parent
     from pg_partitioned_table t
     join pg_class p on p.oid = t.partrelid
     where t.partstrat = 'r' and p.relnamespace = current_schema()::regnamespace and not p.relispartition
     order by p.relname`,
  );
  for (const { parent } of rows)
    for (const { name, bounds } of await partsOf(from, parent))
      await to.query(`create table if not exists ${name} partition of "${parent}" ${bounds}`);
}

function inOrder(tables: readonly CopiedTable[]): CopiedTable[] {
  const [ordered, done] = [[] as CopiedTable[], new Set<string>()];
  while (ordered.length < tables.length) {
    const next = tables.filter(
      ({ name, needs }) => !done.has(name) && needs.every((needed) => done.has(needed)),
    );
    if (next.length === 0) throw new DatabaseError("tables refer to each other in a circle");
    for (const table of next) done.add(table.name);
    ordered.push(...next);
  }
  return ordered;
}

/** Returns the number of rows. Triggers are off, because what they would write is copied with the other tables. */
async function copyTable(
  table: CopiedTable,
  from: PoolClient,
  to: PoolClient,
  onBytes: (bytes: number) => void,
): Promise<number> {
  await to.query(`alter table "${table.name}" disable trigger user`);
  const rows = await copyRows(table, from, to, onBytes);
  await to.query(`alter table "${table.name}" enable trigger user`);
  return rows;
}

async function copyRows(
  {
    name,
    columns,
    condition = "true",
  }: Pick<CopiedTable, "name" | "columns"> & { readonly condition?: string },
  from: PoolClient,
  to: PoolClient,
  onBytes: (bytes: number) => void = () => {},
): Promise<number> {
  const list = columns.map((column) => `"${column}"`).join(", ");
  const reading = from.query(
    copyTo(`copy (select ${list} from "${name}" where ${condition}) to stdout (format binary)`),
  );
  const writing = to.query(copyFrom(`copy "${name}" (${list}) from stdin (format binary)`));
  let bytes = 0;
  const counted = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      bytes += piece.length;
      onBytes(bytes);
      yield piece;
    }
  };
  await pipeline(reading, counted, writing);
  return writing.rowCount;
}

async function copySequences(from: PoolClient, to: PoolClient): Promise<void> {
  const { rows } = await from.query<{ name: string; value: string | null }>(
    "select sequencename as name, last_value::text as value from pg_sequences where schemaname = current_schema()",
  );
  for (const { name, value } of rows)
    if (value !== null) await to.query(`select setval('"${name}"', $1::bigint)`, [value]);
}
