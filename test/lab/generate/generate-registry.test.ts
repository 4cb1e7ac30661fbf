/** A generated registry, as an import reads it. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { checkSources, readState } from "#rir-import/check";
import { wantedSubnets } from "../../rir-import/source-folder.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { generateRegistry } from "./generate-registry.ts";

let root: string;
beforeAll(() => {
  root = temporaryFolder("nearcrawl-generate-");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it("is read completely", async () => {
  const folder = join(root, "whole");
  await generateRegistry({ objects: 4000, seed: 3, folder });

  const { files, state } = await checkSources([folder]);

  expect(files.length).toBe(2 + 5 + 3 + 3 + 3);
  for (const { file, malformed, kept } of files) {
    expect([file, malformed]).toEqual([file, 0]);
    expect(kept).toBeGreaterThan(0);
  }
  expect(state).toMatchObject({ deepest: 4, crossings: 0 });
  expect(state.subnets).toBeGreaterThan(0.93 * 4000);
  expect(state.ipv6Subnets / state.subnets).toBeCloseTo(0.12, 1);
});

it("a quarter later has some objects added, removed and changed, and all others unchanged", async () => {
  const seenIn = async (generation: number) => {
    const folder = join(root, `generation-${generation}`);
    await generateRegistry({ objects: 4000, generation, changedShare: 0.05, folder });
    const { state } = await readState([folder], () => {});
    const holder = (at: number | null) => (at === null ? "" : state.holders.at(at).key);
    return new Map(Array.from(wantedSubnets(state), (one) => [formatRange(one.range), holder(one.holder)]));
  };
  const [before, after] = [await seenIn(0), await seenIn(1)];

  const added = [...after.keys()].filter((range) => !before.has(range)).length;
  const removed = [...before.keys()].filter((range) => !after.has(range)).length;
  const changed = [...after].filter(([range, seen]) => (before.get(range) ?? seen) !== seen).length;
  expect(Math.min(added, removed, changed)).toBeGreaterThan(0);
  expect((added + removed + changed) / 4000).toBeCloseTo(0.05, 1);
});
