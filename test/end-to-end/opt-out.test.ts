/**
 * A site opts out through the form while it is being crawled: two coordinators share a database, the form goes to
 * the one that the crawlers are not connected to, and the site's own log shows what comes after it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { admitUrls } from "#coordinator/flows/admit-urls";
import { silentLog } from "#coordinator/log";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/postgres/crawler-store";
import { createFrontierStore } from "#coordinator/postgres/frontier-store";
import { createRejectedUrlStore } from "#coordinator/postgres/rejected-url-store";
import { crawlerConfig } from "#crawler/config";
import { type RunningCrawler, startCrawler } from "#crawler/main";
import type { Database } from "#db/connect";
import { newCrawlerKey } from "#ops/nearcrawl/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { testDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

const world = generateWorld({ seed: 5, sites: 6, crawlers: 2 });
const politenessFloorMs = 200;
const scope = { pagesPerHost: 1000, maxDepth: 100, admitNewHosts: true };
/** What the acknowledgement promises is a minute; this is what it takes here, with room for a busy machine. */
const fewSecondsMs = 3000;

let database: Database;
let internet: RunningWorld;
const coordinators: RunningCoordinator[] = [];
const crawlers: RunningCrawler[] = [];
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-opt-out-"));

beforeAll(async () => {
  database = await testDatabase({ maxConnections: 20 });
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  internet = await startWorld(world);
  for (let started = 0; started < 2; started++) coordinators.push(await startOneCoordinator());
  for (const [index, crawler] of world.crawlers.entries())
    crawlers.push(await startOneCrawler(index, crawler));
}, 120_000);

afterAll(async () => {
  await Promise.all(crawlers.map((crawler) => crawler.stop()));
  await Promise.all(coordinators.map((coordinator) => coordinator.stop()));
  await internet?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function startOneCoordinator(): Promise<RunningCoordinator> {
  return await startCoordinator({
    database,
    log: silentLog,
    version: "test",
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port: 0 },
      resolvers: [internet.dnsAddress],
      delegation: { expectedCrawlers: 2, settleSeconds: 2 },
      scope: { ...scope, admitNewHosts: false },
      lease: { urlsPerHost: 500 },
      userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
      logLevel: "silent",
    }),
  });
}

async function startOneCrawler(index: number, crawler: (typeof world.crawlers)[number]) {
  const { key, keyHash } = newCrawlerKey();
  await createCrawlerStore(database.pool).register({ name: crawler.name, keyHash });
  return await startCrawler(
    crawlerConfig({
      coordinatorUrl: `${coordinators[1]!.webUrl.replace("http", "ws")}/crawler`,
      key,
      name: crawler.name,
      home: join(folder, crawler.name),
      publicAddress: crawler.address,
      proxy: internet.proxyUrlOf(index),
      resolvers: [internet.dnsAddress],
      contact: "abuse@partner.example",
      politenessFloorMs,
      responseTimeFactor: 0,
      requestsPerAddress: 8,
    }),
  );
}

const pagesOf = (host: string, afterMs = 0) =>
  internet.requestLog.entries().filter((request) => request.host === host && request.atMs > afterMs);

/** Hosts of open leases that take longer than the few seconds, the longest first. */
async function longLeases(): Promise<string[]> {
  const { rows } = await database.pool.query<{ host: string }>(
    "select host from lease where closed_at is null and open_urls * $1 > $2 order by open_urls desc",
    [politenessFloorMs, 2 * fewSecondsMs],
  );
  return rows.map(({ host }) => host);
}

describe("a site that opts out while it is being crawled", { timeout: 120_000 }, () => {
  it("is asked for nothing any more a few seconds after the acknowledgement, while others are", async () => {
    const ports = {
      frontier: createFrontierStore(database.pool),
      rejected: createRejectedUrlStore(database.pool),
    };
    const paths = Array.from({ length: 60 }, (_, number) => `page-${number}`);
    const urls = world.sites.flatMap(({ host }) => paths.map((path) => `http://${host}/${path}`));
    await admitUrls(urls, ports, { scope, now: new Date() });
    // Of two with work for many seconds in hand, one opts out and the other goes on.
    await until(async () => (await longLeases()).length >= 2, 60_000);
    const [leaving, staying] = (await longLeases()) as [string, string];

    const answer = await fetch(`${coordinators[0]!.webUrl}/about-crawler/opt-out`, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams({ site: leaving }),
    });
    const acknowledgedMs = Date.now();
    await until(() => pagesOf(staying, acknowledgedMs + fewSecondsMs).length >= 3, 60_000);

    expect(answer.status).toBe(201);
    expect(pagesOf(leaving, acknowledgedMs + fewSecondsMs)).toEqual([]);
    const { rows } = await database.pool.query(
      "select due_at, opt_out_id is not null as marked, lease_id from frontier_host where host = $1",
      [leaving],
    );
    expect(rows).toEqual([{ due_at: null, marked: true, lease_id: null }]);
  });

  it("has seen one User-Agent only: the coordinator's, with the partner's contact", () => {
    const agents = new Set(internet.requestLog.entries().map(({ userAgent }) => userAgent));

    expect([...agents]).toEqual([
      "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler) (hosted by: abuse@partner.example)",
    ]);
  });
});
