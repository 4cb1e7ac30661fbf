/** Recognises a crawler's folder and its files. Joining never takes over a foreign folder, and uninstalling removes none. */

import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "#core/errors";
import { type CrawlerConfig, crawlerConfig } from "../settings/config.ts";
import { settingsFileConfig } from "../settings/settings-file.ts";

/** Any one of these files marks a crawler's folder. */
export const marks: readonly string[] = [
  ...["membership.json", "identity.json"].flatMap((name) => [name, `${name}.before`]),
  "moved.json",
];

/** A new file system contains this, so a home at the root of its own volume still counts as empty. */
const foreignButHarmless = new Set(["lost+found"]);

/** `nothing`: there is no such folder. `empty`: an empty folder. `foreign`: it has other files or is not a folder. */
type FolderKind = "nothing" | "empty" | "crawler" | "foreign";

/** Follows links, because systemd's state folders are links. */
export function folderKind(home: string): FolderKind {
  const stats = statSync(home, { throwIfNoEntry: false });
  if (stats === undefined) return "nothing";
  if (!stats.isDirectory()) return "foreign";
  const names = readdirSync(home).filter((name) => !foreignButHarmless.has(name));
  if (names.some((name) => marks.includes(name))) return "crawler";
  return names.every(isLeftByJoin) ? "empty" : "foreign";
}

/** Gives access only to the owner. Throws a UsageError if the folder is foreign or its parent is missing. */
export function makeHome(home: string): void {
  if (folderKind(home) === "foreign") {
    throw new UsageError(
      `${home} holds files that are no crawler's: name an empty folder, or one that does not exist, with --home`,
    );
  }
  if (!existsSync(dirname(home))) {
    throw new UsageError(
      `${dirname(home)}, in which the crawler's folder is to be, does not exist: make it first`,
    );
  }
  if (!existsSync(home)) mkdirSync(home, { mode: 0o700 });
  chmodSync(home, 0o700);
}

/** An early interruption of a join, or a settings file prepared for it, may leave these files. */
function isLeftByJoin(name: string): boolean {
  return (
    name === "settings.toml" ||
    name === "last-check.json" ||
    /^(identity|membership)\.json\.\d+\.new$/.test(name)
  );
}

// Checks that a command's folder belongs to a crawler, whether it has joined or has a key set by hand.

/** Throws a UsageError for a folder that never had a crawler. */
export function checkCrawlerHome(home: string): void {
  if (folderKind(home) === "crawler" || existsSync(join(home, "spool"))) return;
  throw new UsageError(`${home} is no crawler's folder: name the right one with --home`);
}

export const settingsFile = (home: string) => join(home, "settings.toml");

/** Returns the defaults if there is no settings file. Throws a ConfigError that lists every fault. */
export function homeSettings(home: string): CrawlerConfig {
  const file = settingsFile(home);
  return existsSync(file) ? settingsFileConfig(file, { home }) : crawlerConfig({ home });
}
