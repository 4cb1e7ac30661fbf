/**
 * Failover: a primary and its streaming standby, both real servers, under a coordinator and crawlers whose database URL names
 * both. The primary dies or falls silent in the middle of a crawl, the standby is promoted, and no process is restarted.
 */
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { ChannelListener } from "#coordinator/database/channel-listener";
import type { RunningCoordinator } from "#coordinator/main";
import { openDatabase } from "#db/connect";
import { readPidFile, recovers, startEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { askServers } from "#db/primary";
import { createPool, type Database } from "#db/server-database";
import { ServerPool } from "#db/server-pool";
import { readServerUrl, withSearchPath } from "#db/server-url";
import { serverStateFindings, serversFindings } from "#ops/cli/setup/doctor-checks";
import { generateWorld } from "#ops/world/generate-world";
import { isLong } from "../support/long.ts";
import { noStandbyWords, ServerPair } from "../support/standby.ts";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

if (noStandbyWords !== null) console.warn(`standby.test.ts: skipped, ${noStandbyWords}`);

const world = generateWorld({ seed: 23, sites: 16, crawlers: 2 });
const scope = { pagesPerHost: 4, maxDepth: 3, admitNewHosts: false };

const schema = "world";

let pair: ServerPair;

const open = async (databaseUrl: string): Promise<Database> =>
  await openDatabase({ databaseUrl, home: "/nowhere", schema, maxConnections: 20 });

async function migrateAt(url: string): Promise<void> {
  const database = await open(url);
  await migrate(database);
  await database.close();
}

async function crawlingFleet(): Promise<EmulatedFleet & { readonly coordinator: RunningCoordinator }> {
  const fleet = await emulatedFleet({
    world,
    database: await open(pair.url),
    hasRegistry: false,
    haveJoined: true,
    settings: {
      ...{ scope, delegation: { settleSeconds: 0 } },
      lease: { seconds: 3, urlsPerHost: 2, hostsPerRequest: 4, addressRestSeconds: 0 },
    },
    crawlerSettings: { politenessFloorMs: 150 },
  });
  const coordinator = await fleet.addCoordinator();
  await fleet.startAll();
  await fleet.admit(frontPages(world.sites), { ...scope, admitNewHosts: true });
  return { ...fleet, coordinator };
}

const fetchesOf = async (fleet: EmulatedFleet) =>
  await fleet
    .one<{ fetches: number; urls: number; hosts: number }>(
      `select count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls,
         count(distinct host_hash)::int as hosts
       from page_fetch`,
    )
    .catch(() => ({ fetches: 0, urls: 0, hosts: 0 }));

const isCrawled = async (fleet: EmulatedFleet) => {
  const { due, leases } = await fleet
    .one<{ due: number; leases: number }>(
      `select (select count(*)::int from frontier_url where state = 'due' and visits = 0) as due,
         (select count(*)::int from lease where closed_at is null) as leases`,
    )
    .catch(() => ({ due: 1, leases: 1 }));
  return due === 0 && leases === 0 && (await fetchesOf(fleet)).hosts === world.sites.length;
};

const online = async (fleet: EmulatedFleet) =>
  (
    await fleet
      .one<{ online: number }>("select count(*)::int as online from crawler where state = 'online'")
      .catch(() => ({ online: 0 }))
  ).online;

const serverOf = async (pool: Pick<Pool, "query">) =>
  (await pool.query<{ address: string }>("select host(inet_server_addr()) as address")).rows[0]!.address;

describe.skipIf(noStandbyWords !== null)("a primary and its standby", { timeout: 320_000 }, () => {
  beforeAll(async () => {
    pair = await ServerPair.begin(migrateAt);
  }, 60_000);
  afterAll(async () => await pair?.close(), 60_000);

  it("without a writable server each is named with its own reason, without the password", async () => {
    const { address } = pair.standby;
    const opening = open(`postgresql://nearcrawl:secret@127.0.0.1:1,${address}/nearcrawl?sslmode=disable`);

    await expect(opening).rejects.toThrow(
      `the database postgresql://nearcrawl@127.0.0.1:1,${address}/nearcrawl?sslmode=disable cannot be used: no server ` +
        `takes writes: 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1; ${address}: is in recovery (a standby)`,
    );
    await expect(
      open(`postgresql://nearcrawl@${address}/nearcrawl?sslmode=disable&target_session_attrs=read-write`),
    ).rejects.toThrow(`${address} takes no writes: it is in recovery (a standby)`);
  });

  it("doctor shows which host is the primary, and the state of the others", async () => {
    await pair.caughtUp();
    const { primary, standby } = pair;
    const hosts = `${standby.address},${primary.address}:5432,127.0.0.1:1`;

    const findings = await serversFindings(`postgresql://nearcrawl@${hosts}/nearcrawl?sslmode=disable`);

    expect(findings.map(({ state, words }) => [state, words])).toEqual([
      ["ok", `${standby.address} is in recovery (a standby), nothing behind.`],
      ["ok", `${primary.address}:5432 is the primary (timeline 1).`],
      ["note", "127.0.0.1:1 does not answer: connect ECONNREFUSED 127.0.0.1:1."],
    ]);
  });

  it("a server that replays a log has a startup process, and a ready one has none", async () => {
    const has = async ({ home }: { readonly home: string }) => await recovers(readPidFile(home)!.pid);

    expect([await has(pair.standby), await has(pair.primary)]).toEqual([true, false]);
  });

  it("servers of two clusters are not taken for a pair", async () => {
    const { url } = await startEmbeddedPostgres(inject("databaseHome"));
    const both = new URL(url);
    both.searchParams.set("host", `${both.searchParams.get("host")},${pair.primary.address}`);

    await expect(open(both.href)).rejects.toThrow("both take writes, and are not of one cluster");
  });

  it("a connection whose server takes no writes is closed, with the idle ones", async () => {
    const pool = createPool(pair.primary.url, 4);
    const clients = [await pool.connect(), await pool.connect()] as const;
    const pids = await Promise.all(clients.map(async (client) => await pidOf(client)));
    const [one, other] = clients;
    other.release();
    await one.query("begin read only");

    await expect(one.query("create table t ()")).rejects.toMatchObject({ code: "25006" });

    await until(() => pool.idleCount === 0, 20_000);
    await expect(one.query("rollback")).rejects.toThrow();
    one.release();
    expect(pids).not.toContain(await pidOf(pool));
    await pool.end();
  });

  it("a silent primary is left, also by waiting connections; notices arrive from the next", async () => {
    const options = { maxConnections: 4, statementTimeoutMs: 0, watchMs: 300 };
    const pool = new ServerPool({ ...options, url: withSearchPath(pair.url, schema) });
    let missed = 0;
    const listener = new ChannelListener(pool, "nearcrawl_fleet", (payload) => {
      if (payload === null) missed += 1;
    });
    await listener.listen();
    const waiting = await pool.connect();
    pair.freezePrimary();
    const answer = waiting.query("select 1").then(
      () => "answered",
      (error: Error) => error.message,
    );
    await pair.promote();

    expect(await answer).toBe(`Connection terminated: ${pair.primary.address}:5432 is the primary by now`);
    waiting.release(true);
    expect(await serverOf(pool)).toBe(pair.primary.address);
    await until(() => missed === 1, 10_000);
    await listener.stop();
    await pool.end();
    await pair.renewStandby();
  });

  it.runIf(isLong)(
    "killed under load, the crawl continues with the standby: what the standby had not received is fetched again",
    async () => {
      await pair.synchronous(true);
      const fleet = await crawlingFleet();
      const fetches = async () => (await fetchesOf(fleet)).fetches;
      try {
        await until(async () => (await fetches()) >= 8, 100_000);
        expect(await serverOf(fleet.database.pool)).toBe(pair.primary.address);
        const acknowledged = await fetches();
        await pair.killPrimary();
        await pair.promote();
        await until(async () => (await fetches()) > 0, 100_000);
        expect(await fetches()).toBeGreaterThanOrEqual(acknowledged);
        expect(await serverOf(fleet.database.pool)).toBe(pair.primary.address);
        await pair.renewStandby();

        await pair.cut();
        const copied = await fetches();
        // Tickets that never reach the standby.
        for (let times = 0; times < 2; times += 1) await fleet.restartOne(0);
        await until(async () => (await fetches()) >= copied + 6, 100_000);
        await pair.killPrimary();
        const former = pair.primary;
        await pair.promote();
        await until(async () => (await fetches()) > 0, 100_000);
        expect(await fetches()).toBeLessThan(copied + 6);

        // The coordinator notices and restarts its work; a crawler with a lost ticket is admitted.
        expect(await fleet.coordinator.hasToStartOver).toMatch(/timeline \d, and was on \d/);
        await fleet.stopCoordinator(fleet.coordinator);
        await fleet.addCoordinator(Number(new URL(fleet.coordinator.webUrl).port));
        await until(async () => (await online(fleet)) === world.crawlers.length, 100_000);
        const { refused } = await fleet.one<{ refused: number }>(
          "select count(*)::int as refused from incident where kind = 'copied-folder'",
        );
        expect(refused).toBe(0);

        await until(async () => await isCrawled(fleet), 100_000);
        const { fetches: all, urls } = await fetchesOf(fleet);
        expect(all).toBe(urls);
        expect(await online(fleet)).toBe(world.crawlers.length);
        // It takes its lock by itself.
        await until(async () => (await coordinatorLocks(fleet)) === 1, 20_000);

        // The former primary, started by hand, accepts writes as well. Its timeline is the earlier one, whatever its position.
        await startEmbeddedPostgres(former.home);
        const both = `postgresql://nearcrawl@${former.address},${pair.primary.address}/nearcrawl?sslmode=disable`;
        const answers = await askServers(readServerUrl(both));
        expect(serverStateFindings(answers).map(({ state, words }) => [state, words])).toEqual([
          ["fix", expect.stringMatching(/takes writes, too \(timeline 3\), beside 127\..*: stop it/)],
          ["ok", expect.stringMatching(/is the primary \(timeline 4\)/)],
        ]);
        const database = await open(both);
        expect(await serverOf(database.pool)).toBe(pair.primary.address);
        await database.close();
      } finally {
        await fleet.close();
      }
    },
  );
});

const pidOf = async (client: Pick<Pool, "query">): Promise<number> =>
  (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;

async function coordinatorLocks(fleet: EmulatedFleet): Promise<number> {
  const { locks } = await fleet.one<{ locks: number }>(
    "select count(*)::int as locks from pg_locks where locktype = 'advisory' and granted",
  );
  return locks;
}
