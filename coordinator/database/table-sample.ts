/**
 * Counts of large tables from a part of them. Of a table of more than `mostBytes` a random part of its blocks is read,
 * always the same one, so that a figure on a live page does not tremble; what is counted there times `factor` is
 * about what there is. A small table is read whole and its counts are exact.
 */
import type { Pool } from "pg";

export interface TableSample {
  /** SQL behind the table's name: nothing, or a tablesample clause. */
  readonly clause: string;
  /** 1: the whole table is read. */
  readonly factor: number;
}

export const wholeTable: TableSample = { clause: "", factor: 1 };

/** A fraction of a second of counting from memory, a second from a disk. */
export const defaultMostBytes = 32 * 2 ** 20;
/** Less would be too coarse to count anything. */
const leastPercent = 0.01;

/** `tables` are names of our own code, never from outside. */
export async function sampleTables<Name extends string>(
  pool: Pool,
  tables: readonly Name[],
  mostBytes: number,
): Promise<Readonly<Record<Name, TableSample>>> {
  const { rows } = await pool.query<{ name: Name; bytes: number }>(
    `select name, coalesce(sum(pg_relation_size(part)), 0)::float8 as bytes
     from unnest($1::text[]) as name
     cross join lateral (
       select to_regclass(name)::oid as part
       union all
       select inhrelid from pg_inherits where inhparent = to_regclass(name)
     ) parts
     group by name`,
    [tables],
  );
  const sampled = rows.map(({ name, bytes }) => [name, sampleOf(bytes, mostBytes)] as const);
  return Object.fromEntries(sampled) as Record<Name, TableSample>;
}

function sampleOf(bytes: number, mostBytes: number): TableSample {
  if (bytes <= mostBytes) return wholeTable;
  const percent = Math.max(leastPercent, Number(((100 * mostBytes) / bytes).toPrecision(3)));
  return { clause: `tablesample system (${percent}) repeatable (1)`, factor: 100 / percent };
}
