/**
 * A subnet is in use when it is delegated or has hosts in the frontier. An import or rollback that removes more than a
 * few is usually an accident, so the caller must confirm how many are removed.
 */
import type { Pool, PoolClient } from "pg";
import { RemovesInUse } from "#core/errors";
import type { SubnetsInUse } from "../read/status-api.ts";

/** A larger share needs confirmation. */
const mostGoingShare = 0.05;

export const isMuchInUse = ({ total, going }: SubnetsInUse): boolean => going > total * mostGoingShare;

/** Example: "12 of the 40 subnets in use (30.0 %)". */
export function goingWords({ total, going }: SubnetsInUse): string {
  const share = total === 0 ? 0 : going / total;
  return `${going.toLocaleString("en-GB")} of the ${total.toLocaleString("en-GB")} subnets in use (${(100 * share).toFixed(1)} %)`;
}

export function requireMeant(inUse: SubnetsInUse, removeInUse: number | null): void {
  if (!isMuchInUse(inUse) || removeInUse === inUse.going) return;
  const named = removeInUse === null ? "" : `, and not ${removeInUse}`;
  throw new RemovesInUse(
    `this removes ${goingWords(inUse)}, delegated or with hosts in the frontier${named}. Nothing ` +
      `was changed; if that is meant, say --yes-remove ${inUse.going}`,
  );
}

/** $1 is the generations of the two placeholder roots, whose loss does not matter. */
const inUseSql = `
  select c.subnet_id, c.added_in
  from (
    select subnet_id from delegation
    union
    select subnet_id from frontier_host where subnet_id is not null
  ) used
  join subnet c using (subnet_id)
  where c.removed_in is null and c.added_in <> all ($1::int[])`;

async function generationsOf(
  client: Pick<PoolClient, "query">,
  state: "stand-in" | "applied",
  most: number | null = null,
): Promise<number[]> {
  const { rows } = await client.query<{ generation: number }>(
    "select generation from registry_generation where state = $1 order by generation desc limit $2",
    [state, most],
  );
  return rows.map((row) => row.generation);
}

export async function readSubnetsInUse(client: PoolClient): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ subnet_id: number }>(inUseSql, [
    await generationsOf(client, "stand-in"),
  ]);
  return new Set(rows.map((row) => row.subnet_id));
}

/** Counts the subnets that a rollback of the newest imports removes: those that they added or brought back. */
export async function inUseOfRollback(
  client: Pick<PoolClient, "query">,
  imports: number,
): Promise<SubnetsInUse> {
  const undone = await generationsOf(client, "applied", imports);
  const { rows } = await client.query<SubnetsInUse>(
    `select count(*)::int as total,
       (count(*) filter (where added_in = any ($2::int[]) or subnet_id = any ($3::int[])))::int as going
     from (${inUseSql}) used`,
    [await generationsOf(client, "stand-in"), undone, await broughtBackBy(client, undone)],
  );
  return rows[0]!;
}

/** Subnets that were removed before the first of these imports that touched them, and are in force after it. */
async function broughtBackBy(
  client: Pick<PoolClient, "query">,
  imports: readonly number[],
): Promise<number[]> {
  const { rows } = await client.query<{ subnet_id: number }>(
    `select subnet_id
     from (
       select distinct on (subnet_id) subnet_id, removed_in
       from subnet_before
       where generation = any ($1::int[])
       order by subnet_id, generation
     ) first
     where removed_in is not null`,
    [imports],
  );
  return rows.map((row) => row.subnet_id);
}

/** Returns null when counting takes too long for an interactive caller, since a large frontier must be scanned. */
export async function inUseOfRollbackWithin(
  pool: Pool,
  imports: number,
  withinMs: number,
): Promise<SubnetsInUse | null> {
  const client = await pool.connect();
  try {
    await client.query("begin read only");
    await client.query(`set local statement_timeout = ${Math.max(1, Math.round(withinMs))}`);
    return await inUseOfRollback(client, imports);
  } catch (error) {
    if ((error as { code?: unknown }).code === queryCanceled) return null;
    throw error;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

const queryCanceled = "57014";
