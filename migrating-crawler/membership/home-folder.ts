/**
 * A crawler's folder: what makes it one, and what in it is ours. Joining takes over no folder that holds something
 * else, and uninstalling removes none.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "#core/errors";

/** Files that only a crawler's folder has: one of them makes it ours. */
export const marks: readonly string[] = [
  ...["membership.json", "identity.json"].flatMap((name) => [name, `${name}.before`]),
  // Its crawler has moved to another host (move/moving.ts).
  "moved.json",
];

/** What a file system's own root holds. */
const foreignButHarmless = new Set(["lost+found"]);

/** `nothing`: no such folder. `empty`: nothing of anybody in it. `foreign`: somebody else's files, or no folder. */
type FolderKind = "nothing" | "empty" | "crawler" | "foreign";

/** Of what a link leads to: systemd's state folders are links. */
export function folderKind(home: string): FolderKind {
  const stats = statSync(home, { throwIfNoEntry: false });
  if (stats === undefined) return "nothing";
  if (!stats.isDirectory()) return "foreign";
  const names = readdirSync(home).filter((name) => !foreignButHarmless.has(name));
  if (names.some((name) => marks.includes(name))) return "crawler";
  return names.every(isLeftByJoin) ? "empty" : "foreign";
}

/** For its owner alone. Throws a UsageError when somebody else's files are there, or nothing to put it into. */
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

/** A join that was cut short before its first mark, or a settings file that was put there for it. */
function isLeftByJoin(name: string): boolean {
  return (
    name === "settings.toml" ||
    name === "last-check.json" ||
    /^(identity|membership)\.json\.\d+\.new$/.test(name)
  );
}

// The folder that a command looks into: a crawler's, joined or given its key by hand, or the command says so.

/** Throws a UsageError for a folder in which no crawler has ever been. */
export function checkCrawlerHome(home: string): void {
  if (folderKind(home) === "crawler" || existsSync(join(home, "spool"))) return;
  throw new UsageError(`${home} is no crawler's folder: name the right one with --home`);
}
