/**
 * Two whole coordinators on one database, each with crawlers of its own: real sockets, real locks. That minutes have
 * passed is told by their clock.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { randomSecrets } from "#coordinator/web/secrets";
import type { CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { helloOf } from "../gateway/gateway-on-loopback.ts";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { type FlowWorld, hello, newFlowWorld } from "../support/flow-world.ts";
import { freePort } from "../support/free-port.ts";
import { roundOf } from "../support/store-world.ts";
import { until } from "../support/until.ts";

let world: FlowWorld;
/** By the clock of all coordinators. */
let aheadMs: number;
let said: string[];
let running: RunningCoordinator[];
const keys = new Map<string, string>();

const departureMs = 120_000;
const now = () => new Date(Date.now() + aheadMs);

beforeEach(async () => {
  world = await newFlowWorld();
  [aheadMs, said, running] = [0, [], []];
});
afterEach(async () => {
  await Promise.all(running.map((coordinator) => coordinator.stop()));
  await world.close();
});

async function start(port = 0): Promise<RunningCoordinator> {
  const config = readCoordinatorConfig({ listen: { port }, departureSeconds: departureMs / 1000 });
  const note = (_: object, words: string) => void said.push(words);
  const log = { ...silentLog, info: note, warn: note };
  const nowMs = () => performance.now() + aheadMs;
  const options = { config, database: world.database, log, version: "test", now, nowMs };
  const coordinator = await startCoordinator(options);
  running.push(coordinator);
  return coordinator;
}

async function register(name: string): Promise<CrawlerId> {
  const { secret: key, hash: keyHash } = randomSecrets.make();
  keys.set(name, key);
  return await world.crawlers.register({ name, keyHash });
}

async function come(name: string, { webUrl }: RunningCoordinator): Promise<RawCrawler> {
  const crawler = await RawCrawler.connect(`${webUrl.replace("http", "ws")}/crawler`);
  await crawler.send(helloOf(name, { key: keys.get(name) ?? "" }));
  await crawler.next("coordinator:welcome");
  return crawler;
}

/** The fleet before anybody has started: olive and beech have a subnet each, and linden would be the next best for both. */
async function fleet() {
  const [olive, linden, beech] = [await register("olive"), await register("linden"), await register("beech")];
  const subnets = { olive: await world.site(1), beech: await world.site(2) };
  await world.delegations.saveRound(
    roundOf(subnets.olive, [
      [olive, 5],
      [linden, 20],
    ]),
  );
  await world.delegations.saveRound(
    roundOf(subnets.beech, [
      [beech, 5],
      [linden, 20],
      [olive, 30],
    ]),
  );
  return { olive, linden, beech, subnets };
}

const first = async (sql: string, values: readonly unknown[]) =>
  ((await world.pool.query(sql, [...values])).rows[0] ?? {}) as Record<string, unknown>;
const stateOf = async (name: string) =>
  (await first("select state from crawler where name = $1", [name])).state;
const ownerOf = async (subnetId: number) =>
  (await first("select crawler_id as owner from delegation where subnet_id = $1", [subnetId])).owner;

it("neither counts the other's crawlers as gone, and each reassigns what its own left", async () => {
  const { olive, linden, subnets } = await fleet();
  const athens = await start();
  const berlin = await start();
  await come("olive", athens);
  await come("linden", berlin);
  const beech = await come("beech", berlin);
  beech.disconnect();
  await until(async () => (await stateOf("beech")) === "offline", 5000);

  aheadMs = 10 * departureMs;
  await until(async () => (await ownerOf(subnets.beech)) === linden, 30_000);

  expect(await ownerOf(subnets.olive)).toBe(olive);
  expect([await stateOf("olive"), await stateOf("linden")]).toEqual(["online", "online"]);
});

it("a crawler that has moved to another coordinator stays there when the session before ends", async () => {
  await fleet();
  const athens = await start();
  const berlin = await start();
  const before = await come("olive", athens);
  await come("olive", berlin);

  before.disconnect();
  await until(() => said.some((words) => /^crawler left|^a session has ended/.test(words)), 5000);

  expect(await stateOf("olive")).toBe("online");
});

it("when one is killed, another marks its crawlers as gone, and reassigns what they had", async () => {
  const { olive, linden, subnets } = await fleet();
  const many = await Promise.all(Array.from({ length: 40 }, async (_, at) => await world.site(10 + at)));
  for (const subnetId of many) {
    const probes: [CrawlerId, number][] = [
      [olive, 5],
      [linden, 20],
    ];
    await world.delegations.saveRound(roundOf(subnetId, probes));
  }
  // Of a process that was killed: a row, and no connection any more.
  const killed = 999_999;
  await world.pool.query("insert into running_coordinator (coordinator_number) values ($1)", [killed]);
  const berlin = await start();
  await come("linden", berlin);
  const arrival = { hello: hello("olive"), address: null, subnetId: null, now: now() };
  await createCrawlerStore(world.pool, killed).arrive({ crawlerId: olive, ...arrival });

  const before = await stateOf("olive");
  aheadMs = 20_000;
  await until(async () => (await stateOf("olive")) === "offline", 30_000);
  const owner = await ownerOf(subnets.olive);
  aheadMs += 2 * departureMs;
  await until(async () => (await ownerOf(subnets.olive)) === linden, 30_000);

  const waiting = `select count(*)::int as hosts
    from frontier_host h join delegation d using (subnet_id) join crawler c using (crawler_id)
    where h.due_at is not null and c.name <> 'linden'`;
  // Beech's, who has never come, goes a moment later than olive's.
  await until(async () => (await first(waiting, [])).hosts === 0, 30_000);

  expect([before, owner]).toEqual(["online", olive]);
  expect(await world.rows("select offline_reason from crawler where name = 'olive'")).toEqual([
    { offline_reason: "the coordinator that it was connected to is gone" },
  ]);
});

it("one whose start waits for locked rows reports it: it is not ready, and crawlers are asked to come again", async () => {
  const port = await freePort();
  const at = `http://127.0.0.1:${port}`;
  const holder = await world.pool.connect();
  await holder.query("begin; lock table coordinator_address in access exclusive mode");
  const starting = start(port);
  await until(
    async () =>
      await fetch(`${at}/health`).then(
        () => true,
        () => false,
      ),
    20_000,
  );

  const [ready, upgrade] = [await fetch(`${at}/ready`), await upgradeAt(port)];
  await holder.query("rollback");
  holder.release();
  await starting;
  const later = await fetch(`${at}/ready`);

  expect([ready.status, ((await ready.json()) as { faults: { code: string }[] }).faults[0]?.code]).toEqual([
    503,
    "crawlers-not-served",
  ]);
  expect(upgrade).toMatch(/^HTTP\/1\.1 503 .*Retry-After: 1\r\n/s);
  expect([later.status, await upgradeAt(port)]).toEqual([200, expect.stringMatching(/^HTTP\/1\.1 101 /)]);
});

/** What is answered to a crawler that connects. */
async function upgradeAt(port: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `GET /crawler HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: ` +
      "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return answer.toString();
}
