/**
 * Transactions of the stores. All lock rows in the same order: the outbox's batch, spool, lease (by id), host (by hash). The
 * URLs of a host change only under its host's lock. If two transactions still deadlock, Postgres ends one, which then runs
 * again from the start.
 */

import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient, QueryResult, QueryResultRow } from "pg";
import { foreignDateMs } from "../core/foreign-dates.ts";
import { timerMs } from "../core/timer-ms.ts";

/** deadlock_detected and serialization_failure: nothing was written, and a retry may succeed. */
const passingCodes: readonly string[] = ["40P01", "40001"];

const maxTries = 10;

/**
 * Runs `work` in one transaction and repeats it after a collision, so `work` must change nothing but the database. `settings`
 * is SQL that applies to the transaction.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  settings = "",
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(pool, work, settings);
    } catch (error) {
      if (!isPassing(error) || attempt === maxTries) throw error;
      await delay(timerMs(5 * attempt));
    }
  }
}

const isPassing = (error: unknown): boolean =>
  passingCodes.includes(sqlStateOf(error)) || isOutdatedPlan(error);

/**
 * feature_not_supported from the function that checks a plan: a migration changed the result of a statement that this
 * connection had prepared. The server's text cannot be compared, because it may be in any language.
 */
const isOutdatedPlan = (error: unknown): boolean =>
  sqlStateOf(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";

export function sqlStateOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/**
 * Whether a retry with the same values would fail again: duplicate keys in one command, data exceptions, violated
 * constraints, program limits, syntax errors in input, and what our own code throws for an unexpected number or text.
 */
export const isFaultyValue = (error: unknown): boolean =>
  /^(21|22|23|54|42601)/.test(sqlStateOf(error)) || error instanceof RangeError || error instanceof TypeError;

/** Turns rows into one array per column, which `unnest` turns back into rows. */
export function columnsOf<Row extends object>(
  rows: readonly Row[],
  names: readonly (keyof Row)[],
): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}

/**
 * Passes rows to a statement with many columns, each named once: `host_hash bigint, url text`. The rows' fields have the same
 * names in camel case; none may be missing.
 */
export function rowsGiven(spec: string) {
  const columns = spec.split(",").map((one) => one.trim().split(" ") as [name: string, type: string]);
  const fields = columns.map(([name]) => name.replace(/_[a-z]/g, (letter) => letter.slice(1).toUpperCase()));
  const names = columns.map(([name]) => name);
  return {
    names,
    /** Returns SQL for the rows under the name `given`; `first` is the number of its first parameter. */
    sql: (first = 1): string =>
      `unnest(${columns.map(([, type], at) => `$${first + at}::${type}[]`).join(", ")}) as given (${names.join(", ")})`,
    valuesOf: (rows: readonly object[]): unknown[][] =>
      fields.map((field) =>
        rows.map((row) => {
          if (!(field in row)) throw new Error(`a row has no ${field}`);
          return row[field as keyof typeof row];
        }),
      ),
  };
}

/**
 * Formats numbers as a Postgres array. The driver would check each value for quotes, which takes longer than all other work
 * with links.
 */
export function listOf(values: Iterable<string | number>): string {
  return `{${[...values].join()}}`;
}

async function once<T>(pool: Pool, work: (client: PoolClient) => Promise<T>, settings: string): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query(settings === "" ? "begin" : `begin; ${settings}`);
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    broken = isOutdatedPlan(error);
    // A connection that cannot roll back is closed rather than returned to the pool.
    await client.query("rollback").catch(() => {
      broken = true;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** Removes NUL, which Postgres' text cannot hold, and unpaired surrogates, which break its JSON. */
export function clean(text: string): string {
  return text.replaceAll("\0", "").replace(/\p{Cs}/gu, "\ufffd");
}

const maxInteger = 2_147_483_647;

export function asInteger(value: number): number {
  return Math.min(Math.round(value), maxInteger);
}

/** The first web page dates from 1991, so an earlier date cannot be a page's; nor can one after tomorrow. */
const earliestMs = Date.UTC(1990, 0, 1);

const dayMs = 86_400_000;

/** Parses an ISO 8601 day or time (UTC without a zone). Returns null if it cannot be a page's. */
export function pageDate(text: string | undefined, now: Date): Date | null {
  const atMs = foreignDateMs(text ?? "");
  return atMs === null || atMs < earliestMs || atMs > now.getTime() + dayMs ? null : new Date(atMs);
}

// Prepares frequent statements, so that each connection parses and plans them once. Planning would otherwise be most of their
// cost, because tables that grow with the web have a plan for each partition.

/** A connection keeps prepared statements until it ends, so any texts beyond this number run unprepared. */
const mostTexts = 500;

/** `text` must be one of a few constants that do not depend on user input. */
export async function prepared<Row extends QueryResultRow>(
  client: Pool | PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult<Row>> {
  const name = nameOf(text);
  return await client.query<Row>({ ...(name === null ? {} : { name }), text, values: [...values] });
}

/**
 * Transaction settings that make each connection plan prepared statements once. By default the server plans again for each
 * batch, which is most of a short batch's cost, because it overestimates partitions that are never read. For the same reason
 * it would compile them. A generic plan knows no sizes and would scan tables that were empty when it was made, so indexes are
 * enforced.
 */
export const plannedOnce = `set local plan_cache_mode = force_generic_plan; set local jit = off;
  set local enable_seqscan = off`;

/**
 * Like `plannedOnce`, for batches that join lists of hundreds, which a generic plan would compare pairwise. Lists are joined
 * by hash. Lookups by key, row after row, must say so (`cross join lateral`, `offset 0`).
 */
export const plannedOnceByHash = `${plannedOnce}; set local enable_nestloop = off`;

/** Wraps the connection so that queries with values are prepared. */
export function preparing(client: PoolClient): PoolClient {
  const query = (text: unknown, values?: unknown) =>
    typeof text === "string" && Array.isArray(values)
      ? prepared(client, text, values)
      : (client.query as (...all: unknown[]) => unknown)(text, values);
  return Object.assign(Object.create(client) as PoolClient, { query });
}

const names = new Map<string, string>();

/** A name is derived from the text, because a connection refuses another text under a known name. */
function nameOf(text: string): string | null {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= mostTexts) return null;
  const name = `nearcrawl-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
  names.set(text, name);
  return name;
}
