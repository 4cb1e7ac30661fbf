/**
 * Open work of the frontier (due and not leased) by crawler, read for many crawlers at once by a coordinator that
 * remembers who has nothing (idle-crawlers.ts). Resting addresses and domain sets are left to the lease.
 */
import type { Pool } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { prepared } from "../../database/transaction.ts";

/** Open hosts of one subnet or of one finer delegation at that time. */
export interface OpenWork {
  /** Set when a delegation finer than the subnet names its crawler; otherwise the caller knows the subnet's. */
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
    /** Of these crawlers, those with open work now. */
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
