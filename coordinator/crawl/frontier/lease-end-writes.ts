/**
 * Ends leases. A host slice belongs to one crawler until every URL has a result ('done'), the crawler returns it
 * ('returned') or it expires ('expired'). Until then the lease lists the URLs without results; they stay due, but a
 * leased host cannot be leased again.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, LeaseId, UrlHash } from "#core/ids";
import { inTransaction, plannedOnceByHash, prepared } from "../../database/transaction.ts";
import {
  type LeaseOfTurn,
  type LeaseTransaction,
  turnColumns,
  writingLeases,
} from "./address-turn-writes.ts";
import { lockHosts } from "./admission-writes.ts";
import type { ReturnedLease } from "./frontier.ts";

export interface LeaseEnd {
  readonly lease: ReturnedLease;
  readonly now: Date;
}

/** For each, the host that is free now; null when it was not that crawler's open lease. */
export async function returnLeases(pool: Pool, ends: readonly LeaseEnd[]): Promise<(HostHash | null)[]> {
  const given = ends.filter(({ lease }) => isLeaseNumber(lease.leaseId));
  const now = new Date(Math.max(...ends.map((end) => end.now.getTime())));
  const giveBack = async ({ client, turns }: LeaseTransaction) => {
    const { rows } = await prepared<OpenLease>(client, lockLeasesAndHosts, [
      given.map(({ lease }) => lease.leaseId),
      given.map(({ lease }) => lease.crawlerId),
    ]);
    const hostOf = new Map(rows.map((row) => [row.lease_id, row.host_hash]));
    const waits = given.flatMap(({ lease: { leaseId, hostWaitMs }, now: at }) => {
      const host = hostOf.get(leaseId);
      return host !== undefined && hostWaitMs ? [{ host, until: new Date(at.getTime() + hostWaitMs) }] : [];
    });
    if (rows.length > 0)
      await prepared(client, closeLeases, valuesOf(rows, { ending: "returned", now, waits }));
    turns.end(rows, { closedAt: now, ranOut: false });
    return hostOf;
  };
  const hosts = await writingLeases(pool, giveBack, plannedOnceByHash);
  return ends.map(({ lease: { leaseId } }) => {
    const host = hosts.get(leaseId) ?? null;
    hosts.delete(leaseId);
    return host;
  });
}

/** Selects the given leases that are open and owned by their crawlers, and locks them with their hosts. */
const lockLeasesAndHosts = `
  with held as materialized (
    select l.lease_id, l.host_hash, ${turnColumns("l")}
    from (select distinct * from unnest($1::bigint[], $2::int[])) as given (lease_id, crawler_id)
    join lease l on l.lease_id = given.lease_id and l.crawler_id = given.crawler_id
    where num_nulls(l.closed_at) = 1 and l.lease_id = any($1::bigint[])
    order by l.lease_id
    for update of l
  ), locked as materialized (
    select
    from frontier_host
    where host_hash = any(array(select host_hash from held))
    order by host_hash
    for update
  )
  select lease_id, host_hash, crawler_id, addresses, expires_at, host, used_ms
  from held
  where (select count(*) from locked) > 0`;

/** A wait that a crawler learnt outside its results. */
interface HostWait {
  readonly host: HostHash;
  readonly until: Date;
}

export interface LetGo {
  readonly crawlerId: CrawlerId;
  /** Leases it still holds. */
  readonly held: readonly LeaseId[];
}

/** Whether each crawler has open leases besides those. In a fleet that arrives at once, most have been returned or expired. */
export async function haveOpenLeases(pool: Pool, given: readonly LetGo[]): Promise<boolean[]> {
  const { rows } = await pool.query<{ crawler_id: CrawlerId; lease_id: LeaseId }>(
    "select crawler_id, lease_id from lease where crawler_id = any($1::int[]) and closed_at is null",
    [given.map(({ crawlerId }) => crawlerId)],
  );
  const open = new Map<CrawlerId, LeaseId[]>();
  for (const { crawler_id, lease_id } of rows)
    open.set(crawler_id, [...(open.get(crawler_id) ?? []), lease_id]);
  return given.map(({ crawlerId, held }) => open.get(crawlerId)?.some((id) => !held.includes(id)) ?? false);
}

