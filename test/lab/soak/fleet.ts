/**
 * A fleet for hours: an embedded Postgres and the coordinator with a clock that can be moved, crawlers as the built program
 * in processes of their own, and the emulated Internet in this one, whose pages change.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { sizeOf } from "#coordinator/storage/table-ends";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { tableSizes } from "#db/table-sizes";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { freePort } from "../../support/free-port.ts";
import { MeasuredProcess } from "../crawl/measured-process.ts";
import type { CoordinatorFigures, CoordinatorOrder } from "../fleet/coordinator-process.ts";
import { BoxProcess, residentBytesOf } from "../fleet/processes.ts";

interface SoakSize {
  readonly sites: number;
  readonly crawlers: number;
  /** How long a day of the coordinator takes. */
  readonly daySeconds: number;
}

/** Kept for few days, so that a run reaches the end of what it keeps. */
export const retention = {
  fetchDays: 4,
  leaseHours: 24,
  roundDays: 4,
  historyDays: 10,
  rejectedDays: 4,
  recordDays: 30,
};
export const changes = { keepDays: 3 };

const scope = { pagesPerHost: 100, maxDepth: 20 };
const dayMs = 86_400_000;
const schema = "soak";
const root = join(import.meta.dirname, "../../..");

/** What one look at everything gives: figures by their names, each in the unit that its name ends in. */
export type Look = ReadonlyMap<string, number>;

export class SoakFleet {
  readonly home: string;
  readonly #size: SoakSize;
  readonly #cleanups: (() => unknown)[] = [];
  readonly #crawlers: { readonly name: string; readonly home: string; readonly process: MeasuredProcess }[] =
    [];
  #coordinator!: BoxProcess;
  #internet!: RunningWorld;
  database!: Database;
  pagesUrl = "";
  #fetchesBefore = 0;
  #lookedMs = performance.now();
  logged: Readonly<Record<string, number>> = {};

  private constructor(size: SoakSize) {
    this.#size = size;
    this.home = mkdtempSync(join(tmpdir(), "nearcrawl-soak-"));
    this.#cleanups.push(() => rmSync(this.home, { recursive: true, force: true }));
  }

