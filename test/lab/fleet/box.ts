/**
 * The fleet in a box: a fresh embedded Postgres, the coordinator in a process of its own, and N light crawlers in others.
 * Whatever happens, `close` ends all of them and removes the folder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { freePort } from "../../support/free-port.ts";
import type { CoordinatorFigures, CoordinatorOrder } from "./coordinator-process.ts";
import { BoxProcess, cpuMsOf, machineCpuMs, postgresCpuMs, residentBytesOf } from "./processes.ts";
import { type SeedSettings, seed } from "./seed.ts";
import type { SessionOrder, SessionReport } from "./session-process.ts";
import { Tally, type TallySheet } from "./tally.ts";

interface BoxSettings extends SeedSettings {
  /** The coordinator's, beside where it listens. */
  readonly coordinator: object;
  readonly concurrentHosts: number;
  readonly fetchMs: number;
  /** Its processes run dist/, which starts in half the time; left out: the sources. */
  readonly built?: boolean;
  readonly say: (line: string) => void;
}

const schema = "fleet";
const startMs = 120_000;
const figuresMs = 30_000;
const mostPerProcess = 5000;

/** What was used and counted until now. */
export interface Standing {
  readonly atMs: number;
  readonly coordinatorCpuMs: number;
  readonly postgresCpuMs: number;
  readonly sessionsCpuMs: number;
  readonly machineCpuMs: number;
  readonly commits: number;
  readonly walBytes: number;
  readonly sheet: TallySheet;
}

/** The coordinator's own words, as far as it was able to say them. */
export type CoordinatorState = Omit<CoordinatorFigures, "type" | "cpuMs">;

export class FleetBox {
  readonly settings: BoxSettings;
  readonly home: string;
  readonly tally = new Tally();
  readonly #port: number;
  readonly #pagesPort: number;
  #database: Database | null = null;
  #coordinator: BoxProcess | null = null;
  #sessions: BoxProcess[] = [];
  readonly #sheets = new Map<BoxProcess, TallySheet>();
  readonly #made = new Map<BoxProcess, number>();
  /** Of coordinators that are gone. */
  #cpuBeforeMs = 0;
  #lastCpuMs = 0;

