/**
 * The emulated Internet, a database, coordinators and crawlers in one process, over real sockets and a real Postgres. A test
 * adds only the settings that it is about.
 */
import { mkdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import type { CrawlScope } from "#coordinator/crawl/frontier/frontier";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import type { RunningCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { writeMembership } from "#crawler/core/membership";
import type { CrawlerSurroundings } from "#crawler/link/supervisor-line";
import { startCrawler } from "#crawler/main";
import { openIdentity } from "#crawler/membership/identity";
import type { Resident } from "#crawler/resident-crawler";
import { type CrawlerSettings, crawlerConfig } from "#crawler/settings/config";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { startWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";
import { writeRegistryFiles } from "#ops/world/registry-files";
import type { StartOptions } from "#ops/world/world-state";
import { applyImport } from "#rir-import/apply";
import { testDatabase } from "../support/database.ts";
import { testReleaseKey } from "../support/releases.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";

export interface FleetOptions {
  readonly world: World;
  readonly network?: StartOptions;
  /** False: no registry is imported. */
  readonly hasRegistry?: boolean;
  readonly maxConnections?: number;
  /** Already migrated; default: a test database. Closed with the fleet. */
  readonly database?: Database;
  /** Of every coordinator, besides its port and name server. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The coordinators' clock. */
  readonly now?: () => Date;
  /** Crawlers have joined: they have identities, and tickets from their first session. */
  readonly haveJoined?: boolean;
  readonly journalRoot?: string;
  /** Of every crawler, besides its coordinator and its way to the emulated Internet. */
  readonly crawlerSettings: Partial<CrawlerSettings>;
}

export type EmulatedFleet = Awaited<ReturnType<typeof emulatedFleet>>;

/**
 * Starts no coordinator and no crawler yet; imports the world's registries unless the options say otherwise. Crawlers are
 * named by their index in the world and connect to the coordinator that was started last.
 */
export async function emulatedFleet(options: FleetOptions) {
  const { world } = options;
  const folder = realpathSync(temporaryFolder("nearcrawl-fleet-"));
  const database = options.database ?? (await testDatabase({ maxConnections: options.maxConnections ?? 14 }));
  if (options.hasRegistry !== false)
    await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  const internet = await startWorld(world, options.network);
  const coordinators: RunningCoordinator[] = [];
  const crawlers = new Map<number, Resident>();
  const settingsOfStarted = new Map<number, CrawlerSettings>();
  const rows = rowsOf(database);

  /** `port`: of a previous coordinator; default: any free one. */
  async function addCoordinator(port = 0): Promise<RunningCoordinator> {
    const { settings, now, journalRoot } = options;
    const coordinator = await startQuietCoordinator({
      ...{ database, internet, settings, port },
      ...(now && { now }),
      ...(journalRoot && { journalRoot }),
    });
    coordinators.push(coordinator);
    return coordinator;
  }

  async function settingsOf(index: number, own: Partial<CrawlerSettings>): Promise<CrawlerSettings> {
    const { name, address } = world.crawlers[index]!;
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(database.pool).register({ name, keyHash });
    if (options.haveJoined === true) await joinAs(name, key);
    return {
      coordinatorUrl: crawlerUrl(coordinators.at(-1)!.webUrl),
      key,
      name,
      home: join(folder, name),
      publicAddress: address,
      proxy: internet.proxyUrlOf(index),
      resolvers: [internet.dnsAddress],
      responseTimeFactor: 0,
      probeMethods: ["head", "connect"],
      ...options.crawlerSettings,
      ...own,
    };
  }

  async function joinAs(name: string, key: string): Promise<void> {
    const home = join(folder, name);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const { publicKey } = openIdentity(home);
    writeMembership(home, {
      ...{ name, key, coordinatorUrl: crawlerUrl(coordinators.at(-1)!.webUrl), certificatePin: null },
      ...{ releaseKeys: [testReleaseKey.publicKey], releaseThreshold: 1, ticket: null },
    });
    await database.pool.query("update crawler set public_key = $2 where name = $1", [name, publicKey]);
  }

  async function startOne(
    index: number,
    own: Partial<CrawlerSettings> = {},
    surroundings: Partial<CrawlerSurroundings> = {},
  ): Promise<void> {
    const settings = await settingsOf(index, own);
    settingsOfStarted.set(index, settings);
    crawlers.set(index, await startCrawler(crawlerConfig(settings), surroundings));
  }

  return {
    world,
    database,
    internet,
    rows,
    frontier: createFrontierStore(database.pool),
    addCoordinator,
    startOne,
    /** One after the other; `own`: settings of a single crawler. */
    startAll: async (
      own: (index: number) => Partial<CrawlerSettings> = () => ({}),
      surroundings: (index: number) => Partial<CrawlerSurroundings> = () => ({}),
    ) => {
      for (const index of world.crawlers.keys()) await startOne(index, own(index), surroundings(index));
    },
    /** From the same folder as before. */
    restartOne: async (index: number) => {
      await crawlers.get(index)?.stop();
      crawlers.set(index, await startCrawler(crawlerConfig(settingsOfStarted.get(index)!)));
    },
    stopCoordinator: async (coordinator: RunningCoordinator) => {
      coordinators.splice(coordinators.indexOf(coordinator), 1);
      await coordinator.stop();
    },
    stopOne: async (index: number) => {
      await crawlers.get(index)!.stop();
      crawlers.delete(index);
    },
    admit: async (urls: readonly string[], scope: CrawlScope) => await admitTo(database, urls, scope),
    one: async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row> =>
      (await rows<Row>(text, values))[0]!,
    close: async () => {
      await Promise.all([...crawlers.values()].map((crawler) => crawler.stop()));
      await Promise.all(coordinators.map((coordinator) => coordinator.stop()));
      await internet.close();
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The front page of each of the sites. */
export const frontPages = (sites: readonly { readonly host: string }[]): string[] =>
  sites.map(({ host }) => `http://${host}/`);

/** How much farther than the nearest crawler this one is from the address it sees, ms. */
export function excessMs(world: World, name: string, addressOf: (crawlerIndex: number) => string): number {
  const rtts = world.crawlers.map((_, index) => world.rttMs(index, addressOf(index)) ?? Number.NaN);
  return rtts[world.crawlers.findIndex((crawler) => crawler.name === name)]! - Math.min(...rtts);
}

const rowsOf =
  ({ pool }: Database) =>
  async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await pool.query<Row>(text, [...values])).rows;

async function admitTo({ pool }: Database, urls: readonly string[], scope: CrawlScope) {
  const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
  return await admitUrls(urls, ports, { scope, now: new Date() });
}
