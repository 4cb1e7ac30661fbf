/**
 * The emulated Internet, crawled in the order `anansi` with pages that are due again after seconds: how many of the
 * fetches are of new pages (Anansi, figure 5.1).
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readCoordinatorConfig } from "#coordinator/config";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { startCoordinator } from "#coordinator/main";
import { measureCrawl } from "#coordinator/overview/overview-reads";
import { silentLog } from "#core/log";
import { startCrawler } from "#crawler/main";
import { crawlerConfig } from "#crawler/settings/config";
import { openDatabase } from "#db/connect";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";

export interface LiveOrder {
  readonly seed: number;
  readonly crawlers: number;
  readonly sites: number;
  readonly pagesPerSite: number;
  readonly newShare: number;
  readonly fetches: number;
  readonly mostSeconds: number;
}

export interface LiveCurve {
  /** Of each fetch of a page, in their order: seconds since the first, and whether the URL was new. */
  readonly fetches: readonly { readonly seconds: number; readonly isNew: boolean }[];
  readonly measures: Awaited<ReturnType<typeof measureCrawl>>;
}

export async function crawlInOrder(settings: LiveOrder): Promise<LiveCurve> {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-live-order-"));
  // The server runs as another user.
  chmodSync(folder, 0o711);
  const closing: Closing = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    return await run(settings, folder, closing);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

type Closing = (() => Promise<void>)[];

async function run(settings: LiveOrder, folder: string, closing: Closing): Promise<LiveCurve> {
  const { seed, sites, crawlers, pagesPerSite } = settings;
  const drawn = generateWorld({ seed, sites, crawlers });
  const world = { ...drawn, sites: drawn.sites.map((site) => ({ ...site, pages: pagesPerSite })) };
  const { url } = await startEmbeddedPostgres(folder);
  closing.push(async () => void (await stopEmbeddedPostgres(folder)));
  const open = { databaseUrl: url, home: folder, schema: "live_order", maxConnections: 20 };
  const database = await openDatabase(open);
  closing.push(async () => await database.close());
  await migrate(database);
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  const internet = await startWorld(world);
  closing.push(async () => await internet.close());
  const config = configFor(internet, settings);
  const coordinator = await startCoordinator({ database, log: silentLog, version: "bench", config });
  closing.push(async () => await coordinator.stop());
  await startCrawlers({ folder, closing, database, internet, coordinatorUrl: coordinator.webUrl });
  const { pool } = database;
  const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
  const fronts = world.sites.map(({ host }) => `http://${host}/`);
  await admitUrls(fronts, ports, { scope: { ...config.scope, admitNewHosts: true }, now: new Date() });
  return await untilFetched(database, settings);
}

function configFor(internet: RunningWorld, { crawlers, newShare }: LiveOrder) {
  return readCoordinatorConfig({
    listen: { host: "127.0.0.1", port: 0 },
    resolvers: [internet.dnsAddress],
    delegation: { expectedCrawlers: crawlers, settleSeconds: 30 },
    lease: { addressRestSeconds: 0 },
    scope: { pagesPerHost: 10_000, maxDepth: 100, admitNewHosts: false },
    recrawl: { intervalHours: 0.001 },
    trust: { share: 0, newcomerShare: 0 },
    frontier: { order: "anansi", newShare },
    logLevel: "silent",
  });
}

interface Starting {
  readonly folder: string;
  readonly closing: Closing;
  readonly database: Database;
  readonly internet: RunningWorld;
  readonly coordinatorUrl: string;
}

async function startCrawlers({
  folder,
  closing,
  database,
  internet,
  coordinatorUrl,
}: Starting): Promise<void> {
  for (const [index, { name, address }] of internet.world.crawlers.entries()) {
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(database.pool).register({ name, keyHash });
    const crawler = await startCrawler(
      crawlerConfig({
        coordinatorUrl: `${coordinatorUrl.replace("http", "ws")}/crawler`,
        ...{ key, name, home: join(folder, name), publicAddress: address },
        proxy: internet.proxyUrlOf(index),
        resolvers: [internet.dnsAddress],
        politenessFloorMs: 20,
        responseTimeFactor: 0,
        probeMethods: ["head", "connect"],
      }),
    );
    closing.push(async () => await crawler.stop());
  }
}

async function untilFetched({ pool }: Database, settings: LiveOrder): Promise<LiveCurve> {
  const startedMs = performance.now();
  for (;;) {
    await delay(500);
    const { rows } = await pool.query<{ fetches: number }>("select count(*)::int as fetches from page_fetch");
    const seconds = (performance.now() - startedMs) / 1000;
    if (rows[0]!.fetches >= settings.fetches || seconds >= settings.mostSeconds) break;
  }
  const { rows } = await pool.query<{ seconds: number; isNew: boolean }>(
    `select extract(epoch from fetched_at - min(fetched_at) over ())::float8 as seconds,
       row_number() over (partition by host_hash, url_hash order by fetched_at) = 1 as "isNew"
     from page_fetch
     order by fetched_at`,
  );
  return { fetches: rows, measures: await measureCrawl(pool) };
}
