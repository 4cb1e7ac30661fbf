/** Ensures that only one supervisor at a time runs a home, and only after the crawler of a killed one has ended. */
import { existsSync, linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError, UsageError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { jsonIn } from "../core/json.ts";
import type { Membership } from "../core/membership.ts";
import { coordinatorRoute } from "../membership/coordinator-route.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { parseProxy } from "../settings/config.ts";
import { limitsSchema } from "../settings/limits-config.ts";
import { type ReleasePolicy, releasePolicy } from "../settings/release-policy.ts";
import { readSettingsFile } from "../settings/settings-file.ts";
import type { DownloadLimits } from "./release-source.ts";
import { releasesFolder } from "./release-store.ts";

/** A crawler that has lost its supervisor stops by itself. If it has not done so after this time, it is killed. */
const orphanMs = 15_000;

const lookMs = 100;

/** The file that tells others whether this home's crawler runs. */
export const supervisorMark = (home: string) => join(home, "dock.pid");

export function runningSupervisor(home: string): number | null {
  return holderOf(supervisorMark(home));
}

/** Throws a UsageError if another supervisor runs this home. */
export function takeHome(home: string): void {
  const other = runningSupervisor(home);
  if (other !== null && other !== process.pid) {
    throw new UsageError(`${home}: process ${other} runs the crawler of this folder already`);
  }
  if (takeMark(supervisorMark(home), process.pid)) return;
  throw new UsageError(`${home}: another process has just begun to run the crawler of this folder`);
}

export function leaveHome(home: string): void {
  removeMark(supervisorMark(home));
}

/** Resolves when no crawler of an earlier supervisor runs any more. */
export async function outwaitOrphan(home: string, { withinMs = orphanMs } = {}): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const orphan = holderOf(childMark(home));
    if (orphan === null) return removeMark(childMark(home));
    if (performance.now() - startedMs > withinMs) process.kill(orphan, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/** The file that names the crawler's process for the successor of a killed supervisor. */
export const childMark = (home: string) => join(home, "releases", "child.pid");

/**
 * The version of the supervisor's own code, which its host updates by hand. A release's manifest names the oldest version that
 * can run it.
 */
export const dockVersion = "1.0.0";

export interface SupervisorTiming {
  /** How long a welcomed new release must run well before it counts as good. */
  readonly watchMs: number;
  /** Maximum time until the welcome, as long as the coordinator answers at all. */
  readonly welcomeMs: number;
  /** A watched release that ends by itself this often is rolled back, since a single end may have any cause. */
  readonly mostWatchedFaults: number;
  /**
   * A watched release that was started this often is also rolled back, whatever ended it (a failing machine, lack of memory).
   */
  readonly mostWatchedStarts: number;
  readonly againMs: number;
  /** A crawler that gives no sign of life for this long is stuck. */
  readonly silenceMs: number;
  /** Stopping takes 4 s for requests, 2 s for acknowledgements and 5 s for the goodbye. The rest is reserve. */
  readonly stopMs: number;
  /** The wait before restarting a crawler that ended by itself, doubled each time. */
  readonly backOff: { readonly firstMs: number; readonly mostMs: number };
  /** Interval between checks for revocations (and for releases, if nothing runs well). */
  readonly pollMs: number;
  /** The same interval while there is nothing to run, because somebody is waiting. */
  readonly emptyPollMs: number;
  /** The wait after a failed check, doubled each time. */
  readonly retryMs: number;
  /** Minimum time between checks triggered by offers, because each check requests lists. */
  readonly lookMs: number;
}

const minuteMs = 60_000;

export const supervisorTiming: SupervisorTiming = {
  watchMs: 10 * minuteMs,
  welcomeMs: 10 * minuteMs,
  mostWatchedFaults: 3,
  mostWatchedStarts: 6,
  againMs: 60 * minuteMs,
  silenceMs: 2 * minuteMs,
  stopMs: 30_000,
  backOff: { firstMs: 1000, mostMs: 5 * minuteMs },
  pollMs: 5 * minuteMs,
  emptyPollMs: 30_000,
  retryMs: 2000,
  lookMs: 2000,
};

// Reads what the supervisor needs from HOME/settings.toml: the release policy, the route to the coordinator, and the files and
// folders outside the home that the crawler may access. The crawler's release validates everything else, because a supervisor
// is older than its releases and must tolerate new names.

const path = z.string().min(1).max(4096).nullable().default(null);
const proxy = z.string().refine((text) => parseProxy(text) !== null, { error: "is not a proxy's address" });

const { bytesPerDay, bytesPerMonth, kilobytesPerSecond, timeZone, pagesPerDay } = limitsSchema.shape;

const supervisorSettings = z.object({
  releases: releasePolicy.prefault({}),
  proxy: proxy.nullable().default(null),
  coordinatorProxy: z.union([z.enum(["as-sites", "none"]), proxy]).default("as-sites"),
  certificateFile: path,
  coordinatorCertificateFile: path,
  /** The crawler's release reports an invalid port. */
  status: z
    .object({ port: z.int().min(0).max(65_535).default(7412) })
    .catch({ port: 0 })
    .prefault({}),
  /** The crawler's release reports invalid limits. */
  limits: z
    .object({ bytesPerDay, bytesPerMonth, kilobytesPerSecond, timeZone, pagesPerDay })
    .catch(limitsSchema.parse({}))
    .prefault({}),
  warc: z
    .object({ folder: z.string().min(1).max(4096) })
    .nullable()
    .default(null),
});

export interface SupervisorSettings {
  readonly policy: ReleasePolicy;
  /** The port of the local page. 0 means none. */
  readonly statusPort: number;
  readonly route: () => CoordinatorRoute;
  readonly limits: DownloadLimits;
  /** Files outside its home that the crawler may read. */
  readonly readable: readonly string[];
  /** Folders outside its home that the crawler may write. */
  readonly writable: readonly string[];
}

/** Throws a ConfigError that names the file and every fault. */
export function readSupervisorSettings(home: string, membership: Membership): SupervisorSettings {
  const file = join(home, "settings.toml");
  const checked = supervisorSettings.safeParse(existsSync(file) ? readSettingsFile(file) : {});
  if (!checked.success) {
    throw new ConfigError(
      checked.error.issues.map((issue) => `${file}: ${issue.path.join(".")}: ${issue.message}`),
    );
  }
  const { releases, certificateFile, coordinatorCertificateFile, status, warc, limits, ...ways } =
    checked.data;
  const { coordinatorUrl } = membership;
  if (warc !== null && reachesOwnFiles(home, warc.folder)) {
    const why = `in ${warc.folder} the crawler could write what its supervisor goes by`;
    throw new ConfigError([
      `${file}: warc.folder: ${why}: choose a folder of its own, such as ${join(home, "archive")}`,
    ]);
  }
  return {
    policy: releases,
    limits,
    statusPort: status.port,
    route: () => coordinatorRoute({ ...ways, coordinatorCertificateFile, coordinatorUrl }, membership),
    readable: [certificateFile, coordinatorCertificateFile]
      .filter((name) => name !== null)
      .map((name) => resolve(name)),
    writable: warc === null ? [] : [resolve(warc.folder)],
  };
}

/** Whether the folder contains the home, or is in the supervisor's releases or log. */
function reachesOwnFiles(home: string, folder: string): boolean {
  const real = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const below = (path: string, parent: string) => `${path}/`.startsWith(parent === "/" ? "/" : `${parent}/`);
  return below(home, real) || [releasesFolder(home), join(home, "log")].some((own) => below(real, own));
}

// Marks which process holds something, in a file that outlives it. A process id may be reused (in a container it nearly always
// is), so the process's start time is added if available.

const processMark = z.object({ pid: z.int().min(1), startTicks: z.string().nullable() });

export function writeMark(path: string, pid: number): void {
  const mark: z.infer<typeof processMark> = { pid, startTicks: startTicks(pid) };
  writeFileSync(`${path}.draft`, JSON.stringify(mark), { mode: 0o600 });
  renameSync(`${path}.draft`, path);
}

/**
 * Returns false if another running process holds the mark. If several processes find a stale mark, one succeeds: marks are
 * created atomically, and a stale one is checked again after it was moved away.
 */
export function takeMark(path: string, pid: number): boolean {
  const [draft, old] = [`${path}.${process.pid}.draft`, `${path}.${process.pid}.old`];
  writeMark(draft, pid);
  try {
    if (succeeds(() => linkSync(draft, path), "EEXIST")) return true;
    if (!isAnothers(path, pid) && succeeds(() => renameSync(path, old), "ENOENT")) {
      if (!isAnothers(old, pid)) return succeeds(() => linkSync(draft, path), "EEXIST");
      succeeds(() => linkSync(old, path), "EEXIST");
    }
    return false;
  } finally {
    for (const file of [draft, old]) removeMark(file);
  }
}

export function removeMark(path: string): void {
  rmSync(path, { force: true });
}

function holderOf(path: string): number | null {
  const mark = jsonIn(path, 1000, processMark);
  if (mark === null || !isRunning(mark.pid)) return null;
  const ticks = startTicks(mark.pid);
  return mark.startTicks === null || ticks === null || ticks === mark.startTicks ? mark.pid : null;
}

function isAnothers(path: string, pid: number): boolean {
  const holder = holderOf(path);
  return holder !== null && holder !== pid;
}

/** Returns false if `work` fails with the code `unless`, which means that another process was faster. */
function succeeds(work: () => void, unless: "EEXIST" | "ENOENT"): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === unless) return false;
    throw error;
  }
}

/** On Linux, field 22 of /proc/PID/stat, in clock ticks since boot. Null on other systems or for an ended process. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Field 2, the name in brackets, may contain anything.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
