/**
 * Starts a run's separate processes and connects them: the emulated Internet (if any), the coordinator, the crawlers. Settings
 * are passed in files that only this user can read, since they hold keys.
 */

import { type ChildProcess, fork } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { StartError } from "#core/errors";
import { exitCodes } from "../exit-codes.ts";

/** Sources run as .ts, builds as .js. */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface SystemFolders {
  /** Logs, settings and spools of this run. */
  readonly run: string;
}

export interface Announced {
  readonly [name: string]: unknown;
}

export interface CoordinatorSettings {
  readonly listen: { readonly host: string; readonly port: number };
  readonly [setting: string]: unknown;
}

export interface CrawlerSettings {
  readonly name: string;
  readonly [setting: string]: unknown;
}

const announceMs = 30_000;

/** Restarts before it is up: a restarting database may end it once or twice, but wrong settings stay wrong. */
const mostDeaths = 3;

type StartedProcess = Omit<ChildSettings, "logFile">;

export class SystemProcesses {
  readonly #folders: SystemFolders;
  readonly #onDeath: (words: string) => void;
  readonly #running: SupervisedProcess[] = [];
  #failWorld: (reason: StartError) => void = () => {};
  readonly #worldDied: Promise<never>;

  constructor(folders: SystemFolders, onDeath: (words: string) => void) {
    this.#folders = folders;
    this.#onDeath = onDeath;
    this.#worldDied = new Promise((_, reject) => {
      this.#failWorld = reject;
    });
    // Prevents an unhandled rejection before anybody waits for it.
    this.#worldDied.catch(() => {});
    mkdirSync(join(folders.run, "settings"), { recursive: true, mode: 0o700 });
  }

  /** Rejects when the emulated Internet dies: its ports are gone, so the run cannot continue. */
  get worldDied(): Promise<never> {
    return this.#worldDied;
  }

  /** Resolves with the announcement of the emulated Internet (`type: "listening"`). */
  async startWorld(args: readonly string[]): Promise<Announced> {
    return await this.#startAnnounced({
      name: "world",
      entry: fileOf(`../../world/world-process${extension}`),
      args,
      restart: false,
      onDeath: (words) => this.#failWorld(new StartError(words)),
    });
  }

  async startCoordinator(
    settings: CoordinatorSettings,
    place: { home: string; databaseUrl: string | null; schema: string },
  ): Promise<Announced> {
    const file = this.#settingsFile("coordinator", settings);
    const announced = await this.#startAnnounced({
      name: "coordinator",
      entry: fileOf(`../main${extension}`),
      args: ["coordinator", "--config", file, "--home", place.home, "--schema", place.schema],
      ...(place.databaseUrl === null ? {} : { secrets: { DATABASE_URL: place.databaseUrl } }),
    });
    // After a restart it must be where the crawlers look for it.
    const port = Number(new URL(String(announced.webUrl)).port);
    this.#settingsFile("coordinator", { ...settings, listen: { ...settings.listen, port } });
    return announced;
  }

  startCrawler(settings: CrawlerSettings): SupervisedProcess {
    // A dozen local pages would be in the way; the coordinator's page shows all crawlers.
    const file = this.#settingsFile(`crawler-${settings.name}`, { ...settings, status: { port: 0 } });
    const bundle = fileOf("../../../crawler-bundle.mjs");
    const useBundle = extension === ".js" && existsSync(bundle);
    return this.#start({
      name: `crawler-${settings.name}`,
      entry: useBundle ? bundle : fileOf(`../main${extension}`),
      args: useBundle ? [file] : ["crawler", "--config", file],
    });
  }

  /** Stops crawlers first, then the coordinator, then the world, so that none loses its peer. */
  async stop(): Promise<void> {
    const crawlers = this.#running.filter(({ name }) => name.startsWith("crawler-"));
    await Promise.all(crawlers.map((one) => one.stop()));
    for (const one of this.#running.filter((process) => !crawlers.includes(process)).reverse())
      await one.stop();
  }

  async #startAnnounced(process: StartedProcess): Promise<Announced> {
    return await new Promise((resolve, reject) => {
      const logFile = this.#logFile(process.name);
      const fail = (words: string) => {
        clearTimeout(late);
        const log = lastLines(logFile, 5);
        reject(new StartError(`${words}${log ? `; its last words:\n${log}` : ""}`));
      };
      const late = setTimeout(
        () => fail(`${process.name} did not come up within ${announceMs / 1000} s`),
        announceMs,
      );
      let announced = false;
      let deaths = 0;
      this.#start({
        ...process,
        onMessage: (message) => {
          if (announced || (message as Announced | null)?.type !== "listening") return;
          announced = true;
          clearTimeout(late);
          resolve(message as Announced);
        },
        onDeath: (words, code) => {
          deaths += 1;
          const mayCome = process.restart !== false && code === exitCodes.failed && deaths < mostDeaths;
          if (announced) process.onDeath?.(words, code);
          else if (!mayCome) fail(words);
        },
      });
    });
  }

  #start(process: StartedProcess): SupervisedProcess {
    const started = new SupervisedProcess({
      ...process,
      logFile: this.#logFile(process.name),
      onDeath: (words, code) => {
        process.onDeath?.(words, code);
        this.#onDeath(words);
      },
    });
    this.#running.push(started);
    started.start();
    return started;
  }

  #logFile(name: string): string {
    return join(this.#folders.run, "logs", `${name}.log`);
  }

  #settingsFile(name: string, settings: object): string {
    const file = join(this.#folders.run, "settings", `${name}.json`);
    writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
    return file;
  }
}

