/**
 * Reads a crawler's settings file: TOML 1.0 (`settings.toml`, for people) or a JSON object (`.json`, for programs).
 * Every fault names the file and line.
 */
import { readFileSync, statSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { ConfigError } from "#core/errors";
import { type CrawlerConfig, crawlerConfig } from "./config.ts";

/** Deny-lists can be long, but no settings file is longer than this. */
const maxFileBytes = 4 * 1024 * 1024;

/** Parses without validating, which `crawlerConfig` does. Throws a ConfigError. */
export function readSettingsFile(path: string): Record<string, unknown> {
  const text = textOf(path);
  return path.endsWith(".json") ? parseJson(path, text) : parseToml(path, text);
}

/**
 * Validates a file's settings. `more` (home folder, command flags) overrides the file. Throws a ConfigError that lists
 * all faults with the file and, where known, the line.
 */
export function settingsFileConfig(path: string, more: Readonly<Record<string, unknown>>): CrawlerConfig {
  const settings = { ...readSettingsFile(path), ...more };
  try {
    return crawlerConfig(settings);
  } catch (error) {
    throw placedFaults(error, path);
  }
}

/** Adds the file and lines to faults in settings; returns other errors unchanged. */
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

/** Faults start with the setting's path. */
function placed(fault: string, path: string, text: string): string {
  const names = /^[A-Za-z0-9_.-]+(?=:)/.exec(fault)?.[0].split(".") ?? [];
  const line = lineOf(text, names.findLast((name) => !/^\d+$/.test(name)) ?? "");
  return `${path}${line === null ? "" : `:${line}`}: ${fault}`;
}

/** Counts from 1; null unless exactly one line sets this name, because parsers do not report positions. */
function lineOf(text: string, name: string): number | null {
  const gives = new RegExp(`(^|[{,.])\\s*["']?${name}["']?\\s*[=:]`);
  const lines = text.split("\n").flatMap((line, at) => (gives.test(line) ? [at + 1] : []));
  return name !== "" && lines.length === 1 ? lines[0]! : null;
}
