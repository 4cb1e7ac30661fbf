/**
 * A running fleet on a changing web, under one recrawl strategy: crawlers come and go, and how fresh the index is gets
 * sampled. Everything is real but the Internet and the pace of time.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readCoordinatorConfig } from "#coordinator/config";
import { admitUrls } from "#coordinator/flows/admit-urls";
import { silentLog } from "#coordinator/log";
import { startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/postgres/crawler-store";
import { createFrontierStore } from "#coordinator/postgres/frontier-store";
import { createRejectedUrlStore } from "#coordinator/postgres/rejected-url-store";
import type { RecrawlStrategy } from "#core/recrawl/recrawl-plan";
import { crawlerConfig } from "#crawler/config";
import { type RunningCrawler, startCrawler } from "#crawler/main";
import { type Database, openDatabase } from "#db/connect";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { newCrawlerKey } from "#ops/nearcrawl/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { changingWeb, FreshnessMeter, type FreshShares } from "./changing-web.ts";

export interface LiveRun {
  readonly strategy: RecrawlStrategy;
  readonly seed: number;
  readonly sites: number;
  /** In the fleet at once; as many again take their places one by one. */
  readonly crawlers: number;
  readonly pagesPerHost: number;
  /** Until the measurement begins, and how long it takes. */
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
  /** Of `fixed`, and of all pages together what `optimal` has to divide. */
  readonly intervalSeconds: number;
}

export interface LiveFreshness {
  readonly strategy: RecrawlStrategy;
  /** One a second. */
  readonly samples: readonly (FreshShares & { readonly second: number })[];
  /** In the time that was measured. */
  readonly fetchesPerSecond: number;
  /** Of those that could tell, the fetches that found a change. */
  readonly changedShare: number;
  /** Times that the intervals were made anew, in all. */
  readonly plans: number;
  readonly swaps: number;
}

type Closing = (() => Promise<void>)[];

