/**
 * Ends leases. A host slice belongs to one crawler until every URL has a result ('done'), the crawler returns it ('returned')
 * or it expires ('expired'). Until then the lease lists the URLs without results. They stay due, but a leased host cannot be
 * leased again.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, LeaseId, UrlHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import { alone, inTurns, type TurnClock } from "../../database/bounded-work.ts";
import { inTransaction, plannedOnceByHash, prepared } from "../../database/transaction.ts";
import { type LeaseOfTurn, type LeaseTransaction, turnColumns, writingLeases } from "./address-turn-store.ts";
import { lockHosts, releaseNamed } from "./admission-writes.ts";
import type { ReturnedLease } from "./frontier.ts";
import { urlsInHand } from "./open-lease-reads.ts";

export interface LeaseEnd {
  readonly lease: ReturnedLease;
  readonly now: Date;
}

/** Returns, for each lease, the host that is now free, or null if it was not that crawler's open lease. */
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

interface HostWait {
  readonly host: HostHash;
  readonly until: Date;
}

export interface LetGo {
  readonly crawlerId: CrawlerId;
  readonly held: readonly LeaseId[];
}

/** Whether each crawler has other open leases. In a fleet that arrives at once, most have been returned or expired. */
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
    const leases = await lockOpen(on, "crawler_id = $1 and lease_id <> all($2::bigint[])", [
      ...[owner.crawlerId, held],
    ]);
    return await close(on, leases, { ending: "returned", now });
  });
}

