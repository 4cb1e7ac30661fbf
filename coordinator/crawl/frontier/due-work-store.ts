/**
 * Open work of the frontier (due and not leased) by crawler, read for many crawlers at once by a coordinator that remembers
 * who has nothing (idle-crawlers.ts). The lease itself checks resting addresses and domain sets.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { columnsOf, inTransaction, prepared } from "../../database/transaction.ts";
import { partitionsOfLeases } from "../../place/domain-sets/domain-set-store.ts";
import { isHeld, type Partition, withHeldHosts } from "../../place/domain-sets/partition.ts";

/** Whether one subnet or one finer delegation has open hosts at the given time. */
export interface OpenWork {
  /** Set if a delegation finer than the subnet names its crawler. Otherwise the caller knows the subnet's crawler. */
  readonly crawlerId: CrawlerId | null;
  readonly subnetId: SubnetId;
  readonly openAt: Date;
}

export type DueWorkReads = ReturnType<typeof createDueWorkReads>;

/** Matches the index of hosts by readiness. */
const isOpen = (now: string) => `h.state = 'resolved'
  and h.lease_id is null
  and h.due_at is not null
  and greatest(h.due_at, h.not_before) <= ${now}`;

/** One index look-up per subnet, which stops at the first open host. */
const withWork = `
  select c.crawler_id as "crawlerId"
  from unnest($1::int[]) as c (crawler_id)
  where exists (
    select
    from delegation d
    cross join lateral (
      select from frontier_host h where h.subnet_id = d.subnet_id and h.finer_id is null and ${isOpen("$2")} limit 1
    ) open
    where d.crawler_id = c.crawler_id
  ) or exists (
    select
    from finer_delegation f
    cross join lateral (
      select from frontier_host h where h.finer_id = f.finer_id and ${isOpen("$2")} limit 1
    ) open
    where f.crawler_id = c.crawler_id
  )`;

const dueBetween = `
  select f.crawler_id as "crawlerId", due.subnet_id as "subnetId",
    min(greatest(due.due_at, due.not_before)) as "openAt", max(due.due_at) as "dueAt", count(*)::int as hosts
  from (
    select h.subnet_id, h.finer_id, h.due_at, h.not_before
    from frontier_host h
    where h.state = 'resolved' and h.lease_id is null and h.due_at > $1 and h.due_at <= $2
    order by h.due_at, h.host_hash
    limit $3
  ) due
  left join finer_delegation f on f.finer_id = due.finer_id
  group by f.crawler_id, due.subnet_id`;

const openOf = `
  select f.crawler_id as "crawlerId", h.subnet_id as "subnetId", min(greatest(h.due_at, h.not_before)) as "openAt"
  from frontier_host h
  left join finer_delegation f on f.finer_id = h.finer_id
  where h.host_hash = any($1::bigint[]) and h.state = 'resolved' and h.lease_id is null and h.due_at is not null
  group by f.crawler_id, h.subnet_id`;

export function createDueWorkReads(pool: Pool) {
  return {
    async crawlersWithWork(crawlerIds: readonly CrawlerId[], now: Date): Promise<CrawlerId[]> {
      const { rows } = await prepared<{ crawlerId: CrawlerId }>(pool, withWork, [crawlerIds, now]);
      return rows.map(({ crawlerId }) => crawlerId);
    },

    /** What became due after `from` and until `until`, limited, and the time up to which it was read. */
    async dueBetween(
      from: Date,
      until: Date,
      most: number,
    ): Promise<{ readonly work: readonly OpenWork[]; readonly until: Date }> {
      const values = [from, until, most];
      const { rows } = await prepared<OpenWork & { dueAt: Date; hosts: number }>(pool, dueBetween, values);
      const isAll = rows.reduce((sum, { hosts }) => sum + hosts, 0) < most;
      const lastMs = rows.reduce((last, { dueAt }) => Math.max(last, dueAt.getTime()), from.getTime());
      return { work: rows, until: isAll ? until : new Date(lastMs) };
    },

    /** Which of these hosts are not leased, and from when they are open. */
    async openOf(hosts: readonly HostHash[]): Promise<OpenWork[]> {
      const { rows } = await prepared<OpenWork>(pool, openOf, [hosts]);
      return rows;
    },
  };
}

// The pace of crawlers (frontier/pace.ts): counts a crawler's due work as far as its decision needs, and stores the pace last
// sent to it.

export type PaceStore = ReturnType<typeof createPaceStore>;

/** `own` are the coordinator's domain sets, which apply to every crawler. */
export function createPaceStore(pool: Pool, own: Partition = []) {
  return {
    /** Counts crawlers without domain sets in one statement, and the others one by one. */
    async dueSlices(
      crawlerIds: readonly CrawlerId[],
      most: number,
      now: Date,
    ): Promise<ReadonlyMap<CrawlerId, number>> {
      return await inTransaction(pool, async (client) => {
        const slices: (readonly [CrawlerId, number])[] = [];
        const alike: CrawlerId[] = [];
        for (const [crawlerId, partition] of await partitionsOfLeases(client, crawlerIds, own)) {
          if (partition.length === 0) alike.push(crawlerId);
          else slices.push(...(await count(client, [crawlerId], { most, now, partition })));
        }
        slices.push(...(await count(client, alike, { most, now, partition: [] })));
        return new Map(slices);
      });
    },
    async told(told: readonly ToldPace[]): Promise<void> {
      await pool.query(
        `update crawler c
         set pace = given.pace, pace_due_slices = given.due,
             pace_since = case when c.pace = given.pace then c.pace_since else given.at end
         from unnest($1::int[], $2::text[], $3::int[], $4::timestamptz[]) as given (crawler_id, pace, due, at)
         where c.crawler_id = given.crawler_id`,
        columnsOf(told, ["crawlerId", "pace", "due", "at"]),
      );
    },
  };
}

export interface ToldPace {
  readonly crawlerId: CrawlerId;
  readonly pace: WorkPace;
  readonly due: number;
  readonly at: Date;
}

export type WorkPace = "slow-down" | "steady" | "hurry-up";

const isDue = `${isOpen("$2")} and ${isHeld("h")}`;

async function count(
  client: PoolClient,
  crawlerIds: readonly CrawlerId[],
  { most, now, partition }: { readonly most: number; readonly now: Date; readonly partition: Partition },
): Promise<(readonly [CrawlerId, number])[]> {
  if (crawlerIds.length === 0) return [];
  const { text, values } = withHeldHosts(
    `select c.crawler_id, counted.slices
     from unnest($1::int[]) as c (crawler_id)
     cross join lateral (
       select count(*)::int as slices
       from (
         (select 1 from lease l where l.crawler_id = c.crawler_id and l.closed_at is null limit $3)
         union all
         (select 1
          from finer_delegation f
          join frontier_host h on h.finer_id = f.finer_id
          where f.crawler_id = c.crawler_id and ${isDue}
          limit $3)
         union all
         (select 1
          from delegation d
          cross join lateral (
            select from frontier_host h where h.subnet_id = d.subnet_id and h.finer_id is null and ${isDue} limit $3
          ) due
          where d.crawler_id = c.crawler_id
          limit $3)
         limit $3
       ) one
     ) counted`,
    partition,
    4,
  );
  const { rows } = await client.query<{ crawler_id: CrawlerId; slices: number }>(text, [
    ...[crawlerIds, now, most],
    ...values,
  ]);
  return rows.map(({ crawler_id, slices }) => [crawler_id, slices]);
}
