/**
 * Reads a crawler's settings file: TOML 1.0 (`settings.toml`, for people) or a JSON object (`.json`, for programs). Every
 * fault names the file and line.
 */

import { type FSWatcher, readFileSync, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import { parse, TomlError } from "smol-toml";
import { ConfigError } from "#core/errors";
import type { CrawlerLog } from "../core/log.ts";
import { keepPriority } from "../core/priority.ts";
import { type CrawlerConfig, crawlerConfig } from "./config.ts";

/** Deny-lists can be long, but no settings file is longer than this. */
const maxFileBytes = 4 * 1024 * 1024;

export function readSettingsFile(path: string): Record<string, unknown> {
  const text = textOf(path);
  return path.endsWith(".json") ? parseJson(path, text) : parseToml(path, text);
}

/**
 * Validates a file's settings. `more` (home folder, command flags) overrides the file. Throws a ConfigError that lists all
 * faults with the file and, where known, the line.
 */
export function settingsFileConfig(path: string, more: Readonly<Record<string, unknown>>): CrawlerConfig {
  const settings = { ...readSettingsFile(path), ...more };
  try {
    return crawlerConfig(settings);
  } catch (error) {
    throw placedFaults(error, path);
  }
}

export function placedFaults(error: unknown, path: string): unknown {
  if (!(error instanceof ConfigError)) return error;
  const text = textOf(path);
  return new ConfigError(error.faults.map((fault) => placed(fault, path, text)));
}

function textOf(path: string): string {
  try {
    if (statSync(path).size > maxFileBytes) throw new Error(`is larger than ${maxFileBytes} bytes`);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError([`${path}: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

function parseToml(path: string, text: string): Record<string, unknown> {
  try {
    return parse(text, { unsafeKeyBehaviour: "throw" });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const words = error.message.split("\n", 1)[0]!.replace(/^Invalid TOML document: /, "");
    const line = text.split("\n", error.line)[error.line - 1]?.trim() ?? "";
    throw new ConfigError([`${path}:${error.line}:${error.column}: ${words}: ${line.slice(0, 80)}`]);
  }
}

function parseJson(path: string, text: string): Record<string, unknown> {
  try {
    const settings: unknown = JSON.parse(text);
    if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) return { ...settings };
  } catch (error) {
    throw new ConfigError([`${path}: ${error instanceof Error ? error.message : String(error)}`]);
  }
  throw new ConfigError([`${path}: must hold one JSON object`]);
}

function placed(fault: string, path: string, text: string): string {
  const names = /^[A-Za-z0-9_.-]+(?=:)/.exec(fault)?.[0].split(".") ?? [];
  const line = lineOf(text, names.findLast((name) => !/^\d+$/.test(name)) ?? "");
  return `${path}${line === null ? "" : `:${line}`}: ${fault}`;
}

/** Counts from 1. Returns null unless exactly one line sets this name, because parsers do not report positions. */
function lineOf(text: string, name: string): number | null {
  const gives = new RegExp(`(^|[{,.])\\s*["']?${name}["']?\\s*[=:]`);
  const lines = text.split("\n").flatMap((line, at) => (gives.test(line) ? [at + 1] : []));
  return name !== "" && lines.length === 1 ? lines[0]! : null;
}

// Watches the settings file while the crawler runs, by system notification and every few seconds. Changes are validated as at
// the start. A faulty file changes nothing and is logged once, with file and line.

const lookEveryMs = 3000;
/** Editors save a file in several steps. */
const settleMs = 200;

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

/** Watches the folder, because editors replace the file. Returns null if the system provides no notification. */
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
