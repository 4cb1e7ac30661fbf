/** Delegations that are not the last word: for the time being, unmeasured, or by load. */
import type { Pool } from "pg";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";

/** Delegations without an answer whose next try is due; those that a move left unmeasured are due at once. */
export async function unmeasured(pool: Pool, limit: number, now: Date): Promise<SubnetId[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(
    `select subnet_id
     from delegation
     where not measured and cause <> 'own-subnet' and (retry_at is null or retry_at <= $2)
     order by retry_at nulls first, delegated_at, subnet_id
     limit $1`,
    [limit, now],
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}

/** Until the crawler's first fetch has been held against others: unmeasured, so that a restart finds it again. */
export async function delegateProvisionally(
  pool: Pool,
  subnetId: SubnetId,
  crawlerId: CrawlerId,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `with added as (
       insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
       values ($1, $2, 'first-fetch', false, $3)
       on conflict (subnet_id) do nothing
       returning subnet_id, crawler_id
     )
     insert into delegation_history (subnet_id, changed_at, to_crawler_id, cause, reason)
     select subnet_id, $3, crawler_id, 'first-fetch', 'the likeliest; its first fetch is the first measurement'
     from added`,
    [subnetId, crawlerId, now],
  );
  return rowCount === 1;
}

export async function anycastSubnets(pool: Pool): Promise<SubnetId[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(
    "select subnet_id from delegation where anycast order by subnet_id",
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}
