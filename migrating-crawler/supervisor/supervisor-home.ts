/** One dock at a time runs a home, and not while the crawler of one that was killed still ends. */

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
import type { DownloadLimits } from "./download-allowance.ts";
import { releasesFolder } from "./release-store.ts";

/** A crawler whose dock is gone stops by itself; it may take so long before it is ended. */
const orphanMs = 15_000;

const lookMs = 100;

/** For whoever asks whether the crawler of this home runs. */
export const dockMark = (home: string) => join(home, "dock.pid");

/** The process that runs this home's crawler; null: none does. */
export function runningDock(home: string): number | null {
  return holderOf(dockMark(home));
}

/** Throws a UsageError when another dock runs this home. */
export function takeHome(home: string): void {
  const other = runningDock(home);
  if (other !== null && other !== process.pid) {
    throw new UsageError(`${home}: process ${other} runs the crawler of this folder already`);
  }
  if (takeMark(dockMark(home), process.pid)) return;
  throw new UsageError(`${home}: another process has just begun to run the crawler of this folder`);
}

export function leaveHome(home: string): void {
  removeMark(dockMark(home));
}

/** Resolves when no crawler of an earlier dock runs any more. */
export async function outwaitOrphan(home: string, { withinMs = orphanMs } = {}): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const orphan = holderOf(childMark(home));
    if (orphan === null) return removeMark(childMark(home));
    if (performance.now() - startedMs > withinMs) process.kill(orphan, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/** Where the crawler's process is noted, for a dock that comes after one that was killed. */
export const childMark = (home: string) => join(home, "releases", "child.pid");

/** Of the dock's own code, which its host updates by hand; a release's manifest names the oldest dock that can run it. */
export const dockVersion = "1.0.0";

/** How long the dock waits for what; tests wait less. */
export interface DockTiming {
  /** A new release that was welcomed has to be well for so long before it counts as good. */
  readonly watchMs: number;
  /** And has to be welcomed within so long, as long as the coordinator answers at all. */
  readonly welcomeMs: number;
  /** A new release that has ended so often by itself while it is watched goes back: one end may be anything's fault. */
  readonly mostWatchedFaults: number;
  /** And one that was started so often meanwhile, whatever ended it (a machine that falls over, the kernel for its memory). */
  readonly mostWatchedStarts: number;
  /** What gave way is tried again after this, and later still the next times. */
  readonly againMs: number;
  /** A crawler that gives no sign of life for so long is stuck. */
  readonly silenceMs: number;
  /** Draining: requests 4 s, acknowledgements 2 s, the goodbye 5 s; the rest is for a slow machine. */
  readonly stopMs: number;
  /** Before a crawler that ended by itself is started again: doubled each time. */
  readonly backOff: { readonly firstMs: number; readonly mostMs: number };
  /** Between two looks at revocations (and at releases, when nothing runs well), and after one in vain. */
  readonly pollMs: number;
  /** The same while there is nothing to run at all: somebody waits for it. */
  readonly emptyPollMs: number;
  readonly retryMs: number;
  /** And at least, however often releases are offered. */
  readonly lookMs: number;
}

const minuteMs = 60_000;

export const dockTiming: DockTiming = {
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

// What the dock itself needs of HOME/settings.toml: the partner's policy for releases, the way to the coordinator,
// and the files and folders outside the home that the crawler may touch. Whatever else stands there is for the
// crawler's release to check: a dock is older than the releases that it runs, and must not stumble over new names.

const path = z.string().min(1).max(4096).nullable().default(null);
const proxy = z.string().refine((text) => parseProxy(text) !== null, { error: "is not a proxy's address" });

const { bytesPerDay, bytesPerMonth, kilobytesPerSecond, timeZone, pagesPerDay } = limitsSchema.shape;

const dockSettings = z.object({
  releases: releasePolicy.prefault({}),
  proxy: proxy.nullable().default(null),
  coordinatorProxy: z.union([z.enum(["as-sites", "none"]), proxy]).default("as-sites"),
  certificateFile: path,
  coordinatorCertificateFile: path,
  /** A wrong port is for the crawler's release to tell. */
  status: z
    .object({ port: z.int().min(0).max(65_535).default(7412) })
    .catch({ port: 0 })
    .prefault({}),
  /** Wrong ones are for the crawler's release to tell. */
  limits: z
    .object({ bytesPerDay, bytesPerMonth, kilobytesPerSecond, timeZone, pagesPerDay })
    .catch(limitsSchema.parse({}))
    .prefault({}),
  warc: z
    .object({ folder: z.string().min(1).max(4096) })
    .nullable()
    .default(null),
});

export interface DockedSettings {
  readonly policy: ReleasePolicy;
  /** Of the local page; 0: none is wanted. */
  readonly statusPort: number;
  readonly route: () => CoordinatorRoute;
  /** Those that its own downloads keep. */
  readonly limits: DownloadLimits;
  /** Files that the crawler may read besides its home. */
  readonly readable: readonly string[];
  /** Folders that it may write besides its home. */
  readonly writable: readonly string[];
}

/** Throws a ConfigError that names the file and every fault. */
export function readDockSettings(home: string, membership: Membership): DockedSettings {
  const file = join(home, "settings.toml");
  const checked = dockSettings.safeParse(existsSync(file) ? readSettingsFile(file) : {});
  if (!checked.success) {
    throw new ConfigError(
      checked.error.issues.map((issue) => `${file}: ${issue.path.join(".")}: ${issue.message}`),
    );
  }
  const { releases, certificateFile, coordinatorCertificateFile, status, warc, limits, ...ways } =
    checked.data;
  const { coordinatorUrl } = membership;
  if (warc !== null && reachesDockFiles(home, warc.folder)) {
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

/** The home or what it lies in, the dock's releases, its log. */
function reachesDockFiles(home: string, folder: string): boolean {
  const real = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const below = (path: string, parent: string) => `${path}/`.startsWith(parent === "/" ? "/" : `${parent}/`);
  return below(home, real) || [releasesFolder(home), join(home, "log")].some((own) => below(real, own));
}

// Which process holds something, in a file that outlives it. A process id alone may be another process's by now (in
// a container it nearly always is): where the system tells, the start of the process is noted with it.

const processMark = z.object({ pid: z.int().min(1), startTicks: z.string().nullable() });

export function writeMark(path: string, pid: number): void {
  const mark: z.infer<typeof processMark> = { pid, startTicks: startTicks(pid) };
  writeFileSync(`${path}.draft`, JSON.stringify(mark), { mode: 0o600 });
  renameSync(`${path}.draft`, path);
}

/**
 * False: another process that runs has it. Of several that find the mark of one that is gone, one gets it: the mark
 * is made whole or not at all, and an old one is looked at again after it was put out of the way.
 */
export function takeMark(path: string, pid: number): boolean {
  const [draft, old] = [`${path}.${process.pid}.draft`, `${path}.${process.pid}.old`];
  writeMark(draft, pid);
  try {
    if (linked(draft, path)) return true;
    if (!isAnothers(path, pid) && moved(path, old)) {
      if (!isAnothers(old, pid)) return linked(draft, path);
      linked(old, path);
    }
    return false;
  } finally {
    for (const file of [draft, old]) removeMark(file);
  }
}

export function removeMark(path: string): void {
  rmSync(path, { force: true });
}

/** The process that holds it, while it runs; null: nobody does. */
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

/** False: there is one already. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** False: somebody was faster. */
function moved(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** Linux: field 22 of /proc/PID/stat, clock ticks since the system's start; null elsewhere, or for one that has ended. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in brackets, field 2, may hold anything.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
