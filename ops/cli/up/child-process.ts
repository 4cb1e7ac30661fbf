/**
 * A run's separate processes: the emulated Internet, the coordinator, the crawlers. Each is forked with an IPC channel, so that
 * it stops when its supervisor is gone (even by kill -9). Its output goes to a log file. A process that dies is restarted, the
 * first time at once and then after growing pauses.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** This first delay is short, because somebody is waiting. */
const restartAtOnceMs = 100;
/** The delay of the second restart in a row. It doubles with each further one. */
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
  /** Variables added to the environment, since a process list would show arguments. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly onMessage?: (message: unknown) => void;
  /** Called after an unexpected death and before the restart. `code` is null when a signal ended the process. */
  readonly onDeath?: (words: string, code: number | null) => void;
  /** False when others depend on the process's ports. Its death is then only reported. */
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
      // Ctrl-C must reach only the supervisor, which ends the others in order.
      detached: true,
    });
    this.#child = child;
    const log = createWriteStream(logFile, { flags: "a" });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    if (onMessage) child.on("message", onMessage);
    // A full disk must stop only the log.
    log.on("error", () => {});
    // The last output may arrive after the exit.
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

  /** Asks the process to stop and kills it after some seconds. */
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

/** Returns the last lines of a log file for an error message, or an empty text. */
export function lastLines(file: string, count: number): string {
  try {
    return readFileSync(file, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "";
  }
}
