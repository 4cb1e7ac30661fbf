/** The statements that a batch of results becomes. All run inside the transaction of result-store.ts. */
import type { PoolClient } from "pg";
import type { CrawlerId, LeaseId } from "#core/ids";
import type { ArrivedResult } from "../flows/ports.ts";
import type { UrlAddress } from "./frontier-admission.ts";
import { asInteger, clean, fetchRow, notBeforeOf, pageRow, replacesPage, urlRow } from "./result-rows.ts";
import { columnsOf } from "./transaction.ts";

export interface Batch {
  readonly crawlerId: CrawlerId;
  readonly results: readonly (ArrivedResult & { readonly failuresBefore: number })[];
  readonly now: Date;
}

export async function insertFetches(client: PoolClient, { crawlerId, results, now }: Batch): Promise<void> {
  const rows = results.map((arrived) => fetchRow(arrived, now));
  await client.query(
    `insert into page_fetch (crawler_id, host_hash, url_hash, fetched_at, outcome, blame, status, address,
       dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, wire_bytes, body_bytes, shipped_bytes)
     select $1, given.*
     from unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::smallint[],
       $8::inet[], $9::real[], $10::real[], $11::real[], $12::real[], $13::real[], $14::int[], $15::int[],
       $16::int[]) as given`,
    [
      crawlerId,
      ...columnsOf(rows, [
        "hostHash",
        "urlHash",
        "fetchedAt",
        "outcome",
        "blame",
        "status",
        "address",
        "dnsMs",
        "connectMs",
        "tlsMs",
        "firstByteMs",
        "totalMs",
        "wireBytes",
        "bodyBytes",
        "shippedBytes",
      ]),
    ],
  );
}

/** New pages in place of the old; and the old ones go where the URL has no page any more. */
export async function writePages(client: PoolClient, batch: Batch): Promise<void> {
  const withoutPage = batch.results.filter(
    ({ result }) => result.page === null && replacesPage(result.outcome),
  );
  await client.query(
    `delete from page p
     using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash`,
    [withoutPage.map(({ key }) => key.hostHash), withoutPage.map(({ key }) => key.urlHash)],
  );
  const rows = batch.results.map((arrived) => pageRow(arrived, batch.now)).filter((row) => row !== null);
  if (rows.length === 0) return;
  await client.query(
    `insert into page (crawler_id, host_hash, url_hash, url, host, fetched_at, status, content_type, language,
       text_search_config, title, description, excerpt, headings, canonical_url, noindex, digest, simhash,
       words, body_bytes, wire_bytes, shipped_bytes, lexemes)
     select $1, given.*
     from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::smallint[],
       $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::jsonb[], $15::text[],
       $16::boolean[], $17::text[], $18::text[], $19::int[], $20::int[], $21::int[], $22::int[],
       $23::tsvector[]) as given
     on conflict (host_hash, url_hash) do update
       set crawler_id = excluded.crawler_id, fetched_at = excluded.fetched_at, status = excluded.status,
           content_type = excluded.content_type, language = excluded.language,
           text_search_config = excluded.text_search_config, title = excluded.title,
           description = excluded.description, excerpt = excluded.excerpt, headings = excluded.headings,
           canonical_url = excluded.canonical_url, noindex = excluded.noindex, digest = excluded.digest,
           simhash = excluded.simhash, words = excluded.words, body_bytes = excluded.body_bytes,
           wire_bytes = excluded.wire_bytes, shipped_bytes = excluded.shipped_bytes,
           lexemes = excluded.lexemes`,
    [
      batch.crawlerId,
      ...columnsOf(rows, [
        "hostHash",
        "urlHash",
        "url",
        "host",
        "fetchedAt",
        "status",
        "contentType",
        "language",
        "textSearchConfig",
        "title",
        "description",
        "excerpt",
        "headings",
        "canonicalUrl",
        "noindex",
        "digest",
        "simhash",
        "words",
        "bodyBytes",
        "wireBytes",
        "shippedBytes",
        "lexemes",
      ]),
    ],
  );
}

/**
 * The links of a page in place of those it had; gives those that came and those that went. The page's URL is
 * under a lease of this crawler, so nobody else touches its links.
 */
