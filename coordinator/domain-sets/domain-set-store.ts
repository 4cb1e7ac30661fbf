/** Domain sets of crawlers (table crawler), and the hosts that their crawlers may not have. */
import type { Pool, PoolClient } from "pg";
import { asSubnetId, type CrawlerId, type HostHash } from "#core/ids";
import { notify } from "#db/schema-channel";
import { inTransaction, prepared } from "../database/transaction.ts";
import { endFiner } from "../delegation/overrides/finer-delegation-writes.ts";
import { recordChanges } from "../delegation/overrides/finer-records.ts";
import { maxFinerDelegations } from "../delegation/overrides/override.ts";
import { followFinerDelegations } from "../delegation/overrides/store.ts";
import type {
  ChangedDomainSets,
  DomainSetStore,
  DomainSetsOf,
  HostsBySet,
  MisplacedHost,
} from "./domain-set-ports.ts";
import { heldByOneSql, heldSql } from "./held-sql.ts";
import { hostsWithPages, refreshLanguages } from "./host-languages.ts";
import { type Partition, partitionOf } from "./partition.ts";
import { holdsNothingOf } from "./useless-subnets.ts";

export function createDomainSetStore(pool: Pool): DomainSetStore {
  return {
    of: async (name) => await domainSetsOf(pool, name),
    give: async (name, sets) => await giveDomainSets(pool, name, sets),
    misplaced: async (crawler, others, limit) => await misplaced(pool, crawler, { others, limit }),
    holdsNothingOf: async (crawler, subnetIds) => await holdsNothingOf(pool, crawler, subnetIds),
    delegate: async (given, times) =>
      await inTransaction(pool, async (client) => await delegate(client, given, times)),
    endNeedless: async (crawler, now) =>
      await inTransaction(pool, async (client) => await endNeedless(client, crawler, now)),
    hasDelegated: async () => {
      const { rowCount } = await pool.query(
        "select from finer_delegation where cause = 'domain-set' limit 1",
      );
      return rowCount === 1;
    },
    refreshLanguages: async (hosts) => await refreshLanguages(pool, hosts),
    hostsWithPages: async (after, limit) => await hostsWithPages(pool, after, limit),
  };
}

const shown = `name, domain_sets as operator, partner_domain_sets as partner`;

export async function domainSetsOf(pool: Pool, name: string): Promise<DomainSetsOf | null> {
  const { rows } = await pool.query<DomainSetsOf>(`select ${shown} from crawler where name = $1`, [name]);
  return rows[0] ?? null;
}

export async function giveDomainSets(
  pool: Pool,
  name: string,
  sets: readonly string[],
): Promise<ChangedDomainSets | null> {
  const { rows } = await pool.query<ChangedDomainSets>(
    `with old as (
       select crawler_id, domain_sets from crawler where name = $1 for update
     ), given as (
       update crawler c
       set domain_sets = $2
       from old
       where c.crawler_id = old.crawler_id
       returning c.crawler_id, ${shown.replace("name", "c.name").replace("domain_sets", "c.domain_sets")}, old.domain_sets as before
     )
     select name, operator, partner, before
     from given
     cross join lateral (select ${notify("nearcrawl_fleet", "crawler_id::text")}) told`,
    [name, sets],
  );
  return rows[0] ?? null;
}

/** What counts when hosts are given out: the sets as they are stored in this moment, and the coordinator's own. */
export async function partitionOfLease(
  client: PoolClient,
  { crawlerId, partition = [] }: { readonly crawlerId: CrawlerId; readonly partition?: Partition },
): Promise<Partition> {
  const { rows } = await prepared<{ operator: string[]; partner: string[] }>(
    client,
    "select domain_sets as operator, partner_domain_sets as partner from crawler where crawler_id = $1",
    [crawlerId],
  );
  return rows[0] === undefined
    ? partition
    : [...partition, ...partitionOf(rows[0].operator, rows[0].partner)];
}

interface MisplacedRow {
  host_hash: HostHash;
  host: string;
  language: string | null;
  subnet_id: number;
  url: string;
  address: string;
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
       from frontier_host h
       where h.host_hash = any($2::bigint[])
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

async function endNeedless(
  client: PoolClient,
  { crawlerId, partition }: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  now: Date,
): Promise<number> {
  const held = heldSql(partition, "h", 2);
  const { rows } = await client.query<{ finer_id: number }>(
    `select f.finer_id
     from finer_delegation f
     join delegation d on d.subnet_id = f.subnet_id
     join frontier_host h on h.host_hash = f.host_hash
     where f.cause = 'domain-set' and d.crawler_id = $1 and ${held.condition}
     order by f.finer_id
     limit ${endedAtOnce}
     for update of f`,
    [crawlerId, ...held.values],
  );
  const ids = rows.map((row) => row.finer_id);
  await endFiner(client, ids, { reason: "the subnet's crawler may have it by its domain sets", now });
  return ids.length;
}
