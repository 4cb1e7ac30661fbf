/** Tables spool, page, page_fetch and out_link: crawlers' results, each stored once, and the latest fetches. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { registrableDomain } from "#core/ip/registrable-domain";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { nameOf, type UrlAddress } from "#core/url-key";
import { failedResult, maxRedirects } from "#protocol/result";
import { columnsOf, isFaultyValue, plannedOnce, preparing, rowsGiven } from "../../database/transaction.ts";
import type { RecentFetch } from "../../place/crawlers/crawler.ts";
import {
  type ArrivedResult,
  type CountedResult,
  mostListsInARow,
  type TakenResults,
} from "../batch/accepted-result.ts";
import type { AdmittedUrl, PageWorth } from "../batch/found-urls.ts";
import { type Batch, fetchedAtOf, fetchRow, type LinkFacts, urlRow } from "../batch/result-rows.ts";
import { withoutUnwantedText } from "../batch/stated-uses.ts";
import { replacedTexts, watchChanges } from "../changes/change-writes.ts";
import type { PageText, TextsElsewhere } from "../changes/page-text-reads.ts";
import {
  type LeaseOfTurn,
  type LeaseTransaction,
  noteSeenAddresses,
  turnColumns,
  writingLeases,
} from "../frontier/address-turn-store.ts";
import {
  type AddedUrls,
  addUrls,
  distinctUrls,
  lockHosts,
  releaseHeld,
} from "../frontier/admission-writes.ts";
import { sumLinks } from "../frontier/back-link-writes.ts";
import { pageWorth } from "../frontier/budgets.ts";
import { noteForeign, splitByOwner } from "../frontier/foreign-url-store.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { KnownUrls } from "../frontier/known-urls.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { effectsOf } from "../frontier/link-outbox.ts";
import { postEffects } from "../frontier/link-outbox-store.ts";
import { fetchStatedChanges, noteStated } from "../recrawl/sample-store.ts";
import { countOutsideLinks, noteNamedSitemaps, updateHosts, withNamedSitemaps } from "./host-writes.ts";
import { firstOfEach, siftResults } from "./lease-rule-reads.ts";
import { writeLinks } from "./link-writes.ts";
import { writePages } from "./page-writes.ts";
import { hearStatements } from "./stated-uses-store.ts";

export type ResultStore = ReturnType<typeof createResultStore>;

/** If `known` is null, every URL is looked up in the frontier. `elsewhere`: texts that the database no longer has. */
export function createResultStore(pool: Pool, known: KnownUrls | null = null, elsewhere?: TextsElsewhere) {
  return {
    /**
     * Stores pages, fetches, links, frontier, leases and the acknowledged sequence in one transaction per batch. A
     * batch has ascending sequences of one spool.
     */
    take: async (batch: {
      crawlerId: CrawlerId;
      spoolId: string;
      results: readonly ArrivedResult[];
      scope: CrawlScope;
      now: Date;
      /** The sequence to acknowledge. Results without a key are not in `results` but count as taken. */
      lastSequence: number;
    }): Promise<TakenResults> => {
      const texts = elsewhere && (await replacedTexts(pool, batch.results, elsewhere));
      return await take(pool, { ...batch, known, ...(texts && { texts }) });
    },

    /** Returns each crawler's fetches and wire bytes from `since` on, to restore its daily budget. */
    async fetchesSince(since: Date): Promise<{ crawlerId: CrawlerId; pages: number; bytes: number }[]> {
      const { rows } = await pool.query<{ crawlerId: CrawlerId; pages: number; bytes: number }>(
        `select crawler_id as "crawlerId", count(*)::int as pages, sum(wire_bytes)::float8 as bytes
         from page_fetch
         where fetched_at >= $1
         group by crawler_id
         order by crawler_id`,
        [since],
      );
      return rows;
    },

    /** Returns the latest `perHost` fetches of each host, oldest first. Refusals were never fetched and are left out. */
    async recentFetches(hosts: readonly HostHash[], perHost: number): Promise<RecentFetch[]> {
      const { rows } = await pool.query<RecentFetch>(
        `select h.host_hash as "hostHash", h.host, f.crawler_id as "crawlerId", h.subnet_id as "subnetId",
           f.fetched_at as "fetchedAt", f.first_byte_ms as "firstByteMs", f.connect_ms as "connectMs",
           f.total_ms as "totalMs"
         from frontier_host h
         cross join lateral (
           select crawler_id, fetched_at, first_byte_ms, connect_ms, total_ms
           from page_fetch
           where host_hash = h.host_hash and outcome not in ('refused-by-robots', 'refused-address')
           order by fetched_at desc
           limit $2
         ) f
         where h.host_hash = any($1::bigint[])
         order by h.host_hash, f.fetched_at`,
        [hosts, perHost],
      );
      return rows;
    },
  };
}

