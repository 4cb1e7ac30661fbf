/** A routing table among the files of an import: planned, applied, rolled back, and looked up, against a real Postgres. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { announcedSpaceOf, announcementOf, readOriginTable } from "#coordinator/subnets/routing-table-store";
import { TooFewRoutes } from "#core/errors";
import { parseRange } from "#core/ip/range";
import { seededRandom } from "#core/random";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { planImport } from "#rir-import/plan";
import { refreshSubnet } from "#rir-import/refresh-subnet";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

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

const tree = "inetnum: 45.10.0.0/16\nnetname: EX\ncountry: NL\ndescr: Example\nsource: RIPE\n\n";
const routesA = "% RIS\n3333\t45.10.0.0/16\t300\n1103\t45.10.4.0/22\t300\n3333\t2a02:f00::/32\t300\n";
const routesB = "% RIS\n3333\t45.10.0.0/16\t300\n1104\t45.10.4.0/22\t300\n1103\t45.10.8.0/22\t300\n";

async function apply(routes: string | null, keptRoutes?: number) {
  const files = [
    folder.write("tree.db", tree),
    ...(routes === null ? [] : [folder.write("routes.txt", routes)]),
  ];
  return await applyImport(database, files, { keptRoutes: keptRoutes ?? null });
}

const asNumberOf = async (range: string) =>
  (await readOriginTable(database.pool)).asNumberOf(parseRange(range)!);
const origins = async () =>
  await Promise.all(["45.10.0.0/24", "45.10.4.0/24", "45.10.8.0/24", "2a02:f00::/48"].map(asNumberOf));
const tables = async () =>
  (await database.pool.query<{ tables: number }>("select count(*)::int as tables from routing_table"))
    .rows[0]!.tables;

describe("an import with a routing table", () => {
  it("says in its plan what changes, and puts it in force with the tree", async () => {
    const first = await apply(routesA);
    const plan = await planImport(database, [
      folder.write("tree.db", tree),
      folder.write("routes.txt", routesB),
    ]);
    expect(await origins()).toEqual([3333, 1103, 3333, 3333]);
    const second = await apply(routesB);

    expect(first.plan.routes).toMatchObject({
      before: 0,
      after: 3,
      ipv4Prefixes: 2,
      ipv6Prefixes: 1,
      asCount: 2,
      added: 3,
    });
    expect(plan.routes).toMatchObject({
      before: 3,
      after: 3,
      added: 1,
      removed: 1,
      changed: 1,
      multiOrigin: 0,
    });
    expect(plan.routes.samples).toEqual([
      { prefix: "45.10.4.0/22", before: 1103, after: 1104 },
      { prefix: "45.10.8.0/22", before: null, after: 1103 },
      { prefix: "2a02:f00::/32", before: 3333, after: null },
    ]);
    expect(second).toMatchObject({ isNew: true, generation: 2 });
    expect(await origins()).toEqual([3333, 1104, 1103, null]);
  });

  it("makes no generation of the same routes, and no second table of routes beside another tree", async () => {
    await apply(routesA);
    const again = await apply(routesA);
    await applyImport(database, [
      folder.write("tree.db", `${tree}inetnum: 45.10.0.0/17\nnetname: EX\nsource: RIPE\n`),
      folder.write("routes.txt", routesA),
    ]);

    expect(again.isNew).toBe(false);
    expect(await tables()).toBe(1);
    expect(await origins()).toEqual([3333, 1103, 3333, 3333]);
  });

  it("is rolled back and forward with its generation", async () => {
    await apply(routesA);
    await apply(routesB);
    await rollbackImport(database);
    const back = await origins();
    await rollForward(database);

    expect(back).toEqual([3333, 1103, 3333, 3333]);
    expect(await origins()).toEqual([3333, 1104, 1103, null]);
  });

  it("stays in force when one subnet is refreshed from its registry", async () => {
    await apply(routesA);
    await refreshSubnet(
      database,
      {
        type: "network",
        line: 1,
        source: "whois",
        range: parseRange("45.10.0.0/16")!,
        registry: "ripencc",
        name: "NEW",
        country: "DE",
        holder: null,
      },
      { source: "https://rdap.example/", date: new Date("2026-03-01") },
    );

    expect(await origins()).toEqual([3333, 1103, 3333, 3333]);
  });

  it("keeps five tables for rollbacks, besides the one in force", async () => {
    for (let turn = 0; turn < 8; turn += 1) await apply(`3333\t45.10.${turn}.0/24\t300\n`);

    expect(await tables()).toBe(5);
    expect(await asNumberOf("45.10.7.0/24")).toBe(3333);
  });
});

describe("a prefix of several ASes", () => {
  it("counts for the one that most peers see, of equals for the lowest number, in any order of lines", async () => {
    const lines = [
      "300\t45.10.0.0/24\t200",
      "100\t45.10.0.0/24\t100",
      "200\t45.10.0.0/24\t200",
      "500\t45.10.4.0/24\t11",
      "400\t45.10.4.0/24\t12",
    ];
    const seed = 7;
    const random = seededRandom(seed);
    for (let turn = 0; turn < 5; turn += 1) {
      const { plan } = await apply(lines.toSorted(() => random() - 0.5).join("\n"));

      expect(plan.routes.multiOriginSamples, `seed ${seed}`).toEqual([
        { prefix: "45.10.0.0/24", asNumbers: [200, 300, 100] },
        { prefix: "45.10.4.0/24", asNumbers: [400, 500] },
      ]);
    }
    expect(await asNumberOf("45.10.0.0/24")).toBe(200);
  });
});

describe("a table that loses more than half of its prefixes", () => {
  const many = Array.from({ length: 40 }, (_, at) => `3333\t45.10.${at}.0/24\t300`);

  it("is refused, also where its file is left out, until the number that stays is said", async () => {
    await apply(many.join("\n"));
    const cut = apply(many.slice(0, 19).join("\n"));

    await expect(cut).rejects.toBeInstanceOf(TooFewRoutes);
    await expect(cut).rejects.toThrow(
      "this leaves 19 of the 40 prefixes of the routing table. Nothing was changed; if that is meant, say --yes-routes 19",
    );
    await expect(apply(null)).rejects.toThrow("leaves 0 of the 40 prefixes");
    await expect(apply(null, 3)).rejects.toThrow("and not 3");
    expect(await asNumberOf("45.10.39.0/24")).toBe(3333);

    await apply(null, 0);
    expect(await asNumberOf("45.10.39.0/24")).toBeNull();
  });

  it("is not asked about where half of it stays", async () => {
    await apply(many.join("\n"));

    expect((await apply(many.slice(0, 20).join("\n"))).isNew).toBe(true);
  });
});

describe("asked without the whole table", () => {
  it("an address has the AS and the most specific prefix over it", async () => {
    await apply(routesA);
    const asked = async (address: string) => await announcementOf(database.pool, address);

    expect(await asked("45.10.5.6")).toEqual({ asNumber: 1103, prefix: "45.10.4.0/22" });
    expect(await asked("45.10.99.6")).toEqual({ asNumber: 3333, prefix: "45.10.0.0/16" });
    expect(await asked("2a02:f00::1")).toEqual({ asNumber: 3333, prefix: "2a02:f00::/32" });
    expect([await asked("45.11.0.1"), await asked("1.1.1.1"), await asked("2a03::1")]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it("an AS has its prefixes, and the ranges that they make", async () => {
    await apply(`${routesA}3333\t45.11.0.0/16\t300\n`);

    expect(await announcedSpaceOf(database.pool, 3333, 2)).toEqual({
      asNumber: 3333,
      ipv4Prefixes: 2,
      ipv6Prefixes: 1,
      prefixes: ["45.10.0.0/16", "45.11.0.0/16"],
      ranges: [
        { first: "45.10.0.0", last: "45.11.255.255" },
        { first: "2a02:f00::", last: "2a02:f00:ffff:ffff:ffff:ffff:ffff:ffff" },
      ],
    });
    expect(await announcedSpaceOf(database.pool, 9999, 2)).toBeNull();
  });
});
