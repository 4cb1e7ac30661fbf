/**
 * Database look-ups equal those of a slow table that only knows the rule: random registries are imported over each
 * other and queried. A failure names the seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { testDatabase } from "../support/database.ts";
import { randomRegistry } from "./random-ranges.ts";
import { referenceAnswer, withoutDuplicates } from "./reference-table.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { chainAt } from "./tree-in-force.ts";

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
  // IPv4 for even seeds, IPv6 for odd ones.
  it.each([1001, 1002, 1003, 1004, 1005, 1006])("no difference with seed %i", async (seed) => {
    const random = seededRandom(seed);
    const registry = randomRegistry(random, seed % 2 === 0 ? 4 : 6, 1 + Math.floor(random() * 150));
    const asked = registry.asked.filter((_, index) => index % 3 === 0);
    await applyImport(database, [folder.write(`random-${seed}.db`, registry.text)]);

    const table = withoutDuplicates(registry.ranges);
    for (const one of asked)
      expect({ ...one, answer: (await chainAt(database, one.text)).map(({ name }) => name) }).toEqual({
        ...one,
        answer: referenceAnswer(table, one),
      });
  });
});
