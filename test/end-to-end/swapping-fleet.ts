/**
 * A fleet of docks with real crawlers in Node's sandbox, a real coordinator and database, and the emulated Internet:
 * it crawls under load while a signed release goes out to all, and what was lost in it is counted.
 */
import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import type { RunningCoordinator } from "#coordinator/main";
import { readStopWords } from "#crawler/extract/stop-words";
import { type Membership, writeMembership } from "#crawler/core/membership";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { bundleCrawler } from "../../ops/bundle-crawler.mjs";
import { type RunningDock, startDock } from "../migrating-crawler/supervisor/release-world.ts";
import { publishedRelease, testReleaseKey } from "../support/releases.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { giveSubnet, ownedScope, plainSites } from "./owned-hosts.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";
import { hostsOver, shortestPause } from "./request-figures.ts";
import { spooledResults } from "./spooled-results.ts";

export interface FleetSize {
  readonly crawlers: number;
  readonly hostsPerCrawler: number;
  readonly pagesPerHost: number;
  /** Between two requests to one host, at least. */
  readonly floorMs: number;
  /** Requests after which the new release goes out. */
  readonly requestsBefore: number;
}

export interface SwapOutcome {
  /** Crawlers that run the new release in the end, as the coordinator knows them. */
  readonly swapped: number;
  readonly requestsBefore: number;
  /** From the release's publishing until the last crawler was well, ms. */
  readonly swapMs: number;
  readonly urls: number;
  /** Fetches that the database has, and the sequences that were acknowledged: each is one result. */
  readonly fetches: number;
  readonly sequences: number;
  /** Results that were left in a spool. */
  readonly unacknowledged: number;
  readonly fetchedTwice: number;
  /** Pages that an origin was asked for more than once. */
  readonly askedTwice: number;
  readonly leases: Readonly<Record<string, number>>;
  /** The shortest pause between two requests to one host, over all hosts. */
  readonly shortestPauseMs: number;
  /** Asked by the old crawler before, by the new one after. */
  readonly hostsOverSwap: number;
}

const [first, second] = ["1.0.0", "1.1.0"] as const;
const signedFor = {
  createdAt: new Date().toISOString(),
  expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
};

