/** A signed release goes out to a fleet of docks, with real crawlers in Node's sandbox, while they crawl: nothing that they had in hand is lost. */
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RunningCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { type Membership, writeMembership } from "#crawler/core/membership";
import { readStopWords } from "#crawler/extract/stop-words";
import { Spool } from "#crawler/spool/spool";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { bundleCrawler } from "../../ops/bundle-crawler.mjs";
import { type RunningDock, startDock } from "../migrating-crawler/supervisor/release-world.ts";
import { testDatabase } from "../support/database.ts";
import { publishedRelease, testReleaseKey } from "../support/releases.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { giveSubnet, ownedScope, plainSites, shortestPauseMs } from "./owned-hosts.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";

const floorMs = 100;
const [hostsPerCrawler, pages] = [3, 12];
const world = generateWorld({ seed: 11, sites: 18, crawlers: 3 });
const plain = plainSites(world);
const folder = realpathSync(temporaryFolder("nearcrawl-swaps-"));

let database: Database;
let internet: RunningWorld;
let coordinator: RunningCoordinator;
let bundle: string;
let docks: readonly RunningDock[] = [];
beforeAll(async () => {
  database = await testDatabase({ maxConnections: 25 });
  internet = await startWorld(world);
  const outfile = join(folder, "crawler.mjs");
  const root = resolve(import.meta.dirname, "../..");
  await bundleCrawler({ root, outfile, stopWords: readStopWords() });
  bundle = readFileSync(outfile, "utf8");
  await publish("1.0.0");
  await database.pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const keys = await Promise.all(world.crawlers.map((_, index) => fill(index)));
  const settings = {
    ...{ delegation: { settleSeconds: 0 }, scope: ownedScope, heartbeatSeconds: 1 },
    ...{ lease: { urlsPerHost: 20, addressRestSeconds: 0 }, balance: { policy: "none" } },
    // Pages that a second crawler fetches on purpose would count as fetched twice.
    trust: { share: 0, newcomerShare: 0 },
  };
  coordinator = await startQuietCoordinator({ database, internet, settings });
  docks = await Promise.all(keys.map((key, index) => dockAt(index, key)));
}, 120_000);
afterAll(async () => {
  await Promise.all(docks.map(({ dock }) => dock.stop()));
  await coordinator?.stop();
  await internet?.close();
  await database?.close();
}, 60_000);

async function publish(version: string): Promise<void> {
  const [createdAt, expiresAt] = [new Date(), new Date(Date.now() + 86_400_000)].map((at) =>
    at.toISOString(),
  );
  const own = version === "1.0.0" ? bundle : `${bundle}\n// ${version}\n`;
  await publishedRelease(database.pool, {
    ...{ version, stage: "all", bundle: own, manifest: { createdAt: createdAt!, expiresAt: expiresAt! } },
  });
}

/** A crawler with a subnet, its own hosts in it and their pages. */
async function fill(index: number): Promise<string> {
  const { key, keyHash } = newCrawlerKey();
  const { name } = world.crawlers[index]!;
  const crawlerId = await createCrawlerStore(database.pool).register({ name, keyHash });
  const sites = plain.slice(hostsPerCrawler * index, hostsPerCrawler * (index + 1));
  await giveSubnet(database.pool, { crawlerId, index }, { sites, pages });
  return key;
}

/** It has joined. */
async function dockAt(index: number, key: string): Promise<RunningDock> {
  const { name, address } = world.crawlers[index]!;
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(
    join(path, "settings.toml"),
    `publicAddress = "${address}"
proxy = "${internet.proxyUrlOf(index)}"
resolvers = ["${internet.dnsAddress}"]
politenessFloorMs = ${floorMs}
responseTimeFactor = 0
probeMethods = ["connect"]
[limits]
priority = 0
`,
  );
  const membership: Membership = {
    ...{ coordinatorUrl: crawlerUrl(coordinator.webUrl), name, key, certificatePin: null, ticket: null },
    ...{ releaseKeys: [testReleaseKey.publicKey], releaseThreshold: 1 },
  };
  writeMembership(path, membership);
  return await startDock(
    { path, membership, notes: () => [] },
    { watchMs: 300, stopMs: 30_000, backOff: { firstMs: 1000, mostMs: 5000 } },
  );
}

const asked = () => internet.requestLog.entries().filter(({ path }) => path !== "/robots.txt");
const count = async (of: string) =>
  (await database.pool.query<{ n: number }>(`select (select ${of})::int as n`)).rows[0]!.n;

it("a swap under load loses no result and no lease, fetches nothing twice and keeps every host's pace", async () => {
  await until(() => asked().length >= 12, 60_000);
  const publishedAt = Date.now();
  await publish("1.1.0");
  await until(() => docks.every(({ state }) => state().good?.version === "1.1.0"), 90_000);
  const swappedAt = Date.now();
  await until(
    async () => (await count("count(*) from frontier_url where visits = 0 and state = 'due'")) === 0,
    120_000,
  );
  const offers = "count(*) from release_offer where state = 'running' and version = '1.1.0'";
  await until(async () => (await count(offers)) === docks.length, 10_000);
  await Promise.all(docks.map(({ dock }) => dock.stop()));

  const urls = await count("count(*) from frontier_url");
  const spooled = world.crawlers.map(({ name }) => {
    const spool = new Spool({ home: join(folder, name), maxBytes: 1024 ** 3 });
    const { last } = spool;
    spool.close();
    return last ?? 0;
  });
  const requests = asked();
  const before = new Set(requests.filter(({ atMs }) => atMs < publishedAt).map(({ host }) => host));
  expect(urls).toBeGreaterThanOrEqual(docks.length * hostsPerCrawler * pages);
  // Each URL has one fetch, each fetch came in one result, and no number of a spool was left out.
  expect(await count("count(*) from page_fetch")).toBe(urls);
  expect(await count("sum(acknowledged_sequence) from spool")).toBe(urls);
  expect(spooled.reduce((sum, last) => sum + last, 0)).toBe(urls);
  expect(await count("count(*) from frontier_url where visits > 1")).toBe(0);
  expect(new Set(requests.map(({ host, path }) => `${host}${path}`)).size).toBe(requests.length);
  expect(await count("count(*) from lease where ending = 'expired'")).toBe(0);
  expect(requests.some(({ host, atMs }) => atMs > swappedAt && before.has(host))).toBe(true);
  // The grain of the clocks, and a round trip more or less.
  expect(shortestPauseMs(requests)).toBeGreaterThan(floorMs / 2);
}, 300_000);
