/** A tiny world for the stores: subnets named by range, crawlers by name, and a fixed clock. */

import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { ArrivedResult } from "#coordinator/crawl/batch/accepted-result";
import type { CrawlScope, LeaseRequest } from "#coordinator/crawl/frontier/frontier";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import {
  type AppliedLinks,
  applyLinks,
  defaultOutboxBounds,
  type OutboxSettings,
  outboxBacklog,
} from "#coordinator/crawl/frontier/link-outbox-store";
import { createResultStore, type ResultStore } from "#coordinator/crawl/results/result-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import type { Delegation, FinishedRound } from "#coordinator/place/delegation/delegation";
import type { DelegationStore } from "#coordinator/place/delegation/store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { asLeaseId, asSubnetId, type CrawlerId, type LeaseId, type SubnetId } from "#core/ids";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import type { FetchOutcome, FetchResult, PageExtract } from "#protocol/result";
import { testDatabase } from "./database.ts";

export const noon = new Date("2030-01-01T12:00:00Z");
export const secondsAfterNoon = (seconds: number): Date => new Date(noon.getTime() + seconds * 1000);
export const scope: CrawlScope = { pagesPerHost: 100, maxDepth: 5, admitNewHosts: true };
export const spoolOf = (number: number): string =>
  `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
export const spoolId = spoolOf(1);

export function keyOf(url: string): UrlKey {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

export const seeds = (...urls: string[]) => urls.map((url) => ({ key: keyOf(url), depth: 0 }));

export async function newWorld() {
  const database = await testDatabase({ maxConnections: 25 });
  const { pool } = database;
  await reset(pool);
  const crawlers = createCrawlerStore(pool);
  const store = createDelegationStore(pool);
  const delegations = {
    ...store,
    readAll: async () => await delegationsIn(store),
    unmeasuredBy: async (dueBy: Date | null) =>
      (await store.unmeasured({ limit: 10, dueBy, except: [], recrawlDays: 7 })).map(
        ({ subnetId }) => subnetId,
      ),
  };
  const frontier = createFrontierStore(pool);
  const results = createResultStore(pool);
  const crawler = async (name: string): Promise<CrawlerId> =>
    await crawlers.register({ name, keyHash: `key of ${name}` });

  const resolve = async (host: string, address: string, subnetId: SubnetId | null): Promise<void> =>
    await frontier.saveResolutions(
      [{ type: "resolved", host, addresses: [address], subnetId, ttlSeconds: 3600 }],
      noon,
    );

  const lease = async (
    crawlerId: CrawlerId,
    now: Date = noon,
    differences: Partial<LeaseRequest> = {},
  ): Promise<Lease[]> => {
    const request = { hosts: 10, urlsPerHost: 10, leaseSeconds: 60, addressRestSeconds: 0, ...differences };
    return await frontier.leaseHosts({ crawlerId, now, ...request });
  };

  /** Applies the effects of results on other hosts. */
  const applyOutbox = async (at: Date = noon, differences: Partial<OutboxSettings> = {}) =>
    await emptyOutbox(pool, at, differences);

  /** Applies its links at once. */
  const take = async (crawlerId: CrawlerId, arrived: readonly ArrivedResult[], at: Date = noon) => {
    const taken = await results.take(batchOf(crawlerId, arrived, { now: at }));
    await applyOutbox(at);
    return taken;
  };

  /** Adds a crawler with the host's subnet, and the host's URLs, resolved and due. */
  const delegatedHost = async (crawlerName: string, ...urls: string[]): Promise<CrawlerId> => {
    const crawlerId = await crawler(crawlerName);
    const subnetId = await subnet(pool, "198.51.100.0", "198.51.100.255");
    await delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    await frontier.admit(seeds(...urls), scope, noon);
    for (const host of new Set(urls.map((url) => keyOf(url).host))) {
      await resolve(host, "198.51.100.7", subnetId);
    }
    return crawlerId;
  };

  /** Adds `north` with a lease of these URLs of one host. */
  const leased = async (...urls: string[]): Promise<{ crawlerId: CrawlerId; leaseId: string }> => {
    const crawlerId = await delegatedHost("north", ...urls);
    const [held] = await lease(crawlerId);
    return { crawlerId, leaseId: held!.leaseId };
  };

  return {
    database,
    pool,
    crawlers,
    delegations,
    frontier,
    results,
    crawler,
    subnet: async (first: string, last: string) => await subnet(pool, first, last),
    resolve,
    lease,
    take,
    applyOutbox,
    delegatedHost,
    leased,
    rows: async <Row extends object>(sql: string): Promise<Row[]> => (await pool.query<Row>(sql)).rows,
    /** Empties the world, which is cheaper than a new schema per test. */
    reset: async () => await reset(pool),
    close: async () => await database.close(),
  };
}

interface EmptiedWorld {
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** Created before the file's tests, emptied before each of them, closed after them. */
export function worldOfFile<Made extends EmptiedWorld>(make: () => Promise<Made>): Made {
  const world = {} as Made;
  beforeAll(async () => {
    Object.assign(world, await make());
  }, 60_000);
  beforeEach(async () => await world.reset());
  afterAll(async () => await world.close());
  return world;
}

export const storeWorld = (): World => worldOfFile(newWorld);

export type World = Awaited<ReturnType<typeof newWorld>>;

async function delegationsIn(store: DelegationStore): Promise<Delegation[]> {
  const found: Delegation[] = [];
  await store.readEach((delegation) => found.push(delegation));
  return found;
}

/** Applies everything that waits and returns each batch. */
export async function emptyOutbox(
  pool: Pool,
  at: Date,
  differences: Partial<OutboxSettings> = {},
): Promise<AppliedLinks[]> {
  const settings = { ...defaultOutboxBounds, scope, ...differences };
  const bites: AppliedLinks[] = [];
  // Another process may hold a batch that was opened before the latest effect.
  for (let inVain = 0; inVain < 200; ) {
    const applied = await applyLinks(pool, settings, at);
    if (applied !== null) bites.push(applied);
    else if ((await outboxBacklog(pool)).rows === 0) return bites;
    else {
      inVain += 1;
      await delay(10);
    }
  }
  return bites;
}

/** Deletes rows in the order of the references; truncating fifty partitions takes ten times as long. */
const emptied = [
  "out_link",
  "page_change_inbox",
  "link_outbox",
  "deferred_link",
  "domain_count",
  "page_fetch",
  "page",
  "text_band",
  "lease",
  "address_turn",
  "frontier_url",
  "held_urls",
  "named_sitemap",
  "frontier_host",
  "recrawl_plan",
  "recrawl_host",
  "delegation_history",
  "delegation",
  "anycast_check",
  "finer_delegation",
  "probe",
  "probe_round",
  "crawler_rtt",
  "spool",
  "crawler",
  "subnet",
  "registry_generation",
] as const;

async function reset(pool: Pool): Promise<void> {
  await pool.query(
    `${emptied.map((table) => `delete from ${table};`).join("\n")}
     update link_outbox_bite set outbox_numbers = '{}', reached_host = null, reached_url = null;
     insert into registry_generation (generation, state, applied_at)
     overriding system value
     values (1, 'applied', '2030-01-01T12:00:00Z');
     alter table registry_generation alter generation restart with 2;`,
  );
}

export async function subnet(pool: Pool, first: string, last: string): Promise<SubnetId> {
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, name, added_in)
     values ($1::inet, $2::inet, 'ripencc', '', 1)
     on conflict (first_address, last_address) do update set name = excluded.name
     returning subnet_id`,
    [first, last],
  );
  return asSubnetId(rows[0]!.subnet_id);
}

