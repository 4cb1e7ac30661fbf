/** Which slices there are and who owns what, as operators change it: together, wrongly, and after a slice went back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BucketOwners, bucketOf, hashesOf } from "#coordinator/database/slices";
import { assignLeads, readCatalogue } from "#coordinator/slices/catalogue-store";
import { mendSlice } from "#coordinator/slices/mend-slice-writes";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import { balancedMoves, bucketsOfMove } from "#coordinator/slices/plan-moves";
import { sliceReport } from "#coordinator/slices/slice-reads";
import { addSlice, drainSlice, moveBuckets } from "#coordinator/slices/slice-writes";
import type { HostHash } from "#core/ids";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { noon, scope, seeds } from "../support/store-world.ts";

let database: Database;
let world: SlicedWorld;
beforeAll(async () => {
  database = await testDatabase();
  world = await slicedWorld(database);
  await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
});
afterAll(async () => {
  await world?.close();
  await database?.close();
});

const hosts = Array.from({ length: 20 }, (_, index) => `host-${index}.example`);
const add = async () =>
  await addSlice(database, {
    ...{ serverUrl: null, schema: null, sharedUrl: database.url, by: "test", balance: false },
  });
const hostsBySlice = async () => {
  const rows = await world.rows<{ host: string }>("select host from frontier_host");
  return new Map(rows.map(({ host, slice }) => [host, slice]));
};

describe("buckets", () => {
  it("are the first 12 bits of a hash, from the smallest on", () => {
    expect(bucketOf("-9223372036854775808" as HostHash)).toBe(0);
    expect(bucketOf("-1" as HostHash)).toBe(2047);
    expect(bucketOf("0" as HostHash)).toBe(2048);
    expect(bucketOf("9223372036854775807" as HostHash)).toBe(4095);
    expect(hashesOf({ first: 2048, end: 2049 })).toEqual(["0", String(2n ** 52n - 1n)]);
  });

  it("have one owner each, or are refused", () => {
    expect(() => new BucketOwners([{ first: 0, end: 4095, slice: 0 }])).toThrow("bucket 4095 has no owner");
    expect(
      () =>
        new BucketOwners([
          { first: 0, end: 4096, slice: 0 },
          { first: 7, end: 8, slice: 1 },
        ]),
    ).toThrow("bucket 7 is owned by slice 0 and by slice 1");
  });

  it("move until slices have as many, few at a time where there are many hosts", () => {
    const slices = [0, 1, 2].map((number) => ({ number, state: "active" as const }));
    const moves = balancedMoves({ slices, ranges: [{ first: 0, end: 4096, slice: 0 }], moves: [] }, 500);
    const moved = (to: number) =>
      moves
        .filter((move) => move.to === to)
        .reduce((sum, { buckets }) => sum + buckets.end - buckets.first, 0);

    expect([moved(0), moved(1), moved(2)]).toEqual([0, 1365, 1365]);
    expect(Math.max(...moves.map(({ buckets }) => buckets.end - buckets.first))).toBe(500);
    expect([bucketsOfMove(10), bucketsOfMove(10_000_000), bucketsOfMove(1e12)]).toEqual([4096, 20, 1]);
  });
});

describe("operators", () => {
  it("who add at once add two", async () => {
    const added = await Promise.all([add(), add()]);
    await world.slices.refresh();

    expect(added.map(({ slice }) => slice.number).sort()).toEqual([1, 2]);
    expect(world.slices.open.map(({ number }) => number)).toEqual([0, 1, 2]);
  });

  it("have each slice worked at by one coordinator, which gives it up before another one gets it", async () => {
    const leadsOf = async (...running: number[]) => {
      await assignLeads(database.pool, running);
      return Object.fromEntries((await readCatalogue(database.pool)).leads);
    };

    expect(await leadsOf(7, 9)).toEqual({ 1: 7, 2: 9 });
    expect(await leadsOf(9)).toEqual({ 1: 9, 2: 9 });
    expect(await leadsOf(9, 11)).toEqual({ 1: 9, 2: null });
    expect(await leadsOf(9, 11)).toEqual({ 1: 9, 2: null });
    await database.pool.query("update slice_lead set since = since - interval '8.1 seconds'");
    expect(await leadsOf(9, 11)).toEqual({ 1: 9, 2: 11 });
    expect(await leadsOf(9, 11)).toEqual({ 1: 9, 2: 11 });
  });

  it("cannot move what moves, what its slice does not own, or where there is nobody", async () => {
    const move = async (first: number, end: number, from: number, to: number) =>
      await moveBuckets(database, { buckets: { first, end }, from, to }, "test");
    await move(0, 2048, 0, 1);

    await expect(move(2047, 3000, 0, 2)).rejects.toThrow("0 to 2047 move from slice 0 to 1 already");
    await expect(move(3000, 3001, 1, 2)).rejects.toThrow("bucket 3000 is slice 0's, not 1's");
    await expect(move(3000, 3001, 0, 9)).rejects.toThrow("there is no slice 9");
    await expect(move(4095, 4097, 0, 1)).rejects.toThrow("must be from 0 to 4095");
    // Whatever a program says: the database has it, too.
    await expect(
      database.pool.query("insert into slice_range (buckets, slice_number) values (int4range(5, 6), 1)"),
    ).rejects.toThrow("slice_range");
    expect((await readCatalogue(database.pool)).moves).toHaveLength(1);
  });

  it("see hosts where they were moved to, and nowhere else", async () => {
    await world.moveAll();
    const { owners } = await world.slices.refresh();
    const rows = await world.rows<{ host: string; host_hash: HostHash }>(
      "select host, host_hash from frontier_host",
    );

    expect(rows).toHaveLength(hosts.length);
    expect(rows.filter(({ host_hash, slice }) => owners.ofHost(host_hash) !== slice)).toEqual([]);
    expect(new Set(rows.map(({ slice }) => slice))).toEqual(new Set([0, 1]));
  });

  it("mend a slice that went back: it gives up what is no longer its own, and nothing else", async () => {
    const before = await hostsBySlice();
    const [slice1] = world.slices.open.filter(({ number }) => number === 1);
    // As a backup from before the last move has it: more than it should, less than it should, and a host of somebody else's.
    await slice1!.pool.query("update slice_self set held = '{[1024,3000)}'");
    await slice1!.pool.query("insert into frontier_host (host_hash, host) values ($1, 'left-over.example')", [
      hashesOf({ first: 2500, end: 2501 })[0],
    ]);
    const [fault] = (await sliceReport(database)).faults;
    const mended = await mendSlice(database, 1);

    expect(fault).toMatch(/^Slice 1 holds 952 buckets that are not its own, and lacks 1024 that are/);
    expect(mended).toEqual({ givenUp: 952, taken: 1024 });
    expect((await sliceReport(database)).faults).toEqual([]);
    expect(await hostsBySlice()).toEqual(before);
  });

  it("drain a slice, but not the last one that may have hosts", async () => {
    await drainSlice(database, 1, "test");
    await world.moveAll();

    expect(new Set((await hostsBySlice()).values())).not.toContain(1);
    expect((await hostsBySlice()).size).toBe(hosts.length);
    await drainSlice(database, 2, "test");
    await world.moveAll();
    await expect(drainSlice(database, 0, "test")).rejects.toThrow("the only one");
  });

  it("see a slice whose server is away as down, with the others' hosts", async () => {
    await database.pool.query(
      "update web_slice set server_url = 'postgresql://nearcrawl@127.0.0.1:1/none' where slice_number = 2",
    );
    const slices = await OpenSlices.open(database);
    const findings = await slices.look();
    await slices.close();
    const { slices: lines, faults } = await sliceReport(database);

    expect(findings.map(({ number, fault }) => [number, fault === null])).toEqual([
      [0, true],
      [1, true],
      [2, false],
    ]);
    expect(lines.map(({ state }) => state)).toEqual(["active", "draining", "down"]);
    expect(faults).toEqual([expect.stringMatching(/^Slice 2 does not answer: /)]);
  });
});
