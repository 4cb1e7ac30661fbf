/**
 * What root does in a folder that is another user's, it does as that user. Whoever got into a crawler can write
 * all of its folder: links, a lock that names any process, settings. So leaving and emptying are left to a child with
 * the owner's user and group, no environment and no terminal; root itself only removes the empty folder.
 */
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { softwareVersion } from "#protocol/software-version";
import { jsonOf } from "../core/json.ts";
import { quietLog } from "../core/log.ts";
import { isJoining, readMembership } from "../core/membership.ts";
import type { PartnerContext } from "../core/partner-context.ts";
import { Crawler } from "../crawler.ts";
import { marks } from "../membership/home-folder.ts";
import { homeSettings } from "../membership/home-settings.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { runningDock } from "../supervisor/supervisor-home.ts";

interface FolderOwner {
  readonly uid: number;
  readonly gid: number;
}

/** Null: this process is not root's, or the folder is root's own. */
export function otherOwner(home: string): FolderOwner | null {
  const { uid, gid } = statSync(home);
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
}

/** As who owns the folder. Throws a ConfigError when the folder's files are damaged. */
export async function leaveAsOwner(
  { self }: Pick<PartnerContext, "self">,
  home: string,
): Promise<LeaveOutcome> {
  const owner = otherOwner(home);
  if (owner === null) return await leaveCoordinator(home);
  if (self === undefined) return failed(`the folder is user ${owner.uid}'s: run this as that user`);
  const args = [...self, "leave", "--json", "--home", homeOfChild(home)];
  const { output, errors } = await runAsOwner({ home, owner, args });
  const { data } = leaveOutcome.safeParse(jsonOf(output));
  return data ?? failed(`as user ${owner.uid}: ${printable(errors) || "it gave no answer"}`);
}

/** What the owner may remove is gone then; links are removed, never followed. */
export async function emptyAsOwner(home: string, owner: FolderOwner): Promise<void> {
  await runAsOwner({ home, owner, args: ["-e", emptying] });
}

/** For Node in the folder. `marks` go last: where something stays, the same command finds the crawler's folder again. */
const emptying = `const { readdirSync, rmSync } = require("node:fs");
const marks = ${JSON.stringify(marks)};
for (const name of readdirSync(".").filter((one) => !marks.includes(one))) {
  try { rmSync(name, { recursive: true, force: true }); } catch {}
}
const isLast = readdirSync(".").every((one) => marks.includes(one));
for (const name of isLast ? marks : []) rmSync(name, { recursive: true, force: true });`;

const longestMs = 5 * 60_000;
const mostOutput = 64 * 1024;

const reason = z.string().max(2000).transform(printable);

const leaveOutcome = z.union([
  /** `never-joined`: no coordinator knows of this folder. */
  z.object({ type: z.enum(["left", "never-joined"]) }),
  /**
   * `refused`: the coordinator wants no more of this crawler, so there is nobody to say goodbye to. `still-runs`: a
   * crawler has this folder, and could not be ended.
   */
  z.object({ type: z.enum(["refused", "failed", "still-runs"]), reason }),
]);

export type LeaveOutcome = z.infer<typeof leaveOutcome>;

/**
 * The folder of a systemd unit lies below one that only root may enter (/var/lib/private): the child is put there
 * before it becomes the owner, and knows no other way to it.
 */
const homeOfChild = (home: string) => (process.platform === "linux" ? "/proc/self/cwd" : home);

interface OwnersWork {
  readonly home: string;
  readonly owner: FolderOwner;
  readonly args: readonly string[];
}

