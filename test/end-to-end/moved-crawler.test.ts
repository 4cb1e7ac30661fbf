/**
 * A crawler moves to another host of its partner: under load, and with everything killed around the moment at which the
 * coordinator decides. Exactly one host runs it in the end, and nothing is lost.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { RunningCoordinator } from "#coordinator/main";
import { createMoveStore } from "#coordinator/place/crawlers/move-store";
import type { CrawlerId } from "#core/ids";
import { writeMembership } from "#crawler/core/membership";
import { startCrawler } from "#crawler/main";
import { homeSettings } from "#crawler/membership/home-folder";
import { openIdentity } from "#crawler/membership/identity";
import type { Resident } from "#crawler/resident-crawler";
import { Spool } from "#crawler/spool/spool";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { packResult } from "#protocol/packed/message-frames";
import { arriveAll } from "../migrating-crawler/move/move-ground.ts";
import { isLong } from "../support/long.ts";
import { arrivedResult, newWorld } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { giveSubnet, ownedScope, plainSites, shortestPauseMs } from "./owned-hosts.ts";
import { crawlerUrl, startQuietCoordinator } from "./quiet-coordinator.ts";

let world: MovingWorld;
beforeAll(async () => {
  world = await newMovingWorld();
}, 60_000);
afterEach(async () => await world.stopCrawlers());
afterAll(async () => await world?.close(), 60_000);

const soonMs = 20_000;

const readIdentity = (home: string) =>
  (JSON.parse(readFileSync(join(home, "identity.json"), "utf8")) as { publicKey: string }).publicKey;
const secretOrStale = [
  ...["identity.json", "membership.json", "identity.json.before", "membership.json.before"],
  ...["spool", "host-paces.json", "robots-rules.json", "moving"],
];
/** Files that a crawler that has moved away must not leave behind, and did. */
const readKept = (home: string) => secretOrStale.filter((name) => existsSync(join(home, name)));

const openPages = async (): Promise<number> =>
  (
    await world.rows<{ n: number }>(
      "select count(*)::int as n from frontier_url where visits = 0 and state = 'due'",
    )
  )[0]!.n;

it("a crawler moves under load: it keeps its number and each host's pace, fetches every page once, and leaves no key behind", async () => {
  const athens = await world.host("athens", { hosts: 4, pages: 30 });
  const sparta = await world.host("sparta", { hosts: 1, pages: 3 });
  const [old, next] = [await world.run(athens), await world.run(sparta)];
  const asked = () => world.internet.requestLog.entries().filter(({ path }) => path !== "/robots.txt");
  // Otherwise what sparta leaves behind would wait for the time of a departure.
  await until(async () => (await fetchesOf(sparta.crawlerId)) === 3, soonMs);
  await until(() => asked().length >= 15 && next.crawler.status().connected, soonMs);

  const moveId = await world.moves.ask({ name: "athens", otherName: "sparta" }, new Date());
  if (typeof moveId === "string") throw new Error(moveId);
  await until(async () => (await world.moves.find(moveId))?.step === "running", soonMs);
  const requestsBefore = asked().length;
  await until(async () => (await openPages()) === 0, 3 * soonMs);
  await until(() => old.refusal() !== null, soonMs);

  expect(next.crawler.status()).toMatchObject({
    crawlerId: athens.crawlerId,
    name: "athens",
    connected: true,
  });
  expect(old.refusal()).toMatch(/moved to another host/);
  expect(asked().length).toBeGreaterThan(requestsBefore);
  const { urls, ...counts } = await countsOf();
  expect(urls).toBeGreaterThanOrEqual(4 * 30 + 3);
  expect(counts).toEqual({ fetches: urls, fetched_twice: 0 });
  expect(shortestPauseMs(asked())).toBeGreaterThan(floorMs / 2);
  expect(readKept(athens.home)).toEqual([]);
  expect(readIdentity(sparta.home)).toBe(sparta.publicKey);
  expect(existsSync(join(sparta.home, "moving"))).toBe(false);
  const [row] = await world.rows<{ public_key: string }>(
    "select public_key from crawler where name = 'athens'",
  );
  expect(row?.public_key).toBe(sparta.publicKey);
}, 120_000);