/**
 * One transaction per batch. If the database cannot store a value (such as a number beyond its column), it bisects
 * the batch down to the faulty result and stores that as failed by the crawler's fault. Otherwise every retry would
 * block all later results.
 */
async function take(pool: Pool, batch: ResultBatch): Promise<TakenResults> {
  try {
    return await takeAtOnce(pool, batch);
  } catch (error) {
    const [first] = batch.results;
    if (first === undefined || !isFaultyValue(error)) throw error;
    if (batch.results.length === 1) return await takeFaulty(pool, batch, first, error as Error);
    const middle = batch.results.length >> 1;
    const half = batch.results.slice(0, middle);
    const before = await take(pool, { ...batch, results: half, lastSequence: half.at(-1)!.sequence });
    return sumOfTaken(before, await take(pool, { ...batch, results: batch.results.slice(middle) }));
  }
}

async function takeFaulty(
  pool: Pool,
  batch: ResultBatch,
  faulty: ArrivedResult,
  { message }: Error,
): Promise<TakenResults> {
  const taken = await takeAtOnce(pool, { ...batch, results: [asFailed(faulty, message)] });
  return sumOfTaken(taken, { ...nothingTaken, refused: [{ kind: "bad-result", words: message, count: 1 }] });
}

const nothingTaken: TakenResults = { stored: 0, duplicates: 0, withoutLease: 0, newUrls: 0 };

async function takeAtOnce(pool: Pool, batch: ResultBatch): Promise<TakenResults> {
  const { taken, held } = await writingLeases(
    pool,
    async ({ client, turns }) => await takeBatch({ client: preparing(client), turns }, batch),
    plannedOnce,
  );
  batch.known?.add(held, batch.now);
  return taken;
}

/** Keeps only URL, time and delay, since the fault may be anywhere else. */
function asFailed(arrived: ArrivedResult, reason: string): ArrivedResult {
  const { url, fetchedAt, hostDelayMs } = arrived.result;
  const result = failedResult({ url, fetchedAt, hostDelayMs }, reason);
  return { ...arrived, admit: [], foreign: [], links: [], result };
}

/** Adds up what was taken of two parts of a batch. */
function sumOfTaken(a: TakenResults, b: TakenResults): TakenResults {
  const posted = (a.posted ?? 0) + (b.posted ?? 0);
  const refused = [...(a.refused ?? []), ...(b.refused ?? [])];
  return {
    stored: a.stored + b.stored,
    duplicates: a.duplicates + b.duplicates,
    withoutLease: a.withoutLease + b.withoutLease,
    newUrls: a.newUrls + b.newUrls,
    ...(posted === 0 ? {} : { posted }),
    ...(refused.length === 0 ? {} : { refused }),
  };
}

// Results arrive at least once and are stored exactly once: the row of the crawler's spool, which holds the highest
// committed sequence, is locked first and raised in the same transaction that stores the results.

type ResultBatch = Parameters<ResultStore["take"]>[0] & {
  readonly known: KnownUrls | null;
  /** Of pages that may be replaced, by `nameOf`. */
  readonly texts?: ReadonlyMap<string, PageText>;
};