// A run's separate processes: the emulated Internet, the coordinator, the crawlers. Each is forked with an IPC channel, so that
// it stops when its supervisor is gone (even by kill -9). Its output goes to a log file. A process that dies is restarted: at
// once, and later each time in a row.

/** Short, because somebody waits for it. */
const restartAtOnceMs = 100;
/** The delay of the second restart in a row, which then doubles. */
const restartAgainMs = 1000;
const restartMostMs = 30_000;
/** A process that lived this long counts as healthy, so that its next restart is quick again. */
const healthyAfterMs = 10_000;
const stopGraceMs = 8000;

export interface ChildSettings {
  readonly name: string;
  readonly entry: string;
  readonly args: readonly string[];
  readonly logFile: string;
  /** Added to the environment, because a process list would show arguments. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly onMessage?: (message: unknown) => void;
  /** Called when it died unexpectedly, before the restart; `code` is null after a signal. */
  readonly onDeath?: (words: string, code: number | null) => void;
  /** False when others depend on its ports; its death is only reported. */
  readonly restart?: boolean;
}

export class SupervisedProcess {
  readonly #settings: ChildSettings;
  #child: ChildProcess | null = null;
  #stopping = false;
  #failuresInARow = 0;
  #restart: NodeJS.Timeout | null = null;

  constructor(settings: ChildSettings) {
    this.#settings = settings;
    mkdirSync(dirname(settings.logFile), { recursive: true });
  }

  get name(): string {
    return this.#settings.name;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): void {
    const { entry, args, logFile, onMessage } = this.#settings;
    const startedMs = performance.now();
    const child = fork(entry, args, {
      env: { ...process.env, ...this.#settings.secrets },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // Ctrl-C goes to the supervisor only, which ends the others in order.
      detached: true,
    });
    this.#child = child;
    const log = createWriteStream(logFile, { flags: "a" });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    if (onMessage) child.on("message", onMessage);
    // A full disk must only stop the log.
    log.on("error", () => {});
    // The last output may follow the exit.
    child.on("close", () => log.end());
    const ended = (how: string, code: number | null) => {
      this.#child = null;
      if (!this.#stopping) this.#died({ how, code, livedMs: performance.now() - startedMs });
    };
    child.on("error", (error) => {
      log.write(`${this.#settings.name}: ${error.message}\n`);
      if (child.pid === undefined) ended(`could not be started: ${error.message}`, null);
    });
    child.on("exit", (code, signal) =>
      ended(signal ? `was ended by ${signal}` : `ended with code ${code}`, code),
    );
  }

  /** Asks it to stop and kills it after some seconds. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#restart) clearTimeout(this.#restart);
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
    await gone;
    clearTimeout(force);
  }

  #died({ how, code, livedMs }: Death): void {
    this.#failuresInARow = livedMs > healthyAfterMs ? 1 : this.#failuresInARow + 1;
    const { name, logFile, onDeath, restart = true } = this.#settings;
    onDeath?.(`${name} ${how}${restart ? "; starting it again" : ""} (log: ${logFile})`, code);
    if (!restart) return;
    const againMs = Math.min(restartMostMs, restartAgainMs * 2 ** (this.#failuresInARow - 2));
    const delayMs = this.#failuresInARow === 1 ? restartAtOnceMs : againMs;
    this.#restart = setTimeout(() => this.start(), delayMs);
  }
}

interface Death {
  readonly how: string;
  readonly code: number | null;
  readonly livedMs: number;
}

/** Returns the last lines of a log file for an error message, or nothing. */
export function lastLines(file: string, count: number): string {
  try {
    return readFileSync(file, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "";
  }
}
