/**
 * The whole system as processes, for a chaos run: its own embedded Postgres, coordinators and crawlers as the built programs,
 * relays between them, and the emulated Internet in this process, which no fault touches. A process that dies unasked is
 * restarted after a second, as by a service manager, and recorded.
 */
import { type ChildProcess, fork } from "node:child_process";
import { chmodSync, createWriteStream, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { openDatabase } from "#db/connect";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { FaultyRelay } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { closeDisk, type Disk, openDisk } from "./disks.ts";

export interface FleetSize {
  readonly seed: number;
  readonly sites: number;
  readonly crawlers: number;
  readonly coordinators: number;
  /** Least time between two requests of a crawler to one host. */
  readonly floorMs: number;
  readonly leaseSeconds: number;
  readonly urlsPerLease: number;
  /** Of each crawler. */
  readonly concurrentHosts: number;
  /** How long the first rounds wait for the fleet to assemble. */
  readonly settleSeconds: number;
  /** Time without requests to an address before another crawler may request it. */
  readonly addressRestSeconds: number;
  /** Fetches stored before the first fault. */
  readonly fetchesBefore: number;
  /** How long a page stays as it is, on average. */
  readonly changeEveryMs: number;
  /** Keeps what is on the disks in the folder for inspection. */
  readonly keepsDisks?: boolean;
}

/** The built programs. */
export interface Programs {
  readonly command: string;
  readonly crawler: string;
}

const crawlScope = { pagesPerHost: 100, maxDepth: 20 } as const;

const schema = "chaos";
const databaseMegabytes = 900;
const crawlerMegabytes = 48;

const startMs = 240_000;

/** Time before a dead process is restarted. */
const restartMs = 1000;

export interface Death {
  readonly name: string;
  /** ms since the epoch. */
  readonly atMs: number;
  readonly how: string;
  readonly lastWords: string;
}

/** A process that can be killed, stopped, continued and restarted. */
class KeptProcess {
  readonly name: string;
  readonly logFile: string;
  readonly #start: () => ChildProcess;
  readonly #deaths: Death[];
  #child: ChildProcess | null = null;
  #isWanted = false;
  #isClosed = false;

  constructor(given: {
    readonly name: string;
    readonly logFile: string;
    readonly start: () => ChildProcess;
    readonly deaths: Death[];
  }) {
    this.name = given.name;
    this.logFile = given.logFile;
    this.#start = given.start;
    this.#deaths = given.deaths;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): ChildProcess | null {
    if (this.#isClosed) return null;
    this.#isWanted = true;
    const child = this.#start();
    this.#child = child;
    const log = createWriteStream(this.logFile, { flags: "a" });
    let lastWords = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.pipe(log, { end: false });
      stream?.on("data", (words: Buffer) => {
        lastWords = `${lastWords}${words}`.slice(-600);
      });
    }
    child.on("close", (code, signal) => {
      log.end();
      if (this.#child === child) this.#child = null;
      if (!this.#isWanted) return;
      const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
      this.#deaths.push({ name: this.name, atMs: Date.now(), how, lastWords });
      setTimeout(() => {
        if (this.#isWanted && this.#child === null) this.start();
      }, restartMs);
    });
    return child;
  }

  /** It is never started again. */
  close(): void {
    this.#isClosed = true;
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Ends it by SIGTERM, or by SIGKILL after a service manager's grace time; null: it did not run. */
  async stop(withinMs: number): Promise<number | null> {
    const child = this.#child;
    const force = setTimeout(() => child?.kill("SIGKILL"), withinMs);
    await this.#end("SIGTERM");
    clearTimeout(force);
    return child === null ? null : (child.exitCode ?? -1);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === null) return;
    const gone = new Promise((done) => child.once("close", done));
    child.kill(signal);
    await gone;
  }
}

interface RunningCoordinator {
  readonly process: KeptProcess;
  /** Where all others reach it. */
  readonly front: FaultyRelay;
  /** To the database. */
  readonly way: FaultyRelay;
  webUrl: string;
}

interface RunningCrawler {
  readonly name: string;
  readonly home: string;
  readonly disk: Disk;
  readonly process: KeptProcess;
  /** To the first coordinator that it knows; it learns of others. */
  readonly link: FaultyRelay;
}

export class ChaosFleet {
  readonly deaths: Death[] = [];
  readonly #cleanups: (() => unknown)[] = [];
  readonly world: World;
  readonly coordinators: RunningCoordinator[] = [];
  readonly crawlers: RunningCrawler[] = [];
  internet!: RunningWorld;
  database!: Database;
  databaseDisk!: Disk;
  #isClosed = false;
  readonly #size: FleetSize;
  readonly #folder: string;
  readonly #programs: Programs;

  private constructor(size: FleetSize, folder: string, programs: Programs) {
    this.#size = size;
    this.#folder = folder;
    this.#programs = programs;
    this.world = generateWorld({ seed: size.seed, sites: size.sites, crawlers: size.crawlers });
  }

  /** Resolves when all processes run, every crawler is connected, and all sites are admitted; `folder` must exist. */
  static async start(size: FleetSize, folder: string, programs: Programs): Promise<ChaosFleet> {
    const fleet = new ChaosFleet(size, folder, programs);
    try {
      await fleet.#start();
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  get databaseHome(): string {
    return join(this.#folder, "database");
  }

  get logFolder(): string {
    return join(this.#folder, "logs");
  }

  /** The server and its child processes. */
  databasePids(): readonly number[] {
    const server = readPidFile(this.databaseHome)?.pid;
    if (server === undefined) return [];
    const isChild = (pid: number) => {
      try {
        return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === String(server);
      } catch {
        return false;
      }
    };
    const others = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return [server, ...others.map(Number).filter(isChild)];
  }

  /** Starts it if it has died. */
  async startDatabase(): Promise<void> {
    if (!this.#isClosed) await startEmbeddedPostgres(this.databaseHome);
  }

  /** Also during a fault: undoing it afterwards finds nothing to do. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { process } of [...this.crawlers, ...this.coordinators]) process.close();
    for (const pid of this.databasePids()) process.kill(pid, "SIGCONT");
    for (const cleanup of this.#cleanups.reverse()) {
      try {
        await cleanup();
      } catch (error) {
        process.stderr.write(`chaos: ${error instanceof Error ? error.message : String(error)}\n`);
      }
    }
    this.#cleanups.length = 0;
  }

  async #start(): Promise<void> {
    // The database's own user may enter.
    chmodSync(this.#folder, 0o711);
    for (const name of ["logs", "settings", "ways", "coordinators", "crawlers"])
      mkdirSync(join(this.#folder, name));
    await this.#openDatabase();
    const changesPerDay = () => (86_400 * 1000) / this.#size.changeEveryMs;
    this.internet = await startWorld(this.world, {
      changes: { seed: this.#size.seed, startMs: Date.now(), changesPerDay },
    });
    this.#cleanups.push(() => this.internet.close());
    await applyImport(
      this.database,
      await writeRegistryFiles(this.world, join(this.#folder, "registry")),
      {},
    );
    await this.#admitSites();
    for (let index = 0; index < this.#size.coordinators; index++) await this.#addCoordinator(index);
    for (const index of this.world.crawlers.keys()) await this.#addCrawler(index);
    await until(
      async () => (await this.#count("crawler where state = 'online'")) === this.crawlers.length,
      startMs,
    );
    const { fetchesBefore } = this.#size;
    await until(async () => (await this.#count("page_fetch")) >= fetchesBefore, startMs);
  }

  async #openDatabase(): Promise<void> {
    this.databaseDisk = await openDisk(this.databaseHome, databaseMegabytes, 0o711);
    this.#cleanups.push(() => closeDisk(this.databaseDisk, this.#size.keepsDisks ?? false));
    const { url } = await startEmbeddedPostgres(this.databaseHome);
    this.#cleanups.push(() => stopEmbeddedPostgres(this.databaseHome));
    // By its URL: opening it as the embedded database would restart a killed server.
    this.database = await openDatabase({
      databaseUrl: url,
      home: this.databaseHome,
      schema,
      maxConnections: 4,
    });
    this.#cleanups.push(() => this.database.close());
    // Keeps the write-ahead log within the disk.
    await this.database.pool.query("alter system set max_wal_size = '256MB'");
    await this.database.pool.query("select pg_reload_conf()");
    await migrate(this.database);
  }

  async #admitSites(): Promise<void> {
    const { pool } = this.database;
    const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
    const urls = this.world.sites.map(({ host }) => `http://${host}/`);
    await admitUrls(urls, ports, { scope: { ...crawlScope, admitNewHosts: true }, now: new Date() });
  }

  async #addCoordinator(index: number): Promise<void> {
    const name = `coordinator-${index}`;
    const home = join(this.#folder, "coordinators", String(index));
    const ways = join(this.#folder, "ways", String(index));
    for (const folder of [home, ways]) mkdirSync(folder);
    const socketFolder = readPidFile(this.databaseHome)!.socketFolder!;
    const way = await FaultyRelay.open(join(socketFolder, ".s.PGSQL.5432"), join(ways, ".s.PGSQL.5432"));
    const front = await FaultyRelay.open(null);
    for (const relay of [way, front]) this.#cleanups.push(() => relay.close());
    const { command } = this.#programs;
    const file = join(this.#folder, "settings", `${name}.json`);
    const settings = (port: number) => ({
      listen: { port },
      publicUrl: `http://127.0.0.1:${front.port}`,
      access: { anonymous: "read" },
      resolvers: [this.internet.dnsAddress],
      delegation: { expectedCrawlers: this.#size.crawlers, settleSeconds: this.#size.settleSeconds },
      scope: { ...crawlScope, admitNewHosts: false },
      lease: {
        seconds: this.#size.leaseSeconds,
        urlsPerHost: this.#size.urlsPerLease,
        addressRestSeconds: this.#size.addressRestSeconds,
      },
      ...{ departureSeconds: 20, heartbeatSeconds: 2, logLevel: "info" },
    });
    const kept = new KeptProcess({
      ...{ name, logFile: join(this.logFolder, `${name}.log`), deaths: this.deaths },
      start: () =>
        fork(command, ["coordinator", "--home", home, "--config", file, "--schema", schema], {
          env: {
            ...process.env,
            DATABASE_URL: this.database.url.replace(/host=[^&]*/, `host=${encodeURIComponent(ways)}`),
          },
          execArgv: [],
          stdio: ["ignore", "pipe", "pipe", "ipc"],
        }),
    });
    writeFileSync(file, JSON.stringify(settings(0)));
    const child = kept.start()!;
    this.#cleanups.push(() => kept.kill());
    const webUrl = await new Promise<string>((listening, failed) => {
      child.on("message", (message: { type?: string; webUrl?: string }) => {
        if (message.type === "listening") listening(message.webUrl ?? "");
      });
      child.once("exit", () => failed(new Error(`${name} did not start: see ${kept.logFile}`)));
    });
    const port = Number(new URL(webUrl).port);
    front.target = port;
    writeFileSync(file, JSON.stringify(settings(port)));
    this.coordinators.push({ process: kept, front, way, webUrl });
  }

  async #addCrawler(index: number): Promise<void> {
    const { name, address } = this.world.crawlers[index]!;
    const home = join(this.#folder, "crawlers", name);
    const disk = await openDisk(home, crawlerMegabytes);
    this.#cleanups.push(() => closeDisk(disk, this.#size.keepsDisks ?? false));
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(this.database.pool).register({ name, keyHash });
    const { front } = this.coordinators[index % this.coordinators.length]!;
    const link = await FaultyRelay.open(front.target);
    this.#cleanups.push(() => link.close());
    const file = join(this.#folder, "settings", `${name}.json`);
    const settings = {
      coordinatorUrl: `ws://127.0.0.1:${link.port}/crawler`,
      ...{ key, name, home, publicAddress: address },
      ...{ proxy: this.internet.proxyUrlOf(index), coordinatorProxy: "none" },
      // The addresses of the other coordinators are special-purpose here.
      allowRanges: ["127.0.0.1"],
      resolvers: [this.internet.dnsAddressOf(index)],
      ...{ politenessFloorMs: this.#size.floorMs, responseTimeFactor: 0 },
      // A stopped process must not take its own pause for a silent site.
      timeouts: { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 120_000 },
      limits: { priority: 0, extractionThreads: 0, concurrentHosts: this.#size.concurrentHosts },
      ...{ probeMethods: ["head", "connect"], status: { port: 0 } },
    };
    writeFileSync(file, JSON.stringify(settings));
    const kept = new KeptProcess({
      ...{ name, logFile: join(this.logFolder, `${name}.log`), deaths: this.deaths },
      start: () =>
        fork(this.#programs.crawler, [file], { execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] }),
    });
    this.#cleanups.push(() => kept.kill());
    kept.start();
    this.crawlers.push({ name, home, disk, process: kept, link });
  }

  async #count(of: string): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `select count(*)::int as count from ${of}`,
    );
    return rows[0]!.count;
  }
}
