/**
 * A crawler's folder: what makes it one, and what in it is ours. Joining takes over no folder that holds something
 * else, and uninstalling removes none.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { UsageError } from "#core/errors";

/** Files that only a crawler's folder has: one of them makes it ours. */
export const marks: readonly string[] = ["membership.json", "identity.json"].flatMap((name) => [
  name,
  `${name}.before`,
]);
/** What a file system's own root holds. */
const foreignButHarmless = new Set(["lost+found"]);

/** `nothing`: no such folder. `empty`: nothing of anybody in it. `foreign`: somebody else's files, or no folder. */
export type FolderKind = "nothing" | "empty" | "crawler" | "foreign";

export function folderKind(home: string): FolderKind {
  const stats = lstatSync(home, { throwIfNoEntry: false });
  if (stats === undefined) return "nothing";
  if (!stats.isDirectory()) return "foreign";
  const names = readdirSync(home).filter((name) => !foreignButHarmless.has(name));
  if (names.some((name) => marks.includes(name))) return "crawler";
  return names.every(isLeftByJoin) ? "empty" : "foreign";
}

/** For its owner alone. Throws a UsageError when somebody else's files are there. */
export function makeHome(home: string): void {
  if (folderKind(home) === "foreign" || isTooMuch(home)) {
    throw new UsageError(
      `${home} holds files that are no crawler's: name an empty folder, or one that does not exist, with --home`,
    );
  }
  mkdirSync(home, { recursive: true, mode: 0o700 });
  chmodSync(home, 0o700);
}

/** A folder that must never be taken over or removed, whatever is in it. */
export function isTooMuch(home: string): boolean {
  const folder = resolve(home);
  return folder === "/" || folder === resolve(homedir()) || folder.split("/").length < 3;
}

/** A join that was cut short before its first mark, or a settings file that was put there for it. */
function isLeftByJoin(name: string): boolean {
  return (
    name === "settings.toml" ||
    name === "last-check.json" ||
    /^(identity|membership)\.json\.\d+\.new$/.test(name)
  );
}