export async function measureFreshness(run: LiveRun): Promise<LiveFreshness> {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-freshness-"));
  // The server runs as another user.
  chmodSync(folder, 0o711);
  const closing: Closing = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    return await measure(run, folder, closing);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

async function measure(run: LiveRun, folder: string, closing: Closing): Promise<LiveFreshness> {
  const world = generateWorld({ seed: run.seed, sites: run.sites, crawlers: 2 * run.crawlers });
  const database = await ownDatabase(folder, closing);
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  const changes = changingWeb(run.seed, Date.now());
  const internet = await startWorld(world, { changes });
  closing.push(async () => await internet.close());
  const config = configFor(internet, run);
  const coordinator = await startCoordinator({ database, log: silentLog, version: "bench", config });
  closing.push(async () => await coordinator.stop());
  const fleet = new ComingAndGoing({ database, internet, folder, coordinatorUrl: coordinator.webUrl });
  closing.push(async () => await fleet.close());
  for (let index = 0; index < run.crawlers; index++) await fleet.add();
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  const scope = { ...config.scope, admitNewHosts: true };
  await admitUrls(
    world.sites.map(({ host }) => `http://${host}/`),
    ports,
    { scope, now: new Date() },
  );
  await delay(run.warmUpSeconds * 1000);
  return await sample(run, { database, fleet, meter: new FreshnessMeter(database.pool, internet, changes) });
}

async function ownDatabase(folder: string, closing: Closing): Promise<Database> {
  const { url } = await startEmbeddedPostgres(folder);
  closing.push(async () => void (await stopEmbeddedPostgres(folder)));
  const database = await openDatabase({
    databaseUrl: url,
    home: folder,
    schema: "freshness",
    maxConnections: 20,
  });
  closing.push(async () => await database.close());
  await migrate(database);
  return database;
}

/** Nothing is fetched but for the pages: no second fetches for trust, no balance, no rounds for slow answers. */
function configFor(internet: RunningWorld, run: LiveRun) {
  return readCoordinatorConfig({
    listen: { host: "127.0.0.1", port: 0 },
    resolvers: [internet.dnsAddress],
    delegation: { expectedCrawlers: run.crawlers, settleSeconds: 20 },
    lease: { addressRestSeconds: 0, urlsPerHost: 5, seconds: 60 },
    scope: { pagesPerHost: run.pagesPerHost, maxDepth: 100, admitNewHosts: false },
    trust: { share: 0, newcomerShare: 0, watchedShare: 0 },
    balance: { policy: "none" },
    recalibration: { everySeconds: 3600 },
    recrawl: {
      strategy: run.strategy,
      intervalHours: run.intervalSeconds / 3600,
      shortestHours: 2 / 3600,
      longestDays: (6 * run.intervalSeconds) / 86_400,
      everySeconds: 3,
      // 0.1 a day, where a week stands for 40 seconds.
      usualChangesPerDay: (0.1 * 7 * 86_400) / 40,
    },
    logLevel: "silent",
  });
}

interface FleetParts {
  readonly database: Database;
  readonly internet: RunningWorld;
  readonly folder: string;
  readonly coordinatorUrl: string;
}

/** Crawlers in the order in which they came; each is used once. */
class ComingAndGoing {
  readonly #parts: FleetParts;
  readonly #running: { readonly name: string; readonly crawler: RunningCrawler }[] = [];
  #next = 0;
  swaps = 0;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  async add(): Promise<void> {
    const { database, internet, folder, coordinatorUrl } = this.#parts;
    const index = this.#next++;
    const { name, address } = internet.world.crawlers[index]!;
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(database.pool).register({ name, keyHash });
    const crawler = await startCrawler(
      crawlerConfig({
        coordinatorUrl: `${coordinatorUrl.replace("http", "ws")}/crawler`,
        ...{ key, name, home: join(folder, name), publicAddress: address },
        proxy: internet.proxyUrlOf(index),
        resolvers: [internet.dnsAddress],
        politenessFloorMs: 150,
        responseTimeFactor: 0,
        probeMethods: ["connect"],
      }),
    );
    this.#running.push({ name, crawler });
  }

  /** The one that has been there longest is drained and goes; another one comes in its place. */
  async swap(): Promise<void> {
    if (this.#next >= this.#parts.internet.world.crawlers.length) return;
    const leaving = this.#running.shift()!;
    await createCrawlerStore(this.#parts.database.pool).drain(leaving.name, new Date());
    await this.add();
    await delay(1500);
    await leaving.crawler.stop();
    this.swaps += 1;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map(({ crawler }) => crawler.stop()));
  }
}

interface Watched {
  readonly database: Database;
  readonly fleet: ComingAndGoing;
  readonly meter: FreshnessMeter;
}

async function sample(run: LiveRun, { database, fleet, meter }: Watched): Promise<LiveFreshness> {
  const from = new Date();
  const samples: (FreshShares & { second: number })[] = [];
  const swapEverySeconds = Math.floor(run.measuredSeconds / (run.crawlers + 1));
  let swapping: Promise<void> = Promise.resolve();
  for (let second = 1; second <= run.measuredSeconds; second++) {
    await delay(Math.max(0, from.getTime() + second * 1000 - Date.now()));
    samples.push({ second, ...(await meter.look()) });
    if (second % swapEverySeconds === 0) swapping = swapping.then(async () => await fleet.swap());
  }
  await swapping;
  const { rows } = await database.pool.query<{
    fetches: number;
    changed: number;
    told: number;
    plans: number;
  }>(
    `select count(*)::int as fetches, (count(*) filter (where changed))::int as changed,
       count(changed)::int as told, (select count(*)::int from recrawl_plan) as plans
     from page_fetch where fetched_at >= $1`,
    [from],
  );
  const { fetches, changed, told, plans } = rows[0]!;
  const seconds = (Date.now() - from.getTime()) / 1000;
  return {
    strategy: run.strategy,
    samples,
    fetchesPerSecond: fetches / seconds,
    changedShare: changed / Math.max(1, told),
    plans,
    swaps: fleet.swaps,
  };
}
