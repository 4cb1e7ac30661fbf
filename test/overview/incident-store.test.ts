/** Incidents in the database: one row per crawler, kind and hour, whatever floods in. */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import type { CrawlerId } from "#core/ids";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());
let north: CrawlerId;
beforeAll(async () => {
  north = await createCrawlerStore(database.pool).register({ name: "north", keyHash: "0" });
});
beforeEach(async () => {
  await database.pool.query("truncate incident");
});

const noon = new Date("2026-11-20T12:00:00Z");
const minute = (minutes: number) => new Date(noon.getTime() + minutes * 60_000);
const flood = (at: Date, words = "too much") => ({
  crawlerId: north,
  kind: "flood",
  words,
  remoteAddress: "192.0.2.1",
  at,
});

describe("incidents", () => {
  it("of one crawler, kind and hour are one row that counts and keeps the latest words", async () => {
    const incidents = createIncidentStore(database.pool);

    await incidents.recordAll([flood(minute(1)), { ...flood(minute(2)), count: 40 }]);
    await incidents.record({ ...flood(minute(59), "still too much"), file: "User-agent: *\0" });
    await incidents.record(flood(minute(60)));
    await incidents.record({ ...flood(minute(5)), kind: "copied-folder", remoteAddress: null });

    const listed = await incidents.list({ since: noon });
    expect(listed.map(({ kind, count }) => [kind, count])).toEqual([
      ["flood", 1],
      ["flood", 42],
      ["copied-folder", 1],
    ]);
    expect(listed[1]).toMatchObject({
      crawlerId: north,
      crawler: "north",
      firstAt: minute(1),
      lastAt: minute(59),
      words: "still too much",
      file: "User-agent: *",
    });
  });

  it("of strangers are counted together, whichever address they come from", async () => {
    const incidents = createIncidentStore(database.pool);

    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        incidents.record({ ...flood(noon), crawlerId: null, remoteAddress: `192.0.2.${n}` }),
      ),
    );

    expect(await incidents.list({ since: noon })).toMatchObject([{ crawler: null, count: 20 }]);
  });

  it("are found by name, kind and time, and forgotten by time", async () => {
    const incidents = createIncidentStore(database.pool);
    await incidents.recordAll([flood(noon), { ...flood(minute(90)), crawlerId: null }]);

    const ofNorth = await incidents.list({ since: noon, name: "north" });
    const late = await incidents.list({ since: minute(60), kind: "flood" });
    const forgotten = await incidents.forget(minute(60));

    expect(ofNorth.map(({ crawler }) => crawler)).toEqual(["north"]);
    expect(late.map(({ crawler }) => crawler)).toEqual([null]);
    expect([forgotten, (await incidents.list({ since: noon })).length]).toEqual([1, 1]);
  });

  it("of a crawler that nobody knows, and words that no column holds, do no harm", async () => {
    const incidents = createIncidentStore(database.pool);

    await incidents.recordAll([
      { ...flood(noon), crawlerId: 9999 as CrawlerId },
      flood(noon, `\0${"x".repeat(5000)}`),
    ]);

    const [entry, ...others] = await incidents.list({ since: noon });
    expect(others).toEqual([]);
    expect(entry?.words.length).toBeLessThanOrEqual(500);
  });
});
