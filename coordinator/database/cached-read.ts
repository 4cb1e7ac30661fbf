import type { Pool, PoolClient } from "pg";
import { bytesToRead, sampleOf } from "#db/table-sizes";

/**
 * Caches the answer of a query whose cost grows with the tables, so that pages may request it freely. The query runs again
 * only after `rest` times its own duration, and only once at a time.
 */
export class KeptAnswer<T> {
  readonly #ask: () => Promise<T>;
  readonly #nowMs: () => number;
  readonly #leastMs: number;
  readonly #freeMs: number;
  #answer: { readonly value: T; readonly staleAtMs: number } | null = null;
  #asking: Promise<T> | null = null;

  /** An answer is cached for at least `leastMs`, and no longer if its query takes less than `freeMs`. */
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

/** Short enough for a page that refreshes every two seconds. */
const defaultLeastMs = 1000;

/** These queries take at most one part in this many of a database connection's time. */
const rest = 20;

// Converts database values into a report's texts and numbers: ISO dates, milliseconds, names.

/** Infinite timestamps, which pg returns as ±Infinity, are null in a report. */
export function isoOrNull(value: Date | number | null): string | null {
  return value instanceof Date ? value.toISOString() : null;
}

export function iso(value: Date): string {
  return value.toISOString();
}

/** Removes the binary noise of `real` columns: 12.300000190734863. */
export function roundMs(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}

/**
 * Reads rows whose columns are named like the answer's fields. A column `lease.crawler` becomes a field of `lease`, which is
 * null if its first field is null.
 */
export async function readRows<Row>(
  client: Pick<Pool | PoolClient, "query">,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const { rows } = await client.query(sql, [...values]);
  return rows.map((row) => nested(row, (value) => value) as Row);
}

/** Reads the same, with times as texts and null for infinite times. */
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

export function readsOver<Reads extends Readonly<Record<string, PoolRead>>>(pool: Pool, reads: Reads) {
  const bound = Object.entries(reads).map(([name, read]) => [name, read.bind(null, pool)]);
  return Object.fromEntries(bound) as {
    readonly [Name in keyof Reads]: Reads[Name] extends (pool: Pool, ...asked: infer Asked) => infer Found
      ? (...asked: Asked) => Found
      : never;
  };
}

/** Returns SQL that rounds milliseconds to two decimals, as reports show them. */
export const roundedMs = (column: string): string => `round((${column})::numeric, 2)::float8`;

// Estimates counts of large tables. A table above `mostBytes` is sampled: a random but fixed part of its blocks is read, so
// that figures on a live page do not fluctuate, and the sample's count is multiplied by `factor`. A smaller table is read
// whole.

export interface TableSample {
  /** SQL after the table's name: empty, or a share of its blocks (db/table-sizes.ts). */
  readonly clause: string;
  readonly factor: number;
}

export const wholeTable: TableSample = { clause: "", factor: 1 };

/** Counting this much takes a fraction of a second from memory, or a second from disk. */
export const defaultMostBytes = 32 * 2 ** 20;

/** A smaller sample would be too coarse. */
const leastPercent = 0.01;

/** The names of `tables` come from our own code, never from outside. */
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
