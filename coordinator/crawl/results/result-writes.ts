/** The statements for a batch of results, all in the transaction of result-store.ts. */

import type { PoolClient } from "pg";
import type { HostHash, LeaseId } from "#core/ids";
import { nameOf } from "#core/url-key";
import { columnsOf, rowsGiven } from "../../database/transaction.ts";
import type { PageWorth } from "../batch/found-urls.ts";
import { type Batch, fetchedAtOf, fetchRow, type LinkFacts, urlRow } from "../batch/result-rows.ts";
import { type LeaseOfTurn, turnColumns } from "../frontier/address-turn-writes.ts";

const fetches = rowsGiven(
  `host_hash bigint, url_hash bigint, fetched_at timestamptz, outcome text, blame text, status smallint, address inet,
   dns_ms real, connect_ms real, tls_ms real, first_byte_ms real, total_ms real, wire_bytes int, body_bytes int,
   shipped_bytes int, changed boolean, gap_seconds real`,
);

const insertSql = `insert into page_fetch (crawler_id, ${fetches.names.join(", ")}) select $1, given.* from ${fetches.sql(2)}`;

export async function insertFetches(client: PoolClient, { crawlerId, results, now }: Batch): Promise<void> {
  const rows = results.map((arrived) => fetchRow(arrived, now));
  await client.query(insertSql, [crawlerId, ...fetches.valuesOf(rows)]);
}

const urls = rowsGiven(
  `host_hash bigint, url_hash bigint, state text, next_fetch_at timestamptz, fetched_at timestamptz, failed boolean,
   outcome text, status smallint, reason text, keeps_validators boolean, etag text, last_modified text, digest text,
   worth text, out_links int, change_ratio real, compared_visits int, content_changes int, changed_seconds real,
   unchanged_seconds real, changes_per_day real`,
);

/** Updates the URLs; `worths` matches the results' order. */
export async function updateUrls(
  client: PoolClient,
  { results, now, linkFacts }: Batch,
  worths: readonly (PageWorth | null)[],
): Promise<void> {
  const rows = results.map((counted, index) => ({
    ...urlRow(counted, worths[index] ?? null, now),
    ...(linkFacts?.get(nameOf(counted.key)) ?? noLinkFacts),
  }));
  await client.query(
    `update frontier_url u
     set state = given.state,
         next_fetch_at = given.next_fetch_at,
         visits = u.visits + 1,
         failures = case when given.failed then least(u.failures + 1, 1000) else 0 end,
         last_fetched_at = given.fetched_at,
         last_outcome = given.outcome,
         last_status = given.status,
         last_reason = given.reason,
         etag = coalesce(given.etag, case when given.keeps_validators then u.etag end),
         last_modified = coalesce(given.last_modified, case when given.keeps_validators then u.last_modified end),
         digest = coalesce(decode(given.digest, 'hex'), case when given.keeps_validators then u.digest end),
         worth = given.worth,
         out_links = coalesce(given.out_links, u.out_links),
         change_ratio = coalesce(given.change_ratio, u.change_ratio),
         compared_visits = u.compared_visits + given.compared_visits,
         content_changes = u.content_changes + given.content_changes,
         changed_seconds = u.changed_seconds + given.changed_seconds,
         unchanged_seconds = u.unchanged_seconds + given.unchanged_seconds,
         changes_per_day = coalesce(given.changes_per_day, u.changes_per_day)
     from ${urls.sql()}
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash`,
    urls.valuesOf(rows),
  );
}

const noLinkFacts: LinkFacts = { outLinks: null, changeRatio: null };

/** Removes URLs from their leases; the last one closes its lease. Returns the closed ones. */
export async function countLeasesDown(
  client: PoolClient,
  { crawlerId, results, now }: Batch,
): Promise<readonly LeaseOfTurn[]> {
  const leases: LeaseId[] = results.map((arrived) => arrived.leaseId);
  const urls = results.map(({ key }) => key.urlHash);
  const { rows } = await client.query<LeaseOfTurn>(
    `with counted as (
       update lease l
       set open_urls = l.open_urls - taken.urls,
           open_url_hashes = array(select one from unnest(l.open_url_hashes) as one where one <> all(taken.url_hashes)),
           closed_at = case when l.open_urls <= taken.urls then $3::timestamptz end,
           ending = case when l.open_urls <= taken.urls then 'done' end
       from (
         select lease_id, count(*)::int as urls, array_agg(url_hash) as url_hashes
         from unnest($1::bigint[], $4::bigint[]) as given (lease_id, url_hash)
         group by lease_id
       ) taken
       where l.lease_id = taken.lease_id and l.crawler_id = $2 and l.closed_at is null
       returning l.closed_at, ${turnColumns("l", "l.closed_at is not null")}
     )
     select crawler_id, addresses, expires_at, host, used_ms
     from counted
     where closed_at is not null`,
    [leases, crawlerId, now, urls],
  );
  return rows;
}

// Table site_touch: which hosts a batch of results was of, and what it adds to their counts. One row, appended: the list of
// sites takes it from there (sites/sites-upkeep-store.ts), and no result waits for the list.

interface TouchedSite {
  readonly hostHash: HostHash;
  fetches: number;
  failures: number;
  /** Null when everything was refused. */
  fetchedAt: Date | null;
}

export async function touchSites(client: PoolClient, batch: Batch): Promise<void> {
  const touched = touchedBy(batch);
  if (touched.length === 0) return;
  await client.query(
    `insert into site_touch (host_hashes, fetches, failures, fetched_at)
     values ($1::bigint[], $2::int[], $3::int[], $4::timestamptz[])`,
    columnsOf(touched, ["hostHash", "fetches", "failures", "fetchedAt"]),
  );
}

function touchedBy({ results, now }: Batch): TouchedSite[] {
  const touched = new Map<HostHash, TouchedSite>();
  for (const { key, result } of results) {
    const { type } = result.outcome;
    const site = touched.get(key.hostHash) ?? {
      hostHash: key.hostHash,
      fetches: 0,
      failures: 0,
      fetchedAt: null,
    };
    touched.set(key.hostHash, site);
    if (type === "refused-by-robots" || type === "refused-address") continue;
    const fetchedAt = fetchedAtOf(result, now);
    site.fetches += 1;
    site.failures += type === "failed" ? 1 : 0;
    if (site.fetchedAt === null || fetchedAt > site.fetchedAt) site.fetchedAt = fetchedAt;
  }
  return [...touched.values()];
}
