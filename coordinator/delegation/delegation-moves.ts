/** Tables delegation and delegation_history: subnets that go from one crawler to another without a round. */
import type { Pool, PoolClient } from "pg";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import type { DelegationMove, DelegationStore } from "./delegation.ts";

/**
 * The former crawler stays as runner-up, with what was measured of it, unless it has left. The deciding
 * round stays named: its probes are still what is known of the subnet.
 */
export async function move(
  client: PoolClient,
  moves: readonly DelegationMove[],
  now: Date,
): Promise<SubnetId[]> {
  await client.query("select from delegation where subnet_id = any($1) order by subnet_id for update", [
    moves.map((one) => one.subnetId),
  ]);
  const { rows } = await client.query<{ subnet_id: number }>(
    `with moved as (
       update delegation d
       set crawler_id = given.to_id,
           cause = given.cause,
           measured = given.rtt_ms is not null,
           rtt_ms = given.rtt_ms,
           runner_up_id = case when given.cause = 'crawler-left' then null else given.from_id end,
           runner_up_rtt_ms = case when given.cause = 'crawler-left' then null else d.rtt_ms end,
           delegated_at = $7
       from unnest($1::int[], $2::int[], $3::int[], $4::text[], $5::text[], $6::real[])
         as given (subnet_id, from_id, to_id, cause, reason, rtt_ms)
       where d.subnet_id = given.subnet_id
         and d.crawler_id = given.from_id
         and given.to_id <> given.from_id
       returning d.subnet_id, given.from_id, given.to_id, given.cause, d.round_id, given.reason
     )
     insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
     select subnet_id, $7, from_id, to_id, cause, round_id, reason
     from moved
     returning subnet_id`,
    [
      moves.map((one) => one.subnetId),
      moves.map((one) => one.from),
      moves.map((one) => one.to),
      moves.map((one) => one.cause),
      moves.map((one) => one.reason),
      moves.map((one) => one.rttMs),
      now,
    ],
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}

/**
 * What was taken from a crawler because it left or was drained, each subnet with what the crawler had measured
 * in the round that is still the deciding one. At most so many: the latest.
 */
export async function formerSubnets(
  pool: Pool,
  crawlerId: CrawlerId,
  since: Date,
): ReturnType<DelegationStore["formerSubnets"]> {
  const { rows } = await pool.query<{ subnet_id: number; rtt_ms: number | null }>(
    `select d.subnet_id, min(p.rtt_ms) as rtt_ms
     from (
       select subnet_id
       from delegation_history
       where from_crawler_id = $1 and changed_at >= $2 and cause in ('crawler-left', 'drained')
       order by changed_at desc
       limit ${mostFormer}
     ) had
     join delegation d on d.subnet_id = had.subnet_id and d.crawler_id <> $1
     left join probe_round r on r.round_id = d.round_id
     left join probe p on p.round_id = r.round_id
       and p.crawler_id = $1
       and p.outcome = 'measured'
       and p.method = coalesce(r.method, p.method)
     group by d.subnet_id
     order by d.subnet_id`,
    [crawlerId, since],
  );
  return rows.map((row) => ({ subnetId: asSubnetId(row.subnet_id), rttMs: row.rtt_ms }));
}

const mostFormer = 200_000;
