/** What becomes of finer delegations: reviewed, inherited, ended. Statements within the store's transactions. */
import type { PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { recordChanges } from "./finer-records.ts";
import type { FinerDelegationStore, FinerId, ReviewTimes } from "./override.ts";
import { followFinerDelegations } from "./store.ts";

type Decision = Parameters<FinerDelegationStore["reviewed"]>[1];

export async function reviewed(
  client: PoolClient,
  { finerId, decision }: { readonly finerId: FinerId; readonly decision: Decision },
  { now, reviewAt }: ReviewTimes,
): Promise<void> {
  const { rows } = await client.query<{ subnet_id: number; crawler_id: number }>(
    "select subnet_id, crawler_id from finer_delegation where finer_id = $1 for update",
    [finerId],
  );
  const [before] = rows;
  if (before === undefined) return;
  if (decision === null) {
    await client.query("update finer_delegation set review_at = $2 where finer_id = $1", [finerId, reviewAt]);
    return;
  }
  await client.query(
    `update finer_delegation
     set crawler_id = $2, round_id = $3, measured = $4::real is not null, rtt_ms = $4, runner_up_id = $5,
         runner_up_rtt_ms = $6, subnet_rtt_ms = $7, review_at = $8,
         cause = case when crawler_id = $2 then cause when host_hash is null then 'measures-apart' else 'differs-by-place' end,
         delegated_at = case when crawler_id = $2 then delegated_at else $9 end
     where finer_id = $1`,
    [
      finerId,
      decision.crawlerId,
      decision.roundId,
      decision.rttMs,
      decision.runnerUpId,
      decision.runnerUpRttMs,
      decision.subnetRttMs,
      reviewAt,
      now,
    ],
  );
  if (before.crawler_id === decision.crawlerId) return;
  const change = { subnetId: before.subnet_id, from: before.crawler_id, to: decision.crawlerId };
  await recordChanges(
    client,
    [{ ...change, cause: "review", roundId: decision.roundId, reason: decision.reason }],
    now,
  );
}

/** Their hosts go with their subnets again, or with a part of it. */
export async function endFiner(
  client: PoolClient,
  ids: readonly number[],
  { reason, now }: { readonly reason: string; readonly now: Date },
): Promise<void> {
  if (ids.length === 0) return;
  await client.query(
    `with ended as (
       delete from finer_delegation
       where finer_id = any($1::int[])
       returning subnet_id, crawler_id
     )
     insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, reason)
     select ended.subnet_id, $2, ended.crawler_id, d.crawler_id, 'joined-again', $3
     from ended
     left join delegation d using (subnet_id)`,
    [ids, now, reason],
  );
  const { rows } = await client.query<{ host_hash: HostHash }>(
    "select host_hash from frontier_host where finer_id = any($1::int[])",
    [ids],
  );
  await followFinerDelegations(client, { hashes: rows.map((row) => row.host_hash) });
}

/** What the heirs measured in the latest round decides; who only inherits as the subnet's crawler measured nothing. */
export async function inherit(
  client: PoolClient,
  { gone, heirs }: { readonly gone: CrawlerId; readonly heirs: readonly CrawlerId[] },
  now: Date,
): Promise<{ moved: number; left: number }> {
  const { rows } = await client.query<{ moved: number; left: number }>(
    `with given as (
       select finer_id, subnet_id, round_id
       from finer_delegation
       where crawler_id = $1
       order by finer_id
       for update
     ), heir as (
       select given.finer_id, given.subnet_id, given.round_id, measured.rtt_ms,
         coalesce(measured.crawler_id, d.crawler_id) as crawler_id
       from given
       join probe_round r on r.round_id = given.round_id
       left join lateral (
         select p.crawler_id, min(p.rtt_ms) as rtt_ms
         from probe p
         where p.round_id = r.round_id
           and p.outcome = 'measured'
           and p.method = coalesce(r.method, p.method)
           and p.crawler_id = any($2::int[])
         group by p.crawler_id
         order by 2, 1
         limit 1
       ) measured on true
       left join delegation d on d.subnet_id = given.subnet_id and d.crawler_id = any($2::int[])
     ), moved as (
       update finer_delegation f
       set crawler_id = heir.crawler_id, cause = 'crawler-left', measured = heir.rtt_ms is not null,
           rtt_ms = heir.rtt_ms, runner_up_id = null, runner_up_rtt_ms = null, delegated_at = $3,
           review_at = case when heir.rtt_ms is null then $3 else f.review_at end
       from heir
       where f.finer_id = heir.finer_id and heir.crawler_id is not null
       returning f.subnet_id, f.crawler_id, f.round_id, f.rtt_ms
     ), recorded as (
       insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
       select subnet_id, $3, $1, crawler_id, 'crawler-left', round_id,
         case when rtt_ms is null then 'its crawler is gone; the subnet''s crawler has it until it is probed again'
              else 'its crawler is gone; this one was the next best' end
       from moved
     )
     select (select count(*)::int from moved) as moved,
       (select count(*)::int from heir where crawler_id is null) as left`,
    [gone, heirs, now],
  );
  return rows[0]!;
}

/** Parts of a subnet that is not in force any more, or over which a more specific one has been registered. */
export async function endOutdated(client: PoolClient, now: Date): Promise<number> {
  const { rows } = await client.query<{ finer_id: number }>(
    `select f.finer_id
     from finer_delegation f
     join subnet s using (subnet_id)
     where f.host_hash is null
       and (s.removed_in is not null or exists (
         select
         from subnet inner_subnet
         where inner_subnet.removed_in is null
           and inner_subnet.first_address between s.first_address and f.last_address
           and inner_subnet.last_address between f.first_address and s.last_address
           and inner_subnet.first_address <> inner_subnet.last_address
           and inner_subnet.subnet_id <> s.subnet_id
       ))
     order by f.finer_id
     for update of f`,
  );
  await endFiner(
    client,
    rows.map((row) => row.finer_id),
    { reason: "the registry has other ranges there now", now },
  );
  return rows.length;
}
