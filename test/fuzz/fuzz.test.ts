/** A short seeded run of the fuzzer; `npm run fuzz` runs longer, with other seeds. */
import { describe, expect, it } from "vitest";
import { checkSeed, superlinearTokens } from "./fuzz-run.ts";
import { targets } from "./targets.ts";

const inputs = 250;

describe.each(targets)("the $name parser", (target) => {
  it(`neither crashes nor hangs on ${inputs} hostile inputs, and gives valid results`, {
    timeout: 120_000,
  }, async () => {
    for (let seed = 1; seed <= inputs; seed++) expect(await checkSeed(target, seed)).toBeNull();
  });

  it("takes time in proportion to the length of its input", { timeout: 120_000 }, async () => {
    expect(await superlinearTokens(target)).toEqual([]);
  });
});