  static async start(size: SoakSize): Promise<SoakFleet> {
    const fleet = new SoakFleet(size);
    try {
      await fleet.#start();
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  /** The clocks of all go on by a day: leases run out, what was fetched yesterday is due, what is old goes. */
  nextDay(): void {
    const order: CoordinatorOrder = { type: "jump", byMs: dayMs - 1000 * this.#size.daySeconds };
    this.#coordinator.tell(order);
    for (const { process } of this.#crawlers) process.tell(order);
  }

  async look(): Promise<Look> {
    const look = new Map<string, number>();
    const order: CoordinatorOrder = { type: "figures", collects: true };
    const figures = await this.#coordinator.ask<CoordinatorFigures>(order, "figures", 60_000);
    if (figures === null) throw new Error("the coordinator does not answer within a minute");
    this.logged = figures.logged;
    noteProcess(look, "coordinator", this.#coordinator.pid);
    look.set("coordinator, heap bytes", figures.heapBytes);
    look.set("coordinator, external bytes", figures.externalBytes);
    look.set("coordinator, loop late p99 ms", figures.delayMs.p99);
    for (const [name, { turns, ms }] of Object.entries(figures.duties))
      look.set(`duty ${name}, ms a turn`, ms / turns);
    for (const { name, home, process } of this.#crawlers) {
      noteProcess(look, name, process.pid);
      const heap = await process.ask<{ heapBytes: number; externalBytes: number }>({ type: "heap" }, "heap");
      look.set(`${name}, heap bytes`, heap.heapBytes);
      look.set(`${name}, external bytes`, heap.externalBytes);
      look.set(`${name}, folder bytes`, bytesIn(home));
    }
    await this.#noteDatabase(look);
    return look;
  }

  async #noteDatabase(look: Map<string, number>): Promise<void> {
    const { pool } = this.database;
    const { rows } = await pool.query<{
      bytes: number;
      wal: number;
      connections: number;
      fetches: number;
      urls: number;
    }>(
      `select pg_database_size(current_database())::float8 as bytes,
         (select sum(size) from pg_ls_waldir())::float8 as wal,
         (select count(*) from pg_stat_activity where backend_type = 'client backend')::float8 as connections,
         (select sum(visits) from frontier_url)::float8 as fetches,
         (select count(*) from frontier_url)::float8 as urls`,
    );
    const { bytes, wal, connections, fetches, urls } = rows[0]!;
    const minutes = (performance.now() - this.#lookedMs) / 60_000;
    look.set("database, bytes", bytes);
    look.set("database, log bytes", wal);
    look.set("database, connections", connections);
    look.set("fetches a minute", (fetches - this.#fetchesBefore) / minutes);
    look.set("URLs known", urls);
    this.#fetchesBefore = fetches;
    this.#lookedMs = performance.now();
    for (const size of await tableSizes(pool)) look.set(`table ${size.table}, bytes`, sizeOf(size));
  }

  async #start(): Promise<void> {
    execFileSync(process.execPath, [join(root, "ops/build.mjs"), "--unchecked"], { stdio: "ignore" });
    const world = generateWorld({ seed: 20, sites: this.#size.sites, crawlers: this.#size.crawlers });
    this.database = await openDatabase({ databaseUrl: null, home: this.home, schema, maxConnections: 4 });
    this.#cleanups.push(async () => {
      await this.database.close();
      await stopEmbeddedPostgres(this.home);
    });
    await migrate(this.database);
    await applyImport(this.database, await writeRegistryFiles(world, join(this.home, "registry")), {});
    this.#internet = await startWorld(world, { changes: this.#changes() });
    this.#cleanups.push(() => this.#internet.close());
    await this.#startCoordinator();
    const { pool } = this.database;
    const ports = { frontier: createFrontierStore(pool), rejected: createRejectedUrlStore(pool) };
    const urls = world.sites.map(({ host }) => `http://${host}/`);
    await admitUrls(urls, ports, { scope: { ...scope, admitNewHosts: true }, now: new Date() });
    for (const index of world.crawlers.keys()) await this.#startCrawler(index);
  }

  /** A third of the sites' pages is another one every day, the others every other week. */
  #changes() {
    const daysInOne = 86_400 / this.#size.daySeconds;
    return {
      seed: 1,
      startMs: Date.now(),
      changesPerDay: (host: string) => daysInOne * (host.charCodeAt(0) % 3 === 0 ? 1 : 1 / 14),
    };
  }

  async #startCoordinator(): Promise<void> {
    const [port, pagesPort] = [await freePort(), await freePort()];
    this.pagesUrl = `http://127.0.0.1:${pagesPort}`;
    this.#coordinator = new BoxProcess("coordinator-process.ts", () => {});
    this.#cleanups.push(async () => {
      this.#coordinator.tell({ type: "stop" });
      await this.#coordinator.ended();
    });
    const settings = {
      resolvers: [this.#internet.dnsAddress],
      delegation: { expectedCrawlers: this.#size.crawlers, settleSeconds: 5 },
      scope: { ...scope, admitNewHosts: false },
      lease: { seconds: 60, addressRestSeconds: 0 },
      recrawl: { intervalHours: 20 },
      // Days pass between a page's fetch and the second one that it is compared with: honest crawlers would be distrusted.
      trust: { share: 0, newcomerShare: 0 },
      ...{ retention, changes, logLevel: "warn" },
    };
    const order: CoordinatorOrder = {
      ...{ type: "start", home: this.home, schema, port, pagesPort, settings },
      longestDutyMs: 1000 * this.#size.daySeconds,
    };
    const listening = await this.#coordinator.ask<{ webUrl: string }>(order, "listening", 60_000);
    if (listening === null) throw new Error(`the coordinator does not listen: ${this.#coordinator.words}`);
    this.#coordinatorUrl = `${listening.webUrl.replace("http", "ws")}/crawler`;
  }

  #coordinatorUrl = "";

  async #startCrawler(index: number): Promise<void> {
    const { name, address } = this.#internet.world.crawlers[index]!;
    const { key, keyHash } = newCrawlerKey();
    await createCrawlerStore(this.database.pool).register({ name, keyHash });
    const home = join(this.home, "crawlers", name);
    mkdirSync(home, { recursive: true });
    const file = join(this.home, `${name}.json`);
    const settings = {
      ...{ coordinatorUrl: this.#coordinatorUrl, key, name, home, publicAddress: address },
      ...{ proxy: this.#internet.proxyUrlOf(index), coordinatorProxy: "none" },
      resolvers: [this.#internet.dnsAddressOf(index)],
      ...{ politenessFloorMs: 250, responseTimeFactor: 0, probeMethods: ["head", "connect"] },
      limits: { priority: 0, pagesPerDay: 1_000_000_000, bytesPerDay: 1e15 },
      status: { port: 0 },
    };
    writeFileSync(file, JSON.stringify(settings));
    const clock = ["--import", join(import.meta.dirname, "movable-clock.mjs")];
    const main = join(root, "dist/migrating-crawler/main.js");
    const process = new MeasuredProcess(main, { args: [file], execArgv: clock });
    this.#cleanups.push(() => process.stop());
    this.#crawlers.push({ name, home, process });
  }
}

function noteProcess(look: Map<string, number>, name: string, pid: number): void {
  look.set(`${name}, resident bytes`, residentBytesOf(pid));
  look.set(`${name}, handles`, readdirSync(`/proc/${pid}/fd`).length);
  const [, threads = "0"] = /^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  look.set(`${name}, threads`, Number(threads));
}

function bytesIn(folder: string): number {
  let sum = 0;
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    try {
      const stats = statSync(join(folder, name));
      if (stats.isFile()) sum += stats.size;
    } catch {
      // It has gone meanwhile.
    }
  }
  return sum;
}