/** `detached`: a session of its own, so that nothing of the owner's reaches root's terminal. */
function runAsOwner({ home, owner, args }: OwnersWork): Promise<{ output: string; errors: string }> {
  const said = { output: "", errors: "" };
  const child = spawn(process.execPath, args, {
    ...owner,
    ...{ cwd: home, env: {}, detached: true, timeout: longestMs, killSignal: "SIGKILL" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const add = (to: keyof typeof said) => (piece: Buffer) => {
    said[to] = (said[to] + piece.toString("utf8")).slice(0, mostOutput);
  };
  child.stdout.on("data", add("output"));
  child.stderr.on("data", add("errors"));
  return new Promise((resolve) => {
    child.once("error", ({ message }) => resolve({ ...said, errors: message }));
    child.once("close", () => resolve(said));
  });
}

/** The words may be those of whoever has the folder: no control characters for root's terminal. */
function printable(text: string): string {
  return text
    .replace(/\p{C}+/gu, " ")
    .trim()
    .slice(0, 500);
}

const failed = (why: string): LeaveOutcome => ({ type: "failed", reason: why });

// Leaving for good: the coordinator is told that this crawler will not be back, so that others get its subnets at
// once. A crawler that runs does it itself when it ends; where none runs, one is started that takes no work, ships
// the results that still wait, and says goodbye.

interface LeaveTimes {
  /** For a running crawler to end, its requests and acknowledgements included. */
  readonly endMs: number;
  /** To be welcomed. */
  readonly connectMs: number;
  /** For the results that still wait. */
  readonly shipMs: number;
}

const defaultTimes: LeaveTimes = { endMs: 60_000, connectMs: 30_000, shipMs: 120_000 };
const lookEveryMs = 100;

/** Throws a ConfigError when the folder's files are damaged. */
export async function leaveCoordinator(
  home: string,
  times: LeaveTimes = defaultTimes,
): Promise<LeaveOutcome> {
  const running = runningDock(home) ?? spoolHolder(home);
  if (running !== null) return await endForGood(home, running, times);
  const membership = readMembership(home);
  if (membership === null || isJoining(membership)) return { type: "never-joined" };
  return await sayGoodbye(homeSettings(home), times);
}

/** SIGUSR2 is for docks and crawlers alike to leave for good. */
async function endForGood(home: string, processId: number, { endMs }: LeaveTimes): Promise<LeaveOutcome> {
  if (isAnothers(processId, home)) {
    const named = `process ${processId}, which the folder names as its crawler`;
    const reason = `${named}, is not of the user whose folder it is: if it is no crawler, remove dock.pid and spool/lock`;
    return { type: "still-runs", reason };
  }
  try {
    process.kill(processId, "SIGUSR2");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EPERM") {
      const reason = `the crawler runs as process ${processId} of another user: run this as that user, or as root`;
      return { type: "still-runs", reason };
    }
    if (code !== "ESRCH") return { type: "still-runs", reason: message };
  }
  const isOver = () => runningDock(home) === null && spoolHolder(home) === null;
  if (await within(endMs, isOver)) return { type: "left" };
  return {
    type: "still-runs",
    reason: `the crawler, process ${processId}, has not ended within ${endMs / 1000} s`,
  };
}

/** A mark may have been forged, or have outlived its process. Known where there is a /proc. */
function isAnothers(processId: number, home: string): boolean {
  const stats = statSync(`/proc/${processId}`, { throwIfNoEntry: false });
  return stats !== undefined && stats.uid !== statSync(home).uid;
}

async function sayGoodbye(config: CrawlerConfig, times: LeaveTimes): Promise<LeaveOutcome> {
  let refused: string | null = null;
  const crawler = new Crawler(withoutWork(config), {
    log: quietLog,
    softwareVersion,
    onRefused: ({ reason }) => {
      refused = reason;
    },
  });
  await crawler.start();
  await within(times.connectMs, () => crawler.status().connected || refused !== null);
  if (refused !== null) return { type: "refused", reason: refused };
  const { connected, holdingBack } = crawler.status();
  if (!connected) {
    await crawler.stop();
    return { type: "failed", reason: holdingBack[0] ?? "the coordinator is not reached" };
  }
  await within(times.shipMs, () => crawler.status().spooledResults === 0 || refused !== null);
  await crawler.leave();
  return refused === null ? { type: "left" } : { type: "refused", reason: refused };
}

/** Of a host that allows no pages: the coordinator hands out nothing to it. */
function withoutWork(config: CrawlerConfig): CrawlerConfig {
  return { ...config, limits: { ...config.limits, pagesPerDay: 0 } };
}

async function within(ms: number, holds: () => boolean): Promise<boolean> {
  const deadlineMs = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > deadlineMs) return false;
    await delay(lookEveryMs);
  }
  return true;
}
