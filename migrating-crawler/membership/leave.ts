/**
 * Leaving for good: the coordinator is told that this crawler will not be back, so that others get its subnets at
 * once. A crawler that runs does it itself when it ends; where none runs, one is started that takes no work, ships
 * the results that still wait, and says goodbye.
 */
import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { quietLog } from "../core/log.ts";
import { softwareVersion } from "../core/software-version.ts";
import { Crawler } from "../crawler.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { runningDock } from "../supervisor/one-dock.ts";
import { homeSettings } from "./home-settings.ts";
import { isJoining, readMembership } from "./membership.ts";

export type LeaveOutcome =
  | { readonly type: "left" }
  /** No coordinator knows of this folder. */
  | { readonly type: "never-joined" }
  /** The coordinator wants no more of this crawler: there is nobody to say goodbye to. */
  | { readonly type: "refused"; readonly reason: string }
  | { readonly type: "failed"; readonly reason: string }
  /** A crawler has this folder, and could not be ended. */
  | { readonly type: "still-runs"; readonly reason: string };

export interface LeaveTimes {
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
    const reason = `process ${processId}, which the folder names as its crawler, is not of the user whose folder it is: if it is no crawler, remove dock.pid and spool/lock`;
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
    onRefused: (reason) => {
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
