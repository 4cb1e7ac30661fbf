/** `who ORGANISATION` among a few hundred holders: by handle, by name however it is written, and near names. */
import { beforeAll, describe, expect, it } from "vitest";
import { namesLike, organisationNamed } from "#coordinator/tell/who/holder-reads";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

type Seeded = readonly [name: string, handle: string | null, subnets?: number];

const particular: readonly Seeded[] = [
  ["Exemplary Harbour Networks GmbH", "ORG-EHN1-RIPE", 3],
  ["EXEMPLARY HARBOUR NETWORKS, INC.", "EHN-7", 5],
  ["Exemplary Harbour Hosting and Cloud Services Singapore", "ORG-EHH1-AP", 1],
  ["Telefonía Ejemplar S.A. de C.V.", null, 2],
  ["3M Company", "MMM-3"],
  ["QZ", "QZ-1"],
  ["100% Netz", "ORG-HN1-RIPE"],
  ["under_score Ltd", "ORG-US1-RIPE"],
  ["underXscore Ltd", "ORG-UX1-RIPE"],
  ["back\\slash Networks", "ORG-BS1-RIPE"],
  ['O\'Exemplar & Sons "Fibre"', "ORG-OE1-RIPE"],
  ["ORG-EHN1-RIPE", "ORG-DECOY-RIPE"],
  ["例示通信株式会社", "JP-EX"],
];
/** Others among which they have to be found. */
const crowd: readonly Seeded[] = Array.from({ length: 400 }, (_, index) => [
  `${["Alder", "Birch", "Cedar", "Elm"][index % 4]} ${["Telecom", "Internet", "Hosting"][index % 3]} ${index} Ltd`,
  `ORG-C${index}-RIPE`,
]);

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  const { pool } = database;
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const all = [...crowd, ...particular];
  await pool.query(
    `insert into holder (holder_key, name, handle, registry)
     select 'key:' || n, name, handle, 'ripencc'
     from unnest($1::text[], $2::text[]) with ordinality as given (name, handle, n)`,
    [all.map(([name]) => name), all.map(([, handle]) => handle)],
  );
  await pool.query(
    `insert into subnet (first_address, last_address, holder_id, registry, added_in)
     select '45.0.0.0'::inet + 256 * row_number() over (), '45.0.0.255'::inet + 256 * row_number() over (),
       holder_id, 'ripencc', 1
     from unnest($1::text[], $2::int[]) as given (name, subnets)
     join holder using (name)
     cross join generate_series(1, subnets)`,
    [particular.map(([name]) => name), particular.map(([, , subnets]) => subnets ?? 0)],
  );
});

const found = async (text: string) => {
  const report = await organisationNamed(database.pool, text, 10);
  return report && { name: report.name, handle: report.handle, subnets: report.subnetCount };
};
const near = async (text: string) => (await namesLike(database.pool, text, 8)).map(({ name }) => name);

describe("an organisation", () => {
  it("is found by its handle in any case, before one that bears the handle as its name", async () => {
    const expected = { name: "Exemplary Harbour Networks GmbH", handle: "ORG-EHN1-RIPE", subnets: 3 };

    expect(await found("ORG-EHN1-RIPE")).toEqual(expected);
    expect(await found("org-ehn1-ripe")).toEqual(expected);
  });

  it("is found by its very name in any case", async () => {
    expect(await found("exemplary harbour networks gmbh")).toMatchObject({ handle: "ORG-EHN1-RIPE" });
    expect(await found("Exemplary Harbour Networks, Inc.")).toMatchObject({ handle: "EHN-7" });
  });

  it("is found under another legal form, punctuation or accents; of several the one with most subnets", async () => {
    expect(await found("Exemplary Harbour Networks")).toMatchObject({ handle: "EHN-7", subnets: 5 });
    expect(await found("exemplary-harbour networks Ltd.")).toMatchObject({ handle: "EHN-7" });
    expect(await found("TELEFONIA EJEMPLAR SA")).toMatchObject({ name: "Telefonía Ejemplar S.A. de C.V." });
    expect(await found("例示通信")).toMatchObject({ handle: "JP-EX" });
  });

  it("is found when its name is short", async () => {
    expect(await found("3m")).toMatchObject({ handle: "MMM-3" });
    expect(await found("qz")).toMatchObject({ handle: "QZ-1" });
    expect(await found("QZ GmbH")).toMatchObject({ handle: "QZ-1" });
  });

  it("is found when its name has signs that mean something to SQL, which stand for themselves", async () => {
    expect(await found("100% netz")).toMatchObject({ handle: "ORG-HN1-RIPE" });
    expect(await found("under_score Ltd")).toMatchObject({ handle: "ORG-US1-RIPE" });
    expect(await found("underxscore ltd")).toMatchObject({ handle: "ORG-UX1-RIPE" });
    expect(await found("back\\slash networks")).toMatchObject({ handle: "ORG-BS1-RIPE" });
    expect(await found('o\'exemplar & sons "fibre"')).toMatchObject({ handle: "ORG-OE1-RIPE" });
  });

  it.each(["%", "_", "\\", "'", "", "%%%", "Exemplary%", "Ex_mplary Harbour Networks GmbH"])(
    "is not found by %j",
    async (text) => {
      expect(await found(text)).toBeNull();
    },
  );
});

describe("names like it", () => {
  it("come for a misspelt one, the best first", async () => {
    expect((await near("Exemplery Harbor Netwroks")).slice(0, 2).sort()).toEqual([
      "EXEMPLARY HARBOUR NETWORKS, INC.",
      "Exemplary Harbour Networks GmbH",
    ]);
    expect((await near("Telefonia Ejemplr"))[0]).toBe("Telefonía Ejemplar S.A. de C.V.");
  });

  it("come for a part of a long one", async () => {
    expect(await near("Harbour Hosting")).toContain("Exemplary Harbour Hosting and Cloud Services Singapore");
  });

  it("are at most as many as asked for, with similarities that fall from 1", async () => {
    const matches = await namesLike(database.pool, "Alder Telecom 12 Ltd", 8);

    expect(matches).toHaveLength(8);
    expect(matches[0]).toMatchObject({ type: "organisation", name: "Alder Telecom 12 Ltd", similarity: 1 });
    const similarities = matches.map(({ similarity }) => similarity);
    expect(similarities).toEqual([...similarities].sort((a, b) => b - a));
  });

  it("are none for signs alone, and for what resembles nothing", async () => {
    expect(await near("%_'\\")).toEqual([]);
    expect(await near("zzzzqqqq")).toEqual([]);
    expect(await near("x".repeat(2000))).toEqual([]);
  });

  it("leave the session's settings as they were", async () => {
    await near("Alder Telecom");

    const { rows } = await database.pool.query(
      "select current_setting('statement_timeout') as timeout, show_limit()::float8 as similarity",
    );
    expect(rows[0]).toMatchObject({ timeout: "0", similarity: expect.closeTo(0.3) });
  });
});
