/** How fast the disk of the database fills, from samples that lie back. */
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

it("the pace is that of the last day, from three hours on", async () => {
  await samples([2.9, 100e9], [0, 90e9]);
  const early = await diskFacts(database.pool, now);
  await samples([12, 100e9], [25, 500e9], [0.5, null]);

  expect(early).toEqual({ freeBytes: 90e9, lostBytesPerDay: null });
  expect(await diskFacts(database.pool, now)).toEqual({ freeBytes: 90e9, lostBytesPerDay: 20e9 });
});

it("nothing is told of a disk that nobody has looked at for a while, or that is another machine's", async () => {
  await samples([0.7, 100e9], [0.1, null]);

  expect(await diskFacts(database.pool, now)).toBeNull();
});

it("a sample has the size of the database and what is left of its room, and old ones go", async () => {
  await samples([14 * 24 + 1, 1]);

  const { databaseBytes, freeBytes } = await sampleDisk(database.pool, { now, roomBytes: 50e9 });
  const full = await sampleDisk(database.pool, { now: before(1), roomBytes: 1000 });
  const { rows } = await database.pool.query("select free_bytes::float8 as free from disk_sample order by 1");

  expect(databaseBytes).toBeGreaterThan(1_000_000);
  expect(freeBytes).toBe(50e9 - databaseBytes);
  expect(full.freeBytes).toBe(0);
  expect(rows).toEqual([{ free: 0 }, { free: freeBytes }]);
});

it.skipIf(process.env.DATABASE_URL !== undefined)(
  "of an embedded server the disk itself is asked",
  async () => {
    const { freeBytes } = await sampleDisk(database.pool, { now, roomBytes: null });

    expect(freeBytes).toBeGreaterThan(0);
  },
);