async function countsOf() {
  const [counts] = await world.rows<{ urls: number; fetches: number; fetched_twice: number }>(
    `select (select count(*)::int from frontier_url) as urls,
       (select count(*)::int from page_fetch) as fetches,
       (select count(*)::int from frontier_url where visits > 1) as fetched_twice`,
  );
  return counts!;
}

/** Both folders and the database as a kill of everything leaves them: everything has arrived, and no answer was sent. */
async function killedWhileSending(names: readonly [string, string]) {
  const [from, to] = [
    await world.host(names[0], { hosts: 1, pages: 3 }),
    await world.host(names[1], { hosts: 0, pages: 0 }),
  ];
  await world.stopCoordinator();
  await world.leaseAndKeep(from);
  await world.pool.query("update crawler set state = 'online' where crawler_id = any($1)", [
    [from.crawlerId, to.crawlerId],
  ]);
  const now = new Date();
  const moveId = await world.moves.ask({ name: from.name, otherName: to.name }, now);
  if (typeof moveId === "string") throw new Error(moveId);
  const { bytes, digest } = arriveAll({ from: from.home, to: to.home, name: from.name, moveId });
  const packed = { bytes, digest, signature: "A".repeat(86) };
  await world.moves.advance(moveId, { from: "asked", to: "emptying" }, now);
  await world.moves.advance(moveId, { from: "emptying", to: "packing" }, now);
  await world.moves.advance(moveId, { from: "packing", to: "sending", packed }, now);
  return { from, to, moveId };
}

const fetchesOf = async (crawlerId: number) =>
  (
    await world.rows<{ n: number }>("select count(*)::int as n from page_fetch where crawler_id = $1", [
      crawlerId,
    ])
  )[0]!.n;

it.runIf(isLong)(
  "everything killed right after the decision: the new host runs the crawler with its results, the old one ends",
  async () => {
    const { from, to, moveId } = await killedWhileSending(["corinth", "thebes"]);
    await world.moves.commit(moveId, new Date());
    await world.startCoordinator();

    const [old, next] = [await world.run(from), await world.run(to)];
    await until(() => old.refusal() !== null && next.crawler.status().connected, soonMs);
    await until(async () => (await fetchesOf(from.crawlerId)) === 3, soonMs);

    expect(next.crawler.status()).toMatchObject({ crawlerId: from.crawlerId, name: "corinth" });
    expect(readKept(from.home)).toEqual([]);
    expect((await world.moves.find(moveId))?.step).toBe("running");
  },
  60_000,
);

it.runIf(isLong)(
  "everything killed right before the decision: both continue as before, and no result is lost",
  async () => {
    const { from, to, moveId } = await killedWhileSending(["argos", "delphi"]);
    await world.startCoordinator();

    const [old, next] = [await world.run(from), await world.run(to)];
    await until(() => old.crawler.status().connected && next.crawler.status().connected, soonMs);
    await until(async () => (await fetchesOf(from.crawlerId)) === 3, soonMs);

    expect(old.crawler.status()).toMatchObject({ crawlerId: from.crawlerId, name: "argos" });
    expect(next.crawler.status()).toMatchObject({ crawlerId: to.crawlerId, name: "delphi" });
    expect([from, to].map(({ home }) => existsSync(join(home, "moving")))).toEqual([false, false]);
    expect((await world.moves.find(moveId))?.step).toBe("failed");
  },
  60_000,
);

// * Two joined crawlers of one partner, each with its own folder, a real coordinator and database, and the emulated Internet:
// enough for one of them to move to the other's host.

const generated = generateWorld({ seed: 11, sites: 40, crawlers: 2 });
const sites = plainSites(generated);

const floorMs = 100;

interface Host {
  readonly home: string;
  readonly name: string;
  readonly crawlerId: CrawlerId;
  /** Of its own identity. */
  readonly publicKey: string;
}

