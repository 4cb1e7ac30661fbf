/**
 * Subnets in use: delegated to a crawler, or with hosts in the frontier. An import or a rollback that takes away more than a
 * few of them is an accident more often than not, and has to be meant: who asks for it names their number.
 */
import type { Pool, PoolClient } from "pg";
import { RemovesInUse } from "#core/errors";

export interface SubnetsInUse {
  /** In the tree in force. */
  readonly total: number;
  /** Of those, the ones that go. */
  readonly going: number;
}

/** A larger share of them goes only when it is meant. */
export const mostGoingShare = 0.05;

export const isMuchInUse = ({ total, going }: SubnetsInUse): boolean => going > total * mostGoingShare;

/** For people: "12 of the 40 subnets in use (30.0 %)". */
export function goingWords({ total, going }: SubnetsInUse): string {
  const share = total === 0 ? 0 : going / total;
  return `${going.toLocaleString("en-GB")} of the ${total.toLocaleString("en-GB")} subnets in use (${(100 * share).toFixed(1)} %)`;
}

/** Throws RemovesInUse unless that number of them is meant to go, or they are few. */
export function requireMeant(inUse: SubnetsInUse, removeInUse: number | null): void {
  if (!isMuchInUse(inUse) || removeInUse === inUse.going) return;
  const named = removeInUse === null ? "" : `, and not ${removeInUse}`;
  throw new RemovesInUse(
    `this removes ${goingWords(inUse)}, delegated or with hosts in the frontier${named}. Nothing was changed; if that is meant, say --yes-remove ${inUse.going}`,
  );
}

/** The two roots that stand in where there is no registry are nobody's loss. */
const inUseSql = `
  select c.subnet_id, c.added_in
  from (
    select subnet_id from delegation
    union
    select subnet_id from frontier_host where subnet_id is not null
  ) used
  join subnet c using (subnet_id)
  where c.removed_in is null
    and c.added_in not in (select generation from registry_generation where state = 'stand-in')`;

export async function readSubnetsInUse(client: PoolClient): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ subnet_id: number }>(inUseSql);
  return new Set(rows.map((row) => row.subnet_id));
}

/** When the newest imports, so many, are rolled back: those that they added, or brought back. */
export async function inUseOfRollback(
  client: Pick<PoolClient, "query">,
  imports: number,
): Promise<SubnetsInUse> {
  const { rows } = await client.query<SubnetsInUse>(
    `with undone as (
       select generation from registry_generation where state = 'applied' order by generation desc limit $1
     ),
     used as (${inUseSql})
     select count(*)::int as total,
       (count(*) filter (
         where added_in in (select generation from undone)
           -- As it was before the first of them that touched it.
           or (
             select x.removed_in from subnet_before x
             where x.subnet_id = used.subnet_id and x.generation in (select generation from undone)
             order by x.generation limit 1
           ) is not null
       ))::int as going
     from used`,
    [imports],
  );
  return rows[0]!;
}

/** The same, for somebody who waits: null when it takes longer. A large frontier is read through. */
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
