/**
 * Whether results can be taken by several at once when every page links to one popular host: results a second with 1, 2, 4
 * and 8 takers (connections that take batches without pause), each of them some milliseconds away from the database, as a
 * coordinator on another machine is. So most of a taker's time is waiting and little of it is computing, and a machine with
 * few cores shows what one with many would: whether takers wait for each other. What they wait for locks is counted beside
 * it, from samples of pg_stat_activity. Of 20 links of a page 10 stay on its host, 5 lead to the popular one, and 5 to hosts
 * whose pages others take at the time. The outbox is applied every second, from as far away.
 * Run: npm run bench -- takers (behind it, the milliseconds of a statement and the number of rounds)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { createDelegationStore } from "#coordinator/delegation/store";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { applyLinks, defaultOutboxBounds, outboxBacklog } from "#coordinator/frontier/link-outbox-store";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import { createResultStore } from "#coordinator/results/result-store";
import { type ResultBatch, takeResults } from "#coordinator/results/take-results";
import { asLeaseId, asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { urlKeyOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { openServerDatabase } from "#db/server-database";
import type { FetchResult } from "#protocol/result";

const statementMs = Number(process.argv[2] ?? 25);
const rounds = Number(process.argv[3] ?? 5);
const takerCounts = [1, 2, 4, 8] as const;
const batchesPerTaker = 3;
const hostsPerBatch = 2;
const urlsPerHost = 5;
const pagesPerBatch = hostsPerBatch * urlsPerHost;
const sampleMs = 10;
const scope = { pagesPerHost: 1_000_000, maxDepth: 8, admitNewHosts: true };
const popular = "popular.example";
/** Its URLs, all of them known: what is measured is waiting, not admission. */
const popularUrls = 2000;

const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
  maxConnections: 20,
});
const { pool } = database;
const applier = await openServerDatabase({
  databaseUrl: database.url,
  schema: database.schema,
  maxConnections: 1,
});
const applierPid = (await applier.pool.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
const subnets: SubnetId[] = [];
const random = seededRandom(1);
let hosts = 0;
let sequence = 0;

try {
  await migrate(database);
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const crawlers: CrawlerId[] = [];
  for (let taker = 0; taker < Math.max(...takerCounts); taker += 1)
    crawlers.push(await crawlerWithSubnet(taker));
  await createFrontierStore(pool).admit(
    Array.from({ length: popularUrls }, (_, n) => ({ key: keyOf(`http://${popular}/${n}`), depth: 0 })),
    scope,
    new Date(),
  );
  const measured = takerCounts.map(() => ({ perSecond: [] as number[], lockShare: [] as number[] }));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, takers] of takerCounts.entries()) {
      const found = await takeAtOnce(crawlers.slice(0, takers));
      // The first round fills caches.
      if (round === 0) continue;
      measured[index]!.perSecond.push(found.perSecond);
      measured[index]!.lockShare.push(found.lockShare);
    }
  }
  console.log(
    `${rounds} rounds of ${batchesPerTaker} batches of ${pagesPerBatch} pages a taker, ${statementMs} ms a statement: median (least to most)`,
  );
  const alone = median(measured[0]!.perSecond);
  for (const [index, takers] of takerCounts.entries()) {
    const { perSecond, lockShare } = measured[index]!;
    const share = median(perSecond) / (alone * takers);
    console.log(
      `${takers} takers: ${line(perSecond, 1)} results/s, ${share.toFixed(2)} × takers; waiting for locks ${line(
        lockShare.map((one) => 100 * one),
        0,
      )} % of their time`,
    );
  }
  console.log(
    `load average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
} finally {
  await applier.close();
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function takeAtOnce(crawlers: readonly CrawlerId[]): Promise<{ perSecond: number; lockShare: number }> {
  const pages: LeasedPage[][] = [];
  for (const [taker, crawlerId] of crawlers.entries()) pages.push(await leasedPages(taker, crawlerId));
  const all = pages.flat();
  const results = createResultStore(awayFrom(pool));
  const batches = pages.map((ofTaker, taker) =>
    Array.from({ length: batchesPerTaker }, (_, batch) => ({
      crawlerId: crawlers[taker]!,
      spoolId: `00000000-0000-4000-8000-${String(taker).padStart(12, "0")}`,
      results: ofTaker
        .slice(batch * pagesPerBatch, (batch + 1) * pagesPerBatch)
        .map(({ leaseId, url }) => arrived(leaseId, url, linksOf(url, all))),
    })),
  );
  const over = new AbortController();
  const watching = watchLocks(over.signal);
  const applying = applyEverySecond(awayFrom(applier.pool), over.signal);
  const startMs = performance.now();
  await Promise.all(
    batches.map(async (ofTaker) => {
      for (const batch of ofTaker)
        await takeResults(batch, results, { scope, recrawl: defaultRecrawlSettings }, new Date());
    }),
  );
  const seconds = (performance.now() - startMs) / 1000;
  over.abort();
  await applying;
  const { waits, samples } = await watching;
  while ((await outboxBacklog(pool)).rows > 0)
    await applyLinks(pool, { ...defaultOutboxBounds, scope, stalledMs: 0 }, new Date());
  return { perSecond: all.length / seconds, lockShare: waits / Math.max(1, samples * crawlers.length) };
}

/** As if each statement went to another machine and back; but for COPY, a stream that has to be there at once. */
function awayFrom(near: Pool): Pool {
  const connect = async () => {
    const client = await near.connect();
    const query = (...given: Parameters<PoolClient["query"]>) => {
      const [statement] = given as unknown[];
      if (typeof statement === "object" && statement !== null && "submit" in statement)
        return client.query(...given);
      return delay(statementMs).then(async () => await client.query(...given));
    };
    return { query, release: (broken?: boolean) => client.release(broken) };
  };
  const query = async (...given: Parameters<PoolClient["query"]>) => {
    await delay(statementMs);
    return await near.query(...given);
  };
  return { connect, query } as unknown as Pool;
}

async function applyEverySecond(far: Pool, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await delay(1000, null, { signal: over }).catch(() => {});
    await applyLinks(far, { ...defaultOutboxBounds, scope }, new Date(), over);
  }
}

/** How often a taker was seen to wait for a lock. */
async function watchLocks(over: AbortSignal): Promise<{ waits: number; samples: number }> {
  let [waits, samples] = [0, 0];
  while (!over.aborted) {
    const { rows } = await pool.query<{ waits: number }>(
      `select count(*)::int as waits from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and pid <> $1`,
      [applierPid],
    );
    waits += rows[0]!.waits;
    samples += 1;
    await delay(sampleMs);
  }
  return { waits, samples };
}

/** A crawler with a subnet of its own. */
async function crawlerWithSubnet(taker: number): Promise<CrawlerId> {
  const crawlerId = await createCrawlerStore(pool).register({
    name: `taker-${taker}`,
    keyHash: `key ${taker}`,
  });
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, added_in)
     select $1::inet, $2::inet, 'ripencc', max(generation) from registry_generation
     returning subnet_id`,
    [`5.${taker}.0.0`, `5.${taker}.255.255`],
  );
  subnets.push(asSubnetId(rows[0]!.subnet_id));
  await createDelegationStore(pool).delegateOwnSubnet(subnets[taker]!, crawlerId, new Date());
  return crawlerId;
}

