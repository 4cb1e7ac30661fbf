/**
 * Runs the supervisor of one home as a program until it is asked to stop. SIGTERM and SIGINT end the crawler in an orderly
 * way. SIGUSR2 also tells the coordinator that the crawler will not return.
 */
import { appendFileSync, existsSync, mkdirSync, realpathSync, renameSync, statSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "#core/errors";
import type { Goodbye } from "#protocol/messages";
import { type CrawlerLog, lineLog, outliveLog, quietLog } from "../core/log.ts";
import { readMembership } from "../core/membership.ts";
import { shortSession } from "../link/short-session.ts";
import { withRefusalAdvice } from "../membership/coordinator-route.ts";
import { homeSettings } from "../membership/home-folder.ts";
import { openMember } from "../membership/member.ts";
import { isSegment } from "../spool/spool-folder.ts";
import { PageServer } from "../status/open-status.ts";
import { PingService } from "./crawler-child.ts";
import { DownloadAllowance, ReleaseSource } from "./release-source.ts";
import { pinnedReleaseKeys, ReleaseShelf } from "./release-store.ts";
import { restingReport } from "./resting-report.ts";
import { Supervisor, type Told } from "./supervisor.ts";
import {
  dockVersion,
  leaveHome,
  outwaitOrphan,
  readSupervisorSettings,
  type SupervisorSettings,
  type SupervisorTiming,
  supervisorTiming,
  takeHome,
} from "./supervisor-home.ts";

interface SupervisorRun {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly program: string;
  readonly print: (line: string) => void;
  readonly timing?: SupervisorTiming;
  readonly untilAsked: () => Promise<"stop" | "leave">;
}

/** Resolves when the crawler has ended as asked. Throws a ConfigError or a UsageError if it cannot start. */
export async function runSupervisor({
  home: given,
  env,
  program,
  print,
  timing = supervisorTiming,
  untilAsked,
}: SupervisorRun): Promise<void> {
  const home = existsSync(given) ? realpathSync(given) : given;
  const membership = readMembership(home);
  if (membership === null) {
    throw new ConfigError([
      `${home}: this folder belongs to no coordinator yet: run join with an invitation first`,
    ]);
  }
  const file = new RotatingLog({ home });
  const write = (line: string) => {
    file.write(line);
    print(line);
  };
  const log = lineLog(write, "json", membership.name);
  const settings = freshSettings(
    () => readSupervisorSettings(home, membership),
    (reason) => {
      log.warn({ reason }, "settings.toml is wrong: the supervisor goes on under the settings from before");
    },
  );
  takeHome(home);
  const flusher = new SpoolFlusher(home);
  const page = new RestingPage({ home, program, port: () => settings().statusPort, log });
  try {
    await outwaitOrphan(home);
    const pings = new PingService();
    await pings.start();
    const allowance = new DownloadAllowance({ home, limits: () => settings().limits });
    const supervisor = new Supervisor({
      allowance,
      ...{ home, settings, pings, log, onLine: write, env, timing },
      tell: async (goodbye) => await tellCoordinator(home, goodbye),
      onPresence: async (isRunning) => await page.show(!isRunning),
      pinned: pinnedReleaseKeys(home, membership),
      shelf: new ReleaseShelf({ home, warn: (words) => log.warn({}, words) }),
      source: new ReleaseSource({
        coordinatorUrl: membership.coordinatorUrl,
        route: () => settings().route(),
        allowance,
      }),
      now: () => new Date(),
      random: Math.random,
    });
    log.info({ dockVersion, home }, "the supervisor has started");
    flusher.start();
    await supervisor.start();
    const asked = await untilAsked();
    if (asked === "leave") await supervisor.leave();
    else await supervisor.stop();
    log.info({ asked }, "the supervisor has stopped");
  } finally {
    await page.show(false);
    await flusher.stop();
    leaveHome(home);
  }
}

const tellMs = 10_000;

/** Reports the reason in a separate session, because no crawler has one. */
async function tellCoordinator(home: string, goodbye: Goodbye): Promise<Told> {
  try {
    const member = openMember(home);
    if (member === null) return { type: "failed" };
    const session = { config: homeSettings(home), member, log: quietLog, timeoutMs: tellMs };
    const outcome = await shortSession(session, goodbye);
    if (outcome.type === "refused") {
      const { reason, code } = outcome;
      return { type: "refused", reason: withRefusalAdvice(reason, code), isRemoved: code === "revoked" };
    }
    return { type: outcome.type === "joined" ? "told" : "failed" };
  } catch {
    // Newer settings or a full disk may prevent the report. People who look here still see the reason.
    return { type: "failed" };
  }
}

interface RestingPageSettings {
  readonly home: string;
  readonly program: string;
  readonly port: () => number;
  readonly log: CrawlerLog;
}

/** Serves the local page while no crawler runs. Its steps are serialised, because the crawler uses the same port. */
class RestingPage {
  readonly #settings: RestingPageSettings;
  #server: PageServer | null = null;
  #turn: Promise<void> = Promise.resolve();

  constructor(settings: RestingPageSettings) {
    this.#settings = settings;
  }

  show(isWanted: boolean): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      if (isWanted) return this.#open();
      await this.#server?.close();
      this.#server = null;
    });
    return this.#turn;
  }

  #open(): void {
    const { home, program, port: portNow, log } = this.#settings;
    const port = portNow();
    if (port === 0 || this.#server !== null) return;
    const report = () => restingReport(home, program, new Date());
    this.#server = new PageServer({ port, report, log });
  }
}