/** Ends all leases on hosts that must no longer be crawled. */
export async function endLeasesOn(
  on: LeaseTransaction,
  hosts: readonly HostHash[],
  now: Date,
): Promise<{ crawlerId: CrawlerId; host: string }[]> {
  const leases = await lockOpen(on, "host_hash = any($1::bigint[])", [hosts]);
  await close(on, leases, { ending: "returned", now });
  return leases.map(({ crawler_id: crawlerId, host }) => ({ crawlerId, host }));
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

/** SQL: granted by a clock since set back, so the lease might never end. Clocks of coordinators differ by less than this. */
const isOfTheFuture = `granted_at > $1::timestamptz + interval '10 minutes'
           and expires_at > $1::timestamptz + interval '10 minutes'`;

/** Works in batches, so that an outage does not lock hosts for long. Skips leases whose results are being stored. */
export async function returnExpired(pool: Pool, now: Date): Promise<HostHash[]> {
  const total: HostHash[] = [];
  while (true) {
    const returned = await writingLeases(pool, async (on) => {
      const which = `(expires_at <= $1 or ${isOfTheFuture})`;
      const leases = await lockOpen(on, which, [now], { limit: leasesPerBatch, skipLocked: true });
      return await close(on, leases, { ending: "expired", now });
    });
    total.push(...returned);
    if (returned.length < leasesPerBatch) return total;
  }
}

/** A lease number in a message has up to 19 digits, which may exceed bigint. No lease has such a number. */
export function isLeaseNumber(leaseId: LeaseId): boolean {
  return BigInt(leaseId) < 2n ** 63n;
}

interface OpenLease extends LeaseOfTurn {
  lease_id: LeaseId;
  host_hash: HostHash;
}

async function lockOpen(
  { client }: LeaseTransaction,
  which: string,
  values: readonly unknown[],
  {
    limit = null,
    skipLocked = false,
  }: { readonly limit?: number | null; readonly skipLocked?: boolean } = {},
): Promise<OpenLease[]> {
  const { rows } = await client.query<OpenLease>(
    `select lease_id, host_hash, ${turnColumns("lease")}
     from lease
     where closed_at is null and ${which}
     order by lease_id
     limit ${limit}
     for update ${skipLocked ? "skip locked" : ""}`,
    [...values],
  );
  return rows;
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
  // Not prepared, since a plan made here would be based on other settings than those of `returnLeases`.
  await client.query(closeLeases, valuesOf(leases, as));
  turns.end(leases, { closedAt: as.now, ranOut: as.ending === "expired" });
  return hosts;
}

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

/** SQL: when the host is next due. Never, if it opted out. */
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
const isGivenUp = `(u.state = 'gone'
           or u.state = 'refused' and u.last_outcome in ('refused-by-robots', 'refused-address'))`;

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

/**
 * Makes those URLs due that are scheduled for later, held over their host's budget or given up (an unresolved host is
 * looked up again). Leased URLs, those a channel excludes and special-purpose addresses stay unchanged, and politeness
 * applies. Returns the number of due URLs.
 */
export async function fetchAgain(
  pool: Pool,
  keys: readonly Pick<UrlKey, "hostHash" | "urlHash">[],
  now: Date,
): Promise<number> {
  if (keys.length === 0) return 0;
  const hosts: readonly HostHash[] = [...new Set(keys.map(({ hostHash }) => hostHash))];
  return await inTransaction(pool, async (client) => {
    await lockHosts(client, hosts);
    await releaseNamed(client, keys, now);
    const { rows } = await client.query<{ urls: number }>(
      `with chosen as materialized (
         select u.host_hash, u.url_hash
         from (select distinct * from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)) given
         join frontier_url u using (host_hash, url_hash)
         join frontier_host h on h.host_hash = u.host_hash and h.state <> 'refused'
         where (u.state = 'due' or ${isGivenUp}) and u.url_hash <> all (${urlsInHand("u.host_hash")})
       ), due as (
         update frontier_url u
         set state = 'due', next_fetch_at = least(u.next_fetch_at, $3)
         from chosen
         where u.host_hash = chosen.host_hash and u.url_hash = chosen.url_hash
         returning u.host_hash
       ), looked_up as (
         update frontier_host h
         set resolve_at = least(h.resolve_at, $3)
         where h.host_hash in (select host_hash from chosen) and h.state = 'unresolvable'
       )
       select count(*)::int as urls from due`,
      [keys.map(({ hostHash }) => hostHash), keys.map(({ urlHash }) => urlHash), now],
    );
    await settleHosts(client, hosts);
    return rows[0]?.urls ?? 0;
  });
}

// Deletes closed leases after a while. The same statement adds up, per day, how they ended (table day_figures).

const lockName = "nearcrawl-closed-leases";

const deletedAtOnce = 5000;

/**
 * Deletes leases closed before `before`. Returns null if another coordinator is doing so. Walks leases in the order granted
 * up to the first younger one, since none closes before it is granted.
 */
export async function forgetClosedLeases(pool: Pool, before: Date, turn: TurnClock): Promise<number | null> {
  return await alone(pool, lockName, async () => {
    let [after, deleted] = ["0", 0];
    await inTurns(turn, async () => {
      const { rows } = await pool.query<{ last: string | null; more: boolean; deleted: number }>(forgetSql, [
        after,
        deletedAtOnce,
        before,
      ]);
      const [{ last, more, deleted: now }] = rows as [(typeof rows)[number]];
      deleted += now;
      after = last ?? after;
      return more ? 1 : 0;
    });
    return deleted;
  });
}

const forgetSql = `
  with looked as materialized (
    select lease_id, granted_at, closed_at
    from lease
    where lease_id > $1::bigint
    order by lease_id
    limit $2
  ), gone as (
    delete from lease
    where lease_id = any (array (select lease_id from looked where closed_at < $3))
    returning closed_at, ending, url_count
  ), counted as (
    insert into day_figures as d (day, leases_done, leases_expired, leases_returned, leased_urls)
    select (closed_at at time zone 'UTC')::date, count(*) filter (where ending = 'done'),
      count(*) filter (where ending = 'expired'), count(*) filter (where ending = 'returned'), sum(url_count)
    from gone
    group by 1
    order by 1
    on conflict (day) do update
    set leases_done = d.leases_done + excluded.leases_done,
        leases_expired = d.leases_expired + excluded.leases_expired,
        leases_returned = d.leases_returned + excluded.leases_returned,
        leased_urls = d.leased_urls + excluded.leased_urls
  )
  select max(lease_id) as last, count(*) = $2 and bool_and(granted_at < $3) as more,
    (select count(*)::int from gone) as deleted
  from looked`;