  private constructor(settings: BoxSettings, home: string, ports: readonly [number, number]) {
    this.settings = settings;
    this.home = home;
    [this.#port, this.#pagesPort] = ports;
  }

  static async open(settings: BoxSettings): Promise<FleetBox> {
    const home = mkdtempSync(join(tmpdir(), "nearcrawl-fleet-"));
    const box = new FleetBox(settings, home, [await freePort(), await freePort()]);
    try {
      await box.#begin();
      return box;
    } catch (error) {
      await box.close();
      throw error;
    }
  }

  get webUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Without crawlers. */
  get pagesUrl(): string {
    return `http://127.0.0.1:${this.#pagesPort}`;
  }

  get pool(): Pool {
    return this.#database!.pool;
  }

  async #begin(): Promise<void> {
    const { crawlers, say } = this.settings;
    this.#database = await openDatabase({ databaseUrl: null, home: this.home, schema, maxConnections: 3 });
    await migrate(this.#database);
    await seed(this.pool, this.settings);
    say(`${crawlers} crawlers with keys and subnets are in the database`);
    await this.startCoordinator();
    await this.#openSessions();
  }

  async startCoordinator(): Promise<void> {
    const { home, settings } = this;
    const coordinator = new BoxProcess("coordinator-process.ts", () => {}, settings.built);
    this.#coordinator = coordinator;
    const ports = { port: this.#port, pagesPort: this.#pagesPort };
    const order = { type: "start", home, schema, ...ports, settings: settings.coordinator } as const;
    const listening = await coordinator.ask(order satisfies CoordinatorOrder, "listening", startMs);
    if (listening === null) throw new Error(`the coordinator does not listen: ${coordinator.words}`);
  }

  /** At once, as when its machine goes. */
  async killCoordinator(): Promise<void> {
    this.#cpuBeforeMs = this.#coordinatorCpuMs();
    this.#coordinator?.kill();
    await this.#coordinator?.ended();
    this.#coordinator = null;
    this.#lastCpuMs = 0;
  }

  async #openSessions(): Promise<void> {
    const { crawlers, concurrentHosts, fetchMs, built } = this.settings;
    const processes = Math.ceil(crawlers / mostPerProcess);
    for (let at = 0; at < processes; at += 1) {
      const take = (message: { readonly type: string }) => {
        if (message.type === "report") this.#take(session, message as SessionReport);
      };
      const session: BoxProcess = new BoxProcess("session-process.ts", take, built);
      const bound = (part: number) => Math.round((crawlers * part) / processes);
      const order = { type: "open", from: bound(at), to: bound(at + 1), webUrl: this.webUrl } as const;
      this.#sessions.push(session);
      session.tell({ type: "set", settings: { concurrentHosts, fetchMs } } satisfies SessionOrder);
      session.tell(order satisfies SessionOrder);
    }
    const isOpen = () => this.#opened() === crawlers;
    if (!(await this.until(isOpen, startMs / 1000, () => "sessions are made")))
      throw new Error(`of ${crawlers} sessions ${this.#opened()} were made`);
  }

  #opened(): number {
    return [...this.#made.values()].reduce((sum, count) => sum + count, 0);
  }

  tellSessions(order: SessionOrder): void {
    for (const session of this.#sessions) session.tell(order);
  }

  #take(session: BoxProcess, { sheet, sessions }: SessionReport): void {
    this.#made.set(session, sessions);
    this.tally.add(sheet, this.#sheets.get(session) ?? null);
    this.#sheets.set(session, sheet);
  }

  /** Looks several times a second until it is so, or the seconds are over; says each second how it stands. */
  async until(
    isSo: () => boolean | Promise<boolean>,
    seconds: number,
    words: () => string,
  ): Promise<boolean> {
    const start = performance.now();
    let said = 0;
    for (;;) {
      if (await isSo()) return true;
      this.#checkAlive();
      const passed = (performance.now() - start) / 1000;
      if (passed >= seconds) return false;
      if (Math.floor(passed) > said) {
        said = Math.floor(passed);
        if (said <= 5 || said % 5 === 0) this.settings.say(`  ${String(said).padStart(4)} s  ${words()}`);
      }
      await delay(100);
    }
  }

  #checkAlive(): void {
    const gone = [this.#coordinator, ...this.#sessions].find((one) => one !== null && !one.isRunning);
    if (gone) throw new Error(`a process of the box has ended: ${gone.words}`);
  }

  async standing(): Promise<Standing> {
    const { rows } = await this.pool.query<{ commits: string; wal: string }>(
      `select xact_commit as commits, (select wal_bytes from pg_stat_wal) as wal
       from pg_stat_database where datname = current_database()`,
    );
    return {
      atMs: performance.now(),
      coordinatorCpuMs: this.#coordinatorCpuMs(),
      postgresCpuMs: postgresCpuMs(this.home),
      sessionsCpuMs: this.#sessions.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
      machineCpuMs: machineCpuMs(),
      commits: Number(rows[0]!.commits),
      walBytes: Number(rows[0]!.wal),
      sheet: structuredClone(this.tally.take()),
    };
  }

  #coordinatorCpuMs(): number {
    if (this.#coordinator !== null)
      this.#lastCpuMs = Math.max(this.#lastCpuMs, cpuMsOf(this.#coordinator.pid));
    return this.#cpuBeforeMs + this.#lastCpuMs;
  }

  /** Null: it was too busy to answer. Its delays count from the last time on. */
  async coordinatorState(): Promise<CoordinatorState | null> {
    if (this.#coordinator === null) return null;
    return await this.#coordinator.ask<CoordinatorFigures>({ type: "figures" }, "figures", figuresMs);
  }

  get coordinatorBytes(): number {
    return this.#coordinator === null ? 0 : residentBytesOf(this.#coordinator.pid);
  }

  get sessionsBytes(): number {
    return this.#sessions.reduce((sum, { pid }) => sum + residentBytesOf(pid), 0);
  }

  async close(): Promise<void> {
    const processes = [...this.#sessions, ...(this.#coordinator === null ? [] : [this.#coordinator])];
    // What they leave behind goes with the folder.
    for (const one of processes) one.kill();
    await Promise.all(processes.map((one) => one.ended()));
    await this.#database?.close().catch(() => {});
    await stopEmbeddedPostgres(this.home).catch(() => {});
    rmSync(this.home, { recursive: true, force: true });
  }
}
