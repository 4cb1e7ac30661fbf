/** The advisory locks by which coordinators that run on a schema are known (crawlers/coordinator-presence-store). */
import type { Pool, PoolClient } from "pg";

/** The first of the lock's two keys, of the schema that `schemaSql` tells; the second is the coordinator's number. */
export const coordinatorLockKey = (schemaSql = "current_schema()") =>
  `hashtext('nearcrawl coordinator ' || ${schemaSql})`;

/** The locks that are held, as a `from` and `where` of pg_locks `l`; objid is the coordinator's number. */
export const heldCoordinatorLocks = (schemaSql?: string) => `
  from pg_locks l
  where locktype = 'advisory' and granted and objsubid = 2
    and l.database = (select oid from pg_database where datname = current_database())
    and classid::bigint = ${coordinatorLockKey(schemaSql)}::bigint & 4294967295`;

export interface RunningCoordinator {
  readonly number: number;
  /** Host and port, for people; null: an older version's, which said none. */
  readonly name: string | null;
  /** Of its machine, as the database sees it; null: the database's own, or not ours to know. */
  readonly address: string | null;
  /** Of its connection; null: not ours to know. */
  readonly since: Date | null;
}

/** Those whose connection stands. */
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
  // Before migration 0067 none has a name.
  const { rows: named } = await client.query<{ number: number; name: string | null }>(
    `select coordinator_number as number, to_jsonb(r) ->> 'name' as name from "${schema}".running_coordinator r`,
  );
  const names = new Map(named.map(({ number, name }) => [number, name]));
  return rows.map((row) => ({ ...row, name: names.get(row.number) ?? null }));
}

/** For people: "coordinator 3 (search.example.org:7411, since 2030-01-31 08:00 UTC)". */
export function coordinatorWords({ number, name, address, since }: RunningCoordinator): string {
  const where = name ?? (address === null ? "on the database's machine" : `at ${address}`);
  return `coordinator ${number} (${where}${since === null ? "" : `, since ${since.toISOString().slice(0, 16).replace("T", " ")} UTC`})`;
}
