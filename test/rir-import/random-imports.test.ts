/**
 * Random imports and rollbacks: after every step the database's tree matches the files in force, and every subnet keeps
 * its id forever. The test's name has the seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { applyImport } from "#rir-import/apply";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { type SourceFolder, sourceFolder, stateOf } from "./source-folder.ts";
import { type StoredSubnet, treeInForce } from "./tree-in-force.ts";

const database = await forThisFile(testDatabase());
let folder: SourceFolder;
beforeAll(async () => {
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
});

const stepsPerSeed = 14;

/** A few dozen ranges of a small space, so that states share, nest and cross; organisations change names. */
function randomRegistry(random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const organisations = [1, 2, 3].map(
    (number) =>
      `organisation: ORG-R${number}-RIPE\norg-name: Random Company ${number} ${below(2) ? "Old" : "New"}\nsource: RIPE\n`,
  );
  const nets = Array.from({ length: 5 + below(25) }, () => {
    const first = below(32);
    const last = Math.min(31, first + below(10));
    const country = ["NL", "DE", "FR"][below(3)];
    return `inetnum: 45.10.${first}.0 - 45.10.${last}.255\nnetname: N${below(2)}\ncountry: ${country}\norg: ORG-R${1 + below(4)}-RIPE\nsource: RIPE\n`;
  });
  return [...organisations, ...nets, "inet6num: 2a02:f00::/32\nsource: RIPE\n"].join("\n");
}

const withoutIds = (tree: readonly StoredSubnet[]) =>
  tree.map(({ id: _id, holderName: _name, ...subnet }) => subnet);

describe.each([1, 2, 3])("seed %i", (seed) => {
  it("the database is always what the files in force say", async () => {
    const random = seededRandom(seed);
    const ids = new Map<string, number>();
    const inForce: (readonly StoredSubnet[])[] = [await treeInForce(database)];
    for (let step = 0; step < stepsPerSeed; step++) {
      if (inForce.length > 2 && random() < 0.35) {
        await rollbackImport(database);
        const undone = inForce.pop();
        expect(await treeInForce(database)).toEqual(inForce.at(-1));
        if (random() < 0.5) {
          await rollForward(database);
          inForce.push(undone!);
          expect(await treeInForce(database)).toEqual(undone);
        }
        continue;
      }
      const content = randomRegistry(random);
      await applyImport(database, [folder.write(`${seed}-${step}.db`, content)]);

      const tree = await treeInForce(database);
      expect(withoutIds(tree)).toEqual((await stateOf({ "state.db": content })).subnets);
      for (const { range, id } of tree) {
        expect(ids.get(range) ?? id).toBe(id);
        ids.set(range, id);
      }
      inForce.push(tree);
    }
  });
});