/** The crawlers' measurements, in order. */
export const eachMs = (...measured: [CrawlerId, number][]) => measured;

/** A round with these probes, won by the first. */
export function roundOf(
  subnetId: SubnetId,
  probes: readonly (readonly [CrawlerId, number])[],
  differences: Partial<FinishedRound> = {},
): FinishedRound {
  return {
    subnetId,
    cause: "new-subnet",
    policy: "nearest",
    parameters: { lambdaMs: 0.1 },
    targetUrl: "http://a.example/",
    targetAddress: "198.51.100.7",
    startedAt: noon,
    decidedAt: noon,
    probes: probes.map(([crawlerId, rttMs]) => ({
      crawlerId,
      outcome: { type: "measured", method: "connect", rttMs, tries: 3 },
    })),
    crawlerId: probes[0]?.[0] ?? null,
    measured: probes.length > 0,
    rttMs: probes[0]?.[1] ?? null,
    runnerUpId: probes[1]?.[0] ?? null,
    runnerUpRttMs: probes[1]?.[1] ?? null,
    reason: { type: "nearest" },
    ...differences,
  };
}

/** One shipment of a crawler. */
export const batchOf = (
  crawlerId: CrawlerId,
  results: readonly ArrivedResult[],
  differences: Partial<Parameters<ResultStore["take"]>[0]> = {},
) => ({
  ...{ crawlerId, spoolId, results, scope, now: noon },
  lastSequence: results.at(-1)?.sequence ?? 0,
  ...differences,
});

const fetched: FetchOutcome = { type: "fetched", status: 200, truncated: false };

/** A result for a leased URL: a page of two words with these links. */
export function arrivedResult(given: {
  readonly sequence: number;
  readonly leaseId: LeaseId | string;
  readonly url: string;
  readonly links?: readonly string[];
  readonly outcome?: FetchOutcome;
  readonly result?: Partial<FetchResult>;
  readonly page?: Partial<PageExtract>;
  readonly again?: ArrivedResult["again"];
}): ArrivedResult {
  const { outcome = fetched, links = [] } = given;
  const followed = links.map((link) => ({ key: keyOf(link), depth: 1 }));
  return {
    sequence: given.sequence,
    leaseId: asLeaseId(given.leaseId),
    shippedBytes: 100,
    again: given.again ?? (() => ({ at: secondsAfterNoon(86_400), isGone: false })),
    admit: followed,
    foreign: [],
    links: followed.map(({ key }) => ({ ...key, anchor: `to ${key.url}`, nofollow: false })),
    key: keyOf(given.url),
    result: {
      url: given.url,
      fetchedAt: noon.toISOString(),
      outcome,
      address: "198.51.100.7",
      timing: { dnsMs: 1, connectMs: 10, tlsMs: null, firstByteMs: 20, totalMs: 30 },
      wireBytes: 1000,
      bodyBytes: 3000,
      etag: '"one"',
      lastModified: null,
      hostDelayMs: 1000,
      page: outcome.type === "fetched" ? { ...twoWords, ...given.page } : null,
      ...given.result,
    },
  };
}

const twoWords: PageExtract = {
  contentType: "text/html",
  charset: "utf-8",
  canonicalUrl: null,
  title: "Two words",
  description: "",
  headings: [{ level: 1, text: "Two words" }],
  language: "en",
  textSearchConfig: "english",
  text: "Two words",
  words: 2,
  links: [],
  robots: { noindex: false, nofollow: false },
  digest: "0".repeat(64),
  simhash: "0".repeat(16),
};