interface LeasedPage {
  readonly leaseId: string;
  readonly url: string;
}

/** New hosts, each at an address of its own, since those at one address take turns. */
async function leasedPages(taker: number, crawlerId: CrawlerId): Promise<LeasedPage[]> {
  const frontier = createFrontierStore(pool);
  const now = new Date();
  const names = Array.from({ length: batchesPerTaker * hostsPerBatch }, () => `h${hosts++}.example`);
  const urls = names.flatMap((host) =>
    Array.from({ length: urlsPerHost }, (_, page) => `http://${host}/${page}`),
  );
  await frontier.admit(
    urls.map((url) => ({ key: keyOf(url), depth: 0 })),
    scope,
    now,
  );
  await frontier.saveResolutions(
    names.map((host) => {
      const number = Number(host.slice(1, host.indexOf(".")));
      const addresses = [`5.${taker}.${(number >> 8) & 255}.${number & 255}`];
      return { type: "resolved", host, addresses, subnetId: subnets[taker]!, ttlSeconds: 86_400 };
    }),
    now,
  );
  const request = { crawlerId, hosts: names.length, urlsPerHost, leaseSeconds: 600, addressRestSeconds: 0 };
  const leases = await frontier.leaseHosts({ ...request, now: new Date(now.getTime() + 1000) });
  if (leases.length !== names.length) throw new Error(`${leases.length} leases of ${names.length} hosts`);
  // Ten pages of a host at once would come faster than it can be asked.
  await pool.query("update lease set granted_at = granted_at - interval '1 hour' where closed_at is null");
  return leases.flatMap(({ leaseId, urls: leased }) => leased.map(({ url }) => ({ leaseId, url })));
}

function linksOf(url: string, pages: readonly LeasedPage[]): string[] {
  const host = keyOf(url).host;
  const any = (count: number) => Math.floor(random() * count);
  const known = Array.from({ length: 5 }, (_, page) => `http://${host}/${page}`);
  const fresh = Array.from({ length: 5 }, () => `http://${host}/new/${any(1e9)}`);
  const toPopular = Array.from({ length: 5 }, () => `http://${popular}/${any(popularUrls)}`);
  const across = Array.from({ length: 5 }, () => pages[any(pages.length)]!.url);
  return [...known, ...fresh, ...toPopular, ...across];
}

function arrived(leaseId: string, url: string, links: readonly string[]): ResultBatch["results"][number] {
  const result: FetchResult = {
    url,
    fetchedAt: new Date().toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: "198.51.100.7",
    timing: { dnsMs: 1, connectMs: 10, tlsMs: null, firstByteMs: 20, totalMs: 30 },
    wireBytes: 1000,
    bodyBytes: 3000,
    etag: null,
    lastModified: null,
    hostDelayMs: 1000,
    page: {
      contentType: "text/html",
      charset: "utf-8",
      canonicalUrl: null,
      title: "A page",
      description: "",
      headings: [],
      language: "en",
      textSearchConfig: "english",
      lexemes: "'page':1A",
      excerpt: "A page",
      words: 20,
      links: links.map((to) => ({ url: to, anchor: "words", nofollow: false })),
      robots: { noindex: false, nofollow: false },
      digest: "0".repeat(64),
      simhash: "0".repeat(16),
    },
  };
  sequence += 1;
  return { sequence, leaseId: asLeaseId(leaseId), wireBytes: 500, result };
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

function line(values: readonly number[], digits: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((one) => one.toFixed(digits));
  return `${median(values).toFixed(digits)} (${least} to ${most})`;
}
