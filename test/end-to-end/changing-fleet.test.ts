/**
 * A fleet that changes under a crawl, over real sockets, real processes and a real Postgres: of four crawlers
 * one is killed, one is drained by command, and one joins late. Afterwards every subnet has an owner who is
 * there, nobody has more than it may, no URL was fetched by two at the same time, and the probes stayed few.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
import { builtProgram, nearcrawl } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

const world = generateWorld({ seed: 11, sites: 40, crawlers: 4 });
const [killed, drained, late] = [1, 2, 3];
const nameOf = (index: number) => world.crawlers[index]!.name;
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-fleet-"));
const scope = { pagesPerHost: 6, maxDepth: 10, admitNewHosts: true };

let database: Database;
let internet: RunningWorld;
let coordinator: RunningCoordinator;
let child: ChildProcess | null = null;
const crawlers: RunningCrawler[] = [];

beforeAll(async () => {
  database = await testDatabase({ maxConnections: 14 });
  await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
  internet = await startWorld(world);
  coordinator = await startCoordinator({
    database,
    log: silentLog,
    version: "test",
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port: 0 },
      resolvers: [internet.dnsAddress],
      delegation: { expectedCrawlers: 3, settleSeconds: 10 },
      scope: { ...scope, admitNewHosts: false },
      heartbeatSeconds: 1,
      departureSeconds: 2,
      balance: { everySeconds: 5 },
      logLevel: "silent",
    }),
  });
}, 60_000);

afterAll(async () => {
  child?.kill("SIGKILL");
  await Promise.all(crawlers.map((crawler) => crawler.stop()));
  await coordinator?.stop();
  await internet?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function settingsOf(index: number) {
  const crawler = world.crawlers[index]!;
  const { key, keyHash } = newCrawlerKey();
  await createCrawlerStore(database.pool).register({ name: crawler.name, keyHash });
  return {
    coordinatorUrl: `${coordinator.webUrl.replace("http", "ws")}/crawler`,
    key,
    name: crawler.name,
    home: join(folder, crawler.name),
    publicAddress: crawler.address,
    proxy: internet.proxyUrlOf(index),
    resolvers: [internet.dnsAddress],
    // So slowly that the fleet changes in the middle of it.
    politenessFloorMs: 1500,
    responseTimeFactor: 0,
    probeMethods: ["head", "connect"],
    limits: { pagesPerDay: 400, priority: 0 },
  };
}

async function startHere(index: number): Promise<void> {
  crawlers.push(await startCrawler(crawlerConfig(await settingsOf(index))));
}

/** In a process of its own, so that it can be killed. */
async function startApart(index: number): Promise<ChildProcess> {
  const file = join(folder, `${nameOf(index)}.json`);
  writeFileSync(file, JSON.stringify(await settingsOf(index)));
  const main = await builtProgram("migrating-crawler/main");
  return spawn(process.execPath, [main, file], { stdio: "ignore" });
}

const one = async <Row>(text: string, values: unknown[] = []): Promise<Row> =>
  (await database.pool.query(text, values)).rows[0] as Row;

const ownedBy = async (index: number): Promise<number> =>
  (
    await one<{ subnets: number }>(
      "select count(*)::int as subnets from delegation join crawler using (crawler_id) where name = $1",
      [nameOf(index)],
    )
  ).subnets;

const fetches = async (): Promise<number> =>
  (await one<{ fetches: number }>("select count(*)::int as fetches from page_fetch")).fetches;

describe("a fleet that changes under a crawl", { timeout: 90_000 }, () => {
  it("loses one crawler, drains another and takes a third in, and goes on", async () => {
    await startHere(0);
    child = await startApart(killed);
    await startHere(drained);
    const ports = {
      frontier: createFrontierStore(database.pool),
      rejected: createRejectedUrlStore(database.pool),
    };
    await until(async () => {
      const online = await one<{ online: number }>(
        "select count(*)::int as online from crawler where state = 'online'",
      );
      return online.online === 3;
    }, 20_000);
    const urls = world.sites.map((site) => `http://${site.host}/`);
    await admitUrls(urls, ports, { scope, now: new Date() });
    await until(async () => (await fetches()) >= 20 && (await ownedBy(killed)) > 0, 30_000);

    const atChange = await fetches();
    child.kill("SIGKILL");
    expect((await nearcrawl(["fleet", "drain", nameOf(drained)], { database })).code).toBe(0);
    await startHere(late);
    const joining =
      "select count(*)::int as joining from crawler where name = $1 and joining_since is not null";
    await until(async () => (await ownedBy(killed)) === 0 && (await ownedBy(drained)) === 0, 40_000);
    await until(async () => (await one<{ joining: number }>(joining, [nameOf(late)])).joining === 0, 40_000);
    await until(async () => (await ports.frontier.progress(new Date())).urlsPending === 0, 40_000);

    expect(await fetches()).toBeGreaterThan(atChange);
    expect(await ownedBy(late)).toBeGreaterThan(0);
  });

  it("leaves every subnet with an owner who is there, and nobody with more than it may", async () => {
    const { rows } = await database.pool.query<{ name: string; state: string; pages: number }>(
      `select c.name, c.state, coalesce(sum(h.url_count), 0)::int as pages
       from delegation d
       join crawler c using (crawler_id)
       left join frontier_host h on h.subnet_id = d.subnet_id
       group by c.name, c.state`,
    );

    expect(rows.map(({ name }) => name).sort()).toEqual([nameOf(0), nameOf(late)].sort());
    for (const row of rows) {
      expect(row.state).toBe("online");
      expect(row.pages).toBeLessThanOrEqual(400);
    }
  });

  it("never has a URL fetched by two crawlers at the same time", async () => {
    // What was under way in the killed process is fetched again, by another, after it.
    const overlapping = await one<{ count: number }>(
      `select count(*)::int as count
       from page_fetch a
       join page_fetch b
         on b.host_hash = a.host_hash and b.url_hash = a.url_hash and b.crawler_id <> a.crawler_id
       where a.fetched_at <= b.fetched_at
         and b.fetched_at < a.fetched_at + make_interval(secs => a.total_ms / 1000)`,
    );
    const open = await one<{ hosts: number }>(
      `select count(*)::int as hosts
       from (select host_hash from lease where closed_at is null group by host_hash having count(*) > 1) twice`,
    );

    expect([overlapping.count, open.hosts]).toEqual([0, 0]);
  });

  it("takes few probes for all that", async () => {
    const rounds = await one<{ probes: number; subnets: number }>(
      `select (select count(*)::int from probe) as probes, (select count(*)::int from delegation) as subnets`,
    );

    // Three of the first rounds at the most for each subnet, and as many again for those that changed hands.
    expect(rounds.probes).toBeLessThanOrEqual(6 * rounds.subnets);
  });
});
