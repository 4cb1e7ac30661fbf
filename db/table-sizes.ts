/** Reads table sizes and partitions from the catalogue, and samples a share of a table. */
import type { Pool, PoolClient } from "pg";

type Reader = Pick<Pool | PoolClient, "query">;

/** SQL for pg_class rows of a table or of its innermost partitions. `table` is SQL of its oid. */
const leavesOf = (table: string) => `(
  select own.*
  from pg_catalog.pg_class own
  where own.oid = ${table} and own.relkind = 'r' and not own.relispartition
  union all
  select leaf.*
  from pg_catalog.pg_partition_tree(${table}) part
  join pg_catalog.pg_class leaf on leaf.oid = part.relid
  where part.isleaf
)`;

export interface TableSize {
  readonly table: string;
  /** How many partitions the table has. 1 for an unpartitioned table. */
  readonly parts: number;
  readonly rows: number;
  readonly bytes: number;
  readonly indexBytes: number;
}

export async function tableSizes(client: Reader): Promise<TableSize[]> {
  const { rows } = await client.query<TableSize>(
    `select c.relname::text as "table", count(leaf.oid)::int as parts,
       coalesce(sum(greatest(0, leaf.reltuples)), 0)::float8 as rows,
       coalesce(sum(pg_table_size(leaf.oid)), 0)::float8 as bytes,
       coalesce(sum(pg_indexes_size(leaf.oid)), 0)::float8 as "indexBytes"
     from pg_catalog.pg_class c
     cross join lateral ${leavesOf("c.oid")} leaf
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     group by c.relname
     order by c.relname`,
  );
  return rows;
}

/** The server's last estimate. 0 if there is no estimate or no table. */
export async function estimatedRows(client: Reader, table: string): Promise<number> {
  const { rows } = await client.query<{ rows: number }>(
    `select coalesce(sum(greatest(0, leaf.reltuples)), 0)::float8 as rows
     from ${leavesOf("to_regclass($1)")} leaf`,
    [table],
  );
  return rows[0]!.rows;
}

/** Includes indexes and TOAST. */
export async function totalBytes(client: Reader, table: string): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(leaf.oid)), 0)::float8 as bytes
     from ${leavesOf("to_regclass($1)")} leaf`,
    [table],
  );
  return rows[0]!.bytes;
}

/** How many bytes a full scan of each table reads, without TOAST. */
export async function bytesToRead<Name extends string>(
  client: Reader,
  tables: readonly Name[],
): Promise<ReadonlyMap<Name, number>> {
  const { rows } = await client.query<{ name: Name; bytes: number }>(
    `select name, coalesce(sum(pg_relation_size(leaf.oid)), 0)::float8 as bytes
     from unnest($1::text[]) as name
     left join lateral ${leavesOf("to_regclass(name)")} leaf on true
     group by name`,
    [tables],
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

/** SQL that follows a table's name and selects about this share of its blocks. `isSteady` always selects the same ones. */
export function sampleOf(share: number, { isSteady = false } = {}): string {
  return `tablesample system (${Number((100 * share).toPrecision(6))})${isSteady ? " repeatable (1)" : ""}`;
}

interface TablePart {
  readonly name: string;
  /** The text after `partition of`, in the session's time zone. */
  readonly bounds: string;
}

/** SQL for rows of TablePart. `table` is the name of one of our tables. */
export const partsSql = (table: string): string => `
  select c.oid::regclass::text as name, pg_get_expr(c.relpartbound, c.oid) as bounds
  from pg_catalog.pg_inherits i
  join pg_catalog.pg_class c on c.oid = i.inhrelid
  where i.inhparent = '${table}'::regclass
  order by c.relname`;

/** Lists direct partitions, which may themselves be partitioned. Returns an empty list for an unpartitioned table. */
export async function partsOf(client: Reader, table: string): Promise<TablePart[]> {
  const { rows } = await client.query<TablePart>(partsSql(table));
  return rows;
}
