/** Tables spool, page, page_fetch and out_link: results of crawlers, each stored once, and the latest fetches. */
import type { Pool, PoolClient } from "pg";
import { asCrawlerId, asSubnetId, type HostHash } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { nameOf } from "#core/url-key";
import { maxRedirects } from "#protocol/result";
import { watchChanges } from "../changes/change-writes.ts";
import { withTexts } from "../channels/known-text-store.ts";
import { inTransaction, sqlStateOf } from "../database/transaction.ts";
import { noteForeign, splitByOwner } from "../federation/foreign-url-store.ts";
import { addHosts, addUrls, hastenChanged, lockHosts, releaseHeld } from "../frontier/admission-writes.ts";
import { removeBackLinks } from "../frontier/back-link-writes.ts";
import { pageWorth } from "../frontier/budgets.ts";
import type { AdmittedUrl } from "../frontier/frontier.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { noteSeenAddresses } from "../frontier/turn-store.ts";
import { noteStated } from "../recrawl/sample-store.ts";
import {
  type ArrivedResult,
  type CountedResult,
  mostListsInARow,
  type ResultStore,
  type TakenResults,
} from "./accepted-result.ts";
import { countOutsideLinks, updateHosts } from "./host-writes.ts";
import { siftResults } from "./lease-rule-reads.ts";
import { writeLinks } from "./link-writes.ts";
import { writePages } from "./page-writes.ts";
import type { Batch } from "./result-rows.ts";
import * as write from "./result-writes.ts";
import { recordSeals } from "./result-writes.ts";

export function createResultStore(pool: Pool): ResultStore {
  return {
    take: async (batch) => await take(pool, batch),
    fetchesSince: async (since) => await fetchesSince(pool, since),
    recentFetches: async (hosts, perHost) => await recentFetches(pool, hosts, perHost),
  };
}

/**
 * One transaction for the batch. Where the database cannot hold a value in it (a text that is no tsvector),
 * the results are taken one by one, and the faulty one is stored as failed, to the crawler's blame: it would
 * come back with every retry, and everything behind it would wait.
 */
async function take(pool: Pool, batch: ResultBatch): Promise<TakenResults> {
  try {
    return await inTransaction(pool, async (client) => await takeBatch(client, batch));
  } catch (error) {
    if (!isFaultyValue(error)) throw error;
    return await takeOneByOne(pool, batch);
  }
}

/** data exceptions, syntax errors in input, program limits */
const isFaultyValue = (error: unknown): boolean => /^(22|54|42601)/.test(sqlStateOf(error));

async function takeOneByOne(pool: Pool, batch: ResultBatch): Promise<TakenResults> {
  let total: TakenResults = { stored: 0, duplicates: 0, withoutLease: 0, newUrls: 0 };
  for (const result of batch.results) {
    const alone = { ...batch, results: [result], lastSequence: result.sequence };
    total = sum(
      total,
      await inTransaction(pool, async (client) => await takeBatch(client, alone)).catch(async (error) => {
        if (!isFaultyValue(error)) throw error;
        const failed = { ...alone, results: [asFailed(result, (error as Error).message)] };
        return await inTransaction(pool, async (client) => await takeBatch(client, failed));
      }),
    );
  }
  return sum(
    total,
    await inTransaction(pool, async (client) => await takeBatch(client, { ...batch, results: [] })),
  );
}

function asFailed(arrived: ArrivedResult, reason: string): ArrivedResult {
  return {
    ...arrived,
    admit: [],
    links: [],
    result: {
      ...arrived.result,
      outcome: { type: "failed", blame: "crawler", code: "bad-result", reason: reason.slice(0, 300) },
      etag: null,
      lastModified: null,
      page: null,
    },
  };
}

function sum(a: TakenResults, b: TakenResults): TakenResults {
  const newHosts = (a.newHosts ?? 0) + (b.newHosts ?? 0);
  const refused = [...(a.refused ?? []), ...(b.refused ?? [])];
  return {
    stored: a.stored + b.stored,
    duplicates: a.duplicates + b.duplicates,
    withoutLease: a.withoutLease + b.withoutLease,
    newUrls: a.newUrls + b.newUrls,
    ...(newHosts === 0 ? {} : { newHosts }),
    ...(refused.length === 0 ? {} : { refused }),
  };
}

