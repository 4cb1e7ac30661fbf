/** Plan, apply and rollback against a real Postgres. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSubnetStore, ensureRootSubnets } from "#coordinator/place/subnets/subnet-store";
import { DatabaseError, SourceFileError, UsageError } from "#core/errors";
import { channelName } from "#db/schema-channel";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { planImport } from "#rir-import/plan";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { registryStatus } from "#rir-import/status";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { delegate, delegationsInForce, treeInForce } from "./tree-in-force.ts";

let database: Database;
let folder: SourceFolder;
beforeEach(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterEach(async () => {
  folder.remove();
  await database.close();
});

const organisations = (name: string) =>
  `organisation: ORG-EX1-RIPE\norg-name: ${name}\nsource: RIPE\n\norganisation: ORG-EX2-RIPE\norg-name: Second Example\nsource: RIPE\n\n`;
const net = (range: string, more = "org: ORG-EX1-RIPE") =>
  `${range.includes(":") ? "inet6num" : "inetnum"}: ${range}\nnetname: EX\ncountry: NL\n${more}\nsource: RIPE\n\n`;

/** A: a /16 with two halves, one of which has a /24; and a /32. */
const stateA =
  organisations("Example Holdings") +
  net("45.10.0.0/16") +
  net("45.10.0.0/17") +
  net("45.10.128.0/17") +
  net("45.10.130.0/24", "org: ORG-EX2-RIPE") +
  net("2a02:f00::/32");
/**
 * B: the upper half is gone (its /24 moves up), the lower has another country, a /18 and a /48 are new, ORG-EX1 has a
 * new name.
 */
const stateB =
  organisations("Renamed Holdings") +
  net("45.10.0.0/16", "org: ORG-EX2-RIPE") +
  net("45.10.0.0/17").replace("NL", "DE") +
  net("45.10.64.0/18") +
  net("45.10.130.0/24", "org: ORG-EX2-RIPE") +
  net("2a02:f00::/32") +
  net("2a02:f00:1::/48");

const counts = { added: 0, returned: 0, changed: 0, moved: 0, removed: 0, unchanged: 0 };

describe("apply", () => {
  it("stores the tree with parents, holders and sources", async () => {
    const applied = await applyImport(database, [folder.write("a.db", stateA)]);

    expect(applied).toMatchObject({ generation: 1, isNew: true, plan: { changes: { ...counts, added: 5 } } });
    expect(
      (await treeInForce(database)).map(({ range, parent, holderName }) => [range, parent, holderName]),
    ).toEqual([
      ["45.10.0.0/16", null, "Example Holdings"],
      ["45.10.0.0/17", "45.10.0.0/16", "Example Holdings"],
      ["45.10.128.0/17", "45.10.0.0/16", "Example Holdings"],
      ["45.10.130.0/24", "45.10.128.0/17", "Second Example"],
      ["2a02:f00::/32", null, "Example Holdings"],
    ]);
    expect(await registryStatus(database)).toMatchObject({
      generation: 1,
      ipv4Subnets: 4,
      ipv6Subnets: 1,
      holders: 2,
      sources: [{ format: "rpsl", registry: "ripencc", kept: 7 }],
    });
  });

  it("of other files with the same content makes a generation without changes, so that status shows the new date", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);

    const again = await applyImport(database, [folder.write("a2.db", `${stateA}# later\n`)]);

    expect(again).toMatchObject({
      generation: 2,
      isNew: true,
      plan: { changes: { ...counts, unchanged: 5 } },
    });
  });

  it("keeps ids and delegations of subnets that stay, and counts every kind of change", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    await delegate(database, "45.10.130.0/24", "amsterdam");
    const before = new Map((await treeInForce(database)).map(({ range, id }) => [range, id]));

    const { plan } = await applyImport(database, [folder.write("b.db", stateB)]);

    expect(plan.changes).toEqual({
      added: 2,
      returned: 0,
      changed: 2,
      moved: 1,
      removed: 1,
      unchanged: 1,
    });
    expect(plan.holders).toMatchObject({ added: 0, gone: 0, renamed: 1, merged: 0, split: 0 });
    const after = await treeInForce(database);
    for (const { range, id } of after) expect(before.get(range) ?? id).toBe(id);
    expect(
      after.map(({ range, parent, country, holderName }) => [range, parent, country, holderName]),
    ).toEqual([
      ["45.10.0.0/16", null, "NL", "Second Example"],
      ["45.10.0.0/17", "45.10.0.0/16", "DE", "Renamed Holdings"],
      ["45.10.64.0/18", "45.10.0.0/17", "NL", "Renamed Holdings"],
      ["45.10.130.0/24", "45.10.0.0/16", "NL", "Second Example"],
      ["2a02:f00::/32", null, "NL", "Renamed Holdings"],
      ["2a02:f00:1::/48", "2a02:f00::/32", "NL", "Renamed Holdings"],
    ]);
    expect(await delegationsInForce(database)).toEqual({ "45.10.130.0/24": "amsterdam" });
  });

  it("restores a removed subnet with its id and delegation", async () => {
    const [a, b] = [
      folder.write("a.db", stateA),
      folder.write("b.db", stateA.replace(net("45.10.128.0/17"), "")),
    ];
    await applyImport(database, [a]);
    const id = await delegate(database, "45.10.128.0/17", "zurich");
    await applyImport(database, [b], { removeInUse: 1 });
    expect(await delegationsInForce(database)).toEqual({});

    const { plan } = await applyImport(database, [a]);

    expect(plan.changes.returned).toBe(1);
    expect(plan.delegations).toMatchObject({ kept: 0, returned: 1 });
    expect((await treeInForce(database)).find(({ range }) => range === "45.10.128.0/17")?.id).toBe(id);
    expect(await delegationsInForce(database)).toEqual({ "45.10.128.0/17": "zurich" });
  });

  it("notifies the coordinators of the schema and the generation", async () => {
    const client = await database.pool.connect();
    const heard = new Promise<string | undefined>((resolve) => {
      client.on("notification", ({ payload }) => {
        if (payload?.includes(database.schema)) resolve(payload);
      });
    });
    const { rows } = await client.query(`select ${channelName("nearcrawl_registry")} as name`);
    await client.query(`listen ${rows[0].name}`);

    await applyImport(database, [folder.write("a.db", stateA)]);

    expect(JSON.parse((await heard) ?? "")).toEqual({ schema: database.schema, generation: 1 });
    await client.query("unlisten *");
    client.release();
  });
});

