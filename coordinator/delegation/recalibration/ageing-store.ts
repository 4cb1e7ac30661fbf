/** What rounds tell of how long delegations last, and table move_rate: what was learned of it, for those who explain. */
import type { Pool, PoolClient } from "pg";
import { asSubnetId } from "#core/ids";
import { nearlyBestMs } from "../accuracy.ts";
import type { AgedDelegation } from "../delegation.ts";
import { decidedByMeasuring } from "../round-reads.ts";
import type { CheckOutcome, MoveCounts, MoveRates, RateKind } from "./ageing.ts";

/**
 * Decided by a probe round before a moment, oldest first, behind a place in that order, with what is fetched there. What
 * was given away for its load, or taken over, is left out: a new round would undo that.
 */
export async function decidedBefore(
  pool: Pool,
  before: Date,
  behind: Pick<AgedDelegation, "subnetId" | "decidedAt"> | null,
  limit: number,
): Promise<AgedDelegation[]> {
  const { rows } = await pool.query<{ subnet_id: number; delegated_at: Date }>(
    `select d.subnet_id, d.delegated_at
     from delegation d
     where d.cause = 'probe-round'
       and d.measured
       and d.delegated_at < $1
       and (d.delegated_at, d.subnet_id) > ($2::timestamptz, $3::int)
     order by d.delegated_at, d.subnet_id
     limit $4`,
    [before, behind?.decidedAt ?? "-infinity", behind?.subnetId ?? 0, limit],
  );
  const fetches = await fetchesOf(
    pool,
    rows.map((row) => row.subnet_id),
  );
  return rows.map((row) => ({
    subnetId: asSubnetId(row.subnet_id),
    decidedAt: row.delegated_at,
    pagesPerDay: (fetches.get(row.subnet_id) ?? 0) / 7,
  }));
}

/** Of the last seven days, as the list of sites has them. */
async function fetchesOf(pool: Pool, subnetIds: readonly number[]): Promise<ReadonlyMap<number, number>> {
  const { rows } = await pool.query<{ subnet_id: number; fetches: number }>(
    `select subnet_id, sum(fetches)::float8 as fetches
     from site
     where subnet_id = any($1::int[])
     group by subnet_id`,
    [subnetIds],
  );
  return new Map(rows.map(({ subnet_id, fetches }) => [subnet_id, fetches]));
}

interface SubnetOutcome extends CheckOutcome {
  readonly subnetId: ReturnType<typeof asSubnetId>;
}

/**
 * Of the latest rounds, those that checked a decision, each beside the round before it. Another crawler that is hardly
 * nearer is no move: what is within a few ms of the best is as good as the best. A crawler before that answers no more
 * has moved by a time that nobody knows.
 */
export async function checkOutcomes(pool: Pool, mostRounds: number): Promise<SubnetOutcome[]> {
  const { rows } = await pool.query<{
    subnet_id: number;
    days: number;
    moved: boolean;
    lost_ms: number | null;
  }>(
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
     select c.subnet_id, extract(epoch from c.decided_at - c.before_at)::float8 / 86400 as days,
       c.crawler_id <> c.before_id and coalesce(old.rtt_ms - new.rtt_ms > $2, true) as moved,
       (old.rtt_ms - new.rtt_ms)::float8 as lost_ms
     from checked c
     left join probe old
       on old.round_id = c.round_id and old.crawler_id = c.before_id and old.method = c.method and old.rtt_ms is not null
     left join probe new
       on new.round_id = c.round_id and new.crawler_id = c.crawler_id and new.method = c.method and new.rtt_ms is not null
     where c.before_id is not null and c.cause in ('refresh', 'slow-fetches', 'sampled')`,
    [mostRounds, nearlyBestMs],
  );
  return rows.map((row) => ({
    subnetId: asSubnetId(row.subnet_id),
    days: row.days,
    moved: row.moved,
    lostMs: row.moved ? row.lost_ms : 0,
  }));
}

/** In place of those that were known. In the caller's transaction. */
export async function saveMoveRates(client: PoolClient, rates: MoveRates): Promise<void> {
  const rows = [...rates.all()];
  await client.query("delete from move_rate");
  await client.query(
    `insert into move_rate (kind, key, moves, months, lost_ms)
     select * from unnest($1::text[], $2::text[], $3::int[], $4::float8[], $5::float8[])`,
    [
      rows.map(({ kind }) => kind),
      rows.map(({ key }) => String(key)),
      rows.map(({ moves }) => moves),
      rows.map(({ months }) => months),
      rows.map(({ lostMs }) => lostMs),
    ],
  );
}

/** What was seen of each kind that a subnet belongs to, from the least to the most specific; empty: nothing was learned yet. */
export async function moveCountsOf(
  pool: Pool,
  {
    holderId,
    country,
  }: {
    readonly holderId: number | null;
    readonly country: string | null;
  },
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
