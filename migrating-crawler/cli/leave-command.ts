/**
 * Root works in another user's folder only as that user, because whoever controls a crawler can put links, forged locks and
 * settings into its folder. A child process with the owner's user and group, and without environment or terminal, leaves and
 * empties the folder. Root only removes the empty folder.
 */

import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { softwareVersion } from "#protocol/software-version";
import { jsonOf } from "../core/json.ts";
import { quietLog } from "../core/log.ts";
import { isJoining, readMembership } from "../core/membership.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { Crawler } from "../crawler.ts";
import { folderKind, homeSettings, marks } from "../membership/home-folder.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { runningSupervisor } from "../supervisor/supervisor-home.ts";

interface FolderOwner {
  readonly uid: number;
  readonly gid: number;
}

/** Returns null if this process is not root, or if the folder belongs to root. */
export function otherOwner(home: string): FolderOwner | null {
  const { uid, gid } = statSync(home);
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
}

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

/** Removes what the owner may remove. Links are removed, never followed. */
export async function emptyAsOwner(home: string, owner: FolderOwner): Promise<void> {
  await runAsOwner({ home, owner, args: ["-e", emptying] });
}

/** Node runs this program in the folder. `marks` are removed last, so that an interrupted command still recognises the folder. */
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
  /** `never-joined` means that the folder belongs to no coordinator. */
  z.object({ type: z.enum(["left", "never-joined"]) }),
  /**
   * `refused`: the coordinator no longer accepts this crawler, so no goodbye is needed. `still-runs`: a crawler is using this
   * folder and could not be stopped.
   */
  z.object({ type: z.enum(["refused", "failed", "still-runs"]), reason }),
]);

type LeaveOutcome = z.infer<typeof leaveOutcome>;

/**
 * The folder of a systemd unit is below one that only root may enter (/var/lib/private). The child therefore starts inside the
 * folder, before it changes to the owner.
 */
const homeOfChild = (home: string) => (process.platform === "linux" ? "/proc/self/cwd" : home);

interface OwnersWork {
  readonly home: string;
  readonly owner: FolderOwner;
  readonly args: readonly string[];
}

/** `detached` starts a new session, so that the owner's process cannot reach root's terminal. */
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

/** Removes control characters, because the folder's owner may have written this text, and root's terminal displays it. */
function printable(text: string): string {
  return text
    .replace(/\p{C}+/gu, " ")
    .trim()
    .slice(0, 500);
}

const failed = (why: string): LeaveOutcome => ({ type: "failed", reason: why });

// Leaves for good: the coordinator learns that this crawler will not return, and reassigns its subnets at once. A running
// crawler says so itself when it ends. If none is running, one is started that takes no work, sends the waiting results and
// says goodbye.

interface LeaveTimes {
  readonly endMs: number;
  readonly connectMs: number;
  readonly shipMs: number;
}

const defaultTimes: LeaveTimes = { endMs: 60_000, connectMs: 30_000, shipMs: 120_000 };
const lookEveryMs = 100;

export async function leaveCoordinator(
  home: string,
  times: LeaveTimes = defaultTimes,
): Promise<LeaveOutcome> {
  const running = runningSupervisor(home) ?? spoolHolder(home);
  if (running !== null) return await endForGood(home, running, times);
  const membership = readMembership(home);
  if (membership === null || isJoining(membership)) return { type: "never-joined" };
  return await sayGoodbye(homeSettings(home), times);
}

/** SIGUSR2 asks supervisors and crawlers alike to leave for good. */
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
  const isOver = () => runningSupervisor(home) === null && spoolHolder(home) === null;
  if (await within(endMs, isOver)) return { type: "left" };
  return {
    type: "still-runs",
    reason: `the crawler, process ${processId}, has not ended within ${endMs / 1000} s`,
  };
}

/** The file that names the process may be forged or stale. Where /proc exists, it reveals that. */
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

/** Sets a limit of no pages, with which a crawler is given no work. */
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

// `leave` ends this crawler for good, so that others get its subnets. Its folder stays.

export async function leaveCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, json, print } = context;
  if (folderKind(home) !== "crawler")
    throw new UsageError(`${home} is no crawler's folder: name the right one with --home`);
  const outcome = await leaveAsOwner(context, home);
  if (json) print(JSON.stringify({ home, ...outcome }, null, 2));
  else (hasFailed(outcome) ? context.complain : print)(leaveWords(outcome));
  return hasFailed(outcome) ? partnerExitCodes.failed : partnerExitCodes.done;
}

const hasFailed = ({ type }: LeaveOutcome) => type === "failed" || type === "still-runs";

export function leaveWords(outcome: LeaveOutcome): string {
  switch (outcome.type) {
    case "left":
      return "Left: the coordinator gives this crawler's work to others. Its folder stays; started again, it comes back.";
    case "never-joined":
      return "This folder has joined no coordinator, so there is none to leave.";
    case "refused":
      return `There is nobody to say goodbye to: ${outcome.reason}`;
    case "still-runs":
      return `Not left: ${outcome.reason}.`;
    case "failed":
      return `Not left: ${outcome.reason}. A crawler that stays away loses its work to others by itself, after a while.`;
  }
}