describe("a bad source leaves the tree as it was", () => {
  it.each([
    ["a web page", "<html><title>Moved</title></html>", 'bad.db:1: a web page ("Moved")'],
    ["an empty file", "", "the file is empty"],
    ["nothing of use", "person: Nobody\nsource: RIPE\n", null],
  ])("%s", async (_what, content, reason) => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    const before = await treeInForce(database);
    const bad = folder.write("bad.db", content);
    const sources = reason === null ? [bad] : [folder.write("b.db", stateB), bad];

    const importing = applyImport(database, sources);

    await expect(importing).rejects.toThrow(SourceFileError);
    await expect(importing).rejects.toThrow(
      reason ?? "no subnets in these files: an import would empty the tree",
    );
    expect(await treeInForce(database)).toEqual(before);
    expect((await registryStatus(database)).history).toHaveLength(1);
  });
});

describe("plan", () => {
  it("predicts what apply then does, and changes nothing", async () => {
    const b = folder.write("b.db", stateB);
    await applyImport(database, [folder.write("a.db", stateA)]);
    const before = await treeInForce(database);

    const plan = await planImport(database, [b]);

    expect(await treeInForce(database)).toEqual(before);
    expect(plan.samples.removed).toEqual([
      {
        range: "45.10.128.0/17",
        kind: "removed",
        before: {
          holder: "Example Holdings",
          country: "NL",
          registry: "ripencc",
          name: "EX",
          under: "45.10.0.0/16",
        },
        after: null,
      },
    ]);
    expect(plan.samples.changed.map(({ range }) => range)).toEqual(["45.10.0.0/16", "45.10.0.0/17"]);
    expect(plan.samples.moved).toMatchObject([
      { range: "45.10.130.0/24", before: { under: "45.10.128.0/17" }, after: { under: "45.10.0.0/16" } },
    ]);
    expect((await applyImport(database, [b])).plan).toMatchObject({
      changes: plan.changes,
      samples: plan.samples,
    });
  });

  it("says which delegations are kept, are inherited by the subnet above, or are lost", async () => {
    const other = net("46.10.0.0/16");
    await applyImport(database, [folder.write("a.db", stateA + other)]);
    await delegate(database, "45.10.0.0/16", "amsterdam");
    await delegate(database, "45.10.128.0/17", "zurich");
    await delegate(database, "46.10.0.0/16", "madrid");

    const { delegations } = await planImport(database, [folder.write("b.db", stateB)]);

    expect(delegations).toEqual({
      kept: 1,
      returned: 0,
      inherited: 1,
      lost: 1,
      inheritedSamples: [
        { range: "45.10.128.0/17", from: "zurich", to: "amsterdam", through: "45.10.0.0/16" },
      ],
      lostSamples: [{ range: "46.10.0.0/16", from: "madrid", to: null, through: null }],
    });
  });
});