export async function returnLeasesOf(pool: Pool, owner: LetGo, now: Date): Promise<HostHash[]> {
  const held = owner.held.filter(isLeaseNumber);
  return await writingLeases(pool, async (on) => {
    const { rows } = await on.client.query<OpenLease>(
      `select lease_id, host_hash, ${turnColumns("lease")}
       from lease
       where crawler_id = $1 and closed_at is null and lease_id <> all($2::bigint[])
       order by lease_id
       for update`,
      [owner.crawlerId, held],
    );
    return await close(on, rows, { ending: "returned", now });
  });
}

/** Ends all leases on hosts that must not be crawled any more. */
export async function endLeasesOn(
  on: LeaseTransaction,
  hosts: readonly HostHash[],
  now: Date,
): Promise<{ crawlerId: CrawlerId; host: string }[]> {
  const { rows } = await on.client.query<OpenLease>(
    `select lease_id, host_hash, ${turnColumns("lease")}
     from lease
     where host_hash = any($1::bigint[]) and closed_at is null
     order by lease_id
     for update`,
    [hosts],
  );
  await close(on, rows, { ending: "returned", now });
  return rows.map(({ crawler_id: crawlerId, host }) => ({ crawlerId, host }));
}

/** Call before locking hosts, when URLs will be removed from their leases. */
export async function lockLeasesOn(client: PoolClient, hosts: readonly HostHash[]): Promise<void> {
  await client.query(
    "select from lease where host_hash = any($1::bigint[]) and closed_at is null order by lease_id for update",
    [hosts],
  );
}

/** Removes URLs from the host's locked lease, and ends the lease when none are left. Returns the ended lease. */
export async function takeOffLease(
  on: LeaseTransaction,
  { hostHash, urls }: { readonly hostHash: HostHash; readonly urls: readonly UrlHash[] },
  now: Date,
): Promise<{ crawlerId: CrawlerId; host: string }[]> {
  const { rowCount } = await on.client.query(
    `update lease
     set open_url_hashes = remaining.hashes, open_urls = cardinality(remaining.hashes),
         url_count = url_count - open_urls + cardinality(remaining.hashes)
     from (
       select lease_id, array(select one from unnest(open_url_hashes) one where one <> all ($2::bigint[])) as hashes
       from lease
       where host_hash = $1 and closed_at is null and not is_check
     ) remaining
     where lease.lease_id = remaining.lease_id and cardinality(remaining.hashes) > 0`,
    [hostHash, urls],
  );
  return rowCount === 0 ? await endLeasesOn(on, [hostHash], now) : [];
}

const leasesPerBatch = 500;

/** Granted by a clock that was set back since, so that the lease might never end; coordinators differ by less. */
const isOfTheFuture = `granted_at > $1::timestamptz + interval '10 minutes'
           and expires_at > $1::timestamptz + interval '10 minutes'`;

/** In batches, so that an outage does not lock hosts for long. Skips leases whose results are being stored. */
export async function returnExpired(pool: Pool, now: Date): Promise<HostHash[]> {
  const total: HostHash[] = [];
  while (true) {
    const returned = await writingLeases(pool, async (on) => {
      const { rows } = await on.client.query<OpenLease>(
        `select lease_id, host_hash, ${turnColumns("lease")}
         from lease
         where closed_at is null and (expires_at <= $1 or ${isOfTheFuture})
         order by lease_id
         limit ${leasesPerBatch}
         for update skip locked`,
        [now],
      );
      return await close(on, rows, { ending: "expired", now });
    });
    total.push(...returned);
    if (returned.length < leasesPerBatch) return total;
  }
}

/** A lease number in a message has up to 19 digits, which may exceed bigint; no lease has such a number. */
export function isLeaseNumber(leaseId: LeaseId): boolean {
  return BigInt(leaseId) < 2n ** 63n;
}

interface OpenLease extends LeaseOfTurn {
  lease_id: LeaseId;
  host_hash: HostHash;
}

