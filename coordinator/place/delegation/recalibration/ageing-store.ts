/** What rounds show of how long delegations last, and table move_rate, which stores the learned rates for display. */
import type { Pool, PoolClient } from "pg";
import type { SubnetId } from "#core/ids";
import { columnsOf } from "../../../database/transaction.ts";
import { type AgedDelegation, nearlyBestMs } from "../delegation.ts";
import { decidedByMeasuring } from "../round-reads.ts";
import type { CheckOutcome, MoveCounts, MoveRates, RateKind } from "./ageing.ts";

/**
 * Delegations decided by a round before a time, oldest first after a position, with their daily fetches. Leaves out
 * those assigned by load or inherited, which a new round would undo.
 */
export async function decidedBefore(
  pool: Pool,
  before: Date,
  behind: Pick<AgedDelegation, "subnetId" | "decidedAt"> | null,
  limit: number,
): Promise<AgedDelegation[]> {
  const { rows } = await pool.query<AgedDelegation>(
    `select d.subnet_id as "subnetId", d.delegated_at as "decidedAt",
       coalesce((select sum(fetches)::float8 from site s where s.subnet_id = d.subnet_id), 0) / 7 as "pagesPerDay"
     from (
       select subnet_id, delegated_at
       from delegation
       where cause = 'probe-round'
         and measured
         and delegated_at < $1
         and (delegated_at, subnet_id) > ($2::timestamptz, $3::int)
       order by delegated_at, subnet_id
       limit $4
     ) d
     order by d.delegated_at, d.subnet_id`,
    [before, behind?.decidedAt ?? "-infinity", behind?.subnetId ?? 0, limit],
  );
  return rows;
}

interface SubnetOutcome extends CheckOutcome {
  readonly subnetId: SubnetId;
}

/**
 * The latest rounds that checked a decision, each with its predecessor. A crawler that is only a few ms nearer is no
 * move. If the former crawler no longer answers, the loss is unknown.
 */
export async function checkOutcomes(pool: Pool, mostRounds: number): Promise<SubnetOutcome[]> {
  const { rows } = await pool.query<SubnetOutcome>(
    `with latest as (
       select round_id, subnet_id, cause, decided_at, crawler_id, method
       from probe_round
       where ${decidedByMeasuring}
       order by round_id desc
       limit $1
     ),
     checked as (
       select *, lag(crawler_id) over earlier as before_id, lag(decided_at) over earlier as before_at
       from latest
       window earlier as (partition by subnet_id order by decided_at, round_id)
     )
     select c.subnet_id as "subnetId", extract(epoch from c.decided_at - c.before_at)::float8 / 86400 as days,
       c.crawler_id <> c.before_id and coalesce(old.rtt_ms - new.rtt_ms > $2, true) as moved,
       (old.rtt_ms - new.rtt_ms)::float8 as "lostMs"
     from checked c
     left join probe old
       on old.round_id = c.round_id and old.crawler_id = c.before_id and old.method = c.method and old.rtt_ms is not null
     left join probe new
       on new.round_id = c.round_id and new.crawler_id = c.crawler_id and new.method = c.method and new.rtt_ms is not null
     where c.before_id is not null and c.cause in ('refresh', 'slow-fetches', 'sampled')`,
    [mostRounds, nearlyBestMs],
  );
  return rows.map((row) => (row.moved ? row : { ...row, lostMs: 0 }));
}

/** Replaces the known rates within the caller's transaction. */
export async function saveMoveRates(client: PoolClient, rates: MoveRates): Promise<void> {
  const rows = [...rates.all()].map((one) => ({ ...one, key: String(one.key) }));
  await client.query("delete from move_rate");
  await client.query(
    `insert into move_rate (kind, key, moves, months, lost_ms)
     select * from unnest($1::text[], $2::text[], $3::int[], $4::float8[], $5::float8[])`,
    columnsOf(rows, ["kind", "key", "moves", "months", "lostMs"]),
  );
}

/** Counts for each kind of a subnet, from the least to the most specific; empty before anything is learned. */
export async function moveCountsOf(
  pool: Pool,
  { holderId, country }: { readonly holderId: number | null; readonly country: string | null },
): Promise<(MoveCounts & { readonly kind: RateKind })[]> {
  const { rows } = await pool.query<MoveCounts & { readonly kind: RateKind }>(
    `select kind, moves, months, lost_ms as "lostMs"
     from move_rate
     where (kind, key) in (('all', '0'), ('country', $1), ('holder', $2))
     order by array_position(array['all', 'country', 'holder'], kind)`,
    [country, holderId === null ? null : String(holderId)],
  );
  return rows;
}