/** Stores a batch within the caller's transaction: the new results under a lease, and the acknowledged sequence. */
async function takeBatch(
  on: LeaseTransaction,
  batch: ResultBatch,
): Promise<{ readonly taken: TakenResults; readonly held: AddedUrls["held"] }> {
  const { client } = on;
  const acknowledged = await lockSpool(client, batch);
  const fresh = firstOfEach(
    batch.results.filter((one) => one.sequence > acknowledged),
    (one) => String(one.sequence),
  );
  const sifted = await siftResults(client, batch, fresh);
  const { refused } = sifted;
  const shown = sifted.counted.map(withoutUnwantedText).map(asFailureWithoutText);
  const counted = await withNamedSitemaps(client, await hearStatements(client, shown, batch.now));
  const { newUrls, posted, held } = counted.length === 0 ? nothingNew : await store(on, batch, counted);
  await acknowledge(client, batch);
  const taken = {
    stored: counted.length,
    duplicates: batch.results.length - fresh.length,
    withoutLease: fresh.length - counted.length,
    newUrls,
    ...(posted === 0 ? {} : { posted }),
    ...(refused.length === 0 ? {} : { refused }),
  };
  return { taken, held };
}

/** Version 0.2.0 omits texts that are known here. If the text is no longer stored, the page is fetched again in a minute. */
function asFailureWithoutText(counted: CountedResult): CountedResult {
  const { result } = counted;
  if (result.page?.textKnown !== true) return counted;
  const reason = "its text was left out as known; it is fetched in full next time";
  const outcome = { type: "failed", blame: "us", code: "text-not-known", reason } as const;
  return {
    ...counted,
    admit: [],
    links: [],
    result: { ...result, outcome, etag: null, lastModified: null, page: null },
  };
}

const nothingNew = { newUrls: 0, posted: 0, held: [] };

async function lockSpool(client: PoolClient, { crawlerId, spoolId }: ResultBatch): Promise<number> {
  await client.query(
    "insert into spool (crawler_id, spool_id) values ($1, $2) on conflict (crawler_id, spool_id) do nothing",
    [crawlerId, spoolId],
  );
  const { rows } = await client.query<{ acknowledged_sequence: string }>(
    "select acknowledged_sequence from spool where crawler_id = $1 and spool_id = $2 for update",
    [crawlerId, spoolId],
  );
  return Number(rows[0]!.acknowledged_sequence);
}

async function acknowledge(client: PoolClient, batch: ResultBatch): Promise<void> {
  const highest = batch.results.reduce((max, one) => Math.max(max, one.sequence), batch.lastSequence);
  await client.query(
    `update spool
     set acknowledged_sequence = greatest(acknowledged_sequence, $3)
     where crawler_id = $1 and spool_id = $2`,
    [batch.crawlerId, batch.spoolId, highest],
  );
}

/** Locks and writes only the pages' hosts. Effects on other hosts go to the outbox. */
async function store(
  { client, turns }: LeaseTransaction,
  { crawlerId, scope, now, known, texts }: ResultBatch,
  results: readonly CountedResult[],
): Promise<AddedUrls & { readonly posted: number }> {
  const batch: Batch = { crawlerId, results, now };
  const pageHosts: ReadonlySet<HostHash> = new Set(results.map(({ key }) => key.hostHash));
  const named = results.flatMap(admittedBy);
  const isNear = ({ key }: AdmittedUrl) => pageHosts.has(key.hostHash);
  const isNew = ({ key }: AdmittedUrl) => known?.has(key.urlHash, now) !== true;
  const found = await splitByOwner(client, named.filter(isNear), scope.maxDepth);
  const urls = found.own;

  const links = await writeLinks(client, results, now);
  const [added, removed] = [divide(links.added, pageHosts), divide(links.removed, pageHosts)];
  await lockHosts(client, pageHosts);
  await noteNamedSitemaps(client, results);
  const noteChanges = await watchChanges(client, batch, texts);
  await insertFetches(client, batch);
  await touchSites(client, batch);
  const nearDuplicates = await writePages(client, batch);
  const worths = results.map((counted) => {
    return pageWorth(counted.result, nearDuplicates.has(nameOf(counted.key)), counted.before.worth);
  });
  await updateUrls(client, { ...batch, linkFacts: links.facts }, worths);
  turns.end(await countLeasesDown(client, batch), { closedAt: now, ranOut: false });
  await updateHosts(client, batch, worths);
  await noteSeenAddresses(client, crawlerId, results.flatMap(seenAddress));
  await releaseHeld(client, [...pageHosts], { pagesPerHost: scope.pagesPerHost, now });
  const nearLinks = sumLinks(added.near, removed.near);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links: nearLinks, now };
  const { newUrls, held } = await addUrls(client, urls.filter(isNew), limits);
  await noteStated(client, urls);
  await fetchStatedChanges(client, urls, now);
  await countOutsideLinks(client, { added: added.near, removed: removed.near });
  await noteChanges(links);
  await settleHosts(client, [...pageHosts]);
  await noteForeign(client, found, { links: nearLinks, now });

  // A URL that is too deep here may still matter to the coordinator that owns it.
  const maxDepth = found.foreign === null ? scope.maxDepth : Number.POSITIVE_INFINITY;
  const far = distinctUrls(
    named.filter((url) => !isNear(url) && isNew(url)),
    maxDepth,
  );
  const posted = await postEffects(client, crawlerId, effectsOf(far, sumLinks(added.far, removed.far)));
  return { newUrls, held, posted };
}