export async function replaceLinks(
  client: PoolClient,
  results: readonly ArrivedResult[],
): Promise<{ added: UrlAddress[]; removed: UrlAddress[] }> {
  const replaced = results.filter(({ result }) => replacesPage(result.outcome));
  const values = [
    replaced.map(({ key }) => key.hostHash),
    replaced.map(({ key }) => key.urlHash),
    ...columnsOf(replaced.flatMap(linkRows), [
      "hostHash",
      "urlHash",
      "toHostHash",
      "toUrlHash",
      "anchor",
      "nofollow",
    ]),
  ];
  const removed = await client.query<UrlAddress>(
    `delete from link l
     using unnest($1::bigint[], $2::bigint[]) as page (host_hash, url_hash)
     where l.host_hash = page.host_hash
       and l.url_hash = page.url_hash
       and (l.host_hash, l.url_hash, l.to_host_hash, l.to_url_hash) not in (
         select * from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
       )
     returning l.to_host_hash as "hostHash", l.to_url_hash as "urlHash"`,
    values.slice(0, 6),
  );
  if (replaced.every((one) => one.links.length === 0)) return { added: [], removed: removed.rows };
  await client.query(
    `update link l
     set anchor = given.anchor, nofollow = given.nofollow
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
       as given (host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow)
     where l.host_hash = given.host_hash
       and l.url_hash = given.url_hash
       and l.to_host_hash = given.to_host_hash
       and l.to_url_hash = given.to_url_hash
       and (l.anchor, l.nofollow) is distinct from (given.anchor, given.nofollow)`,
    values.slice(2),
  );
  const added = await client.query<UrlAddress>(
    `insert into link (host_hash, url_hash, to_host_hash, to_url_hash, anchor, nofollow)
     select *
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
     on conflict (host_hash, url_hash, to_host_hash, to_url_hash) do nothing
     returning to_host_hash as "hostHash", to_url_hash as "urlHash"`,
    values.slice(2),
  );
  return { added: added.rows, removed: removed.rows };
}

function linkRows({ key, links }: ArrivedResult) {
  return links.map((link) => ({
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    toHostHash: link.hostHash,
    toUrlHash: link.urlHash,
    anchor: clean(link.anchor),
    nofollow: link.nofollow,
  }));
}

/** The URLs leave their lease with what the results say of them. */
export async function updateUrls(client: PoolClient, { results, now }: Batch): Promise<void> {
  const rows = results.map((arrived) => urlRow(arrived, now));
  await client.query(
    `update frontier_url u
     set state = given.state,
         lease_id = null,
         next_fetch_at = given.next_fetch_at,
         visits = u.visits + 1,
         failures = case when given.failed then least(u.failures + 1, 1000) else 0 end,
         last_fetched_at = given.fetched_at,
         last_outcome = given.outcome,
         last_status = given.status,
         last_reason = given.reason,
         etag = coalesce(given.etag, case when given.keeps_validators then u.etag end),
         last_modified = coalesce(given.last_modified, case when given.keeps_validators then u.last_modified end)
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::boolean[],
       $7::text[], $8::smallint[], $9::text[], $10::boolean[], $11::text[], $12::text[])
       as given (host_hash, url_hash, state, next_fetch_at, fetched_at, failed, outcome, status, reason,
         keeps_validators, etag, last_modified)
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash`,
    columnsOf(rows, [
      "hostHash",
      "urlHash",
      "state",
      "nextFetchAt",
      "fetchedAt",
      "failed",
      "outcome",
      "status",
      "reason",
      "keepsValidators",
      "etag",
      "lastModified",
    ]),
  );
}

/** Counts the leases down; the last URL closes its lease. */
export async function countLeasesDown(client: PoolClient, { crawlerId, results, now }: Batch): Promise<void> {
  const leases: LeaseId[] = results.map((arrived) => arrived.leaseId);
  await client.query(
    `update lease l
     set open_urls = l.open_urls - taken.urls,
         closed_at = case when l.open_urls <= taken.urls then $3::timestamptz end,
         ending = case when l.open_urls <= taken.urls then 'done' end
     from (
       select lease_id, count(*)::int as urls
       from unnest($1::bigint[]) as given (lease_id)
       group by lease_id
     ) taken
     where l.lease_id = taken.lease_id and l.crawler_id = $2 and l.closed_at is null`,
    [leases, crawlerId, now],
  );
}

/**
 * No fetch from these hosts before the pace they asked for allows it; and what their pages weigh. After
 * `updateUrls`: a URL with one visit was fetched for the first time.
 */
export async function keepPace(client: PoolClient, { results, now }: Batch): Promise<void> {
  await client.query(
    `update frontier_host h
     set not_before = greatest(h.not_before, given.not_before),
         fetched_urls = h.fetched_urls + given.new_urls,
         fetches = h.fetches + given.fetches,
         fetched_bytes = h.fetched_bytes + given.wire_bytes
     from (
       select host_hash, max(not_before) as not_before, count(*) filter (where u.visits = 1) as new_urls,
         count(*) filter (where wire_bytes > 0) as fetches, sum(wire_bytes) as wire_bytes
       from unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::int[])
         as results (host_hash, url_hash, not_before, wire_bytes)
       join frontier_url u using (host_hash, url_hash)
       group by host_hash
     ) given
     where h.host_hash = given.host_hash`,
    [
      results.map(({ key }) => key.hostHash),
      results.map(({ key }) => key.urlHash),
      results.map(({ result }) => notBeforeOf(result, now)),
      results.map(({ result }) => asInteger(result.wireBytes)),
    ],
  );
}
