/**
 * A whole fleet connects at once, as after a coordinator's restart: how long until all are up, how often each had to
 * try, what /health answers meanwhile, and what it takes of the coordinator's processor and of Postgres'. The
 * coordinator is the real command on an embedded Postgres of its own; the crawlers are the real link of migrating
 * crawlers, each with its own identity, key and registered subnet. Then all vanish at once.
 * Run: npm run bench -- arrivals [crawlers] [seconds at most] [asking] [profile=FILE]
 *   asking: each crawler asks for work whenever it was told to, as one without work does
 */
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { randomSecrets } from "#coordinator/web/secrets";
import { CoordinatorLink } from "#crawler/link/coordinator-link";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { protocolVersions } from "#protocol/coordinator-messages";
import { helloText } from "#protocol/identity";
import type { CrawlerHello } from "#protocol/messages";
import { watchHealth } from "./crawl/health-watch.ts";
import { MeasuredProcess } from "./crawl/measured-process.ts";
import { postgresCpuMs } from "./fleet/processes.ts";

const options = process.argv.slice(2);
const [count = 3000, mostSeconds = 120] = options.map(Number).filter((value) => value > 0);
const asking = options.includes("asking");
const profileFile = options.find((option) => option.startsWith("profile="))?.slice("profile=".length);
/** One address may have 500 connections. */
const crawlersPerAddress = 400;
/** What the fleet costs when nothing happens is measured for so long. */
const restSeconds = 15;

interface Folder {
  readonly name: string;
  readonly key: string;
  readonly keyHash: string;
  readonly publicKey: string;
  sign(text: string): string;
}

const counts = { up: 0, attempts: 0, lost: 0, first: new Set<string>() };
const reasons = new Map<string, number>();
const folders = Array.from({ length: count }, (_, at) => newFolder(at));
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const schema = `bench_${process.pid}`;
const database = await openDatabase({ databaseUrl: null, home, schema });
spreadAddresses();
let coordinator: MeasuredProcess | null = null;
const links: CoordinatorLink[] = [];
try {
  await migrate(database);
  await fill(database);
  coordinator = await startCoordinator();
  const { webUrl } = await coordinator.ask<{ webUrl: string }>({ type: "usage" }, "listening");
  const measured = profileFile === undefined ? (work: () => Promise<void>) => work() : profiled(profileFile);
  await measured(async () => await arrive(webUrl));
  await rest(webUrl);
  await vanish();
} finally {
  for (const link of links) void link.stop("the benchmark is over");
  await coordinator?.stop();
  await database.close();
  await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}
process.exit();

function profiled(file: string): (work: () => Promise<void>) => Promise<void> {
  return async (work) => void (await coordinator!.profile(file, work));
}

async function startCoordinator(): Promise<MeasuredProcess> {
  const settings = join(home, "bench-settings.json");
  // Nothing is crawled; a coordinator that names nobody whom sites can reach would not start.
  const stated = { listen: { port: 0 }, logLevel: "silent", contact: "bench@example.org" };
  writeFileSync(settings, JSON.stringify(stated));
  const args = ["coordinator", "--home", home, "--schema", schema, "--config", settings];
  const execArgv = ["--conditions=nearcrawl-source", "--import", "tsx"];
  return new MeasuredProcess(join(import.meta.dirname, "../../ops/cli/main.ts"), { args, execArgv });
}

async function arrive(webUrl: string): Promise<void> {
  const watch = watchHealth(webUrl);
  const cpu = await cpuNow();
  const startMs = performance.now();
  for (const [at, folder] of folders.entries()) links.push(linkOf(folder, at, webUrl));
  for (const link of links) link.start();
  console.log(`${count} crawlers connect at once${asking ? " and ask for work" : ""}`);
  console.log("second      up  attempts    lost");
  for (let second = 1; counts.up < count && second <= mostSeconds; second += 1) {
    await delay(startMs + second * 1000 - performance.now());
    const { up, attempts, lost } = counts;
    if (second <= 10 || second % 5 === 0 || up === count) {
      console.log([second, up, attempts, lost].map((value) => String(value).padStart(8)).join(""));
    }
  }
  const seconds = (performance.now() - startMs) / 1000;
  const end = counts.up === count ? "all up after" : `${counts.up} of ${count} up after`;
  console.log(`${end} ${seconds.toFixed(1)} s; ${counts.attempts} attempts, ${counts.lost} sessions lost`);
  for (const [reason, times] of [...reasons].sort(([, a], [, b]) => b - a).slice(0, 5)) {
    console.log(`  ${times} × ${reason}`);
  }
  console.log(`  /health: ${await watch()}`);
  console.log(`  ${await cpuSince(cpu, seconds)}`);
}

async function rest(webUrl: string): Promise<void> {
  const watch = watchHealth(webUrl);
  const cpu = await cpuNow();
  await delay(restSeconds * 1000);
  console.log(`${restSeconds} s later: ${counts.up} up, ${counts.attempts} attempts, ${counts.lost} lost`);
  console.log(`  /health: ${await watch()}`);
  console.log(`  ${await cpuSince(cpu, restSeconds)}`);
}

/** Without a goodbye, as when the network between goes. */
async function vanish(): Promise<void> {
  const cpu = await cpuNow();
  const startMs = performance.now();
  for (const link of links) void link.stop("the fleet goes");
  const online = async () => {
    const { rows } = await database.pool.query<{ online: number }>(
      "select count(*)::int as online from crawler where state <> 'offline'",
    );
    return rows[0]!.online;
  };
  while ((await online()) > 0 && performance.now() - startMs < mostSeconds * 1000) await delay(250);
  const seconds = (performance.now() - startMs) / 1000;
  console.log(`all go at once: ${await online()} still online in the database after ${seconds.toFixed(1)} s`);
  console.log(`  ${await cpuSince(cpu, seconds)}`);
}

