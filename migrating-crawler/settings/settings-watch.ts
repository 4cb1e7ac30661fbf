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

interface SettingsWatchSettings {
  readonly file: string;
  /** Throws what is wrong with the settings. */
  readonly read: () => CrawlerConfig;
  readonly onChange: (config: CrawlerConfig) => void;
  /** The settings from before stay in force. */
  readonly onFault: (error: Error) => void;
}

/** Has a running crawler take over what is changed in its settings file. */
export function watchSettings(watched: {
  readonly file: string;
  readonly read: () => CrawlerConfig;
  readonly crawler: { change(config: CrawlerConfig): void };
  readonly log: CrawlerLog;
}): SettingsWatch {
  const { file, read, crawler, log } = watched;
  return new SettingsWatch({
    file,
    read,
    onChange: (config) => {
      keepPriority(config.limits.priority, log);
      crawler.change(config);
    },
    onFault: (error) =>
      log.error({ file, error }, "changed settings are wrong: those from before stay in force"),
  });
}

class SettingsWatch {
  readonly #settings: SettingsWatchSettings;
  readonly #timer: NodeJS.Timeout;
  readonly #watcher: FSWatcher | null;
  #seen: string;
  #soon: NodeJS.Timeout | null = null;

  constructor(settings: SettingsWatchSettings) {
    this.#settings = settings;
    this.#seen = stampOf(settings.file);
    this.#timer = setInterval(() => this.look(), lookEveryMs).unref();
    this.#watcher = watcherOf(settings.file, () => this.#lookSoon());
  }

  look(): void {
    const stamp = stampOf(this.#settings.file);
    if (stamp === this.#seen) return;
    this.#seen = stamp;
    const { read, onChange, onFault } = this.#settings;
    let config: CrawlerConfig;
    try {
      config = read();
    } catch (error) {
      onFault(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    onChange(config);
  }

  close(): void {
    clearInterval(this.#timer);
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#watcher?.close();
  }

  #lookSoon(): void {
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#soon = setTimeout(() => this.look(), settleMs).unref();
  }
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
