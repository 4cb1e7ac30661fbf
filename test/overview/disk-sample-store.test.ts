/** How fast the disk of the database fills, from past samples. */
import { afterEach, expect, it } from "vitest";
import { diskFacts, sampleDisk } from "#coordinator/tell/overview/figure-store";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());
afterEach(async () => {
  await database.pool.query("delete from disk_sample");
});

const now = new Date("2026-03-01T12:00:00Z");
const before = (hours: number) => new Date(now.getTime() - hours * 3_600_000);

async function samples(...rows: readonly (readonly [hours: number, freeBytes: number | null])[]) {
  for (const [hours, free] of rows)
    await database.pool.query("insert into disk_sample values ($1, 1000, $2)", [before(hours), free]);
}

it("the pace is the last day's, measured over at least three hours", async () => {
  await samples([2.9, 100e9], [0, 90e9]);
  const early = await diskFacts(database.pool, now);
  await samples([12, 100e9], [25, 500e9], [0.5, null]);

  expect(early).toEqual({ freeBytes: 90e9, lostBytesPerDay: null });
  expect(await diskFacts(database.pool, now)).toEqual({ freeBytes: 90e9, lostBytesPerDay: 20e9 });
});

it("nothing is known of a disk without recent samples, or on another machine", async () => {
  await samples([0.7, 100e9], [0.1, null]);

  expect(await diskFacts(database.pool, now)).toBeNull();
});

it("a sample has the size of the database and its free space, and old samples are deleted", async () => {
  await samples([14 * 24 + 1, 1]);

  const { databaseBytes, freeBytes } = await sampleDisk(database.pool, { now, roomBytes: 50e9 });
  const full = await sampleDisk(database.pool, { now: before(1), roomBytes: 1000 });
  const { rows } = await database.pool.query("select free_bytes::float8 as free from disk_sample order by 1");

  expect(databaseBytes).toBeGreaterThan(1_000_000);
  expect(freeBytes).toBe(50e9 - databaseBytes);
  expect(full.freeBytes).toBe(0);
  expect(rows).toEqual([{ free: 0 }, { free: freeBytes }]);
});

it.skipIf(process.env.DATABASE_URL !== undefined)("an embedded server's disk is measured", async () => {
  const { freeBytes } = await sampleDisk(database.pool, { now, roomBytes: null });

  expect(freeBytes).toBeGreaterThan(0);
});