function linkOf(folder: Folder, at: number, webUrl: string): CoordinatorLink {
  const spoolId = randomUUID();
  const instanceId = randomUUID();
  let ticket: string | null = null;
  let askAgain: NodeJS.Timeout | undefined;
  let isUp = false;
  const down = (reason: string) => {
    if (isUp) counts.up -= 1;
    counts.lost += 1;
    isUp = false;
    clearTimeout(askAgain);
    const words = reason.replaceAll(/[\d.]+/g, "N").slice(0, 150);
    reasons.set(words, (reasons.get(words) ?? 0) + 1);
  };
  const ask = () => void link.send({ type: "crawler:ready", freeHosts: 1 });
  const link: CoordinatorLink = new CoordinatorLink({
    url: `${webUrl.replace("http", "ws")}/crawler`,
    hello: (connection) => {
      const { name, publicKey } = folder;
      const { challenge, binding } = connection ?? { challenge: "", binding: null };
      const signed = helloText({ challenge, binding, name, spoolId, instanceId, ticket });
      const identity = { publicKey, signature: folder.sign(signed), instanceId, ticket, binding };
      return { ...helloOf(folder, at, spoolId), identity };
    },
    heartbeat: () => ({
      type: "crawler:heartbeat",
      ...{ openHosts: 0, spooledResults: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0, holdingBack: [] },
    }),
    handlers: {
      onWelcome: (welcome) => {
        ticket = welcome.ticket ?? null;
        counts.up += 1;
        isUp = true;
        if (asking) ask();
      },
      onMessage: (message) => {
        if (asking && message.type === "coordinator:tasks") askAgain = setTimeout(ask, message.askAgainMs);
      },
      onRoom: () => {},
      onDown: down,
      onStopped: (reason, refused) => refused && down(reason),
    },
    log: { info() {}, warn() {} },
    random: Math.random,
  });
  return link;
}

function helloOf({ name, key }: Folder, at: number, spoolId: string): CrawlerHello {
  counts.attempts += 1;
  return {
    type: "crawler:hello",
    protocolVersions: [...protocolVersions],
    ...{ name, key, spoolId },
    softwareVersion: "bench",
    heldLeases: [],
    publicAddress: `20.${at >> 8}.${at & 255}.1`,
    place: { name: "Somewhere", country: "GR", latitude: (at % 120) - 60, longitude: (at % 350) - 175 },
    capabilities: { probeMethods: ["connect", "head"], ipv6: false },
    limits: { pagesPerDay: 100_000, bytesPerDay: 10_000_000_000, concurrentHosts: 8 },
  };
}

function newFolder(at: number): Folder {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { secret: key, hash: keyHash } = randomSecrets.make();
  return {
    name: `crawler-${at}`,
    ...{ key, keyHash },
    publicKey: publicKey.export({ format: "jwk" }).x ?? "",
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64url"),
  };
}

async function fill({ pool }: Database): Promise<void> {
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  await pool.query(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '20.0.0.0'::inet + i::bigint * 256, '20.0.0.255'::inet + i::bigint * 256, 'arin',
       (select max(generation) from registry_generation)
     from generate_series(0, $1 - 1) i`,
    [count],
  );
  await pool.query(
    `with added as (
       insert into crawler (name, public_key)
       select name, public_key from unnest($1::text[], $2::text[]) as given (name, public_key)
       returning crawler_id, name
     )
     insert into crawler_key (crawler_id, key_hash, kept_at)
     select crawler_id, key_hash, now()
     from added
     join unnest($1::text[], $3::text[]) as given (name, key_hash) using (name)`,
    [folders.map(({ name }) => name), folders.map((one) => one.publicKey), folders.map((one) => one.keyHash)],
  );
  for (const table of ["subnet", "crawler", "crawler_key"]) await pool.query(`vacuum analyze ${table}`);
}

/** The links say only where to; the system may be told from where. */
function spreadAddresses(): void {
  const connect = net.connect as (options: object) => net.Socket;
  let connections = 0;
  Object.assign(net, {
    connect: (given: object) => {
      connections += 1;
      const isLink = "noDelay" in given;
      const localAddress = `127.0.1.${1 + (connections % Math.ceil(count / crawlersPerAddress))}`;
      return connect(isLink ? { ...given, localAddress } : given);
    },
  });
}

interface Cpu {
  readonly coordinatorMs: number;
  readonly postgresMs: number;
  readonly ownMs: number;
}

async function cpuNow(): Promise<Cpu> {
  const { user, system } = process.cpuUsage();
  const { cpuMs } = await coordinator!.usage();
  return { coordinatorMs: cpuMs, postgresMs: postgresCpuMs(home), ownMs: (user + system) / 1000 };
}

async function cpuSince(before: Cpu, seconds: number): Promise<string> {
  const now = await cpuNow();
  const part = (name: keyof Cpu) => `${((now[name] - before[name]) / 1000).toFixed(1)} s`;
  const { rssBytes } = await coordinator!.usage();
  const memory = `${Math.round(rssBytes / 1e6)} MB resident`;
  return `processor in ${seconds.toFixed(1)} s: coordinator ${part("coordinatorMs")} (${memory}), Postgres ${part("postgresMs")}, the crawlers' process ${part("ownMs")}`;
}
