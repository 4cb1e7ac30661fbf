/**
 * Transactions of the stores. Rows are locked in a fixed order everywhere: the outbox' bite, spool, lease (by id),
 * host (by hash); the URLs of a host change only under its host's lock. Where two transactions collide all the same,
 * Postgres ends one of them, and it runs again from the start.
 */

import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient, QueryResult, QueryResultRow } from "pg";
import { foreignDateMs } from "../core/foreign-dates.ts";
import { timerMs } from "../core/timer-ms.ts";

/** deadlock_detected and serialization_failure: nothing was written, and another try may succeed. */
const passingCodes: readonly string[] = ["40P01", "40001"];

const maxTries = 10;

/**
 * Runs `work` in one transaction; after a collision again, so it must change nothing but the database. `settings`: SQL that
 * sets what holds for it.
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
 * feature_not_supported, of the function that looks a plan over: a migration changed what a statement answers that this
 * connection had prepared. The server may say so in any language.
 */
const isOutdatedPlan = (error: unknown): boolean =>
  sqlStateOf(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";

/** The five characters that Postgres names an error by; empty for any other error. */
export function sqlStateOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/**
 * A key twice in one command, data exceptions, broken constraints, program limits, syntax errors in input; and what our own
 * reckoning throws over a number or text that it did not expect. Another try with the same values fails again.
 */
export const isFaultyValue = (error: unknown): boolean =>
  /^(21|22|23|54|42601)/.test(sqlStateOf(error)) || error instanceof RangeError || error instanceof TypeError;

/** The values of rows column by column: the arrays that `unnest` makes rows of again. */
export function columnsOf<Row extends object>(
  rows: readonly Row[],
  names: readonly (keyof Row)[],
): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}

/**
 * Rows of a statement with many columns, each of which is named once: `host_hash bigint, url text`. Of the rows the fields are
 * those of the same names in camel case; one that is missing is a fault of the program.
 */
export function rowsGiven(spec: string) {
  const columns = spec.split(",").map((one) => one.trim().split(" ") as [name: string, type: string]);
  const fields = columns.map(([name]) => name.replace(/_[a-z]/g, (letter) => letter.slice(1).toUpperCase()));
  const names = columns.map(([name]) => name);
  return {
    names,
    /** SQL: the rows as `given`, from this parameter on. */
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
 * Numbers as an array of Postgres reads them. The driver looks at each value of an array for quotes, which takes a
 * coordinator longer than all else that it does with links.
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
    // A connection that cannot even roll back is closed instead of going back to the pool.
    await client.query("rollback").catch(() => {
      broken = true;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

// Texts and numbers of crawlers as columns can hold them.

/** NUL is the one character that Postgres' text cannot hold; half of a surrogate pair is no character, and breaks its JSON. */
export function clean(text: string): string {
  return text.replaceAll("\0", "").replace(/\p{Cs}/gu, "\ufffd");
}

/** The largest number that Postgres' integer holds. */
const maxInteger = 2_147_483_647;

export function asInteger(value: number): number {
  return Math.min(Math.round(value), maxInteger);
}

/** The first web page is of 1991; what is dated earlier, or later than tomorrow, is no date of a page. */
const earliestMs = Date.UTC(1990, 0, 1);

const dayMs = 86_400_000;

/** A day or time of ISO 8601 (without a zone: UTC); null where it is none, or cannot be a page's. */
export function pageDate(text: string | undefined, now: Date): Date | null {
  const atMs = foreignDateMs(text ?? "");
  return atMs === null || atMs < earliestMs || atMs > now.getTime() + dayMs ? null : new Date(atMs);
}

// Statements that run all day, prepared: each connection parses and plans them once. Planning is what they mostly cost
// otherwise, since every table that grows with the web has a plan for each of its parts.

/** A connection keeps what it has prepared until it ends: texts beyond so many are run as they are. */
const mostTexts = 500;

/** `text` is one of a few, which differ in nothing that users give. */
export async function prepared<Row extends QueryResultRow>(
  client: Pool | PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult<Row>> {
  const name = nameOf(text);
  return await client.query<Row>({ ...(name === null ? {} : { name }), text, values: [...values] });
}

/**
 * Settings of a transaction in which each connection plans prepared statements once. Left to itself the server plans them
 * anew for each batch, which is most of what a short one costs: it takes parts of tables that are never read for expensive.
 * For the same reason it would compile them. A plan that is made once knows no sizes, and would go through tables that were
 * empty then: they are read by their indexes.
 */
export const plannedOnce = `set local plan_cache_mode = force_generic_plan; set local jit = off;
  set local enable_seqscan = off`;

/**
 * The same for batches in which lists of hundreds meet: a plan that knows no sizes would compare each of one with all of
 * another. Lists are joined by hash; what is to be looked up by key, row after row, must be said to be so (`cross join
 * lateral`, `offset 0`).
 */
export const plannedOnceByHash = `${plannedOnce}; set local enable_nestloop = off`;

/** The same connection; what is asked of it with values is prepared. */
export function preparing(client: PoolClient): PoolClient {
  const query = (text: unknown, values?: unknown) =>
    typeof text === "string" && Array.isArray(values)
      ? prepared(client, text, values)
      : (client.query as (...all: unknown[]) => unknown)(text, values);
  return Object.assign(Object.create(client) as PoolClient, { query });
}

const names = new Map<string, string>();

/** A connection refuses another text under a name that it knows, so the name is made of the text. */
function nameOf(text: string): string | null {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= mostTexts) return null;
  const name = `nearcrawl-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
  names.set(text, name);
  return name;
}
