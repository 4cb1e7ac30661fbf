/** Tables spool, page, page_fetch and link: results of crawlers, each stored once, and the latest fetches. */
import type { Pool } from "pg";
import { asCrawlerId, asSubnetId, type HostHash } from "#core/ids";
import { urlsOfNames } from "../channels/known-link-store.ts";
import { inTransaction, sqlStateOf } from "../database/transaction.ts";
import type { ArrivedResult, ResultStore, TakenResults } from "./arrived-result.ts";
import { type ResultBatch, takeBatch } from "./result-batch-writes.ts";

export function createResultStore(pool: Pool): ResultStore {
  return {
    take: async (batch) => await take(pool, batch),
    urlsOfNames: async (names) => await urlsOfNames(pool, names),
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