/** Resolves at the first signal. Also keeps the process alive when its output has no reader any more. */
export function untilSignal(): Promise<"stop" | "leave"> {
  outliveLog([process.stdout, process.stderr]);
  return new Promise((resolve) => {
    process.once("SIGUSR2", () => resolve("leave"));
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve("stop"));
  });
}

/** Reads the current settings. They must be valid at the start. Later, the last valid ones apply. */
function freshSettings(
  read: () => SupervisorSettings,
  complain: (reason: string) => void,
): () => SupervisorSettings {
  let last = read();
  let complained = "";
  return () => {
    try {
      last = read();
      complained = "";
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== complained) complain(reason);
      complained = reason;
    }
    return last;
  };
}

// Flushes the crawler's spool every second, because Node's permission model denies fsync to the crawler and a power cut should
// lose a second of results, not half a minute.

const everyMs = 1000;

class SpoolFlusher {
  readonly #folder: string;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | null = null;
  #flushed = "";

  constructor(home: string) {
    this.#folder = join(home, "spool");
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#flushing ??= this.#flush().finally(() => {
        this.#flushing = null;
      });
    }, everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#flush();
  }

  async #flush(): Promise<void> {
    try {
      const newest = (await readdir(this.#folder)).filter(isSegment).sort().at(-1);
      if (newest === undefined) return;
      const path = join(this.#folder, newest);
      const { size, mtimeMs } = await stat(path);
      const seen = `${newest} ${size} ${mtimeMs}`;
      if (seen !== this.#flushed) await syncFile(path);
      this.#flushed = seen;
    } catch {
      // The folder does not exist yet, or the segment was acknowledged and removed.
    }
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

// Writes HOME/log/crawler.log and rotates it when full. The oldest files are removed. A disk that refuses writes costs only
// lines.

/** 5 files of 4 MiB have room for a day or two of a busy crawler's lines. */
const defaultFileBytes = 4 * 1024 * 1024;

const defaultFiles = 5;

export class RotatingLog {
  readonly #folder: string;
  readonly #fileBytes: number;
  readonly #files: number;
  #bytes = 0;

  constructor(settings: { readonly home: string; readonly fileBytes?: number; readonly files?: number }) {
    this.#folder = join(settings.home, "log");
    this.#fileBytes = settings.fileBytes ?? defaultFileBytes;
    this.#files = settings.files ?? defaultFiles;
    this.#try(() => {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      this.#bytes = sizeOf(this.#path(0));
    });
  }

  write(line: string): void {
    this.#try(() => {
      const bytes = Buffer.byteLength(line) + 1;
      if (this.#bytes > 0 && this.#bytes + bytes > this.#fileBytes) this.#rotate();
      appendFileSync(this.#path(0), `${line}\n`, { mode: 0o600 });
      this.#bytes += bytes;
    });
  }

  /** crawler.log is the newest, followed by crawler.1.log and so on. The last one is overwritten. */
  #rotate(): void {
    for (let age = this.#files - 1; age > 0; age -= 1) {
      this.#try(() => renameSync(this.#path(age - 1), this.#path(age)));
    }
    this.#bytes = sizeOf(this.#path(0));
  }

  #path(age: number): string {
    return join(this.#folder, age === 0 ? "crawler.log" : `crawler.${age}.log`);
  }

  #try(work: () => void): void {
    try {
      work();
    } catch {
      // A log that cannot be written does not end the crawl.
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
