/** The incident store: one row per crawler, kind and hour, however many arrive. */
import { beforeAll, beforeEach, expect, it } from "vitest";
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
const incidents = createIncidentStore(database.pool);
const flood = (at: Date, words = "too much") => ({
  ...{ crawlerId: north, kind: "flood", words, remoteAddress: "192.0.2.1", at },
});

it("counts incidents of one crawler, kind and hour in one row, with the latest words", async () => {
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
    ...{ crawlerId: north, crawler: "north", firstAt: minute(1), lastAt: minute(59) },
    ...{ words: "still too much", file: "User-agent: *" },
  });
});

it("counts strangers together, whatever their address, and leaves out unknown crawlers and long words", async () => {
  const strangers = Array.from({ length: 20 }, (_, n) => ({
    ...{ ...flood(noon), crawlerId: null, remoteAddress: `192.0.2.${n}` },
  }));
  await Promise.all(strangers.map((one) => incidents.record(one)));
  await incidents.recordAll([
    { ...flood(noon), crawlerId: 9999 as CrawlerId },
    flood(noon, `\0${"x".repeat(5000)}`),
  ]);

  const listed = await incidents.list({ since: noon });
  expect(listed.map(({ crawler, count }) => [crawler, count])).toEqual([
    ["north", 1],
    [null, 20],
  ]);
  expect(listed[0]?.words.length).toBeLessThanOrEqual(500);
});

it("finds incidents by name, kind and time, and forgets them by time", async () => {
  await incidents.recordAll([flood(noon), { ...flood(minute(90)), crawlerId: null }]);

  const ofNorth = await incidents.list({ since: noon, name: "north" });
  const late = await incidents.list({ since: minute(60), kind: "flood" });
  const forgotten = await incidents.forget(minute(60));

  expect([...ofNorth, ...late].map(({ crawler }) => crawler)).toEqual(["north", null]);
  expect([forgotten, (await incidents.list({ since: noon })).length]).toEqual([1, 1]);
});
