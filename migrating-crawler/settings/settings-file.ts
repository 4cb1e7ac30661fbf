/**
 * A crawler's settings file: TOML 1.0 (`settings.toml`, which people edit) or one JSON object (`.json`, which
 * programs write). Every fault names the file and the line.
 */
import { readFileSync, statSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { ConfigError } from "#core/errors";
import { type CrawlerConfig, crawlerConfig } from "./config.ts";

/** Deny-lists can be long; a file beyond this is none of ours. */
const maxFileBytes = 4 * 1024 * 1024;

/** The settings as they stand there; what they may hold is for `crawlerConfig` to check. Throws a ConfigError. */
export function readSettingsFile(path: string): Record<string, unknown> {
  return parseSettings(path, textOf(path));
}

/**
 * The checked settings of a file. `more` wins over what it states: the home folder, flags of the command. Throws a
 * ConfigError with all faults at once, each with the file and, where it stands in the file, its line.
 */
export function settingsFileConfig(path: string, more: Readonly<Record<string, unknown>>): CrawlerConfig {
  const settings = { ...readSettingsFile(path), ...more };
  try {
    return crawlerConfig(settings);
  } catch (error) {
    throw placedFaults(error, path);
  }
}

/** What is wrong with settings from a file, with the file and the lines; another error as it is. */
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

function parseSettings(path: string, text: string): Record<string, unknown> {
  return isToml(path) ? parseToml(path, text) : parseJson(path, text);
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

/** Faults begin with the setting's path. */
function placed(fault: string, path: string, text: string): string {
  const names = /^[A-Za-z0-9_.-]+(?=:)/.exec(fault)?.[0].split(".") ?? [];
  const line = lineOf(text, names.findLast((name) => !/^\d+$/.test(name)) ?? "");
  return `${path}${line === null ? "" : `:${line}`}: ${fault}`;
}

const isToml = (path: string) => !path.endsWith(".json");

/** Counted from 1; null unless one line alone gives a value to this name: parsers give values without their places. */
function lineOf(text: string, name: string): number | null {
  const gives = new RegExp(`(^|[{,.])\\s*["']?${name}["']?\\s*[=:]`);
  const lines = text.split("\n").flatMap((line, at) => (gives.test(line) ? [at + 1] : []));
  return name !== "" && lines.length === 1 ? lines[0]! : null;
}
