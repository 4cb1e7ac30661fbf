/** What the frontier takes on disk, by the URL: tables with their indexes, and each index by itself. */
import type { Pool } from "pg";

export interface DiskUse {
  readonly urls: number;
  readonly hosts: number;
  /** Of table frontier_url alone, of its indexes, and of frontier_host with its indexes: bytes a URL. */
  readonly urlTable: number;
  readonly urlIndexes: number;
  readonly hostTables: number;
  /** Every index of either table with its bytes a URL, the largest first. */
  readonly indexes: readonly { readonly name: string; readonly bytes: number }[];
}

export async function diskUse(pool: Pool): Promise<DiskUse> {
  const { rows } = await pool.query<{ urls: number; hosts: number }>(
    `select (select count(*) from frontier_url)::int as urls, (select count(*) from frontier_host)::int as hosts`,
  );
  const { urls, hosts } = rows[0]!;
  const sizes = await pool.query<{ table: string; table_bytes: number; index_bytes: number }>(
    `select parent.relname as table, sum(pg_table_size(part.oid))::float8 as table_bytes,
       sum(pg_indexes_size(part.oid))::float8 as index_bytes
     from pg_inherits i
     join pg_class part on part.oid = i.inhrelid and part.relkind = 'r'
     join pg_class parent on parent.oid = i.inhparent
     where parent.oid in ('frontier_url'::regclass, 'frontier_host'::regclass)
     group by 1`,
  );
  const of = (table: string) => sizes.rows.find((row) => row.table === table)!;
  const indexes = await pool.query<{ name: string; bytes: number }>(
    `select parent.relname as name, sum(pg_relation_size(part.oid))::float8 / $1::int as bytes
     from pg_inherits i
     join pg_class part on part.oid = i.inhrelid and part.relkind = 'i'
     join pg_class parent on parent.oid = i.inhparent
     join pg_index x on x.indexrelid = parent.oid
     where x.indrelid in ('frontier_url'::regclass, 'frontier_host'::regclass)
     group by 1
     order by 2 desc`,
    [urls],
  );
  return {
    urls,
    hosts,
    urlTable: of("frontier_url").table_bytes / urls,
    urlIndexes: of("frontier_url").index_bytes / urls,
    hostTables: (of("frontier_host").table_bytes + of("frontier_host").index_bytes) / urls,
    indexes: indexes.rows,
  };
}
