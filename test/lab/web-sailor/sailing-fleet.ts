/**
 * WEB-SAILOR's set-up in the emulated Internet: one coordinator (their Seed-server), crawlers with domain sets (their
 * Crawl-clients), and sites whose names end in .com, .edu, .net and .org. Everything in this process, on loopback; no name is
 * resolved outside the emulated name server and the crawlers' proxies.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCoordinatorConfig } from "#coordinator/config";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { giveDomainSets } from "#coordinator/place/domain-sets/domain-set-store";
import { silentLog } from "#core/log";
import { startCrawler } from "#crawler/main";
import type { Resident } from "#crawler/resident-crawler";
import { crawlerConfig } from "#crawler/settings/config";
import { limitsSchema } from "#crawler/settings/limits-config";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { type CountingRelay, startCountingRelay } from "./counting-relay.ts";

interface SailingSettings {
  /** Sites by top-level domain. */
  readonly sites: Readonly<Record<string, number>>;
  readonly pagesPerSite: number;
  /** Pause between two requests to a host, which limits a connection's rate. */
  readonly politenessFloorMs: number;
  readonly pace: {
    readonly slowDownUnder: number;
    readonly hurryUpOver: number;
    readonly everySeconds: number;
  };
}

export interface Client {
  readonly name: string;
  /** Limit of simultaneous connections. */
  readonly connections: number;
  readonly crawler: Resident;
  /** The relay between it and the coordinator. */
  readonly wire: CountingRelay;
}

export async function sailingFleet(settings: SailingSettings) {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const world = namedWorld(settings);
  const database = await openDatabase({ databaseUrl: null, home, schema: `bench_${process.pid}` });
  await migrate(database);
  const { pool } = database;
  await applyImport(database, await writeRegistryFiles(world, join(home, "registry")), {});
  const internet = await startWorld(world);
  const scope = { pagesPerHost: settings.pagesPerSite, maxDepth: 10, admitNewHosts: false };
  const coordinator = await startCoordinator({
    database,
    log: silentLog,
    version: "bench",
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port: 0 },
      resolvers: [internet.dnsAddress],
      logLevel: "silent",
      delegation: { settleSeconds: 3 },
      lease: { urlsPerHost: 4, hostsPerRequest: 20, addressRestSeconds: 1 },
      scope,
      trust: { share: 0, newcomerShare: 0 },
      pace: settings.pace,
    }),
  });
  const clients: Client[] = [];

  /** Assigns its domain sets before it starts. */
  async function addClient(connections: number, sets: readonly string[]): Promise<Client> {
    const index = clients.length;
    const { name, address } = world.crawlers[index]!;
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(pool).register({ name, keyHash });
    await giveDomainSets(pool, name, sets);
    const wire = await startCountingRelay(new URL(coordinator.webUrl));
    const config = crawlerConfig({
      coordinatorUrl: `ws://127.0.0.1:${wire.port}/crawler`,
      ...{ key, name, home: join(home, name), publicAddress: address },
      proxy: internet.proxyUrlOf(index),
      resolvers: [internet.dnsAddress],
      responseTimeFactor: 0,
      politenessFloorMs: settings.politenessFloorMs,
      probeMethods: ["connect"],
      limits: limitsSchema.parse({ concurrentHosts: connections, priority: 0 }),
    });
    const client = { name, connections, wire, crawler: await startCrawler(config) };
    clients.push(client);
    return client;
  }

  return {
    pool,
    world,
    clients,
    addClient,
    give: async (client: Client, sets: readonly string[]) => await giveDomainSets(pool, client.name, sets),
    /** Front pages: the seeds. */
    admit: async (hosts: readonly string[]) => {
      const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
      const urls = hosts.map((host) => `http://${host}/`);
      return await admitUrls(urls, ports, { scope: { ...scope, admitNewHosts: true }, now: new Date() });
    },
    close: async () => {
      await Promise.all(clients.map(({ crawler }) => crawler.stop()));
      await Promise.all(clients.map(({ wire }) => wire.close()));
      await coordinator.stop();
      await internet.close();
      await database.close();
      await stopEmbeddedPostgres(home);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Renamed sites with one address, the same for all crawlers, and this number of pages each. */
function namedWorld({ sites: wanted, pagesPerSite }: SailingSettings): World {
  const domains = Object.entries(wanted).flatMap(([domain, count]) =>
    Array.from({ length: count }, () => domain),
  );
  const world = generateWorld({ seed: 2006, sites: domains.length, crawlers: 3 });
  const sites = world.sites.map((site, at) => ({
    ...site,
    host: site.host.replace(/\.[a-z]+$/, `.${domains[(at * 7919) % domains.length]!}`),
    pages: pagesPerSite,
  }));
  return { ...world, sites };
}