interface Closing {
  readonly ending: "expired" | "returned";
  readonly now: Date;
  readonly waits?: readonly HostWait[];
}

/** Closes locked open leases. Their URLs' rows stay unchanged, and their hosts become free. */
async function close(
  { client, turns }: LeaseTransaction,
  leases: readonly OpenLease[],
  as: Closing,
): Promise<HostHash[]> {
  if (leases.length === 0) return [];
  const hosts = leases.map((lease) => lease.host_hash);
  await lockHosts(client, hosts);
  // Not prepared: a plan made here would suit other settings than those of `returnLeases`.
  await client.query(closeLeases, valuesOf(leases, as));
  turns.end(leases, { closedAt: as.now, ranOut: as.ending === "expired" });
  return hosts;
}

/** The leases and their hosts must be locked. */
const closeLeases = `
  with closed as (
    update lease
    set closed_at = $2, ending = $3, open_url_hashes = '{}'
    where lease_id = any($1::bigint[])
  )
  update frontier_host h
  set lease_id = null, due_at = ${dueAtOf("h")}, not_before = greatest(h.not_before, given.until)
  from unnest($4::bigint[], $5::timestamptz[]) as given (host_hash, until)
  where h.host_hash = given.host_hash and h.host_hash = any($4::bigint[])`;

function valuesOf(leases: readonly OpenLease[], { ending, now, waits = [] }: Closing): unknown[] {
  const untilOf = new Map(waits.map(({ host, until }) => [host, until]));
  return [
    leases.map((lease) => lease.lease_id),
    now,
    ending,
    leases.map((lease) => lease.host_hash),
    leases.map((lease) => untilOf.get(lease.host_hash) ?? null),
  ];
}

/** SQL: when the host is next due; never, if it opted out. */
function dueAtOf(host: string): string {
  return `(
    select min(u.next_fetch_at)
    from frontier_url u
    where u.host_hash = ${host}.host_hash and u.state = 'due' and ${host}.opt_out_id is null
  )`;
}

/**
 * SQL over frontier_url `u`: given up for a while, because refused by robots.txt, at a non-public address (a host
 * without another one stays refused), or gone.
 */
export const isGivenUp = `(u.state = 'gone'
           or u.state = 'refused' and u.last_outcome in ('refused-by-robots', 'refused-address'))`;

/** Reopens a batch of URLs given up long enough ago. */
export async function reopenRefused(pool: Pool, now: Date): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ host_hash: HostHash }>(
      `select distinct host_hash
       from (
         (select u.host_hash
          from frontier_url u
          where u.state = 'refused' and u.last_outcome = 'refused-by-robots' and u.next_fetch_at <= $1
          limit ${leasesPerBatch})
         union all
         (select u.host_hash
          from frontier_url u
          join frontier_host h on h.host_hash = u.host_hash and h.state <> 'refused'
          where (u.state = 'gone' or (u.state = 'refused' and u.last_outcome = 'refused-address'))
            and u.next_fetch_at <= $1
          limit ${leasesPerBatch})
       ) u`,
      [now],
    );
    const hosts = rows.map((row) => row.host_hash);
    if (hosts.length === 0) return 0;
    await lockHosts(client, hosts);
    const { rowCount } = await client.query(
      `update frontier_url u
       set state = 'due'
       from frontier_host h
       where h.host_hash = any($1::bigint[])
         and h.state <> 'refused'
         and u.host_hash = h.host_hash
         and ${isGivenUp}
         and u.next_fetch_at <= $2`,
      [hosts, now],
    );
    await settleHosts(client, hosts);
    return rowCount ?? 0;
  });
}

/** Updates due time and lease state of locked hosts from their URLs and leases. */
export async function settleHosts(client: PoolClient, hosts: readonly HostHash[]): Promise<void> {
  await prepared(
    client,
    `update frontier_host h
     set due_at = ${dueAtOf("h")},
         lease_id = (
           select l.lease_id
           from lease l
           where l.lease_id = h.lease_id and l.closed_at is null
         )
     where h.host_hash = any($1::bigint[])`,
    [hosts],
  );
}
