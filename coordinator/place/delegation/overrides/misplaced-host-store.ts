/** Hosts that their subnet's crawler may not have by its domain sets, and their own delegations. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { readRows } from "../../../database/cached-read.ts";
import { inTransaction } from "../../../database/transaction.ts";
import { heldByOneSql, heldSql, type Partition } from "../../domain-sets/partition.ts";
import type { FinerDecision, ReviewTimes } from "./override.ts";
import {
  endFiner,
  followFinerDelegations,
  putFiner,
  recordChanges,
  roomFor,
  subnetCrawler,
} from "./override-store.ts";

type Crawler = { readonly crawlerId: CrawlerId; readonly partition: Partition };

/** A host with due URLs whose crawler may not have it. */
export interface MisplacedHost {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly language: string | null;
  readonly subnetId: SubnetId;
  readonly url: string;
  readonly address: string;
}

interface HostsBySet extends Omit<FinerDecision, "subnetRttMs"> {
  readonly subnetId: SubnetId;
  readonly hosts: readonly HostHash[];
  /** Words for the history. */
  readonly reason: string;
}

export type MisplacedHostStore = ReturnType<typeof createMisplacedHostStore>;

const endedAtOnce = 500;

export function createMisplacedHostStore(pool: Pool) {
  return {
    /**
     * At most `limit` hosts delegated to this crawler that it may not have while another may. `others` are the partitions of
     * the other crawlers.
     */
    misplaced: async ({ crawlerId, partition }: Crawler, others: readonly Partition[], limit: number) => {
      if (others.length === 0) return [];
      const own = heldSql(partition, "h", 3);
      const other = heldByOneSql(others, "h", 3 + own.values.length);
      return await readRows<MisplacedHost>(
        pool,
        `select h.host_hash as "hostHash", h.host, h.language, h.subnet_id as "subnetId", u.url,
           host(h.addresses[1]) as address
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
    },
    /** Returns those of the crawler's own subnets among `subnetIds` that have hosts, none of which it may have. */
    holdsNothingOf: async ({ crawlerId, partition }: Crawler, subnetIds: readonly SubnetId[]) => {
      const held = heldSql(partition, "h", 3);
      const due = "h.subnet_id = d.subnet_id and h.state = 'resolved' and h.due_at is not null";
      const rows = await readRows<{ subnet_id: SubnetId }>(
        pool,
        `select d.subnet_id
         from delegation d
         where d.subnet_id = any($2::int[])
           and d.crawler_id = $1
           and exists (select from frontier_host h where ${due})
           and not exists (
             select from frontier_host h where ${due} and h.opt_out_id is null and ${held.condition}
           )
         order by d.subnet_id`,
        [crawlerId, subnetIds, ...held.values],
      );
      return rows.map((row) => row.subnet_id);
    },
    /** Delegates hosts individually. Returns for how many there was room. */
    delegate: async (given: HostsBySet, times: ReviewTimes) =>
      await inTransaction(pool, async (client) => await delegate(client, given, times)),
    /** Ends delegations by set of hosts that the subnet's crawler may now have itself. */
    endNeedless: async ({ crawlerId, partition }: Crawler, now: Date) => {
      const held = heldSql(partition, "h", 2);
      const rows = await readRows<{ finer_id: number }>(
        pool,
        `select f.finer_id
         from finer_delegation f
         join delegation d on d.subnet_id = f.subnet_id
         join frontier_host h on h.host_hash = f.host_hash
         where f.cause = 'domain-set' and d.crawler_id = $1 and ${held.condition}
         order by f.finer_id
         limit ${endedAtOnce}`,
        [crawlerId, ...held.values],
      );
      const ended = {
        where: "f.finer_id = any($1::int[]) and f.cause = 'domain-set'",
        values: [rows.map((row) => row.finer_id)],
        reason: "the subnet's crawler may have it by its domain sets",
      };
      return await inTransaction(pool, async (client) => await endFiner(client, ended, now));
    },
    hasDelegated: async () =>
      (await pool.query("select from finer_delegation where cause = 'domain-set' limit 1")).rowCount === 1,
  };
}

async function delegate(client: PoolClient, given: HostsBySet, times: ReviewTimes): Promise<number> {
  const { subnetId, crawlerId, roundId, reason, hosts } = given;
  const rows = await readRows<{ host_hash: HostHash; had: boolean }>(
    client,
    `select host_hash, exists (select from finer_delegation f where f.host_hash = h.host_hash) as had
     from frontier_host h
     where host_hash = any($1::bigint[])
     order by had desc, host_hash`,
    [hosts],
  );
  const had = rows.filter((row) => row.had).length;
  const chosen = rows.slice(0, had + (await roomFor(client, rows.length - had))).map((row) => row.host_hash);
  if (chosen.length === 0) return 0;
  const placed = chosen.map((hostHash) => ({ ...given, hostHash, subnetRttMs: null }));
  await putFiner(client, { subnetId, cause: "domain-set" }, placed, times);
  await followFinerDelegations(client, { hashes: chosen });
  const from = await subnetCrawler(client, subnetId);
  const change = { subnetId, from, to: crawlerId, cause: "domain-set", roundId, reason };
  await recordChanges(client, [change], times.now);
  return chosen.length;
}
