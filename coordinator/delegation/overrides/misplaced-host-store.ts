/** Hosts that their subnet's crawler may not have by its domain sets, and the delegations of their own that they get. */
import type { Pool, PoolClient } from "pg";
import { asSubnetId, type CrawlerId, type HostHash, type RoundId, type SubnetId } from "#core/ids";
import { inTransaction } from "../../database/transaction.ts";
import { heldByOneSql, heldSql, type Partition } from "../../domain-sets/partition.ts";
import { followFinerDelegations, recordChanges } from "./covered-host-store.ts";
import { maxFinerDelegations } from "./override.ts";
import { endFiner } from "./writes.ts";

export interface MisplacedHostStore {
  /**
   * Hosts that this crawler has by a delegation, and may not have, while another may: at most `limit`. `others`: the
   * partitions of those that could take them.
   */
  misplaced(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    others: readonly Partition[],
    limit: number,
  ): Promise<MisplacedHost[]>;
  /** Of these subnets, those that this crawler has, and that have hosts without one that it may have. */
  holdsNothingOf(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    subnetIds: readonly SubnetId[],
  ): Promise<SubnetId[]>;
  /** Gives the hosts to the crawler one by one; the number of those for which there was room. */
  delegate(given: HostsBySet, times: { readonly now: Date; readonly reviewAt: Date }): Promise<number>;
  /** What was delegated by set and the subnet's crawler may have by now goes with its subnet again. */
  endNeedless(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    now: Date,
  ): Promise<number>;
  /** Whether any host is delegated by its set. */
  hasDelegated(): Promise<boolean>;
}

export function createMisplacedHostStore(pool: Pool): MisplacedHostStore {
  return {
    misplaced: async (crawler, others, limit) => await misplaced(pool, crawler, { others, limit }),
    holdsNothingOf: async (crawler, subnetIds) => await holdsNothingOf(pool, crawler, subnetIds),
    delegate: async (given, times) => {
      const known = await hostsIn(pool, given.hosts);
      return await inTransaction(
        pool,
        async (client) => await delegate(client, { ...given, hosts: known }, times),
      );
    },
    endNeedless: async (crawler, now) => {
      const ids = (await needlessIn(pool, crawler)).slice(0, endedAtOnce);
      return await inTransaction(pool, async (client) => await endNeedless(client, ids, now));
    },
    hasDelegated: async () => {
      const { rowCount } = await pool.query(
        "select from finer_delegation where cause = 'domain-set' limit 1",
      );
      return rowCount === 1;
    },
  };
}

/** Of those given, that are in the frontier. */
async function hostsIn(pool: Pool, hosts: readonly HostHash[]): Promise<HostHash[]> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    "select distinct host_hash from frontier_host where host_hash = any($1::bigint[])",
    [hosts],
  );
  return rows.map((row) => row.host_hash);
}

async function misplaced(
  pool: Pool,
  { crawlerId, partition }: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  { others, limit }: { readonly others: readonly Partition[]; readonly limit: number },
): Promise<MisplacedHost[]> {
  if (others.length === 0) return [];
  const own = heldSql(partition, "h", 3);
  const other = heldByOneSql(others, "h", 3 + own.values.length);
  const { rows } = await pool.query<MisplacedRow>(
    `select h.host_hash, h.host, h.language, h.subnet_id, u.url, host(h.addresses[1]) as address
     from (
       select h.*
       from delegation d
       join frontier_host h on h.subnet_id = d.subnet_id and h.finer_id is null
       where d.crawler_id = $1
       union all
       select h.*
       from finer_delegation f
       join frontier_host h on h.finer_id = f.finer_id
       where f.crawler_id = $1
     ) h
     cross join lateral (
       select url from frontier_url where host_hash = h.host_hash and state = 'due' limit 1
     ) u
     where h.state = 'resolved'
       and h.due_at is not null
       and h.opt_out_id is null
       and not (${own.condition})
       and ${other.condition}
     limit $2`,
    [crawlerId, limit, ...own.values, ...other.values],
  );
  return rows.map((row) => ({
    hostHash: row.host_hash,
    host: row.host,
    language: row.language,
    subnetId: asSubnetId(row.subnet_id),
    url: row.url,
    address: row.address,
  }));
}

