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
  const name = /^[A-Za-z0-9_.-]+(?=:)/.exec(fault)?.[0];
  const line = name === undefined ? null : lineOfSetting(text, name.split("."), isToml(path));
  return `${path}${line === null ? "" : `:${line}`}: ${fault}`;
}

const isToml = (path: string) => !path.endsWith(".json");

// The line on which a setting stands in a file: parsers give values without their places. TOML is read line by
// line (tables, dotted and quoted keys; what lies in strings and arrays of several lines is passed over), JSON by
// the order of its keys.

/** Counted from 1; that of the nearest thing around the setting when it has no line of its own; null: nowhere. */
function lineOfSetting(text: string, path: readonly string[], isToml: boolean): number | null {
  return isToml ? lineInToml(text, path) : lineInJson(text, path);
}

function lineInToml(text: string, path: readonly string[]): number | null {
  let table: readonly string[] = [];
  let isInside: string | null = null;
  let open = 0;
  let best: { readonly depth: number; readonly line: number } | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    if (isInside !== null) {
      if (line.includes(isInside)) isInside = null;
      continue;
    }
    if (open === 0) {
      const header = /^\s*\[\[?([^\]]+)\]/.exec(line)?.[1];
      const key =
        header === undefined ? /^\s*((?:"[^"]*"|'[^']*'|[\w.-]|\s*\.\s*)+?)\s*=/.exec(line)?.[1] : undefined;
      if (header !== undefined) table = namesOf(header);
      const stated = key === undefined ? table : [...table, ...namesOf(key)];
      if (header !== undefined || key !== undefined) {
        const depth = isStart(stated, path) ? stated.length : 0;
        if (depth > (best?.depth ?? 0)) best = { depth, line: index + 1 };
      }
    }
    isInside = openString(line);
    if (isInside === null) open = Math.max(0, open + bracketsLeftOpen(line));
  }
  return best?.line ?? null;
}

function namesOf(dotted: string): string[] {
  return [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g)].map(([, double, single, bare]) =>
    String(double ?? single ?? bare),
  );
}

const isStart = (start: readonly string[], path: readonly string[]) =>
  start.length <= path.length && start.every((name, index) => name === path[index]);

/** The quotes of a string that goes on beyond the line. */
function openString(line: string): string | null {
  for (const quotes of ['"""', "'''"]) if ((line.split(quotes).length - 1) % 2 === 1) return quotes;
  return null;
}

function bracketsLeftOpen(line: string): number {
  const bare = line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "").replace(/#.*/, "");
  const isHeader = /^\s*\[/.test(bare) && !bare.includes("=") && /\]\s*$/.test(bare);
  return isHeader ? 0 : bare.split("[").length - bare.split("]").length;
}

/** Each name is looked for after the one that holds it. */
function lineInJson(text: string, path: readonly string[]): number | null {
  let at = -1;
  for (const name of path) {
    const next = text.indexOf(JSON.stringify(name), at + 1);
    if (next < 0) break;
    at = next;
  }
  return at < 0 ? null : text.slice(0, at).split("\n").length;
}
