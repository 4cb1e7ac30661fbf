/** The demonstration's registry files yield exactly the subnets and holders from which they were made. */
import { rmSync } from "node:fs";
import { expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { generateWorld } from "#ops/world/generate-world";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { readState } from "#rir-import/check";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { wantedSubnets } from "./source-folder.ts";

it("every range, parent and holder of the generated world, nothing malformed", async () => {
  const folder = temporaryFolder("rir-world-");
  const world = generateWorld({ seed: 7, sites: 200, crawlers: 6 });
  await writeRegistryFiles(world, folder);

  const { files, state } = await readState([folder], () => {});
  rmSync(folder, { recursive: true });

  const subnets = [...wantedSubnets(state)];
  const parentOf = (
    parent: number | null | undefined,
    all: readonly { range: (typeof subnets)[0]["range"] }[],
  ) => (parent === null || parent === undefined ? null : formatRange(all[parent]!.range));
  expect(files.map(({ malformed, warnings }) => [malformed, warnings])).toEqual(files.map(() => [0, []]));
  expect(
    subnets.map(({ range, parentOrdinal }) => [formatRange(range), parentOf(parentOrdinal, subnets)]),
  ).toEqual(world.subnets.map(({ range, parent }) => [formatRange(range), parentOf(parent, world.subnets)]));
  // What IANA gave a registry has no holder, since the registry distributes it.
  const holderOf = world.subnets.map(({ holder, kind }) =>
    holder === null || kind === "iana" ? null : world.holders[holder]!.name,
  );
  expect(subnets.map(({ holder }) => (holder === null ? null : state.holders.at(holder).name))).toEqual(
    holderOf,
  );
});
