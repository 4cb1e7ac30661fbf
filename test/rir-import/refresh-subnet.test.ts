/** One range made anew from a registry's answer, in a real Postgres. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseRange } from "#core/ip/range";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import type { NetworkRecord } from "#rir-import/formats/record";
import { rangeHistory } from "#rir-import/history";
import { refreshSubnet } from "#rir-import/refresh-subnet";
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

const net = (range: string) =>
  `inetnum: ${range}\nnetname: EX\ncountry: NL\norg: ORG-EX1-RIPE\nsource: RIPE\n\n`;
const tree = `organisation: ORG-EX1-RIPE\norg-name: Old Name\nsource: RIPE\n\n${net("45.10.0.0/16")}${net("45.10.4.0/24")}${net("45.10.5.0 - 45.10.8.255")}`;
const answer = (range: string, name = "New Holder"): NetworkRecord => ({
  type: "network",
  line: 1,
  source: "whois",
  range: parseRange(range)!,
  registry: "ripencc",
  name: "NEW",
  country: "DE",
  holder: { type: "handle", handle: "ORG-NEW-RIPE", registry: "ripencc", name },
});
const from = { source: "https://rdap.example/ip/45.10.0.0/16", date: new Date("2026-11-21T10:00:00Z") };
const shown = async () =>
  (await treeInForce(database)).map(({ range, parent, holderName, country }) =>
    [range, parent, holderName, country].join(" "),
  );

describe("a range is refreshed", () => {
  it("that is in the tree: it keeps its id and delegation, and the rest stays as it is", async () => {
    await applyImport(database, [folder.write("a.db", tree)]);
    const id = await delegate(database, "45.10.0.0/16", "amsterdam");
    const before = await treeInForce(database);

    const refreshed = await refreshSubnet(database, answer("45.10.0.0/16"), from);

    expect(refreshed).toEqual({ generation: 2, range: "45.10.0.0/16", event: "changed", moved: 0 });
    expect(await shown()).toEqual([
      "45.10.0.0/16  New Holder DE",
      "45.10.4.0/24 45.10.0.0/16 Old Name NL",
      "45.10.5.0 - 45.10.8.255 45.10.0.0/16 Old Name NL",
    ]);
    expect((await treeInForce(database))[0]?.id).toBe(id);
    expect(await delegationsInForce(database)).toEqual({ "45.10.0.0/16": "amsterdam" });
    const after = await treeInForce(database);
    await rollbackImport(database);
    expect(await treeInForce(database)).toEqual(before);
    await rollForward(database);
    expect(await treeInForce(database)).toEqual(after);
  });

  it("that is not: it is put between the subnet above and those that lie in it", async () => {
    await applyImport(database, [folder.write("a.db", tree)]);
    const before = await treeInForce(database);

    const refreshed = await refreshSubnet(database, answer("45.10.4.0/22"), from).catch(String);
    const within = await refreshSubnet(database, answer("45.10.0.0/20"), from);

    expect(refreshed).toContain("45.10.4.0/22 would cross 45.10.5.0 - 45.10.8.255");
    expect(within).toMatchObject({ event: "added", moved: 2 });
    expect(await shown()).toEqual([
      "45.10.0.0/16  Old Name NL",
      "45.10.0.0/20 45.10.0.0/16 New Holder DE",
      "45.10.4.0/24 45.10.0.0/20 Old Name NL",
      "45.10.5.0 - 45.10.8.255 45.10.0.0/20 Old Name NL",
    ]);
    expect((await rangeHistory(database, "45.10.4.0/24")).generations[0]).toMatchObject({ event: "moved" });
    const after = await treeInForce(database);
    await rollbackImport(database);
    expect(await treeInForce(database)).toEqual(before);
    await rollForward(database);
    expect(await treeInForce(database)).toEqual(after);
    await rollbackImport(database);
  });

  it("again after that was rolled back: it returns with its id", async () => {
    await applyImport(database, [folder.write("a.db", tree)]);
    await refreshSubnet(database, answer("45.10.0.0/20"), from);
    const id = (await treeInForce(database)).find(({ range }) => range === "45.10.0.0/20")?.id;
    await rollbackImport(database);

    const refreshed = await refreshSubnet(database, answer("45.10.0.0/20", "Newer Name"), from);

    expect(refreshed).toMatchObject({ event: "returned", moved: 2 });
    expect((await treeInForce(database)).find(({ range }) => range === "45.10.0.0/20")).toMatchObject({
      id,
      holderName: "Newer Name",
      parent: "45.10.0.0/16",
    });
  });

  it("that crossed another when it was there before: it no longer counts as crossing", async () => {
    const crossed = `${net("45.10.0.0 - 45.10.3.255")}${net("45.10.2.0 - 45.10.5.255")}`;
    await applyImport(database, [folder.write("crossed.db", crossed)]);
    await applyImport(database, [folder.write("a.db", net("45.10.0.0 - 45.10.3.255"))]);
    await applyImport(database, [folder.write("b.db", net("46.10.0.0/16"))]);

    const refreshed = await refreshSubnet(database, answer("45.10.2.0 - 45.10.5.255"), from);

    expect(refreshed).toMatchObject({ event: "returned" });
    const { rows } = await database.pool.query("select from subnet where crosses and removed_in is null");
    expect(rows).toEqual([]);
  });

  it("and status still says how old the files are, and the next import has the last word", async () => {
    const file = folder.write("a.db", tree);
    await applyImport(database, [file]);
    const before = await shown();
    const muchLater = new Date(Date.now() + 200 * 86_400_000);
    await refreshSubnet(database, answer("45.10.0.0/16"), { ...from, date: muchLater });

    const { sources, outdated } = await registryStatus(database, muchLater);
    const { plan } = await applyImport(database, [file]);

    expect(sources.map(({ format }) => format).sort()).toEqual(["rdap", "rpsl"]);
    expect(outdated).toEqual(["ripencc"]);
    expect(plan.changes).toMatchObject({ changed: 1, unchanged: 2 });
    expect(await shown()).toEqual(before);
  });
});

describe("nothing is changed", () => {
  it("before the first import, and by what is no subnet", async () => {
    await expect(refreshSubnet(database, answer("45.10.0.0/16"), from)).rejects.toThrow("there is no import");
    await applyImport(database, [folder.write("a.db", tree)]);

    await expect(refreshSubnet(database, answer("10.0.0.0/8"), from)).rejects.toThrow("special-purpose");

    expect(await registryStatus(database)).toMatchObject({ generation: 1, unfinished: null });
  });
});
