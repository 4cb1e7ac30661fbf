/** A database that went back: every slice's numbers go on behind all that it may have given, and readers are told. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ChangeCursor, firstNumberOf } from "#coordinator/changes/change-cursor";
import { changeFeeds, type FeedRead } from "#coordinator/changes/change-feeds-reads";
import { numberChanges } from "#coordinator/changes/change-writes";
import { everyChange } from "#coordinator/changes/page-change";
import { readSince, startOf } from "#coordinator/changes/read-changes";
import { type OpenSlice, oneSlice } from "#coordinator/database/slices";
import { bringSlicesToEpoch } from "#coordinator/slices/epoch-writes";
import { mendSlice } from "#coordinator/slices/mend-slice-writes";
import { migrateSlices } from "#coordinator/slices/migrate-slices-store";
import { sliceOfNumber } from "#db/slice-numbers";
import { databaseCommand } from "#ops/cli/commands/database";
import { inProcess } from "../support/command-in-process.ts";
import { seedChange } from "../support/seed-changes.ts";
import { worldNow } from "../support/seed-world.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, noon, scope, seeds } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let servers: SliceServers;
let world: SlicedWorld;
let alone: number;
beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared);
  await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
  await addSlices(servers, 3);
  await world.moveAll();
  await world.slices.refresh();
}, 120_000);
afterAll(async () => {
  await world?.close();
  await servers?.close();
});

const hosts = Array.from({ length: 30 }, (_, index) => `host-${index}.example`);
const everything = { filter: everyChange, limit: 1000 };
const feeds = () => changeFeeds(world.slices);
const now = new Date(worldNow.getTime() + 60_000);

async function noteChanges(name: string): Promise<void> {
  for (const host of hosts) {
    const { pool } = world.slices.ofHost(keyOf(`http://${host}/`).hostHash);
    await seedChange(pool, { url: `http://${host}/${name}` });
    await numberChanges(pool, worldNow);
  }
}

const urlsOf = (name: string) => hosts.map((host) => `http://${host}/${name}`).sort();

async function restored(): Promise<{ code: number; out: string; err: string }> {
  return await inProcess(databaseCommand(), [
    "restored",
    ...["--database-url", servers.url(0), "--schema", servers.shared.schema],
    ...["--home", temporaryFolder("nearcrawl-epochs-")],
  ]);
}

/** What was noted since, as a backup does not have it. */
async function forget({ pool, number }: OpenSlice, last: number): Promise<void> {
  await pool.query("delete from page_change where change_number > $1", [last]);
  await pool.query("update change_feed set last_number = $1", [Math.max(last, firstNumberOf(number))]);
}

const nextLease = async ({ pool }: OpenSlice) => {
  const { rows } = await pool.query<{ next: string }>(
    "select nextval(pg_get_serial_sequence('lease', 'lease_id')) as next",
  );
  return BigInt(rows[0]!.next);
};

it("tells readers of lost changes of each slice, and reads on behind them for everybody else", async () => {
  await noteChanges("kept");
  const kept = ((await feeds().after({}, everything)) as FeedRead).next;
  await noteChanges("lost");
  const lost = ((await feeds().after(kept, everything)) as FeedRead).next;
  const leases = await Promise.all(world.slices.open.map(nextLease));
  for (const slice of world.slices.open) await forget(slice, kept[slice.number]!);
  await servers.kill(1);
  const told = await restored();
  await servers.start(1);

  expect(told).toMatchObject({ code: 0, out: expect.stringContaining("slices 1 do not answer") });
  expect(await bringSlicesToEpoch(world.slices, now)).toEqual([1]);
  expect(await bringSlicesToEpoch(world.slices, now)).toEqual([]);
  for (const { number } of world.slices.open) {
    const cursor: ChangeCursor = { ...kept, [number]: lost[number]! };
    expect(await feeds().after(cursor, everything)).toMatchObject({
      ...{ type: "fault", slice: number, fault: { type: "lost", goOnFrom: kept[number] } },
    });
  }
  await noteChanges("new");
  const found = await allAfter(kept);
  expect(found.urls.sort()).toEqual(urlsOf("new"));
  for (const [slice, last] of Object.entries(found.next)) {
    expect(last).toBeGreaterThan(lost[Number(slice)]!);
    expect(sliceOfNumber(String(last))).toBe(Number(slice));
  }
  for (const [index, slice] of world.slices.open.entries())
    expect((await nextLease(slice)) - leases[index]!).toBeGreaterThan(1_000_000n);
});

async function allAfter(since: ChangeCursor): Promise<{ urls: string[]; next: ChangeCursor }> {
  const urls: string[] = [];
  for (let next = since; ; ) {
    const found = (await feeds().after(next, everything)) as FeedRead;
    expect(found.type).toBe("read");
    urls.push(...found.changes.map(({ url }) => url));
    next = found.next;
    if (!found.more) return { urls, next };
  }
}

it("does the same for one slice that went back alone, when it is mended", async () => {
  const before = (await allAfter({})).next;
  const slice = world.slices.open[1]!;
  await noteChanges("lost-too");
  const lost = (await allAfter(before)).next;
  await forget(slice, before[1]!);
  await mendSlice(servers.shared, 1);

  expect(await feeds().after(lost, everything)).toMatchObject({ slice: 1, fault: { type: "lost" } });
  await noteChanges("newest");
  expect((await allAfter({ ...lost, 1: before[1]! })).urls.sort()).toEqual(urlsOf("newest"));
});

it("leaves a plain cursor with slice 0, whose numbers are times since then", async () => {
  const one = changeFeeds(oneSlice(servers.shared.pool));
  const { 0: end } = (await one.start("now")) as { 0: number };
  alone = end;

  expect(sliceOfNumber(String(alone))).toBe(0);
  const found = (await one.after(await startOf(readSince(String(alone)), one), everything)) as FeedRead;
  expect(found).toMatchObject({ type: "read", changes: [], more: false });
});

it("brings the schemas of slices to the newest migration, and says which are away", async () => {
  const slice = world.slices.open[1]!;
  await slice.pool.query(`
    drop table claims_settling, exchange_arrival;
    alter table change_feed drop column jumps, drop column epoch;
    alter table frontier_host drop column challenges, drop column challenge_provider, drop column challenged_since,
      drop column challenged_at, drop column challenge_of, drop column domain, drop column domain_place;
    drop table domain_count, deferred_link;
    alter table page drop column needs_scripts;
    delete from migration where name >= '0091-slice-epochs'`);
  expect(await migrateSlices(servers.shared)).toEqual([]);

  const { rows } = await slice.pool.query<{ jumps: unknown }>("select jumps from change_feed");
  expect(rows).toEqual([{ jumps: [] }]);
  await servers.kill(1);
  expect(await migrateSlices(servers.shared)).toEqual([1]);
  await servers.start(1);
});
