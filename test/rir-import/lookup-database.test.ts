/**
 * Look-ups in the database give what a slow table gives, which knows the rule and nothing of the tree: the text
 * of random registries is imported one over the other and asked. A failure names the seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { lookUp } from "#rir-import/lookup";
import { testDatabase } from "../support/database.ts";
import { differencesFromTable, registryOfSeed } from "./random-lookups.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

let database: Database;
let folder: SourceFolder;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

describe("look-ups in the database after imports of random registries", () => {
  it.each([1001, 1002, 1003, 1004, 1005, 1006])("no difference with seed %i", async (seed) => {
    const registry = registryOfSeed(seed);
    const asked = registry.asked.filter((_, index) => index % 3 === 0);
    await applyImport(database, [folder.write(`random-${seed}.db`, registry.text)]);

    const differing = await differencesFromTable({ ...registry, asked }, (text) => lookUp(database, text));

    expect(differing).toEqual([]);
  });
});
