/**
 * Looks at the settings file while the crawler runs: told by the system where it tells, and every few seconds. What
 * is read is checked as at the start; a file with a fault changes nothing and is told of once, with file and line.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { CrawlerLog } from "../core/log.ts";
import { keepPriority } from "../core/priority.ts";
import type { CrawlerConfig } from "./config.ts";

const lookEveryMs = 3000;
/** Editors write a file in several steps. */
const settleMs = 200;

/** Has a running crawler take over what is changed in its settings file. `read` throws what is wrong with the settings. */
export function watchSettings(watched: {
  readonly file: string;
  readonly read: () => CrawlerConfig;
  readonly crawler: { change(config: CrawlerConfig): void };
  readonly log: CrawlerLog;
}): { close(): void } {
  const { file, read, crawler, log } = watched;
  let seen = stampOf(file);
  let soon: NodeJS.Timeout | undefined;
  const look = () => {
    const stamp = stampOf(file);
    if (stamp === seen) return;
    seen = stamp;
    let config: CrawlerConfig;
    try {
      config = read();
    } catch (error) {
      log.error({ file, error }, "changed settings are wrong: those from before stay in force");
      return;
    }
    keepPriority(config.limits.priority, log);
    crawler.change(config);
  };
  const timer = setInterval(look, lookEveryMs).unref();
  const watcher = watcherOf(file, () => {
    clearTimeout(soon);
    soon = setTimeout(look, settleMs).unref();
  });
  return {
    close() {
      clearInterval(timer);
      clearTimeout(soon);
      watcher?.close();
    },
  };
}

/** Of the folder: editors put a new file in the old one's place. Null where the system tells nothing. */
function watcherOf(file: string, onEvent: () => void): FSWatcher | null {
  try {
    const watcher = watch(dirname(file), { persistent: false }, (_event, name) => {
      if (name === null || name === basename(file)) onEvent();
    });
    return watcher.on("error", () => watcher.close());
  } catch {
    return null;
  }
}

function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
