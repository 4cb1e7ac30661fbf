/**
 * What a plan says of where its changes lie, and that it is applied as it was made or not at all.
 *
 *   before   45.10.0.0/24 NL · 45.10.1.0/24 NL · 2a00:1::/32 NL
 *   after    45.10.0.0/24 DE · 45.10.0.128/25 NL (within it) · 45.20.0.0 - 45.20.1.255, 45.20.1.0 - 45.20.2.255 (they cross)
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { applyImport } from "#rir-import/apply";
import { type ImportPlan, planImport } from "#rir-import/plan";
import { rollbackImport } from "#rir-import/rollback";
import { shrunkRegistries } from "#rir-import/shrinkage";
import { registryOverview } from "#rir-import/status";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

const net = (range: string, country = "NL", type = "inetnum") =>
  `${type}: ${range}\nnetname: EX\ncountry: ${country}\ndescr: Exemplary Networks\nsource: RIPE\n\n`;
const before = net("45.10.0.0/24") + net("45.10.1.0/24") + net("2a00:1::/32", "NL", "inet6num");
const after =
  net("45.10.0.0/24", "DE") +
  net("45.10.0.128/25") +
  net("45.20.0.0 - 45.20.1.255") +
  net("45.20.1.0 - 45.20.2.255");

const database = await forThisFile(testDatabase());
let folder: SourceFolder;
let file: string;
let plan: ImportPlan;
beforeAll(async () => {
  folder = sourceFolder();
  await applyImport(database, [folder.write("before.db", before)]);
});
beforeEach(async () => {
  file = folder.write("after.db", after);
  plan = await planImport(database, [file]);
});
afterAll(async () => {
  folder.remove();
});

describe("a plan", () => {
  it("counts by registry, and each address once however many ranges hold it", () => {
    expect(plan.registries).toEqual([
      {
        registry: "ripencc",
        before: expect.objectContaining({
          subnets: 3,
          ipv4Addresses: 512,
          ipv6Slash48s: 65_536,
          crossing: 0,
        }),
        after: expect.objectContaining({
          subnets: 4,
          ipv4Addresses: 256 + 768,
          ipv6Slash48s: 0,
          crossing: 2,
        }),
        ...{ added: 3, removed: 2, changed: 1, moved: 0 },
      },
    ]);
  });

  it("names the largest changes first, IPv4 before IPv6", async () => {
    expect(plan.largest.map(({ kind, range }) => `${kind} ${range}`)).toEqual([
      "added 45.20.0.0/23",
      "added 45.20.1.0 - 45.20.2.255",
      "changed 45.10.0.0/24",
      "removed 45.10.1.0/24",
      "added 45.10.0.128/25",
      "removed 2a00:1::/32",
    ]);
    const { largest } = await planImport(database, [file], { samples: 2 });
    expect(largest.map(({ range }) => range)).toEqual([
      "45.20.0.0/23",
      "45.20.1.0 - 45.20.2.255",
      "2a00:1::/32",
    ]);
  });
});

describe("a registry that would lose suspiciously much", () => {
  const counts = {
    registry: "arin",
    subnets: 100,
    ipv4Subnets: 100,
    ipv6Subnets: 0,
    holders: 9,
    crossing: 0,
  } as const;
  const was = { ...counts, ipv4Addresses: 1000, ipv6Slash48s: 0 };
  const change = (removed: number, ipv4Addresses: number) => ({
    ...({ registry: "arin", before: was, after: { ...was, ipv4Addresses } } as const),
    ...{ added: removed, removed, changed: 0, moved: 0 },
  });

  it("is one that loses more than a tenth of its subnets, or of its addresses", () => {
    expect(shrunkRegistries([change(10, 1000)])).toEqual([]);
    expect(shrunkRegistries([change(11, 1000)])).toHaveLength(1);
    expect(shrunkRegistries([change(1, 899)])).toEqual([
      { registry: "arin", lostSubnetsShare: 0.01, lostIpv4Share: 0.101, lostIpv6Share: 0 },
    ]);
    expect(shrunkRegistries([change(11, 1000)], 0.2)).toEqual([]);
  });

  it("is one that is missing from the files, and not a new one", () => {
    expect(shrunkRegistries([{ ...change(100, 0), after: null }])).toHaveLength(1);
    expect(shrunkRegistries([{ ...change(0, 0), before: null }])).toEqual([]);
  });
});

describe("a plan that is applied", () => {
  it("is refused when a file has changed by one byte, and nothing is changed", async () => {
    folder.write("after.db", `${after}# one more line\n`);

    await expect(applyImport(database, [file], { planned: plan.fingerprint })).rejects.toThrow(
      "the files are not those that the plan was made from: plan again",
    );
    expect((await registryOverview(database, new Date())).generation).toBe(1);
  });

  it("succeeds while files and tree are unchanged; a second time it is refused", async () => {
    const { generation } = await applyImport(database, [file], { planned: plan.fingerprint });

    const { counted } = await registryOverview(database, new Date());
    expect([generation, counted]).toEqual([
      2,
      { generation: 2, crossings: 1, registries: [plan.registries[0]?.after] },
    ]);
    await expect(applyImport(database, [file], { planned: plan.fingerprint })).rejects.toThrow(
      "the plan was made against generation 1, and now generation 2 is in force: plan again",
    );
    await expect(applyImport(database, [file], { planned: "nonsense" })).rejects.toThrow(
      '"nonsense" is no plan\'s fingerprint',
    );
  });

  it("is rolled back once, however often that is requested", async () => {
    await expect(rollbackImport(database, 1, { expectedGeneration: 1 })).rejects.toThrow(
      "generation 1 is not in force, generation 2 is: nothing is rolled back",
    );
    expect((await rollbackImport(database, 1, { expectedGeneration: 2 })).generation).toBe(1);
    await expect(rollbackImport(database, 1, { expectedGeneration: 2 })).rejects.toThrow(
      "generation 2 is not in force",
    );
    const { counted, generation } = await registryOverview(database, new Date());
    expect([generation, counted?.registries[0]?.subnets]).toEqual([1, 3]);
  });
});
