/** How hosts and leaves get finer delegations: each call is one transaction of override-store.ts. */
import type { PoolClient } from "pg";
import type { CrawlerId, SubnetId } from "#core/ids";
import { columnsOf } from "../../database/transaction.ts";
import { isFromHere } from "../round-reads.ts";
import { followFinerDelegations, recordChanges } from "./covered-host-store.ts";
import {
  type DelegatedHost,
  type FinerDelegationStore,
  type FinerId,
  maxFinerDelegations,
  type PlannedPart,
  type ReviewTimes,
} from "./override.ts";

type SplitLeaf = Parameters<FinerDelegationStore["setParts"]>[0];

export async function setHost(client: PoolClient, host: DelegatedHost, times: ReviewTimes): Promise<boolean> {
  const { rows } = await client.query<{ crawler_id: number; had: boolean }>(
    `select d.crawler_id, exists (select from finer_delegation where host_hash = $2) as had
     from (select $1::int as subnet_id) given
     left join delegation d using (subnet_id)`,
    [host.subnetId, host.hostHash],
  );
  if (!rows[0]!.had && (await roomFor(client, 1)) < 1) return false;
  await client.query(
    `insert into finer_delegation (subnet_id, host_hash, crawler_id, round_id, cause, measured, rtt_ms,
       runner_up_id, runner_up_rtt_ms, subnet_rtt_ms, seen, found_at, delegated_at, review_at)
     values ($1, $2, $3, $4, 'differs-by-place', $5::real is not null, $5, $6, $7, $8, $9, $10, $10, $11)
     on conflict (host_hash) do update
       set subnet_id = excluded.subnet_id, crawler_id = excluded.crawler_id, round_id = excluded.round_id, cause = excluded.cause,
           measured = excluded.measured, rtt_ms = excluded.rtt_ms, runner_up_id = excluded.runner_up_id,
           runner_up_rtt_ms = excluded.runner_up_rtt_ms, subnet_rtt_ms = excluded.subnet_rtt_ms,
           seen = excluded.seen, review_at = excluded.review_at,
           delegated_at = case when finer_delegation.crawler_id = excluded.crawler_id
                               then finer_delegation.delegated_at else excluded.delegated_at end`,
    [
      host.subnetId,
      host.hostHash,
      host.crawlerId,
      host.roundId,
      host.rttMs,
      host.runnerUpId,
      host.runnerUpRttMs,
      host.subnetRttMs,
      JSON.stringify(host.seen),
      times.now,
      times.reviewAt,
    ],
  );
  await followFinerDelegations(client, { hashes: [host.hostHash] });
  if (rows[0]!.had) return true;
  const change = { subnetId: host.subnetId, from: rows[0]!.crawler_id, to: host.crawlerId };
  await recordChanges(
    client,
    [{ ...change, cause: "differs-by-place", roundId: host.roundId, reason: host.reason }],
    times.now,
  );
  return true;
}

export async function setParts(
  client: PoolClient,
  leaf: SplitLeaf,
  times: ReviewTimes,
): Promise<{ added: number; ended: number } | null> {
  const { subnetId, subnetCrawlerId } = leaf;
  const owned = await client.query(
    "select from delegation where subnet_id = $1 and crawler_id = $2 for update",
    [subnetId, subnetCrawlerId],
  );
  if (owned.rowCount === 0) return null;
  const ended = await endOthers(client, leaf, times.now);
  const known = await rangesOf(client, subnetId);
  const fresh = leaf.parts.filter((part) => !known.has(part.first));
  const room = await roomFor(client, fresh.length);
  const dropped = new Set(fresh.slice(room));
  const parts = leaf.parts.filter((part) => !dropped.has(part));
  await upsertParts(client, { subnetId, parts }, times);
  const added = fresh.slice(0, room);
  await recordChanges(
    client,
    added.map(({ crawlerId, roundId, reason }) => ({
      subnetId,
      from: subnetCrawlerId,
      to: crawlerId,
      cause: "measures-apart",
      roundId,
      reason,
    })),
    times.now,
  );
  await followFinerDelegations(client, { ofSubnet: subnetId });
  return { added: added.length, ended };
}

/** Ends the parts whose range is not planned any more. */
async function endOthers(client: PoolClient, leaf: SplitLeaf, now: Date): Promise<number> {
  const { rows } = await client.query<{ finer_id: number }>(
    `select finer_id
     from finer_delegation
     where subnet_id = $1 and host_hash is null
       and (first_address, last_address) not in (
         select * from unnest($2::inet[], $3::inet[])
       )
     order by finer_id
     for update`,
    [leaf.subnetId, ...columnsOf(leaf.parts, ["first", "last"])],
  );
  const ids = rows.map((row) => row.finer_id);
  await endFiner(client, ids, { reason: "these addresses measure like the rest of the subnet again", now });
  return ids.length;
}

async function rangesOf(client: PoolClient, subnetId: SubnetId): Promise<Set<string>> {
  const { rows } = await client.query<{ first: string }>(
    "select host(first_address) as first from finer_delegation where subnet_id = $1 and host_hash is null",
    [subnetId],
  );
  return new Set(rows.map((row) => row.first));
}

async function upsertParts(
  client: PoolClient,
  { subnetId, parts }: { readonly subnetId: SubnetId; readonly parts: readonly PlannedPart[] },
  times: ReviewTimes,
): Promise<void> {
  if (parts.length === 0) return;
  await client.query(
    `insert into finer_delegation (subnet_id, first_address, last_address, crawler_id, round_id, cause, measured,
       rtt_ms, runner_up_id, runner_up_rtt_ms, subnet_rtt_ms, found_at, delegated_at, review_at)
     select $1, first_address, last_address, crawler_id, round_id, 'measures-apart', rtt_ms is not null, rtt_ms,
       runner_up_id, runner_up_rtt_ms, subnet_rtt_ms, $2, $2, $3
     from unnest($4::inet[], $5::inet[], $6::int[], $7::int[], $8::real[], $9::int[], $10::real[], $11::real[])
       as given (first_address, last_address, crawler_id, round_id, rtt_ms, runner_up_id, runner_up_rtt_ms,
         subnet_rtt_ms)
     on conflict (subnet_id, first_address) where host_hash is null do update
       set crawler_id = excluded.crawler_id, round_id = excluded.round_id, cause = excluded.cause,
           measured = excluded.measured, rtt_ms = excluded.rtt_ms, runner_up_id = excluded.runner_up_id,
           runner_up_rtt_ms = excluded.runner_up_rtt_ms, subnet_rtt_ms = excluded.subnet_rtt_ms,
           review_at = excluded.review_at,
           delegated_at = case when finer_delegation.crawler_id = excluded.crawler_id
                               then finer_delegation.delegated_at else excluded.delegated_at end`,
    [
      subnetId,
      times.now,
      times.reviewAt,
      ...columnsOf(parts, [
        "first",
        "last",
        "crawlerId",
        "roundId",
        "rttMs",
        "runnerUpId",
        "runnerUpRttMs",
        "subnetRttMs",
      ]),
    ],
  );
}

/** How many more may be added, at most as many as are wanted. */
async function roomFor(client: PoolClient, wanted: number): Promise<number> {
  if (wanted === 0) return 0;
  const { rows } = await client.query<{ finer: number }>(
    "select count(*)::int as finer from finer_delegation",
  );
  return Math.max(0, Math.min(wanted, maxFinerDelegations - rows[0]!.finer));
}

// What becomes of finer delegations: reviewed, inherited, ended. Statements within the store's transactions.

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
  await followFinerDelegations(client, { hadFiner: ids });
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
           and ${isFromHere("p", "r")}
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