describe("rollback", () => {
  it("of the only import needs confirmation; confirmed, it leaves an empty tree and nothing to undo", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    const before = await treeInForce(database);

    await expect(rollbackImport(database)).rejects.toThrow(/generation 1 is the first import.*--to-empty/);
    expect(await treeInForce(database)).toEqual(before);
    expect((await registryStatus(database)).history).toMatchObject([{ state: "applied" }]);
    expect(await rollbackImport(database, 1, { toEmpty: true })).toMatchObject({
      rolledBack: [1],
      generation: null,
    });

    expect(await treeInForce(database)).toEqual([]);
    await expect(rollbackImport(database)).rejects.toThrow(UsageError);
  });

  it("has a way back: subnets, parents, holders, ids, delegations, also from an empty tree, as often as one likes", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    const first = await treeInForce(database);
    await applyImport(database, [folder.write("b.db", stateB)]);
    await delegate(database, (await treeInForce(database)).at(-1)!.range, "zurich");
    const [second, delegations] = [await treeInForce(database), await delegationsInForce(database)];

    for (let round = 0; round < 2; round += 1) {
      const { undone } = await rollbackImport(database, 2, { toEmpty: true, removeInUse: 1 });
      expect(undone).toEqual({ added: 7, changed: 2, removed: 1, moved: 1, "holders renamed": 1 });
      const empty = await treeInForce(database);
      await expect(rollForward(database, 2)).rejects.toThrow(
        "generation 2 follows generation 1, and no generation is in force",
      );
      const onlyFirst = await rollForward(database);
      const again = await treeInForce(database);
      const both = await rollForward(database);

      expect([empty, onlyFirst.generation, again, both.generation]).toEqual([[], 1, first, 2]);
      expect(both.redone).toEqual({ added: 2, changed: 2, removed: 1, moved: 1, "holders renamed": 1 });
      expect(await treeInForce(database)).toEqual(second);
      expect(await delegationsInForce(database)).toEqual(delegations);
    }
    await expect(rollForward(database)).rejects.toThrow("no generation was rolled back from this one");
    await expect(rollForward(database, 1)).rejects.toThrow("generation 1 is not rolled back");
    await expect(rollForward(database, 9)).rejects.toThrow("there is no generation 9");
  });

  it("does not count a coordinator's placeholder roots, and replaces them again", async () => {
    const file = folder.write("a.db", stateA);
    const roots = ["0.0.0.0/0", "::/0"];
    const ranges = async () => (await treeInForce(database)).map(({ range }) => range);
    const inForce = async () => await createSubnetStore(database.pool).currentGeneration();

    // The registry comes first, then a coordinator without one.
    await applyImport(database, [file]);
    const tree = await ranges();
    await rollbackImport(database, 1, { toEmpty: true });
    await ensureRootSubnets(database.pool);
    expect(await ranges()).toEqual(roots);
    await expect(rollbackImport(database, 1, { toEmpty: true })).rejects.toThrow("no import to roll back");
    expect((await registryStatus(database)).history).toMatchObject([{ generation: 1, canRollForward: true }]);
    await rollForward(database);
    expect([await ranges(), await inForce()]).toEqual([tree, 1]);

    // The coordinator comes first, then the registry.
    await rollbackImport(database, 1, { toEmpty: true });
    await ensureRootSubnets(database.pool);
    const { generation } = await applyImport(database, [file]);
    expect([await ranges(), await ensureRootSubnets(database.pool)]).toEqual([tree, false]);
    await expect(rollbackImport(database)).rejects.toThrow("--to-empty");
    await rollbackImport(database, 1, { toEmpty: true });
    expect([await ensureRootSubnets(database.pool), await ranges()]).toEqual([false, roots]);
    await rollForward(database, generation);
    expect([await ranges(), await inForce()]).toEqual([tree, generation]);
  });

  it("is possible only from the tree that the generation was applied to, and only while its data is kept", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    await applyImport(database, [folder.write("b.db", stateB)]);
    await rollbackImport(database);
    await applyImport(database, [folder.write("c.db", net("46.10.0.0/16"))]);
    const third = await treeInForce(database);

    await expect(rollForward(database)).rejects.toThrow("no generation was rolled back from this one");
    await expect(rollForward(database, 2)).rejects.toThrow(
      "generation 2 follows generation 1, and generation 3 is in force",
    );
    expect(await treeInForce(database)).toEqual(third);
    await rollbackImport(database);
    expect((await registryStatus(database)).history.map(({ canRollForward }) => canRollForward)).toEqual([
      ...[true, true, false],
    ]);
    await database.pool.query("update registry_generation set rolled_back_at = null where generation = 2");
    await expect(rollForward(database, 2)).rejects.toThrow(/kept nothing of it.*nearcrawl rir apply/);
    expect((await rollForward(database)).generation).toBe(3);
    expect(await treeInForce(database)).toEqual(third);
  });
});

