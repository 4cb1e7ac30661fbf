/**
 * Session locks, one per name and schema. A lock ends with its connection, even after kill -9 of the process, and never
 * blocks readers or writers of tables.
 */

import { createHash } from "node:crypto";
import type { Pool, PoolClient } from "pg";

const keys = "hashtext($1), hashtext($2)";

export async function tryAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(`select pg_try_advisory_lock(${keys}) as locked`, [
    name,
    schema,
  ]);
  return rows[0]?.locked ?? false;
}

/** A broken connection has already released the lock. */
export async function releaseAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<void> {
  await client.query(`select pg_advisory_unlock(${keys})`, [name, schema]).catch(() => {});
}

/**
 * Needs a statement of its own: with tables on several servers, a lock check beside a table would be sent to that
 * table's server.
 */
const isLockHeldSql = `exists (
  select from pg_locks
  where locktype = 'advisory' and granted and objsubid = 2
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext($1)::bigint & 4294967295
    and objid::bigint = hashtext($2)::bigint & 4294967295
)`;

export async function isAdvisoryLockHeld(pool: Pool, name: string, schema: string): Promise<boolean> {
  const { rows } = await pool.query<{ held: boolean }>(`select ${isLockHeldSql} as held`, [name, schema]);
  return rows[0]?.held ?? false;
}

/** The lock's first key, for the schema of `schemaSql`. The second key is the coordinator's number. */
export const coordinatorLockKey = (schemaSql = "current_schema()") =>
  `hashtext('nearcrawl coordinator ' || ${schemaSql})`;

/** The held locks, as `from` and `where` over pg_locks `l`. Its objid is the coordinator's number. */
export const heldCoordinatorLocks = (schemaSql?: string) => `
  from pg_locks l
  where locktype = 'advisory' and granted and objsubid = 2
    and l.database = (select oid from pg_database where datname = current_database())
    and classid::bigint = ${coordinatorLockKey(schemaSql)}::bigint & 4294967295`;

/** A longer name does not fit into the 63 characters of a session's name. */
const mostSchemaCharacters = 32;

/** Names all sessions of a coordinator in `pg_stat_activity.application_name`, in plain characters. */
export function coordinatorSession(number: number, schema: string): string {
  const isShort = schema.length <= mostSchemaCharacters;
  const place = isShort
    ? schema
    : createHash("sha256").update(schema).digest("hex").slice(0, mostSchemaCharacters);
  return `nearcrawl-coordinator-${number}-${place}`;
}

export function coordinatorOfSession(name: string | null): number | null {
  const number = /^nearcrawl-coordinator-(\d{1,9})-[a-z0-9_]+$/.exec(name ?? "")?.[1];
  return number === undefined ? null : Number(number);
}

/** Selects a row as long as nobody has replaced the coordinator. */
export const isRegisteredSql = (number: number) =>
  `select from running_coordinator where coordinator_number = ${number}`;

/**
 * Ends all sessions of that name, which releases their row locks immediately, and returns how many there were. Throws
 * insufficient_privilege (42501) when they belong to a role whose sessions this one may not end.
 */
export async function endSessions(client: Pick<Pool | PoolClient, "query">, name: string): Promise<number> {
  const { rows } = await client.query(
    `select pg_terminate_backend(pid)
     from pg_stat_activity
     where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()`,
    [name],
  );
  return rows.length;
}

export interface RunningCoordinator {
  readonly number: number;
  /** Host and port. Null for older versions, which did not record them. */
  readonly name: string | null;
  /** The machine's address as the database sees it. Null for the database's own machine, or when our role may not see it. */
  readonly address: string | null;
  /** When it connected. Null when our role may not see it. */
  readonly since: Date | null;
}

export async function runningCoordinators(
  client: Pick<Pool | PoolClient, "query">,
  schema: string,
): Promise<RunningCoordinator[]> {
  const { rows } = await client.query<Omit<RunningCoordinator, "name">>(
    `select held.number, host(a.client_addr) as address, a.backend_start as since
     from (select l.objid::bigint::integer as number, l.pid ${heldCoordinatorLocks("$1::text")}) held
     left join pg_stat_activity a using (pid)
     order by held.number`,
    [schema],
  );
  if (rows.length === 0) return [];
  // Migration 0067 added the names.
  const { rows: named } = await client.query<{ number: number; name: string | null }>(
    `select coordinator_number as number, to_jsonb(r) ->> 'name' as name from "${schema}".running_coordinator r`,
  );
  const names = new Map(named.map(({ number, name }) => [number, name]));
  return rows.map((row) => ({ ...row, name: names.get(row.number) ?? null }));
}

/** Example: "coordinator 3 (search.example.org:7411, since 2030-01-31 08:00 UTC)". */
export function coordinatorWords({ number, name, address, since }: RunningCoordinator): string {
  const where = name ?? (address === null ? "on the database's machine" : `at ${address}`);
  return `coordinator ${number} (${where}${since === null ? "" : `, since ${since.toISOString().slice(0, 16).replace("T", " ")} UTC`})`;
}