async function newMovingWorld() {
  const world = await newWorld();
  const { pool } = world.database;
  const internet: RunningWorld = await startWorld({ ...generated, sites });
  const folder = realpathSync(temporaryFolder("nearcrawl-moves-"));
  let coordinator: RunningCoordinator = await start();
  const port = Number(new URL(coordinator.webUrl).port);
  const running: Resident[] = [];
  let hosts = 0;

  async function start(port = 0): Promise<RunningCoordinator> {
    const settings = {
      ...{ delegation: { settleSeconds: 0 }, scope: ownedScope, lease: { urlsPerHost: 5 } },
      ...{ heartbeatSeconds: 1, balance: { policy: "none" } },
    };
    return await startQuietCoordinator({ database: world.database, internet, settings, port });
  }

  /** A folder whose crawler has joined and owns a subnet with this number of hosts and pages. */
  async function host(
    name: string,
    owned: { readonly hosts: number; readonly pages: number },
  ): Promise<Host> {
    const index = hosts++ % 2;
    const home = join(folder, name);
    mkdirSync(home);
    const { key, keyHash } = newCrawlerKey();
    const crawlerId = await world.crawlers.register({ name, keyHash });
    const { publicKey } = openIdentity(home);
    await pool.query("update crawler set public_key = $2 where crawler_id = $1", [crawlerId, publicKey]);
    writeMembership(home, {
      coordinatorUrl: crawlerUrl(coordinator.webUrl),
      name,
      certificatePin: null,
      releaseKeys: ["A".repeat(43)],
      releaseThreshold: 1,
      key,
      ticket: null,
    });
    writeFileSync(
      join(home, "settings.toml"),
      [
        `publicAddress = "${generated.crawlers[index]!.address}"`,
        `proxy = "${internet.proxyUrlOf(index)}"`,
        `coordinatorProxy = "none"`,
        `resolvers = ["${internet.dnsAddress}"]`,
        `politenessFloorMs = ${floorMs}`,
        "responseTimeFactor = 0",
        `probeMethods = ["connect"]`,
      ].join("\n"),
    );
    const own = sites.splice(0, owned.hosts);
    await giveSubnet(pool, { crawlerId, index: hosts }, { sites: own, pages: owned.pages });
    return { home, name, crawlerId, publicKey };
  }

  /** As after a kill before anything was shipped: its results wait in its spool. */
  async function leaseAndKeep({ crawlerId, home }: Host): Promise<void> {
    const leases = await world.lease(crawlerId, new Date());
    const spool = new Spool({ home, maxBytes: 1e9 });
    for (const { leaseId, urls } of leases)
      for (const { url } of urls)
        spool.append(leaseId, packResult(leaseId, arrivedResult({ sequence: 1, leaseId, url }).result));
    spool.close();
    await pool.query("insert into spool (crawler_id, spool_id) values ($1, $2)", [crawlerId, spool.id]);
  }

  const rows = async <Row extends object>(sql: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await pool.query<Row>(sql, [...values])).rows;

  return {
    pool,
    database: world.database,
    moves: createMoveStore(pool),
    internet,
    host,
    leaseAndKeep,
    rows,
    /** From the folder alone; gives the reason of a refusal, if any. */
    run: async ({ home }: Pick<Host, "home">) => {
      let refused: string | null = null;
      const crawler = await startCrawler(homeSettings(home), {
        onRefused: ({ reason }) => {
          refused = reason;
        },
      });
      running.push(crawler);
      return { crawler, refusal: () => refused };
    },
    stopCoordinator: async () => await coordinator.stop(),
    startCoordinator: async () => {
      coordinator = await start(port);
    },
    stopCrawlers: async () => {
      await Promise.all(running.splice(0).map((crawler) => crawler.stop()));
    },
    close: async () => {
      await Promise.all(running.map((crawler) => crawler.stop()));
      await coordinator.stop();
      await internet.close();
      await world.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type MovingWorld = Awaited<ReturnType<typeof newMovingWorld>>;
