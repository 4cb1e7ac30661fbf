/** Delegations by the age of the round that decided them: what is to be probed again some day. */
import type { Pool } from "pg";
import { asSubnetId } from "#core/ids";
import type { AgedDelegation } from "./delegation.ts";

/**
 * Decided by a probe round before a moment, oldest first, behind a place in that order. What was given away
 * for its load, or taken over, is left out: a new round would undo that.
 */
export async function decidedBefore(
  pool: Pool,
  before: Date,
  behind: AgedDelegation | null,
  limit: number,
): Promise<AgedDelegation[]> {
  const { rows } = await pool.query<{ subnet_id: number; delegated_at: Date }>(
    `select subnet_id, delegated_at
     from delegation
     where cause = 'probe-round'
       and measured
       and delegated_at < $1
       and (delegated_at, subnet_id) > ($2::timestamptz, $3::int)
     order by delegated_at, subnet_id
     limit $4`,
    [before, behind?.decidedAt ?? "-infinity", behind?.subnetId ?? 0, limit],
  );
  return rows.map((row) => ({ subnetId: asSubnetId(row.subnet_id), decidedAt: row.delegated_at }));
}
