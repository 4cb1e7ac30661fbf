/**
 * Watches the settings file while the crawler runs, by system notification and every few seconds. Changes are validated
 * as at the start; a faulty file changes nothing and is logged once with file and line.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { CrawlerLog } from "../core/log.ts";
import { keepPriority } from "../core/priority.ts";
import type { CrawlerConfig } from "./config.ts";

const lookEveryMs = 3000;
/** Editors save a file in several steps. */
const settleMs = 200;

/** Lets a running crawler apply changed settings. `read` throws when they are invalid. */
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

/** Watches the folder, because editors replace the file. Returns null where the system has no notification. */
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
