/** A coordinator with a database of its own, and crawlers of which one goes and another comes from time to time. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CoordinatorConfig } from "#coordinator/config";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { startCoordinator } from "#coordinator/main";
import { silentLog } from "#core/log";
import type { RunningCrawler } from "#crawler/crawler-process";
import { startCrawler } from "#crawler/main";
import { crawlerConfig } from "#crawler/settings/config";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { type RunningWorld, startWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";
import { writeRegistryFiles } from "#ops/world/registry-files";
import type { ChangeProcess } from "#ops/world/world-state";
import { applyImport } from "#rir-import/apply";

export interface LiveFleet {
  readonly database: Database;
  readonly internet: RunningWorld;
  /** The crawler that has been there longest is drained and goes; another one comes in its place. */
  swap(): Promise<void>;
  swaps(): number;
  close(): Promise<void>;
}

export interface FleetPlan {
  /** Of the fleet: its schema and its folder. */
  readonly name: string;
  readonly folder: string;
  readonly databaseUrl: string;
  readonly world: World;
  readonly changes: ChangeProcess;
  readonly config: (internet: RunningWorld) => CoordinatorConfig;
  /** At once; the world has as many again to take their places. */
  readonly crawlers: number;
}

/** With its sites' front pages admitted, and crawlers that begin at once. */
export async function startFleet(plan: FleetPlan): Promise<LiveFleet> {
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    return { ...(await start(plan, closing)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(
  plan: FleetPlan,
  closing: (() => Promise<unknown>)[],
): Promise<Omit<LiveFleet, "close">> {
  const folder = join(plan.folder, plan.name);
  mkdirSync(folder, { recursive: true });
  const database = await openDatabase({
    ...{ databaseUrl: plan.databaseUrl, home: folder, schema: `live_${plan.name}`, maxConnections: 12 },
  });
  closing.push(async () => await database.close());
  await migrate(database);
  await applyImport(database, await writeRegistryFiles(plan.world, join(folder, "registry")), {});
  const internet = await startWorld(plan.world, { changes: plan.changes });
  closing.push(async () => await internet.close());
  const config = plan.config(internet);
  const coordinator = await startCoordinator({ database, log: silentLog, version: "bench", config });
  closing.push(async () => await coordinator.stop());
  const crawlers = new ComingAndGoing({ database, internet, folder, coordinatorUrl: coordinator.webUrl });
  closing.push(async () => await crawlers.close());
  for (let index = 0; index < plan.crawlers; index++) await crawlers.add();
  const frontier = createFrontierStore(database.pool);
  await admitUrls(
    plan.world.sites.map(({ host }) => `http://${host}/`),
    { frontier, rejected: createRejectedUrlStore(database.pool) },
    { scope: { ...config.scope, admitNewHosts: true }, now: new Date() },
  );
  return {
    ...{ database, internet },
    swap: async () => await crawlers.swap(),
    swaps: () => crawlers.swaps,
  };
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
        politenessFloorMs: 50,
        responseTimeFactor: 0,
        probeMethods: ["connect"],
      }),
    );
    this.#running.push({ name, crawler });
  }

  async swap(): Promise<void> {
    if (this.#next >= this.#parts.internet.world.crawlers.length) return;
    const leaving = this.#running.shift()!;
    await this.add();
    await createCrawlerStore(this.#parts.database.pool).drain(leaving.name, new Date());
    await delay(1500);
    await leaving.crawler.stop();
    this.swaps += 1;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map(({ crawler }) => crawler.stop()));
  }
}
