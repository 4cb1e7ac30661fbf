/** Starts the crawler of one release, with what it may touch and what it has to know, and notes its process. */
import { join } from "node:path";
import { childCommand } from "./child-command.ts";
import { type ChildHandlers, CrawlerChild } from "./crawler-child.ts";
import type { DockGreeting } from "./dock-messages.ts";
import type { DockedSettings } from "./dock-settings.ts";
import type { DockTiming } from "./dock-timing.ts";
import { dockVersion } from "./dock-version.ts";
import { writeMark } from "./process-mark.ts";
import { policyWords } from "./release-policy.ts";
import type { KeptRelease, ReleaseState } from "./release-state.ts";

export interface CrawlerStart {
  readonly release: KeptRelease;
  readonly bundle: string;
  readonly home: string;
  readonly settings: DockedSettings;
  readonly state: ReleaseState;
  readonly mayPing: boolean;
  readonly timing: DockTiming;
  readonly env: NodeJS.ProcessEnv;
  readonly handlers: ChildHandlers;
}

/** Where the crawler's process is noted, for a dock that comes after one that was killed. */
export const childMark = (home: string) => join(home, "releases", "child.pid");

/**
 * What the system reveals of load, battery and users, for a host who wants the crawler to give way to them. Not all
 * of /proc: other processes' environments are there, the dock's among them.
 */
const systemFacts = [
  ...["/proc/loadavg", "/proc/self/task"],
  ...["/sys/class/power_supply/", "/sys/devices/"],
  ...["/run/utmp", "/var/run/utmp", "/dev/pts/", "/dev/tty1", "/dev/tty2"],
];

export function startCrawler(start: CrawlerStart): CrawlerChild {
  const { bundle, home, settings, timing, env, handlers } = start;
  const { readable, writable } = settings;
  const child = new CrawlerChild({
    command: childCommand(
      { bundle, home, readable: [...systemFacts, ...readable], writable },
      { env, nodeFlags: process.allowedNodeEnvironmentFlags },
    ),
    silenceMs: timing.silenceMs,
    stopMs: timing.stopMs,
    handlers,
  });
  // It opens nothing before it is greeted, and is not greeted before another dock would know of it.
  if (child.pid !== undefined) writeMark(childMark(home), child.pid);
  child.send(greeting(start));
  return child;
}

function greeting({ release, settings, state, mayPing }: CrawlerStart): DockGreeting {
  const { version, digest } = release;
  const { lastEnd, reports } = state;
  const policy = policyWords(settings.policy);
  return { type: "dock", dockVersion, release: { version, digest }, policy, lastEnd, reports, mayPing };
}
