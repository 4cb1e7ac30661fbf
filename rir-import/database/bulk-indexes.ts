/**
 * Two indexes cost an import of millions of rows more than the rows: organisations by similar names, and
 * subnets by holder. Before such an import they are dropped and afterwards built again, both without locking
 * anybody out; meanwhile the questions that use them take seconds. An import that is killed in between leaves
 * them missing, or half built: the next one sees that and builds them.
 */
import type { PoolClient } from "pg";

/** From this many new subnets on, when they are also more than there are. Measured: ops/decisions/0005. */
const fewestRows = 500_000;

const indexes: Readonly<Record<string, string>> = {
  holder_name_trigram: "holder using gin (name public.gin_trgm_ops)",
  subnet_holder: "subnet (holder_id)",
};

export function isBulkImport(addedRows: number, presentRows: number): boolean {
  return addedRows >= fewestRows && addedRows > presentRows;
}

/** Outside a transaction. */
export async function setIndexesAside(client: PoolClient): Promise<void> {
  for (const name of Object.keys(indexes)) await client.query(`drop index concurrently if exists ${name}`);
}

/** Builds those that are missing or half built. Outside a transaction; quick when there is nothing to do. */
export async function restoreIndexes(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name
     from pg_class c
     join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and i.indisvalid and c.relname = any ($1)`,
    [Object.keys(indexes)],
  );
  const present = new Set(rows.map(({ name }) => name));
  for (const [name, on] of Object.entries(indexes)) {
    if (present.has(name)) continue;
    await client.query(`drop index concurrently if exists ${name}`);
    await client.query(`create index concurrently ${name} on ${on}`);
  }
}