/** Splits links by whether their host is one of the batch's hosts. */
function divide<Link extends UrlAddress>(
  links: readonly Link[],
  pageHosts: ReadonlySet<HostHash>,
): { readonly near: readonly Link[]; readonly far: readonly Link[] } {
  const isNear = ({ hostHash }: Link) => pageHosts.has(hostHash);
  return { near: links.filter(isNear), far: links.filter((link) => !isNear(link)) };
}

/** Depth counts from the page that names the URL, or from a seed. URLs behind too many redirects are dropped. */
function admittedBy({ admit, before, key: page }: CountedResult): AdmittedUrl[] {
  const linkedFrom = registrableDomain(page.host);
  return admit.flatMap((url) => {
    const { key, depth, fromSeed = false, redirects = 0, lists = 0, isList = false } = url;
    const isPlain = !fromSeed && redirects === 0 && lists === 0 && !isList;
    if (isPlain) return { key, depth: before.depth + depth, linkedFrom };
    const hops = redirects === 0 ? 0 : before.redirects + redirects;
    const nested = lists === 0 ? 0 : before.lists + lists;
    if (hops > maxRedirects || nested > mostListsInARow) return [];
    const sum = { depth: fromSeed ? depth : before.depth + depth, redirects: hops, lists: nested };
    return { ...url, ...sum, linkedFrom };
  });
}

/** Returns the address at which the host was contacted, if it is a public one. */
function seenAddress({ key, result }: CountedResult): { hostHash: HostHash; address: string }[] {
  const address = result.address === null ? null : parseAddress(result.address);
  if (result.address === null || address === null || specialPurposeOf(address) !== null) return [];
  return [{ hostHash: key.hostHash, address: result.address }];
}

// SQL statements that write a batch.

const fetches = rowsGiven(
  `host_hash bigint, url_hash bigint, fetched_at timestamptz, outcome text, blame text, status smallint, address inet,
   dns_ms real, connect_ms real, tls_ms real, first_byte_ms real, total_ms real, wire_bytes int, body_bytes int,
   shipped_bytes int, changed boolean, gap_seconds real`,
);

const insertSql = `insert into page_fetch (crawler_id, ${fetches.names.join(", ")}) select $1, given.* from ${fetches.sql(2)}`;

async function insertFetches(client: PoolClient, { crawlerId, results, now }: Batch): Promise<void> {
  const rows = results.map((arrived) => fetchRow(arrived, now));
  await client.query(insertSql, [crawlerId, ...fetches.valuesOf(rows)]);
}

const urls = rowsGiven(
  `host_hash bigint, url_hash bigint, state text, next_fetch_at timestamptz, fetched_at timestamptz, failed boolean,
   outcome text, status smallint, reason text, keeps_validators boolean, etag text, last_modified text, digest text,
   worth text, out_links int, change_ratio real, compared_visits int, content_changes int, changed_seconds real,
   unchanged_seconds real, changes_per_day real`,
);

/** Updates the URLs. `worths` is in the same order as the results. */
async function updateUrls(
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

/** Removes URLs from their leases, and closes each lease that has none left. Returns the closed leases. */
async function countLeasesDown(
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

// Table site_touch: appends one row with a batch's hosts and their counts. The list of sites processes it later
// (sites/sites-upkeep-store.ts), so that results never wait for that list.

interface TouchedSite {
  readonly hostHash: HostHash;
  fetches: number;
  failures: number;
  /** Time of the latest fetch; null if all were refused. */
  fetchedAt: Date | null;
}

async function touchSites(client: PoolClient, batch: Batch): Promise<void> {
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