/** `database`: migrated and empty. */
export async function swapUnderLoad(size: FleetSize, database: Database): Promise<SwapOutcome> {
  const folder = realpathSync(temporaryFolder("nearcrawl-swaps-"));
  const generated = generateWorld({
    seed: 11,
    sites: size.crawlers * size.hostsPerCrawler * 2,
    crawlers: size.crawlers,
  });
  const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const bundle = await bundleText(folder);
    const internet = await startWorld(generated);
    cleanups.push(() => internet.close());
    await publishedRelease(database.pool, { version: first, stage: "all", bundle, manifest: signedFor });
    const homes = await fillFrontier({ database, internet, folder, generated, size });
    const coordinator = await startQuietCoordinator({ database, internet, settings });
    cleanups.push(() => coordinator.stop());
    const docks = await Promise.all(homes.map((home) => startAt(home, coordinator)));
    cleanups.push(() => Promise.all(docks.map(({ dock }) => dock.stop())));
    return await swapAndCount({ database, internet, docks, homes, size, bundle });
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

interface Fleet {
  readonly database: Database;
  readonly internet: RunningWorld;
  readonly docks: readonly RunningDock[];
  readonly homes: readonly DockedHome[];
  readonly size: FleetSize;
  readonly bundle: string;
}

async function swapAndCount(fleet: Fleet): Promise<SwapOutcome> {
  const { database, internet, docks, homes, size, bundle } = fleet;
  const asked = () => internet.requestLog.entries().filter(({ path }) => path !== "/robots.txt");
  await until(() => asked().length >= size.requestsBefore, 60_000);
  const publishedAt = Date.now();
  await publishedRelease(database.pool, {
    version: second,
    stage: "all",
    bundle: `${bundle}\n// ${second}\n`,
    manifest: signedFor,
  });
  const isWell = ({ state }: RunningDock) => state().good?.version === second;
  await until(() => docks.every(isWell), 90_000);
  const swappedAt = Date.now();
  await until(async () => (await left(database)) === 0, 120_000);
  await until(async () => (await runs(database, second)) === docks.length, 10_000);
  const swapped = await runs(database, second);
  await Promise.all(docks.map(({ dock }) => dock.stop()));
  const requests = asked();
  const counts = await countsIn(database);
  return {
    swapped,
    requestsBefore: requests.filter(({ atMs }) => atMs < publishedAt).length,
    swapMs: swappedAt - publishedAt,
    ...counts,
    unacknowledged: spooledResults(homes.map(({ path }) => path)) - counts.sequences,
    askedTwice: requests.length - new Set(requests.map(({ host, path }) => `${host}${path}`)).size,
    shortestPauseMs: Math.round(shortestPause(requests)),
    hostsOverSwap: hostsOver(requests, { from: publishedAt, to: swappedAt }),
  };
}

async function countsIn(database: Database) {
  const one = async (text: string) => (await rowsOf<{ n: number }>(database, text))[0]!.n;
  const ended = await rowsOf<{ ending: string; n: number }>(
    database,
    "select coalesce(ending, 'open') as ending, count(*)::int as n from lease group by 1",
  );
  return {
    urls: await one("select count(*)::int as n from frontier_url"),
    fetches: await one("select count(*)::int as n from page_fetch"),
    sequences: await one("select sum(acknowledged_sequence)::int as n from spool"),
    fetchedTwice: await one("select count(*)::int as n from frontier_url where visits > 1"),
    leases: Object.fromEntries(ended.map(({ ending, n }) => [ending, n])),
  };
}

async function left(database: Database): Promise<number> {
  const [row] = await rowsOf<{ n: number }>(
    database,
    "select count(*)::int as n from frontier_url where visits = 0 and state = 'due'",
  );
  return row!.n;
}

async function runs(database: Database, version: string): Promise<number> {
  const rows = await rowsOf<{ version: string }>(
    database,
    `select version from release_offer where state = 'running' and version = '${version}'`,
  );
  return rows.length;
}

async function bundleText(folder: string): Promise<string> {
  const outfile = join(folder, "crawler.mjs");
  const root = resolve(import.meta.dirname, "../..");
  await bundleCrawler({ root, outfile, stopWords: readStopWords() });
  return readFileSync(outfile, "utf8");
}

const settings = {
  delegation: { settleSeconds: 0 },
  scope: ownedScope,
  lease: { urlsPerHost: 20, addressRestSeconds: 0 },
  heartbeatSeconds: 1,
  balance: { policy: "none" },
  // Pages that a second crawler fetches on purpose would count as fetched twice.
  trust: { share: 0, newcomerShare: 0 },
};

interface DockedHome {
  readonly path: string;
  readonly name: string;
  readonly key: string;
}

/** Each crawler has a subnet and its own hosts, each host its pages; and a home that has joined. */
async function fillFrontier(given: {
  readonly database: Database;
  readonly internet: RunningWorld;
  readonly folder: string;
  readonly generated: ReturnType<typeof generateWorld>;
  readonly size: FleetSize;
}): Promise<DockedHome[]> {
  const { database, internet, folder, generated, size } = given;
  const { pool } = database;
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const plain = plainSites(generated);
  const homes: DockedHome[] = [];
  for (const [index, { name, address }] of generated.crawlers.entries()) {
    const { key, keyHash } = newCrawlerKey();
    const crawlerId = await createCrawlerStore(pool).register({ name, keyHash });
    const sites = plain.splice(0, size.hostsPerCrawler);
    await giveSubnet(pool, { crawlerId, index }, { sites, pages: size.pagesPerHost });
    const path = join(folder, name);
    mkdirSync(path);
    writeFileSync(
      join(path, "settings.toml"),
      [
        `publicAddress = "${address}"`,
        `proxy = "${internet.proxyUrlOf(index)}"`,
        `resolvers = ["${internet.dnsAddress}"]`,
        `politenessFloorMs = ${size.floorMs}`,
        "responseTimeFactor = 0",
        `probeMethods = ["connect"]`,
        "[limits]",
        "priority = 0",
      ].join("\n"),
    );
    homes.push({ path, name, key });
  }
  return homes;
}

async function startAt(
  { path, name, key }: DockedHome,
  { webUrl }: RunningCoordinator,
): Promise<RunningDock> {
  const membership: Membership = {
    coordinatorUrl: crawlerUrl(webUrl),
    name,
    certificatePin: null,
    releaseKeys: [testReleaseKey.publicKey],
    releaseThreshold: 1,
    key,
    ticket: null,
  };
  writeMembership(path, membership);
  return await startDock(
    { path, membership, notes: () => [] },
    { watchMs: 300, stopMs: 30_000, backOff: { firstMs: 1000, mostMs: 5000 } },
  );
}

async function rowsOf<Row extends object>({ pool }: Database, text: string): Promise<Row[]> {
  return (await pool.query<Row>(text)).rows;
}
