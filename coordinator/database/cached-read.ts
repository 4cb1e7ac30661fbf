import type { Pool, PoolClient } from "pg";
import { bytesToRead, sampleOf } from "#db/table-sizes";

/**
 * Keeps the answer of a question whose cost grows with the tables, so that pages may ask as often as they
 * like: it is asked anew only after `rest` times as long as asking took, and by one caller at a time.
 */
export class KeptAnswer<T> {
  readonly #ask: () => Promise<T>;
  readonly #nowMs: () => number;
  readonly #leastMs: number;
  readonly #freeMs: number;
  #answer: { readonly value: T; readonly staleAtMs: number } | null = null;
  #asking: Promise<T> | null = null;

  /** `leastMs`: so long it is kept in any case. `freeMs`: what asking may take without being kept for it. */
  constructor(ask: () => Promise<T>, nowMs: () => number, leastMs = defaultLeastMs, freeMs = 0) {
    this.#ask = ask;
    this.#nowMs = nowMs;
    this.#leastMs = leastMs;
    this.#freeMs = freeMs;
  }

  async get(): Promise<T> {
    if (this.#answer && this.#nowMs() < this.#answer.staleAtMs) return this.#answer.value;
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #askNow(): Promise<T> {
    const startedMs = this.#nowMs();
    const value = await this.#ask();
    const doneMs = this.#nowMs();
    const keepMs = Math.max(this.#leastMs, rest * (doneMs - startedMs - this.#freeMs));
    this.#answer = { value, staleAtMs: doneMs + keepMs };
    return value;
  }
}

/** Fresh enough for a page that is renewed every two seconds. */
const defaultLeastMs = 1000;

/** At most one part in so many of a database connection goes into these questions. */
const rest = 20;

// How database values become the texts and numbers of a report: ISO dates, milliseconds, names.

/** pg gives ±Infinity for the timestamps of that name; a report has null there. */
export function isoOrNull(value: Date | number | null): string | null {
  return value instanceof Date ? value.toISOString() : null;
}

export function iso(value: Date): string {
  return value.toISOString();
}

/** `real` columns arrive with their binary noise: 12.300000190734863. */
export function roundMs(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}

/**
 * Rows whose columns are called as the answer's fields. A column `lease.crawler` is a part of `lease`, which is null where the
 * first of its parts is.
 */
export async function readRows<Row>(
  client: Pick<Pool | PoolClient, "query">,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const { rows } = await client.query(sql, [...values]);
  return rows.map((row) => nested(row, (value) => value) as Row);
}

/** The same with times as texts, and null for times that never come. */
export async function toldRows<Row>(
  client: Pick<Pool | PoolClient, "query">,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const { rows } = await client.query(sql, [...values]);
  return rows.map((row) => nested(row, told) as Row);
}

function told(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}

function nested(row: Readonly<Record<string, unknown>>, of: (value: unknown) => unknown): unknown {
  const whole: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(row)) {
    const [name = "", part] = column.split(".");
    if (part === undefined) whole[name] = of(value);
    else if (!(name in whole)) whole[name] = value === null ? null : { [part]: of(value) };
    else if (whole[name] !== null) (whole[name] as Record<string, unknown>)[part] = of(value);
  }
  return whole;
}

type PoolRead = (pool: Pool, ...asked: never[]) => unknown;

/** The same functions over one pool. */
export function readsOver<Reads extends Readonly<Record<string, PoolRead>>>(pool: Pool, reads: Reads) {
  const bound = Object.entries(reads).map(([name, read]) => [name, read.bind(null, pool)]);
  return Object.fromEntries(bound) as {
    readonly [Name in keyof Reads]: Reads[Name] extends (pool: Pool, ...asked: infer Asked) => infer Found
      ? (...asked: Asked) => Found
      : never;
  };
}

/** SQL: milliseconds with two digits behind the point, as a report has them. */
export const roundedMs = (column: string): string => `round((${column})::numeric, 2)::float8`;

// Counts of large tables from a part of them. Of a table of more than `mostBytes` a random part of its blocks is read,
// always the same one, so that a figure on a live page does not tremble; what is counted there times `factor` is
// about what there is. A small table is read whole and its counts are exact.

export interface TableSample {
  /** SQL behind the table's name: nothing, or a share of its blocks (db/table-sizes.ts). */
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
  const sizes = [...(await bytesToRead(pool, tables))];
  const sampled = sizes.map(([name, bytes]) => [name, sampleWithin(bytes, mostBytes)] as const);
  return Object.fromEntries(sampled) as Record<Name, TableSample>;
}

function sampleWithin(bytes: number, mostBytes: number): TableSample {
  if (bytes <= mostBytes) return wholeTable;
  const percent = Math.max(leastPercent, Number(((100 * mostBytes) / bytes).toPrecision(3)));
  return { clause: sampleOf(percent / 100, { isSteady: true }), factor: 100 / percent };
}
