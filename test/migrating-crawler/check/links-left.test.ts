/** Commands, mostly run as root, never write into a crawler's folder through a planted link. */
import { lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { keepCheck } from "#crawler/check/machine-check";
import { keepAsked } from "#crawler/limits/state-file";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder("nearcrawl-links-");
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  ["pause", "paused.json", "paused.json.new", (home: string) => keepAsked("pause", home, "a talk")],
  ["drain", "draining.json", "draining.json.new", (home: string) => keepAsked("drain", home, "a move")],
  [
    "check",
    "last-check.json",
    "last-check.json",
    (home: string) =>
      keepCheck(home, { at: new Date(), isUsable: true, isConnected: true, neededProxy: null, findings: [] }),
  ],
])("%s writes its own file and not through a link", (_command, file, link, write) => {
  const target = join(folder, "shadow");
  writeFileSync(target, "root's");
  symlinkSync(target, join(folder, link));

  write(folder);

  expect(readFileSync(target, "utf8")).toBe("root's");
  expect(lstatSync(join(folder, file)).isFile()).toBe(true);
});