describe("rollback of several imports", () => {
  it("undoes them all, or none when there are fewer", async () => {
    await applyImport(database, [folder.write("a.db", stateA)]);
    const before = await treeInForce(database);
    await applyImport(database, [folder.write("b.db", stateB)]);
    await applyImport(database, [folder.write("c.db", net("46.10.0.0/16"))]);

    await expect(rollbackImport(database, 4)).rejects.toThrow("there are fewer than 4 imports to roll back");
    expect(await treeInForce(database)).toHaveLength(1);
    const rolledBack = await rollbackImport(database, 2);

    expect(rolledBack).toMatchObject({ rolledBack: [3, 2], generation: 1 });
    expect(await treeInForce(database)).toEqual(before);
  });
});

describe("holders", () => {
  const holding = (ranges: readonly string[], org: string) =>
    ranges.map((range) => net(range, `org: ORG-${org}-RIPE`)).join("");
  const named = (...orgs: readonly string[]) =>
    orgs.map((org) => `organisation: ORG-${org}-RIPE\norg-name: Company ${org}\nsource: RIPE\n\n`).join("");

  it("that are merged or split differ from those that only lose a range", async () => {
    const before =
      named("ONE", "TWO", "BIG", "OLD", "NEW") +
      holding(["45.1.0.0/16", "45.2.0.0/16"], "ONE") +
      holding(["46.1.0.0/16"], "TWO") +
      holding(["47.1.0.0/16", "47.2.0.0/16"], "BIG") +
      holding(["48.1.0.0/16", "48.2.0.0/16"], "OLD") +
      holding(["49.1.0.0/16"], "NEW");
    const after =
      named("TWO", "BIG", "PART", "OLD", "NEW") +
      holding(["45.1.0.0/16", "45.2.0.0/16", "46.1.0.0/16"], "TWO") +
      holding(["47.1.0.0/16"], "BIG") +
      holding(["47.2.0.0/16"], "PART") +
      holding(["48.1.0.0/16"], "OLD") +
      holding(["48.2.0.0/16", "49.1.0.0/16"], "NEW");
    await applyImport(database, [folder.write("before.db", before)]);

    const { holders } = await planImport(database, [folder.write("after.db", after)]);

    expect(holders).toEqual({
      added: 1,
      gone: 1,
      renamed: 0,
      merged: 1,
      split: 1,
      mergedSamples: [{ from: "Company ONE", to: ["Company TWO"] }],
      splitSamples: [{ from: "Company BIG", to: ["Company PART", "Company BIG"] }],
    });
  });
});

describe("two at once", () => {
  it("one succeeds, and the other reports that an import is running", async () => {
    const file = folder.write("a.db", stateA);

    // The first import can write nothing until the second has been refused.
    const holder = await database.pool.connect();
    await holder.query("begin; lock table subnet in exclusive mode");
    const both = [applyImport(database, [file]), applyImport(database, [file])];
    const error: unknown = await Promise.race(
      both.map((one) =>
        one.then(
          () => "done",
          (reason: unknown) => reason,
        ),
      ),
    );
    await holder.query("rollback");
    holder.release();
    const outcomes = await Promise.allSettled(both);

    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(error).toBeInstanceOf(DatabaseError);
    expect(String(error)).toContain("another import or rollback is running");
    expect(await treeInForce(database)).toHaveLength(5);
    expect(await applyImport(database, [file])).toMatchObject({ isNew: false });
  });
});