/** Without refusals, which were not fetched at all. */
async function recentFetches(
  pool: Pool,
  hosts: readonly HostHash[],
  perHost: number,
): ReturnType<ResultStore["recentFetches"]> {
  const { rows } = await pool.query<{
    host_hash: HostHash;
    host: string;
    crawler_id: number;
    subnet_id: number | null;
    fetched_at: Date;
    first_byte_ms: number | null;
    connect_ms: number | null;
    total_ms: number;
  }>(
    `select h.host_hash, h.host, f.crawler_id, h.subnet_id, f.fetched_at, f.first_byte_ms, f.connect_ms, f.total_ms
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
  return rows.map((row) => ({
    hostHash: row.host_hash,
    host: row.host,
    crawlerId: asCrawlerId(row.crawler_id),
    subnetId: row.subnet_id === null ? null : asSubnetId(row.subnet_id),
    fetchedAt: row.fetched_at,
    firstByteMs: row.first_byte_ms,
    connectMs: row.connect_ms,
    totalMs: row.total_ms,
  }));
}

async function fetchesSince(pool: Pool, since: Date): ReturnType<ResultStore["fetchesSince"]> {
  const { rows } = await pool.query<{ crawler_id: number; pages: number; bytes: number }>(
    `select crawler_id, count(*)::int as pages, sum(wire_bytes)::float8 as bytes
     from page_fetch
     where fetched_at >= $1
     group by crawler_id
     order by crawler_id`,
    [since],
  );
  return rows.map(({ pages, bytes, ...row }) => ({ crawlerId: asCrawlerId(row.crawler_id), pages, bytes }));
}

// At-least-once on the wire becomes exactly-once here: the row of the crawler's spool, which holds the
// highest sequence that is committed, is locked first and raised in the same transaction that stores the
// results.

type ResultBatch = Parameters<ResultStore["take"]>[0];

/** Stores a batch inside the caller's transaction: what is new and under a lease, and the acknowledged sequence. */
async function takeBatch(client: PoolClient, batch: ResultBatch): Promise<TakenResults> {
  const acknowledged = await lockSpool(client, batch);
  const fresh = firstOfEach(
    batch.results.filter((one) => one.sequence > acknowledged),
    (one) => String(one.sequence),
  );
  const sifted = await siftResults(client, batch, fresh);
  const { refused } = sifted;
  const counted = await withTexts(client, sifted.counted);
  const { newUrls, newHosts } = counted.length === 0 ? nothingNew : await store(client, batch, counted);
  await acknowledge(client, batch);
  await recordSeals(client, batch);
  return {
    stored: counted.length,
    duplicates: batch.results.length - fresh.length,
    withoutLease: fresh.length - counted.length,
    newUrls,
    ...(newHosts === 0 ? {} : { newHosts }),
    ...(refused.length === 0 ? {} : { refused }),
  };
}

const nothingNew = { newUrls: 0, newHosts: 0 };

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

async function store(
  client: PoolClient,
  { crawlerId, scope, now, mostNewHosts }: ResultBatch,
  results: readonly CountedResult[],
): Promise<{ newUrls: number; newHosts: number }> {
  const batch: Batch = { crawlerId, results, now };
  const found = await splitByOwner(client, results.flatMap(admittedBy), scope.maxDepth);
  const urls = found.own;
  const pageHosts: readonly HostHash[] = [...new Set(results.map(({ key }) => key.hostHash))];

  const links = await writeLinks(client, results, now);
  const newHosts = scope.admitNewHosts ? await addHosts(client, keysOf(urls), now, mostNewHosts) : 0;
  await lockHosts(client, [
    ...pageHosts,
    ...[...keysOf(urls), ...links.added, ...links.removed].map((one) => one.hostHash),
  ]);
  const noteChanges = await watchChanges(client, batch);
  await write.insertFetches(client, batch);
  const nearDuplicates = await writePages(client, batch);
  const worths = results.map((counted) => {
    return pageWorth(counted.result, nearDuplicates.has(nameOf(counted.key)), counted.before.worth);
  });
  await write.updateUrls(client, { ...batch, linkFacts: links.facts }, worths);
  await write.countLeasesDown(client, batch);
  await updateHosts(client, batch, worths);
  await noteSeenAddresses(client, crawlerId, results.flatMap(seenAddress));
  await releaseHeld(client, pageHosts, scope.pagesPerHost);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links: links.added, now };
  const newUrls = await addUrls(client, urls, limits);
  await noteStated(client, urls);
  await hastenChanged(client, urls, now);
  await removeBackLinks(client, links.removed);
  await countOutsideLinks(client, links);
  await noteChanges(links);
  await settleHosts(client, pageHosts);
  await noteForeign(client, found, { links, now });
  return { newUrls, newHosts };
}

/** Counted from the page that names them, unless from a seed; without those that too many hops led to. */
function admittedBy({ admit, before }: CountedResult): AdmittedUrl[] {
  return admit.flatMap((url) => {
    const { key, depth, fromSeed = false, redirects = 0, lists = 0, isList = false } = url;
    const isPlain = !fromSeed && redirects === 0 && lists === 0 && !isList;
    if (isPlain) return { key, depth: before.depth + depth };
    const hops = redirects === 0 ? 0 : before.redirects + redirects;
    const nested = lists === 0 ? 0 : before.lists + lists;
    if (hops > maxRedirects || nested > mostListsInARow) return [];
    return { ...url, depth: fromSeed ? depth : before.depth + depth, redirects: hops, lists: nested };
  });
}

/** Where the host was asked, when that is an address of the public Internet. */
function seenAddress({ key, result }: CountedResult): { hostHash: HostHash; address: string }[] {
  const address = result.address === null ? null : parseAddress(result.address);
  if (result.address === null || address === null || specialPurposeOf(address) !== null) return [];
  return [{ hostHash: key.hostHash, address: result.address }];
}

const keysOf = (urls: readonly AdmittedUrl[]) => urls.map((url) => url.key);

function firstOfEach<T>(values: readonly T[], nameOf: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const name = nameOf(value);
    return seen.has(name) ? false : seen.add(name) !== undefined;
  });
}
