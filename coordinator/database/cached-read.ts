import type { Pool } from "pg";
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