async function delegate(
  client: PoolClient,
  given: HostsBySet,
  { now, reviewAt }: { readonly now: Date; readonly reviewAt: Date },
): Promise<number> {
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `with room as (
       select greatest(0, ${maxFinerDelegations} - count(*)) as places from finer_delegation
     ), known as (
       select h.host_hash, exists (select from finer_delegation f where f.host_hash = h.host_hash) as had
       from unnest($2::bigint[]) as h (host_hash)
     ), chosen as (
       select host_hash from known where had
       union all
       (select host_hash from known where not had order by host_hash limit (select places from room))
     )
     insert into finer_delegation (subnet_id, host_hash, crawler_id, round_id, cause, measured, rtt_ms,
       runner_up_id, runner_up_rtt_ms, found_at, delegated_at, review_at)
     select $1, host_hash, $3, $4, 'domain-set', $5::real is not null, $5, $6, $7, $8, $8, $9
     from chosen
     on conflict (host_hash) do update
       set subnet_id = excluded.subnet_id, crawler_id = excluded.crawler_id, round_id = excluded.round_id,
           cause = excluded.cause, measured = excluded.measured, rtt_ms = excluded.rtt_ms,
           runner_up_id = excluded.runner_up_id, runner_up_rtt_ms = excluded.runner_up_rtt_ms, subnet_rtt_ms = null,
           delegated_at = excluded.delegated_at, review_at = excluded.review_at
     returning host_hash`,
    [
      given.subnetId,
      given.hosts,
      given.crawlerId,
      given.roundId,
      given.rttMs,
      given.runnerUpId,
      given.runnerUpRttMs,
      now,
      reviewAt,
    ],
  );
  if (rows.length === 0) return 0;
  await followFinerDelegations(client, { hashes: rows.map((row) => row.host_hash) });
  const { subnetId, crawlerId: to, roundId, reason } = given;
  const from = await subnetCrawler(client, subnetId);
  await recordChanges(client, [{ subnetId, from, to, cause: "domain-set", roundId, reason }], now);
  return rows.length;
}

async function subnetCrawler(client: PoolClient, subnetId: number): Promise<number | null> {
  const { rows } = await client.query<{ crawler_id: number }>(
    "select crawler_id from delegation where subnet_id = $1",
    [subnetId],
  );
  return rows[0]?.crawler_id ?? null;
}

const endedAtOnce = 500;

async function needlessIn(
  pool: Pool,
  { crawlerId, partition }: { readonly crawlerId: CrawlerId; readonly partition: Partition },
): Promise<number[]> {
  const held = heldSql(partition, "h", 2);
  const { rows } = await pool.query<{ finer_id: number }>(
    `select f.finer_id
     from finer_delegation f
     join delegation d on d.subnet_id = f.subnet_id
     join frontier_host h on h.host_hash = f.host_hash
     where f.cause = 'domain-set' and d.crawler_id = $1 and ${held.condition}
     order by f.finer_id
     limit ${endedAtOnce}`,
    [crawlerId, ...held.values],
  );
  return rows.map((row) => row.finer_id);
}

/** Of those found, that are there still. */
async function endNeedless(client: PoolClient, found: readonly number[], now: Date): Promise<number> {
  const { rows } = await client.query<{ finer_id: number }>(
    `select finer_id
     from finer_delegation
     where finer_id = any($1::int[]) and cause = 'domain-set'
     order by finer_id
     for update`,
    [found],
  );
  const ids = rows.map((row) => row.finer_id);
  await endFiner(client, ids, { reason: "the subnet's crawler may have it by its domain sets", now });
  return ids.length;
}

/** A host with due URLs whose crawler may not have it. */
export interface MisplacedHost {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly language: string | null;
  readonly subnetId: SubnetId;
  readonly url: string;
  readonly address: string;
}

interface HostsBySet {
  readonly subnetId: SubnetId;
  readonly hosts: readonly HostHash[];
  readonly crawlerId: CrawlerId;
  readonly roundId: RoundId;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** For the history, in words. */
  readonly reason: string;
}

// Subnets of which their crawler may have nothing by its domain sets.

/** Of those given, that are the crawler's and hold hosts of which none is in the partition. */
async function holdsNothingOf(
  pool: Pool,
  { crawlerId, partition }: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  subnetIds: readonly SubnetId[],
): Promise<SubnetId[]> {
  const held = heldSql(partition, "h", 3);
  const { rows } = await pool.query<{ subnet_id: number }>(
    `select d.subnet_id
     from delegation d
     where d.subnet_id = any($2::int[])
       and d.crawler_id = $1
       and exists (
         select from frontier_host h
         where h.subnet_id = d.subnet_id and h.state = 'resolved' and h.due_at is not null
       )
       and not exists (
         select from frontier_host h
         where h.subnet_id = d.subnet_id
           and h.state = 'resolved'
           and h.due_at is not null
           and h.opt_out_id is null
           and ${held.condition}
       )
     order by d.subnet_id`,
    [crawlerId, subnetIds, ...held.values],
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}

interface MisplacedRow {
  host_hash: HostHash;
  host: string;
  language: string | null;
  subnet_id: number;
  url: string;
  address: string;
}
