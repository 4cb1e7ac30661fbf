/**
 * The emulated Internet with twelve crawlers, one of which ships other pages than the sites have: after how many of
 * its pages the coordinator, with the settings of every day but for the pace, does not trust it any more.
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
import { hashText } from "#ops/world/seeded-random";
import { applyImport } from "#rir-import/apply";
import { startLyingProxy } from "../../end-to-end/lying-proxy.ts";

export interface LiveLiar {
  readonly seed: number;
  readonly crawlers: number;
  readonly sites: number;
  /** Of its pages, the altered ones. */
  readonly share: number;
  readonly mostSeconds: number;
}

export interface LiveFigures {
  /** Of the liar, when it was distrusted; null: it was not. */
  readonly pages: number | null;
  readonly lies: number;
  readonly seconds: number;
  readonly innocentAccused: number;
  /** Of all crawlers, until then. */
  readonly pagesOfAll: number;
  readonly verdicts: readonly { readonly verdict: string; readonly count: number }[];
}

export async function catchLiveLiar(settings: LiveLiar): Promise<LiveFigures> {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-live-liar-"));
  // The server runs as another user.
  chmodSync(folder, 0o711);
  const closing: (() => Promise<void>)[] = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    return await run(settings, folder, closing);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

type Closing = (() => Promise<void>)[];

async function run(settings: LiveLiar, folder: string, closing: Closing): Promise<LiveFigures> {
  const world = generateWorld({ seed: settings.seed, sites: settings.sites, crawlers: settings.crawlers });
  const { url } = await startEmbeddedPostgres(folder);
  closing.push(async () => void (await stopEmbeddedPostgres(folder)));
  const database = await openDatabase({
    databaseUrl: url,
    home: folder,
    schema: "live_liar",
    maxConnections: 20,
  });
  closing.push(async () => await database.close());
  await migrate(database);
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  const internet = await startWorld(world);
  closing.push(async () => await internet.close());
  const coordinator = await startCoordinator({
    database,
    log: silentLog,
    version: "bench",
    config: configFor(internet, settings),
  });
  closing.push(async () => await coordinator.stop());
  const lies = await startCrawlers({
    settings,
    folder,
    closing,
    database,
    internet,
    coordinatorUrl: coordinator.webUrl,
  });
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  const scope = { pagesPerHost: 10_000, maxDepth: 100, admitNewHosts: false };
  await admitUrls(
    world.sites.map(({ host }) => `http://${host}/`),
    ports,
    { scope: { ...scope, admitNewHosts: true }, now: new Date() },
  );
  return await untilCaught(database, { settings, lies });
}

function configFor(internet: RunningWorld, { crawlers }: LiveLiar) {
  return readCoordinatorConfig({
    listen: { host: "127.0.0.1", port: 0 },
    resolvers: [internet.dnsAddress],
    delegation: { expectedCrawlers: crawlers, settleSeconds: 30 },
    lease: { addressRestSeconds: 0 },
    scope: { pagesPerHost: 10_000, maxDepth: 100, admitNewHosts: false },
    // Again as soon as everything was fetched, so that there are pages enough.
    recrawl: { intervalHours: 0.002 },
    logLevel: "silent",
  });
}

interface Starting {
  readonly settings: LiveLiar;
  readonly folder: string;
  readonly closing: Closing;
  readonly database: Database;
  readonly internet: RunningWorld;
  readonly coordinatorUrl: string;
}

/** The first one lies; gives the requests that were changed. */
async function startCrawlers(starting: Starting): Promise<readonly string[]> {
  const { settings, folder, closing, database, internet, coordinatorUrl } = starting;
  const proxy = await startLyingProxy(internet.proxyUrlOf(0), (host, path) => {
    const drawn = hashText(settings.seed, `${host}${path}`) / 0x1_0000_0000;
    if (drawn >= settings.share) return null;
    return path === "/" || drawn < settings.share / 2 ? "/there-is-no-such-page" : "/";
  });
  closing.push(async () => await proxy.close());
  for (const [index, { name, address }] of internet.world.crawlers.entries()) {
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(database.pool).register({ name, keyHash });
    const crawler = await startCrawler(
      crawlerConfig({
        coordinatorUrl: `${coordinatorUrl.replace("http", "ws")}/crawler`,
        ...{ key, name, home: join(folder, name), publicAddress: address },
        proxy: index === 0 ? proxy.url : internet.proxyUrlOf(index),
        resolvers: [internet.dnsAddress],
        politenessFloorMs: 20,
        responseTimeFactor: 0,
        probeMethods: ["head", "connect"],
      }),
    );
    closing.push(async () => await crawler.stop());
  }
  return proxy.lies;
}

async function untilCaught(
  { pool }: Database,
  { settings, lies }: { readonly settings: LiveLiar; readonly lies: readonly string[] },
): Promise<LiveFigures> {
  const startedMs = performance.now();
  for (;;) {
    await delay(500);
    const { rows } = await pool.query<{ crawler_id: number; pages: number; accused: boolean }>(
      `select crawler_id, coalesce(pages, 0)::int as pages, distrusted_at is not null as accused
       from crawler left join crawler_trust using (crawler_id)
       order by crawler_id`,
    );
    const seconds = (performance.now() - startedMs) / 1000;
    const [liar, ...others] = rows;
    if (!liar!.accused && seconds < settings.mostSeconds) continue;
    const verdicts = await pool.query<{ verdict: string; count: number }>(
      "select coalesce(verdict, 'open') as verdict, count(*)::int as count from double_check group by 1 order by 1",
    );
    return {
      pages: liar!.accused ? liar!.pages : null,
      lies: lies.length,
      seconds: Math.round(seconds),
      innocentAccused: others.filter(({ accused }) => accused).length,
      pagesOfAll: rows.reduce((sum, { pages }) => sum + pages, 0),
      verdicts: verdicts.rows,
    };
  }
}
