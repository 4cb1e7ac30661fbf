/**
 * Look-ups straight from files give what a slow table gives, which knows the rule and nothing of the tree: the
 * text of random registries is read, nested and asked. A failure names the seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { openFileLookUps } from "#rir-import/look-up-in-files";
import { differencesFromTable, registryOfSeed } from "./random-lookups.ts";
import { randomRegistry } from "./random-ranges.ts";
import { withoutDuplicates } from "./reference-table.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

let folder: SourceFolder;
beforeAll(() => {
  folder = sourceFolder();
});
afterAll(() => folder.remove());

describe("look-ups in the files of random registries", () => {
  it.each([1, 41, 81, 121, 161])("no difference with 8 seeds from %i", async (from) => {
    let deepest = 0;
    let crossing = 0;
    for (let seed = from; seed < from + 8; seed++) {
      const registry = registryOfSeed(seed);
      const files = await openFileLookUps([folder.write(`random-${seed}.db`, registry.text)]);

      expect(await differencesFromTable(registry, files.lookUp), `seed ${seed}`).toEqual([]);
      expect(files.summary.subnets, `seed ${seed}`).toBe(withoutDuplicates(registry.ranges).length);
      deepest = Math.max(deepest, files.summary.deepest);
      crossing += files.summary.crossings;
    }

    expect(deepest).toBeGreaterThan(20);
    expect(crossing).toBeGreaterThan(40);
  });

  it.each([
    [2001, 4],
    [2002, 6],
  ] as const)("no difference in a large one (seed %i)", async (seed, family) => {
    const registry = randomRegistry(seededRandom(seed), family, 6_000);
    const asked = registry.asked.filter((_, index) => index % 40 === 0);
    const files = await openFileLookUps([folder.write(`random-${seed}.db`, registry.text)]);

    expect(await differencesFromTable({ ...registry, asked }, files.lookUp)).toEqual([]);
  });
});
