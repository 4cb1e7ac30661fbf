/** The index of a command: a copy of a coordinator's file that is made level, or one of its own. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { indexFileIn, openCommandEngine } from "#coordinator/tell/search/command-engine-store";
import { openFts5 } from "#coordinator/tell/search/engine/fts5-engine-store";
import { filterNames, type SearchFilters } from "#coordinator/tell/search/search-answer";
import { silentLog } from "#core/log";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedChange } from "../support/seed-changes.ts";
import { seedPage, seedWorld, worldNow } from "../support/seed-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const database = await forThisFile(testDatabase());
const home = temporaryFolder("nearcrawl-command-engine-");
const folder = join(home, "search");
const first = "https://www.example.org/ferry";
const later = "https://www.example.org/quay";

beforeAll(async () => {
  await seedWorld(database.pool);
  await seedPage(database.pool, { url: first, title: "Ferry", text: "The harbour." });
});

async function found(searched: string | null): Promise<string[]> {
  const { engine, close } = await openCommandEngine(
    database,
    { url: null, ca: null },
    { folder: searched, authorization: null, log: silentLog },
  );
  const arm = { configurations: ["english"], all: [[["harbour"]]], title: [], none: [] };
  const filters = Object.fromEntries(filterNames.map((name) => [name, null])) as unknown as SearchFilters;
  const { matches } = await engine.search({ arms: [arm], filters, most: 10 });
  await close();
  return matches.map(({ url }) => url).sort();
}

it("reads all pages where there is no file", async () => {
  expect(await found(null)).toEqual([first]);
  expect(await found(join(home, "none"))).toEqual([first]);
  expect(existsSync(join(home, "none"))).toBe(false);
});

it("reads what has changed since a coordinator's file was written, and leaves the file as it is", async () => {
  mkdirSync(folder);
  const file = indexFileIn(folder, database.schema);
  const coordinators = await openFts5(database.pool, file);
  await coordinators.catchUp();
  coordinators.close();
  const before = statSync(file).mtimeMs;
  await seedPage(database.pool, { url: later, title: "Quay", text: "Another harbour." });
  const unchanged = await found(folder);
  await seedChange(database.pool, { url: later, kind: "first-seen" });
  await numberChanges(database.pool, worldNow);

  expect([unchanged, await found(folder)]).toEqual([[first], [first, later].sort()]);
  expect(statSync(file).mtimeMs).toBe(before);
});
