/** How hosts and leaves get finer delegations: each call is one transaction of finer-delegation-store.ts. */
import type { PoolClient } from "pg";
import type { SubnetId } from "#core/ids";
import { columnsOf } from "../../database/transaction.ts";
import { endFiner } from "./finer-delegation-writes.ts";
import { recordChanges } from "./finer-records.ts";
import {
  type DelegatedHost,
  type FinerDelegationStore,
  maxFinerDelegations,
  type PlannedPart,
  type ReviewTimes,
} from "./override.ts";
import { followFinerDelegations } from "./store.ts";

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
