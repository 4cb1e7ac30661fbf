/**
 * Decides which results count: those under an open lease of their crawler, for a URL that the lease still has, at a
 * possible pace. Others are dropped one by one. Those that no honest crawler would send are reported.
 */
import type { PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { nameOf } from "#core/url-key";
import type { ArrivedResult, CountedResult, RefusedResult, UrlBefore } from "../batch/accepted-result.ts";
import type { KnownPage } from "../batch/visit.ts";
import { isLeaseNumber } from "../frontier/lease-end-writes.ts";
import { isOptedOut } from "../frontier/site-rule-writes.ts";
import { plannedChannel, statedChanges } from "../recrawl/sample-store.ts";

interface Sifted {
  readonly counted: readonly CountedResult[];
  readonly refused: readonly RefusedResult[];
}

/** This many results may come at once at the start of a lease (unchanged pages of a fast host), then fifty a second at most. */
const atOnce = 10;

const leastGapMs = 20;

/** Maximum difference between clocks that is not reported. */
const clockToleranceMs = 10 * 60_000;

/** Leases stay locked until the transaction ends. */
export async function siftResults(
  client: PoolClient,
  batch: { readonly crawlerId: CrawlerId; readonly now: Date },
  arrived: readonly ArrivedResult[],
): Promise<Sifted> {
  const results = arrived.filter((one) => isLeaseNumber(one.leaseId));
  if (results.length === 0) return { counted: [], refused: [] };
  const held = await underLease(client, batch.crawlerId, results);
  const found = new Set(held.map(({ one }) => one));
  const lost = results.filter((one) => !found.has(one));
  const slow = held.filter((_one, index) => !isTooFast(held, index, batch.now));
  return {
    // Each URL counts once per batch.
    counted: firstOfEach(
      slow.map(({ one, grantedAt, before }) => decided(inTime(one, grantedAt, batch.now), before)),
      ({ key }) => nameOf(key),
    ),
    refused: [
      ...(await namedFaults(client, batch.crawlerId, lost)),
      ...(slow.length === held.length ? [] : [tooFast(held.length - slow.length)]),
      ...wrongClocks(slow, batch.now),
    ],
  };
}

function decided(one: ArrivedResult, before: UrlBefore): CountedResult {
  const page = { known: before.page, fetchedAt: new Date(one.result.fetchedAt) };
  return { ...one, before, next: one.again(before.failures, page) };
}

interface Held {
  readonly one: ArrivedResult;
  readonly before: UrlBefore;
  readonly grantedAt: Date;
  /** How many results of the lease were taken before this batch. */
  readonly taken: number;
}

type HeldRow = Omit<UrlBefore, "page"> &
  KnownPageRow & { readonly ordinal: string; readonly granted_at: Date; readonly taken: number };

async function underLease(
  client: PoolClient,
  crawlerId: CrawlerId,
  results: readonly ArrivedResult[],
): Promise<Held[]> {
  await client.query(
    `select from lease
     where lease_id = any($1::bigint[]) and crawler_id = $2 and closed_at is null
     order by lease_id
     for update`,
    [results.map((one) => one.leaseId), crawlerId],
  );
  const { rows } = await client.query<HeldRow>(
    `select given.ordinal, u.depth, u.failures, u.visits, u.redirects, u.lists, u.worth,
       l.granted_at, l.url_count - l.open_urls as taken, ${knownPageColumns}
     from unnest($1::bigint[], $2::bigint[], $3::bigint[])
       with ordinality as given (lease_id, host_hash, url_hash, ordinal)
     join lease l on l.lease_id = given.lease_id and l.crawler_id = $4 and l.closed_at is null
     join frontier_url u
       on u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
     ${knownPageJoins}
     where given.host_hash = l.host_hash and given.url_hash = any(l.open_url_hashes)`,
    [
      results.map((one) => one.leaseId),
      results.map(({ key }) => key.hostHash),
      results.map(({ key }) => key.urlHash),
      crawlerId,
    ],
  );
  const byOrdinal = new Map(rows.map((row) => [Number(row.ordinal) - 1, row]));
  return results.flatMap((one, index) => {
    const row = byOrdinal.get(index);
    if (row === undefined) return [];
    const { depth, failures, visits, redirects, lists, worth, granted_at: grantedAt, taken, ...known } = row;
    const { comparedVisits, contentChanges, changedSeconds, unchangedSeconds, ...seen } = known;
    const sums = { comparedVisits, contentChanges, changedSeconds, unchangedSeconds };
    const stated = statedChanges(seen.stated_frequency, seen.stated_modified_day);
    const before = { depth, failures, visits, redirects, lists, worth, page: { ...seen, sums, stated } };
    return [{ one, before, grantedAt, taken }];
  });
}

function isTooFast(held: readonly Held[], index: number, now: Date): boolean {
  const { one, grantedAt, taken } = held[index]!;
  const earlier = held.slice(0, index).filter((other) => other.one.leaseId === one.leaseId).length;
  const elapsedMs = now.getTime() - grantedAt.getTime();
  // The coordinator's own clock was set back, so the pace is unknown.
  if (elapsedMs < 0) return false;
  return taken + earlier + 1 > atOnce + elapsedMs / leastGapMs;
}

const tooFast = (count: number): RefusedResult => ({
  kind: "impossible-pace",
  words: `results of one host came faster than one every ${leastGapMs} ms since it was leased`,
  count,
});

/** If the crawler's clock dates a fetch before its lease, it is dated at the beginning of the lease. */
function inTime(one: ArrivedResult, grantedAt: Date, now: Date): ArrivedResult {
  const fetchedMs = Date.parse(one.result.fetchedAt);
  const ms = Math.min(Math.max(fetchedMs, grantedAt.getTime()), Math.max(now.getTime(), grantedAt.getTime()));
  if (ms === fetchedMs) return one;
  return { ...one, result: { ...one.result, fetchedAt: new Date(ms).toISOString() } };
}

function wrongClocks(held: readonly Held[], now: Date): RefusedResult[] {
  const offMs = held.map(({ one, grantedAt }) => {
    const fetchedMs = Date.parse(one.result.fetchedAt);
    const isAgreed = grantedAt <= now;
    return isAgreed ? Math.max(fetchedMs - now.getTime(), grantedAt.getTime() - fetchedMs) : 0;
  });
  const wrong = offMs.filter((ms) => ms > clockToleranceMs);
  if (wrong.length === 0) return [];
  const minutes = Math.round(Math.max(...wrong) / 60_000);
  const words = `pages were fetched ${minutes} minutes outside of their leases, by the crawler's clock; they count as of their leases`;
  return [{ kind: "wrong-clock", words, count: wrong.length }];
}

/**
 * Reports results without a lease unless they are merely late. URLs leased for a comparison are not the frontier's,
 * so a duplicate among them is nobody's fault.
 */
async function namedFaults(
  client: PoolClient,
  crawlerId: CrawlerId,
  lost: readonly ArrivedResult[],
): Promise<RefusedResult[]> {
  if (lost.length === 0) return [];
  const { rows } = await client.query<{ kind: string; count: number; host: string; lease_id: string }>(
    `select kind, count(*)::int as count, min(host) as host, min(lease_id) as lease_id
     from (
       select l.host, l.lease_id,
         case
           when l.crawler_id <> $1 then 'foreign-lease'
           when l.host_hash <> given.host_hash then 'wrong-host'
           when l.closed_at is null and not l.is_check and not exists (
             select from frontier_url u
             where u.host_hash = given.host_hash and u.url_hash = given.url_hash
               and (u.last_fetched_at >= l.granted_at or ${isOptedOut("u")})
           ) then 'wrong-url'
         end as kind
       from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as given (lease_id, host_hash, url_hash)
       join lease l on l.lease_id = given.lease_id
     ) named
     where kind is not null
     group by kind
     order by kind`,
    [
      crawlerId,
      lost.map((one) => one.leaseId),
      lost.map(({ key }) => key.hostHash),
      lost.map(({ key }) => key.urlHash),
    ],
  );
  return rows.map(({ kind, count, host, lease_id: leaseId }) => ({
    kind,
    words: `${faultWords[kind] ?? kind}: lease ${leaseId} of ${host}, for one`,
    count,
  }));
}

const faultWords: Readonly<Record<string, string>> = {
  "foreign-lease": "results came under a lease of another crawler",
  "wrong-host": "results of another host than the leased one came",
  "wrong-url": "results of URLs that were not leased came",
};

export function firstOfEach<T>(values: readonly T[], nameOfOne: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const name = nameOfOne(value);
    return seen.has(name) ? false : seen.add(name) !== undefined;
  });
}

/** SQL: columns of the tables that `knownPageJoins` joins to `frontier_url u`. */
const knownPageColumns = `u.compared_visits as "comparedVisits", u.content_changes as "contentChanges",
       u.changed_seconds as "changedSeconds", u.unchanged_seconds as "unchangedSeconds",
       u.last_fetched_at as "lastFetchedAt", u.next_fetch_at as "plannedAt", encode(u.digest, 'hex') as digest,
       u.back_links as "backLinks", k.page_rank as "pageRank", u.stated_frequency, u.stated_modified_day,
       p.changes_per_day as "channelChangesPerDay", p.recrawl_group as "channelGroup",
       p.multiplier as "hostMultiplier"`;

const knownPageJoins = `left join url_rank k on k.host_hash = u.host_hash and k.url_hash = u.url_hash
     left join recrawl_host p on p.host_hash = u.host_hash and p.channel_id = ${plannedChannel("u")}`;

type KnownPageRow = Omit<KnownPage, "sums" | "stated"> &
  KnownPage["sums"] & {
    readonly stated_frequency: number | null;
    readonly stated_modified_day: number | null;
  };
