/**
 * The whole way once, in one process, over real sockets and a real Postgres: registry files become the tree,
 * sites become subnets, subnets are delegated by probing, crawlers fetch and ship, and the answer to "who"
 * names the same crawler as the pages do.
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

const world = generateWorld({ seed: 11, sites: 30, crawlers: 4 });
const politenessFloorMs = 50;
const scope = { pagesPerHost: 3, maxDepth: 10, admitNewHosts: true };

let database: Database;
let internet: RunningWorld;
let coordinator: RunningCoordinator;
const crawlers: RunningCrawler[] = [];
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-whole-way-"));

beforeAll(async () => {
  database = await testDatabase({ maxConnections: 12 });
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  internet = await startWorld(world);
  coordinator = await startCoordinator({
    database,
    log: silentLog,
    version: "test",
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port: 0 },
      resolvers: [internet.dnsAddress],
      delegation: { expectedCrawlers: 4, settleSeconds: 20 },
      scope: { ...scope, admitNewHosts: false },
      heartbeatSeconds: 2,
      logLevel: "silent",
    }),
  });
  for (const [index, crawler] of world.crawlers.entries()) crawlers.push(await startOne(index, crawler));
}, 120_000);

afterAll(async () => {
  await Promise.all(crawlers.map((crawler) => crawler.stop()));
  await coordinator?.stop();
  await internet?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function startOne(index: number, crawler: (typeof world.crawlers)[number]): Promise<RunningCrawler> {
  const { key, keyHash } = newCrawlerKey();
  await createCrawlerStore(database.pool).register({ name: crawler.name, keyHash });
  return await startCrawler(
    crawlerConfig({
      coordinatorUrl: `${coordinator.webUrl.replace("http", "ws")}/crawler`,
      key,
      name: crawler.name,
      home: join(folder, crawler.name),
      publicAddress: crawler.address,
      proxy: internet.proxyUrlOf(index),
      resolvers: [internet.dnsAddress],
      politenessFloorMs,
      responseTimeFactor: 0,
      probeMethods: ["head", "connect"],
    }),
  );
}

const one = async <Row>(text: string, values: unknown[] = []): Promise<Row> =>
  (await database.pool.query(text, values)).rows[0] as Row;

describe("the whole way", { timeout: 120_000 }, () => {
  it("crawls every site, several pages each, and stores nothing twice", async () => {
    const ports = {
      frontier: createFrontierStore(database.pool),
      rejected: createRejectedUrlStore(database.pool),
    };
    const urls = [
      ...world.sites.map((site) => `http://${site.host}/`),
      "http://10.1.2.3/",
      "http://bad host/",
    ];

    const admitted = await admitUrls(urls, ports, { scope, now: new Date() });
    await until(async () => {
      const progress = await ports.frontier.progress(new Date());
      return progress.urlsPending === 0 && progress.hostsUnresolved === 0 && progress.hosts > 0;
    }, 100_000);

    expect(admitted.rejected).toEqual([
      { url: "http://bad host/", reason: "it cannot be parsed as an absolute URL" },
    ]);
    const visited = await one<{ sites: number; twice: number }>(
      `select count(distinct host_hash) filter (where last_outcome <> 'refused-address')::int as sites,
         count(*) filter (where visits > 1)::int as twice
       from frontier_url`,
    );
    expect(visited).toEqual({ sites: world.sites.length, twice: 0 });
    const fetches = await one<{ fetches: number; urls: number }>(
      "select count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls from page_fetch",
    );
    expect(fetches.fetches).toBe(fetches.urls);
    expect(fetches.fetches).toBeGreaterThan(world.sites.length);
  });

  it("records the URL that could not be parsed and the one at a private address, each with its reason", async () => {
    const rejected = await one<{ reason: string }>("select reason from rejected_url");
    const refused = await one<{ state: string; last_reason: string }>(
      "select state, last_reason from frontier_url where url = 'http://10.1.2.3/'",
    );

    expect(rejected.reason).toMatch(/cannot be parsed/);
    expect(refused.state).toBe("refused");
    expect(refused.last_reason).toMatch(/10\.1\.2\.3 is a special-purpose address/);
  });

  it("runs one probe round for a subnet, however many of its sites waited", async () => {
    const rounds = await one<{ rounds: number; subnets: number }>(
      "select count(*)::int as rounds, count(distinct subnet_id)::int as subnets from probe_round",
    );

    expect(rounds.rounds).toBe(rounds.subnets);
    const shared = world.sites.length - new Set(world.sites.map((site) => site.subnet)).size;
    expect(shared).toBeGreaterThan(0);
  });

  it("fetches each page from the crawler its subnet is delegated to", async () => {
    const strayed = await one<{ pages: number }>(
      `select count(*)::int as pages
       from page p
       join frontier_host h on h.host_hash = p.host_hash
       join delegation d on d.subnet_id = h.subnet_id
       where d.crawler_id <> p.crawler_id`,
    );

    expect(strayed.pages).toBe(0);
  });

  it("delegates four of five subnets at least to a crawler within 5 ms of the nearest, on processors however busy", async () => {
    const { rows } = await database.pool.query<{ address: string; crawler: string }>(
      `select host(r.target_address) as address, c.name as crawler
       from delegation d
       join probe_round r on r.round_id = d.round_id
       join crawler c on c.crawler_id = d.crawler_id`,
    );
    const excessMs = rows.map(({ address, crawler }) => {
      const rtts = world.crawlers.map((_, index) => world.rttMs(index, address) ?? Number.NaN);
      return rtts[world.crawlers.findIndex(({ name }) => name === crawler)]! - Math.min(...rtts);
    });

    expect(rows.length).toBeGreaterThan(15);
    expect(excessMs.filter((ms) => ms <= 5).length / rows.length).toBeGreaterThanOrEqual(0.8);
  });

  it("leaves the stated pause between two pages of a host", () => {
    const seen = internet.requestLog.entries();
    const pages = seen.filter(({ method, path }) => method === "GET" && path !== "/robots.txt");

    expect(pages.length).toBeGreaterThan(world.sites.length);
    for (const site of world.sites) {
      const times = pages.filter(({ host }) => host === site.host).map(({ atMs }) => atMs);
      const gapsMs = times.slice(1).map((atMs, index) => atMs - times[index]!);
      // The pause counts from the end of one answer to the start of the next request.
      expect(Math.min(...gapsMs, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(politenessFloorMs - 1);
    }
  });

  it("shows the fleet and the pages on its web page", async () => {
    const page = await (await fetch(coordinator.webUrl)).text();

    for (const { name } of world.crawlers) expect(page).toContain(name);
  });
});
