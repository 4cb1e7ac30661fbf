/**
 * Probe rounds over real sockets, with what a plain world has not: anycast ranges, a partner who denies a
 * network and a domain, and subnets with so much to fetch that their first fetch counts as a measurement.
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

/** Every anycast range of this world answers three crawlers or more within 8 ms: probes that a busy machine delays still tell. */
const world = generateWorld({ seed: 41, sites: 60, crawlers: 8, oddities: { anycast: 0.4 } });
const scope = { pagesPerHost: 2, maxDepth: 10, admitNewHosts: false };
/** What the first crawler's partner never lets it touch: the site that is nearest to it, and one whole domain. */
const first = 0;
const plain = world.sites.filter(({ anycast }) => anycast === null);
const nearest = plain.toSorted((a, b) => rtt(first, a.address) - rtt(first, b.address));
const deniedSite = nearest[0]!;
const deniedNetwork = `${deniedSite.address.replace(/\.\d+$/, "")}.0/24`;
const deniedDomain = nearest.find(({ subnet }) => subnet !== deniedSite.subnet)!.host;

function rtt(crawler: number, address: string): number {
  return world.rttMs(crawler, address) ?? Number.POSITIVE_INFINITY;
}

let database: Database;
let internet: RunningWorld;
let coordinator: RunningCoordinator;
const crawlers: RunningCrawler[] = [];
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-live-rounds-"));

beforeAll(async () => {
  database = await testDatabase({ maxConnections: 12 });
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  internet = await startWorld(world);
  // Everything is there before the first round, so that subnets with several sites have as many URLs waiting.
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  const urls = world.sites.map((site) => `http://${site.host}/`);
  await admitUrls(urls, ports, { scope, now: new Date() });
  coordinator = await startCoordinator({
    database,
    log: silentLog,
    version: "test",
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port: 0 },
      resolvers: [internet.dnsAddress],
      delegation: { expectedCrawlers: world.crawlers.length, settleSeconds: 20, getFirstFromUrls: 2 },
      scope,
      heartbeatSeconds: 2,
      logLevel: "silent",
    }),
  });
  for (const [index, crawler] of world.crawlers.entries()) crawlers.push(await startOne(index, crawler));
  await until(async () => {
    const progress = await ports.frontier.progress(new Date());
    return progress.hostsUnresolved === 0 && progress.subnetsWaiting === 0 && (await open()) === 0;
  }, 110_000);
}, 180_000);

afterAll(async () => {
  await Promise.all(crawlers.map((crawler) => crawler.stop()));
  await coordinator?.stop();
  await internet?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** Delegations that are for the time being. */
async function open(): Promise<number> {
  const { rows } = await database.pool.query<{ open: number }>(
    "select count(*)::int as open from delegation where cause = 'first-fetch'",
  );
  return rows[0]!.open;
}

async function startOne(index: number, crawler: (typeof world.crawlers)[number]): Promise<RunningCrawler> {
  const { key, keyHash } = newCrawlerKey();
  await createCrawlerStore(database.pool).register({ name: crawler.name, keyHash });
  const place = crawler.place === null ? undefined : world.places[crawler.place];
  return await startCrawler(
    crawlerConfig({
      coordinatorUrl: `${coordinator.webUrl.replace("http", "ws")}/crawler`,
      key,
      name: crawler.name,
      home: join(folder, crawler.name),
      publicAddress: crawler.address,
      ...(place
        ? {
            place: {
              name: place.name,
              country: place.country,
              latitude: place.latitude,
              longitude: place.longitude,
            },
          }
        : {}),
      proxy: internet.proxyUrlOf(index),
      resolvers: [internet.dnsAddress],
      politenessFloorMs: 50,
      responseTimeFactor: 0,
      probeMethods: ["head", "connect"],
      ...(index === first ? { denyRanges: [deniedNetwork], denyDomains: [deniedDomain] } : {}),
    }),
  );
}

async function rows<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
  return (await database.pool.query<Row>(text, values)).rows;
}

describe("live rounds", () => {
  it("count the first fetch of a subnet with much to fetch as their first measurement", async () => {
    const gets = await rows<{ ordinal: number; method: string; outcome: string }>(
      `select p.ordinal, p.method, p.outcome from probe p where p.how = 'get'`,
    );
    const provisional = await rows("select from delegation_history where cause = 'first-fetch'");

    expect(provisional.length).toBeGreaterThan(0);
    expect(gets.length).toBeGreaterThan(0);
    for (const get of gets) expect(get).toMatchObject({ ordinal: 1, method: "connect", outcome: "measured" });
  });

  it("never ask a crawler for what its partner denies, nor let it fetch that", async () => {
    const touched = internet.requestLog
      .entries()
      .filter(
        ({ host, crawlerIndex }) => crawlerIndex === first && [deniedSite.host, deniedDomain].includes(host),
      );
    const asked = await rows<{ probes: number }>(
      `select count(*)::int as probes
       from probe p
       join probe_round r using (round_id)
       join crawler c on c.crawler_id = p.crawler_id
       where c.name = $1 and r.target_address <<= $2::cidr`,
      [world.crawlers[first]!.name, deniedNetwork],
    );
    const owners = await rows<{ name: string }>(
      `select c.name
       from frontier_host h
       join delegation d on d.subnet_id = h.subnet_id
       join crawler c on c.crawler_id = d.crawler_id
       where h.host = $1`,
      [deniedSite.host],
    );

    expect(touched).toEqual([]);
    expect(asked).toEqual([{ probes: 0 }]);
    expect(owners).toHaveLength(1);
    expect(owners[0]!.name).not.toBe(world.crawlers[first]!.name);
  });

  /** How many of them are found depends on how late a busy machine stamps the answers; test/flows/round-anycast has that. */
  it("mark no range as anycast that is none", async () => {
    const marked = await rows<{ host: string; type: string }>(
      `select h.host, r.reason ->> 'type' as type
       from delegation d
       join probe_round r on r.round_id = d.round_id
       join frontier_host h on h.subnet_id = d.subnet_id
       where d.anycast`,
    );
    const announced = new Set(world.sites.filter(({ anycast }) => anycast !== null).map(({ host }) => host));

    expect(announced.size).toBeGreaterThan(0);
    for (const { host, type } of marked) {
      expect(type).toBe("anycast");
      expect(announced).toContain(host);
    }
  });
});
