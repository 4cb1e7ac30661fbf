/** `who` shows the geofeeds of networks: as page, text and JSON. */
import { beforeAll, expect, it } from "vitest";
import { answerWho } from "#coordinator/tell/who/answer";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { applyImport } from "#rir-import/apply";
import { geofeedFileOf } from "#rir-import/formats/geofeed";
import { sourceFolder } from "../rir-import/source-folder.ts";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { worldNow } from "../support/seed-world.ts";
import { shownAs } from "../support/shown-as.ts";
import { tinyResolver } from "../support/web-server.ts";

const feed = "https://a.example/geofeed.csv";
const database = await forThisFile(testDatabase());
beforeAll(async () => {
  const folder = sourceFolder();
  const object = `inetnum: 193.0.0.0 - 193.0.15.255\nnetname: EX\ncountry: NL\ndescr: Exemplary Networks\ngeofeed: ${feed}\nsource: RIPE\n`;
  const google = {
    syncToken: "7",
    creationTime: "2026-03-01T05:03:15.88",
    prefixes: [
      { ipv4Prefix: "193.0.0.0/22", scope: "europe-west4" },
      { ipv4Prefix: "193.0.1.0/24", scope: "global" },
    ],
  };
  await applyImport(database, [
    folder.write("ripe.db", object),
    folder.write("cloud.json", JSON.stringify(google)),
    folder.write(geofeedFileOf(feed), "193.0.0.0/21,NL,NL-NH,Amsterdam <b>,\n"),
  ]);
});

async function who(question: string) {
  const reads = everyRead(database.pool, () => performance.now());
  return await answerWho(question, { reads, resolver: tinyResolver, scope: null }, worldNow);
}

it("names each source with its place, its range and the date of its list", async () => {
  const answer = await who("193.0.2.7");

  expect(answer.published).toEqual([
    {
      ...{ source: "google", place: "google europe-west4", range: "193.0.0.0/22" },
      ...{ within: null, listDate: "2026-03-01" },
    },
    {
      ...{ source: `geofeed ${feed}`, place: "NL-NH Amsterdam <b>", range: "193.0.0.0/21" },
      ...{ within: "193.0.0.0/20", listDate: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
    },
  ]);
  const [google, geofeed] = shownAs(whoOperations.who, answer)
    .text.split("\n")
    .filter((line) => line.startsWith("Published: "));
  expect(google).toBe("Published: google says europe-west4 (193.0.0.0/22, list of 2026-03-01)");
  expect(geofeed).toContain(
    `geofeed ${feed} says NL-NH Amsterdam <b> (193.0.0.0/21, claimed within 193.0.0.0/20, list of `,
  );
});

it("escapes on the page what others wrote", async () => {
  const { page: markup } = shownAs(whoOperations.who, await who("193.0.2.7"));

  expect(markup).toContain("NL-NH Amsterdam &lt;b&gt;");
  expect(markup).not.toContain("Amsterdam <b>");
});

it("says that a range listed without a place has none, and is silent on others", async () => {
  expect(shownAs(whoOperations.who, await who("193.0.1.0/24")).words).toContain(
    "Published: google names it without a place (193.0.1.0/24, list of 2026-03-01)",
  );
  expect((await who("193.0.12.1")).published).toEqual([]);
  expect((await who("8.8.8.8")).published).toEqual([]);
});
