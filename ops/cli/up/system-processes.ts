/**
 * Starts a run's separate processes and connects them: the emulated Internet (if any), the coordinator, the crawlers. Settings
 * are passed in files that only this user can read, since they contain keys.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StartError } from "#core/errors";
import { exitCodes } from "../exit-codes.ts";
import { type ChildSettings, lastLines, SupervisedProcess } from "./child-process.ts";

/** The sources run as .ts and the build as .js. */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface SystemFolders {
  /** The folder of this run's logs, settings and spools. */
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

/** Maximum restarts before a process is up: a restarting database may end it once or twice, wrong settings do each time. */
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

  /** Rejects when the emulated Internet dies, because its ports are gone and the run cannot continue. */
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
    // After a restart the coordinator must be where the crawlers look for it.
    const port = Number(new URL(String(announced.webUrl)).port);
    this.#settingsFile("coordinator", { ...settings, listen: { ...settings.listen, port } });
    return announced;
  }

  startCrawler(settings: CrawlerSettings): SupervisedProcess {
    // A dozen local pages would be in the way, and the coordinator's page shows all crawlers.
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
