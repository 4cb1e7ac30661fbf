/**
 * Where networks publish that their ranges lie, from files to a coordinator's memory, on a real database.
 *
 *   193.0.0.0/20      names https://a.example/geofeed.csv, in the attribute
 *     193.0.8.0/22    names https://b.example/geofeed.csv, in a remark
 *   45.10.0.0/16      names none
 */
import { utimesSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import type { FrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { followRegistry } from "#coordinator/load-state";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { publishedOf } from "#coordinator/place/subnets/published-reads";
import { createSubnetStore } from "#coordinator/place/subnets/subnet-store";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { silentLog } from "#core/log";
import { planText } from "#ops/cli/rir/plan-text";
import { applyImport } from "#rir-import/apply";
import { geofeedFileOf } from "#rir-import/formats/geofeed";
import { planImport } from "#rir-import/plan";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

const feedA = "https://a.example/geofeed.csv";
const feedB = "https://b.example/geofeed.csv";
const objects = `inetnum: 193.0.0.0 - 193.0.15.255
netname: OUTER
country: NL
descr: Exemplary Networks
remarks: Geofeed https://ignored.example/beside-the-attribute.csv
geofeed: ${feedA}
source: RIPE

inetnum: 193.0.8.0 - 193.0.11.255
netname: INNER
country: NL
descr: Exemplary Customers
remarks: something else
remarks: Geofeed ${feedB}
remarks: Geofeed https://second.example/
source: RIPE

inetnum: 45.10.0.0 - 45.10.255.255
netname: OTHER
country: DE
descr: Somebody Else
remarks: geofeed http://plain.example/geofeed.csv
source: RIPE
`;
const aws = (prefixes: Readonly<Record<string, string>>, createDate = "2026-03-01-09-00-03") =>
  JSON.stringify({
    syncToken: "1",
    createDate,
    prefixes: Object.entries(prefixes).map(([ip_prefix, region]) => ({ ip_prefix, region, service: "EC2" })),
    ipv6_prefixes: [],
  });
/** This many /24 of 45.10.0.0/16 in one region and in another. */
const awsOf = (frankfurt: number, dublin: number) =>
  aws(
    Object.fromEntries(
      Array.from({ length: frankfurt + dublin }, (_, at) => [
        `45.10.${at}.0/24`,
        at < frankfurt ? "eu-central-1" : "eu-west-1",
      ]),
    ),
  );

const database = await forThisFile(testDatabase());
let folder: SourceFolder;
beforeEach(async () => {
  folder = sourceFolder();
  await database.pool.query("truncate registry_generation, subnet, holder, published_list cascade");
});

const dump = () => folder.write("ripe.db", objects);
function feed(url: string, text: string, day = "2026-02-03"): string {
  const file = folder.write(geofeedFileOf(url), text);
  utimesSync(file, new Date(day), new Date(day));
  return file;
}

async function said(range: string): Promise<readonly string[]> {
  const inMemory = (await createSubnetStore(database.pool).readPublished()).of(parseRange(range) as IpRange);
  const [first, last] = range.includes("/") ? endsOf(range) : [range, range];
  const inDatabase = await publishedOf(database.pool, first, last);
  const words = (of: typeof inMemory) =>
    of.map(({ list, place, within, range: of }) =>
      [
        list.source,
        list.listDate,
        place ?? "nowhere",
        formatRange(of),
        ...(within ? [`within ${within}`] : []),
      ].join(" · "),
    );
  expect(words(inDatabase).sort()).toEqual(words(inMemory).sort());
  return words(inMemory).sort();
}

function endsOf(range: string): readonly [string, string] {
  const { first, last } = parseRange(range) as IpRange;
  const text = (value: number | bigint) =>
    formatRange({ family: 4, first: Number(value), last: Number(value) }).replace("/32", "");
  return [text(first), text(last)];
}

describe("what is imported", () => {
  it("is known to a coordinator and to a question by range, each source with its date", async () => {
    const applied = await applyImport(database, [
      dump(),
      feed(feedA, "193.0.0.0/21,NL,NL-NH,Amsterdam,\n"),
      folder.write("aws.json", aws({ "193.0.0.0/22": "eu-central-1" })),
      folder.write("egress.csv", "45.10.3.0/24,DE,DE-BE,Berlin,\n"),
    ]);

    expect(applied.plan.published).toMatchObject({
      lists: 3,
      ranges: 3,
      added: 3,
      changedLists: 3,
      heldBack: [],
    });
    expect(await said("193.0.1.0/24")).toEqual([
      "aws · 2026-03-01 · aws eu-central-1 · 193.0.0.0/22",
      `geofeed ${feedA} · 2026-02-03 · NL-NH Amsterdam · 193.0.0.0/21 · within 193.0.0.0/20`,
    ]);
    expect(await said("45.10.3.7")).toEqual([
      expect.stringMatching(/^geofeed egress · \d{4}-\d\d-\d\d · DE-BE Berlin · 45\.10\.3\.0\/24$/),
    ]);
    expect(await said("193.0.0.0/20")).toEqual([
      `geofeed ${feedA} · 2026-02-03 · NL-NH Amsterdam · 193.0.0.0/21 · within 193.0.0.0/20`,
    ]);
    expect(await said("45.10.4.0/24")).toEqual([]);
  });

  it("of a geofeed has the entries within the ranges of the objects that name it, the most specific object first", async () => {
    const applied = await applyImport(database, [
      dump(),
      feed(feedA, "193.0.0.0/21,NL,,,\n193.0.8.0/24,FR,,,\n45.10.0.0/24,US,,,\n193.0.0.0/16,US,,,\n"),
      feed(feedB, "193.0.8.0/24,DE,,,\n193.0.0.0/24,US,,,\n193.0.9.0/24,DE,,,\n193.0.9.0/24,SE,,,\n"),
      feed("https://ignored.example/beside-the-attribute.csv", "193.0.0.0/24,US,,,\n"),
    ]);

    const report = applied.plan.files.find(({ format }) => format === "geofeeds");
    expect(report).toMatchObject({
      kept: 3,
      ignored: { "a geofeed that no registry object names any more": 1 },
      malformed: 5,
    });
    const outside = "outside every range whose registry object names this geofeed";
    const refused = report?.malformedSamples.map(
      ({ file, line, reason, value }) => `${file}:${line}: ${reason}: ${value}`,
    );
    expect(refused?.sort()).toEqual([
      `${feedA}:2: the object of 193.0.8.0/22 names another geofeed: 193.0.8.0/24`,
      `${feedA}:3: ${outside}: 45.10.0.0/24`,
      `${feedA}:4: ${outside}: 193.0.0.0/16`,
      `${feedB}:2: ${outside}: 193.0.0.0/24`,
      `${feedB}:4: a range at two places: it counts as at none: 193.0.9.0/24: DE, SE`,
    ]);
    expect(await said("193.0.8.0/25")).toEqual([
      `geofeed ${feedB} · 2026-02-03 · DE · 193.0.8.0/24 · within 193.0.8.0/22`,
    ]);
    expect(await said("193.0.9.0/25")).toEqual([
      `geofeed ${feedB} · 2026-02-03 · nowhere · 193.0.9.0/24 · within 193.0.8.0/22`,
    ]);
    expect(await said("45.10.0.0/24")).toEqual([]);
  });

  it("may be named in ARIN's comments, in XML and in text, and applies to the net that names it alone", async () => {
    const net = (handle: string, blocks: readonly (readonly [string, string])[], comment = "") =>
      `<net><handle>${handle}</handle><name>${handle}</name>${comment}<netBlocks>${blocks
        .map(
          ([first, last]) =>
            `<netBlock><endAddress>${last}</endAddress><startAddress>${first}</startAddress><type>S</type></netBlock>`,
        )
        .join("")}</netBlocks><orgHandle>EX</orgHandle></net>\n`;
    const lines = (...texts: readonly string[]) =>
      `<comment>${texts.map((text, at) => `<line number="${at}">${text}</line>`).join("")}</comment>`;
    const xml = `<bulkwhois xmlns="http://www.arin.net/bulkwhois/core/v1">
${net("NET-1", [["050.000.000.000", "050.000.000.255"]], lines("Call us", `Geofeed ${feedA}`))}
${net("NET-2", [["050.000.001.000", "050.000.001.255"]])}
${net(
  "NET-3",
  [
    ["050.000.002.000", "050.000.002.255"],
    ["050.000.004.000", "050.000.004.255"],
  ],
  lines(`Geofeed ${feedA}`),
)}
${net("NET-4", [["050.000.003.000", "050.000.003.255"]], lines("<![CDATA[irregular]]>"))}
</bulkwhois>`;
    const text = `NetHandle: NET-5\nNetRange: 50.0.5.0 - 50.0.5.255\nNetName: EX\nNetType: assignment\nOrgID: EX\nComment: geofeed ${feedA}\n\n`;
    await applyImport(database, [
      folder.write("arin_db.xml", xml),
      folder.write("arin_db.txt", text),
      feed(feedA, Array.from({ length: 6 }, (_, at) => `50.0.${at}.0/24,US,,Place ${at},\n`).join("")),
    ]);

    const named = (await Promise.all([0, 1, 2, 3, 4, 5].map((at) => said(`50.0.${at}.0/24`)))).map((words) =>
      words.map((word) => word.replace(/^.*(Place \d).*within /, "$1 ")),
    );
    expect(named).toEqual([
      ["Place 0 50.0.0.0/24"],
      [],
      ["Place 2 50.0.2.0/24"],
      [],
      ["Place 4 50.0.4.0/24"],
      ["Place 5 50.0.5.0/24"],
    ]);
  });

  it("fails where a cloud's list is damaged, or there are two; the tree stays", async () => {
    const file = folder.write("aws.json", aws({ "45.10.0.0/24": "eu-central-1" }).slice(0, -20));
    await expect(applyImport(database, [dump(), file])).rejects.toThrow(/aws\.json: not JSON/);
    const [one, other] = ["one.json", "two.json"].map((name) => folder.write(name, awsOf(1, 1)));
    await expect(applyImport(database, [dump(), one!, other!])).rejects.toThrow(
      /a second list of aws: .*one\.json/,
    );
    expect((await database.pool.query("select from subnet")).rowCount).toBe(0);
  });

  it("is empty where nothing is published, and an import without a list removes the older one", async () => {
    await applyImport(database, [dump(), folder.write("aws.json", awsOf(2, 0))]);
    const applied = await applyImport(database, [dump()]);
    expect(applied).toMatchObject({ isNew: true, plan: { published: { removed: 2, changedLists: 1 } } });
    expect((await createSubnetStore(database.pool).readPublished()).count).toBe(0);
  });
});

it("a running coordinator places subnets by it as soon as it is imported, and no more once it is rolled back", async () => {
  await applyImport(database, [dump()]);
  const state = new CoordinatorState();
  const following = await followRegistry({
    subnets: createSubnetStore(database.pool),
    ensureRoots: async () => false,
    frontier: { reassignSubnets: async () => 0 } as unknown as FrontierStore,
    state,
    log: silentLog,
  });
  const placement = (address: string) => state.placementOf(state.subnetOf(address)!);
  try {
    await until(() => state.subnetOf("193.0.0.1") !== null, 10_000);
    expect(placement("193.0.0.1")).not.toHaveProperty("published");

    await applyImport(database, [
      dump(),
      feed(feedA, "193.0.0.0/21,NL,NL-NH,Amsterdam,\n"),
      folder.write("aws.json", aws({ "193.0.0.0/16": "eu-central-1", "193.0.8.0/22": "GLOBAL" })),
    ]);
    await until(() => placement("193.0.0.1")?.published !== undefined, 10_000);
    expect(placement("193.0.0.1")?.published).toEqual([
      { source: "aws", place: "aws eu-central-1" },
      { source: `geofeed ${feedA}`, place: "NL-NH Amsterdam" },
    ]);
    expect(placement("193.0.8.1")).not.toHaveProperty("published");
    expect(placement("45.10.0.1")).not.toHaveProperty("published");

    await rollbackImport(database);
    await until(() => placement("193.0.0.1")?.published === undefined, 10_000);
  } finally {
    await following.stop();
  }
});

describe("a plan", () => {
  it("lists what is added, removed and moved per source, and changes nothing", async () => {
    const files = [dump(), folder.write("aws.json", awsOf(30, 10))];
    await applyImport(database, files);
    const later = aws(
      { "45.10.0.0/24": "eu-west-1", "45.10.1.0/24": "eu-central-1", "45.10.200.0/24": "GLOBAL" },
      "2026-04-01-00-00-00",
    );

    const plan = await planImport(database, [dump(), folder.write("later.json", later)]);

    expect(plan.published.sources).toEqual([
      {
        ...{ source: "aws", kind: "aws", isNamedByObjects: false, listDate: "2026-04-01", version: "1" },
        ...{ ranges: 3, places: 2, withoutPlace: 1, rangesBefore: 40, added: 1, removed: 38, moved: 1 },
        movedSamples: [{ range: "45.10.0.0/24", before: "aws eu-central-1", after: "aws eu-west-1" }],
        isHeldBack: false,
      },
    ]);
    expect(await said("45.10.0.0/24")).toEqual(["aws · 2026-03-01 · aws eu-central-1 · 45.10.0.0/24"]);
  });

  it("does nothing for the same files, and takes a list's new date without writing its ranges again", async () => {
    const file = folder.write("aws.json", awsOf(3, 0));
    await applyImport(database, [dump(), file]);
    expect((await applyImport(database, [dump(), file])).isNew).toBe(false);
    folder.write("aws.json", awsOf(3, 0).replace("2026-03-01", "2026-03-08"));

    const applied = await applyImport(database, [dump(), file]);

    expect(applied).toMatchObject({ isNew: true, plan: { published: { changedLists: 0 } } });
    expect(await said("45.10.0.0/24")).toEqual(["aws · 2026-03-08 · aws eu-central-1 · 45.10.0.0/24"]);
    expect((await database.pool.query("select from published_list")).rowCount).toBe(1);
  });
});

describe("a list that moves more than 30 % of its ranges", () => {
  beforeEach(async () => {
    await applyImport(database, [dump(), folder.write("aws.json", awsOf(40, 0))]);
  });

  it("is held back and the list in force stays; the rest of the import succeeds", async () => {
    const applied = await applyImport(database, [
      dump(),
      folder.write("aws.json", awsOf(20, 20)),
      feed(feedA, "193.0.0.0/21,NL,,,\n"),
    ]);

    expect(applied.plan.published).toMatchObject({ heldBack: ["aws"], moved: 20, changedLists: 1 });
    const text = planText(applied.plan);
    expect(text).toMatch(/^2 lists with /m);
    expect(text).toContain("WARNING: Held back. aws moves more than 30 % of its ranges to other places");
    expect(text).toContain("· 45.10.20.0/24 aws eu-central-1 → aws eu-west-1");
    expect(await said("45.10.30.0/24")).toEqual(["aws · 2026-03-01 · aws eu-central-1 · 45.10.30.0/24"]);
    expect(await said("193.0.1.0/24")).toHaveLength(1);
  });

  it("is accepted when confirmed, or when the list in force is a quarter older", async () => {
    const file = folder.write("aws.json", awsOf(20, 20));
    await applyImport(database, [dump(), file], { yesMoved: ["google"] });
    expect(await said("45.10.30.0/24")).toEqual(["aws · 2026-03-01 · aws eu-central-1 · 45.10.30.0/24"]);

    await applyImport(database, [dump(), file], { yesMoved: ["aws"] });
    expect(await said("45.10.30.0/24")).toEqual(["aws · 2026-03-01 · aws eu-west-1 · 45.10.30.0/24"]);

    folder.write("aws.json", awsOf(40, 0).replace("2026-03-01", "2026-06-02"));
    await applyImport(database, [dump(), file]);
    expect(await said("45.10.30.0/24")).toEqual(["aws · 2026-06-02 · aws eu-central-1 · 45.10.30.0/24"]);
  });

  it("is accepted where it moves less", async () => {
    await applyImport(database, [dump(), folder.write("aws.json", awsOf(30, 10))]);
    expect(await said("45.10.35.0/24")).toEqual(["aws · 2026-03-01 · aws eu-west-1 · 45.10.35.0/24"]);
  });
});

describe("a rollback", () => {
  it("restores the earlier lists, a roll forward the later ones; the latest eight imports are kept", async () => {
    const file = folder.write("aws.json", awsOf(1, 0));
    await applyImport(database, [dump(), file]);
    folder.write("aws.json", awsOf(0, 1));
    await applyImport(database, [dump(), file]);
    expect(await said("45.10.0.0/24")).toEqual(["aws · 2026-03-01 · aws eu-west-1 · 45.10.0.0/24"]);

    await rollbackImport(database);
    expect(await said("45.10.0.0/24")).toEqual(["aws · 2026-03-01 · aws eu-central-1 · 45.10.0.0/24"]);
    await rollForward(database);
    expect(await said("45.10.0.0/24")).toEqual(["aws · 2026-03-01 · aws eu-west-1 · 45.10.0.0/24"]);

    for (let ranges = 2; ranges < 11; ranges += 1) {
      folder.write("aws.json", awsOf(ranges, 0));
      await applyImport(database, [dump(), file]);
    }
    expect((await database.pool.query("select from published_list")).rowCount).toBe(8);
    expect(await said("45.10.9.0/24")).toHaveLength(1);
  });
});
