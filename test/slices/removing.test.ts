/** Drained slices are taken out of the list: with nothing lost, whoever is killed half-way, and whoever reads changes meanwhile. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ChangeCursor, cursorValue, parseCursor } from "#coordinator/changes/change-cursor";
import { changeFeeds, type FeedRead } from "#coordinator/changes/change-feeds-reads";
import { numberChanges } from "#coordinator/changes/change-writes";
import { everyChange } from "#coordinator/changes/page-change";
import { exportIndex } from "#coordinator/search/export/export-index";
import { NdjsonFile } from "#coordinator/search/export/ndjson-store";
import { readCatalogue } from "#coordinator/slices/catalogue-store";
import { exportReads } from "#coordinator/slices/export-reads";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import { removeSlice } from "#coordinator/slices/remove-slice-writes";
import { sliceReport } from "#coordinator/slices/slice-reads";
import { addSlice, drainSlice } from "#coordinator/slices/slice-writes";
import { slicesCommand } from "#ops/cli/commands/slices";
import { builtProgram } from "../support/built-command.ts";
import { inProcess } from "../support/command-in-process.ts";
import { seedChange } from "../support/seed-changes.ts";
import { worldNow } from "../support/seed-world.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, noon, scope, seeds } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Slices 1 and 3 are on the second server, 2 and 4 on the first. */
let servers: SliceServers;
let world: SlicedWorld;
let cursor: ChangeCursor;
beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared);
  await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
  await addSlices(servers, 5);
  await world.moveAll();
  await world.slices.refresh();
  for (const host of hosts) await noteChange(host, "first");
  cursor = (await read({})).next;
}, 120_000);
afterAll(async () => {
  await world?.close();
  await servers?.close();
});

const hosts = Array.from({ length: 30 }, (_, index) => `host-${index}.example`);
const urlOf = (host: string, name: string) => `http://${host}/${name}`;
const placed = () => [
  ...["--database-url", servers.url(0), "--schema", servers.shared.schema],
  ...["--home", temporaryFolder("nearcrawl-remove-")],
];
const remove = async (...args: readonly string[]) =>
  await inProcess(slicesCommand(), ["remove", ...args, ...placed()]);
const given = { forgetsChanges: true, isServerGone: false, keepDays: 30 };

async function noteChange(host: string, name: string): Promise<void> {
  const { pool } = world.slices.ofHost(keyOf(`http://${host}/`).hostHash);
  await seedChange(pool, { url: urlOf(host, name) });
  await numberChanges(pool, worldNow);
}

async function read(since: ChangeCursor): Promise<FeedRead> {
  const found = await changeFeeds(world.slices).after(since, { filter: everyChange, limit: 1000 });
  if (found.type !== "read") throw new Error(JSON.stringify(found));
  return found;
}

async function drain(number: number): Promise<void> {
  await drainSlice(servers.shared, number, "test");
  await world.moveAll();
  await world.slices.refresh();
}

/** What an export to a file says of why it exported all pages; null: it did not. */
async function exported(): Promise<string | null> {
  const target = new NdjsonFile(join(folder, "pages.ndjson"), join(folder, "state.json"));
  try {
    const reads = exportReads({
      slices: world.slices,
      refresh: async () => {
        await world.slices.refresh();
      },
      pause: async () => {},
    });
    return (await exportIndex({ reads, target, nowMs: () => performance.now() })).full;
  } finally {
    await target.close();
  }
}
const folder = temporaryFolder("nearcrawl-remove-export-");

const schemas = async (server: 0 | 1): Promise<string[]> => {
  const { pool } = await servers.open(server, { schema: "public" });
  const { rows } = await pool.query<{ name: string }>(
    "select nspname::text as name from pg_namespace where nspname like 'web%' order by 1",
  );
  return rows.map(({ name }) => name);
};
const slots = async (): Promise<string[]> => {
  const { rows } = await servers.shared.pool.query<{ name: string }>(
    "select slot_name::text as name from pg_replication_slots",
  );
  return rows.map(({ name }) => name);
};

it("is refused, with what is missing, while a slice has anything still", async () => {
  const refusals = [await remove("0"), await remove("9"), await remove("1")];
  await drainSlice(servers.shared, 1, "test");
  refusals.push(await remove("1"));
  await world.moveAll();
  await world.slices.refresh();
  const [slice0, slice1] = world.slices.open;
  refusals.push(await remove("1"));
  const waits = `insert into link_outbox (crawler_id, effects, packed, to_slice) values (1, 1, 'x', 0)`;
  await slice1!.pool.query(waits);
  refusals.push(await remove("1", "--forget-changes"));
  await slice1!.pool.query("delete from link_outbox");
  await slice0!.pool.query(waits.replace(", 0)", ", 1)"));
  refusals.push(await remove("1", "--forget-changes"));
  await slice0!.pool.query("delete from link_outbox");
  await seedChange(slice1!.pool, { url: urlOf("late.example", "x") });
  refusals.push(await remove("1", "--forget-changes"));
  await numberChanges(slice1!.pool, worldNow);
  await slice1!.pool.query(
    `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
     values (1, 1, 'a.example', now(), now(), 1, 1)`,
  );
  refusals.push(await remove("1", "--forget-changes"));
  await slice1!.pool.query("delete from lease");

  expect(refusals.map(({ code }) => code)).toEqual(refusals.map(() => 2));
  const words = refusals.map(({ err }) => err.split("\n").at(-2));
  expect(words).toEqual([
    "nearcrawl: slice 0 lies beside the shared tables, and stays",
    "nearcrawl: there is no slice 9",
    "nearcrawl: slice 1 is in use: drain it first (nearcrawl slices drain 1)",
    expect.stringMatching(
      /slice 1 has 8\d\d buckets of hosts, and \d+ moves? from or to it (is|are) not done/,
    ),
    expect.stringMatching(
      /has changes that readers may not have read: they are kept until 2026-0\d-\d\d .*--forget-changes/,
    ),
    expect.stringContaining("slice 1 has 1 row in its outbox"),
    expect.stringContaining("slice 0 has 1 row for slice 1 in its outbox"),
    expect.stringContaining("slice 1 has changes without a number"),
    expect.stringContaining("slice 1 has 1 lease that are open"),
  ]);
  expect((await readCatalogue(servers.shared.pool)).slices.map(({ state }) => state)).toEqual([
    ...["active", "draining", "active", "active", "active"],
  ]);
});

it("takes the sums of closed leases along, and what is its own alone; another of that server stays", async () => {
  const slice1 = world.slices.open[1]!;
  await slice1.pool.query(
    `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls, closed_at, ending)
     values (1, 1, 'a.example', now(), now(), 7, 0, now(), 'done')`,
  );
  const before = await leasedUrls();
  expect(await exported()).toBe("the first export to this target");
  const removed = await remove("1", "--forget-changes");
  // It had read all that the slice had.
  expect(await exported()).toBeNull();

  expect(removed).toMatchObject({
    code: 0,
    out: expect.stringContaining("slice 1 was removed: schema web_1 on postgresql://"),
  });
  expect((await leasedUrls()) - before).toBe(7);
  expect(await schemas(1)).toEqual(["web", "web_3"]);
  expect(await slots()).toEqual([expect.stringContaining("nearcrawl_web")]);
  await world.slices.refresh();
  expect(world.slices.open.map(({ number }) => number)).toEqual([0, 2, 3, 4]);
  expect(await remove("1")).toMatchObject({
    code: 0,
    out: expect.stringContaining("slice 1 was removed before"),
  });
  const found = await world.rows<{ host: string }>("select host from frontier_host");
  expect(found.map(({ host }) => host).sort()).toEqual([...hosts].sort());
});

async function leasedUrls(): Promise<number> {
  const { rows } = await servers.shared.pool.query<{ urls: number }>(
    "select coalesce(sum(leased_urls), 0)::int as urls from day_figures",
  );
  return rows[0]!.urls;
}

it("leaves a reader with the cursor that it has: it is told what others have, once", async () => {
  expect(Object.keys(cursor)).toContain("1");
  await world.slices.refresh();
  for (const host of hosts) await noteChange(host, "second");

  const found = await read(parseCursor(String(cursorValue(cursor))) as ChangeCursor);
  expect(found.changes.map(({ url }) => url).sort()).toEqual(
    hosts.map((host) => urlOf(host, "second")).sort(),
  );
  expect(Object.keys(found.next)).toEqual(["0", "2", "3", "4"]);
  expect((await read(found.next)).changes).toEqual([]);
});

it("gives no number twice", async () => {
  const { slice } = await addSlice(servers.shared, {
    ...{ serverUrl: null, schema: "web_1", sharedUrl: servers.url(0), by: "test", balance: false },
  });
  await drainSlice(servers.shared, slice.number, "test");
  await removeSlice(servers.shared, slice.number, given);
  const { slice: next } = await addSlice(servers.shared, {
    ...{ serverUrl: null, schema: null, sharedUrl: servers.url(0), by: "test", balance: false },
  });

  expect([slice.number, next.number]).toEqual([5, 6]);
  await drainSlice(servers.shared, 6, "test");
  await removeSlice(servers.shared, 6, given);
});

it("is done once by two who ask at the same time", async () => {
  await drain(4);
  const removed = await Promise.all([
    removeSlice(servers.shared, 4, given),
    removeSlice(servers.shared, 4, given),
  ]);

  expect(removed.map(({ isNew }) => isNew).sort()).toEqual([false, true]);
  expect(await exported()).toBe("slice 4 of the web was removed with changes that were not exported");
  expect(await exported()).toBeNull();
  expect(await schemas(0)).toEqual(["web", "web_2"]);
});

it("goes on after a SIGKILL, at whichever step", { timeout: 300_000 }, async () => {
  await drain(2);
  const program = await builtProgram("ops/cli/main");
  const args = [program, "slices", "remove", "2", "--forget-changes", ...placed()];
  let killed = 0;
  for (const step of ["looking at what it has", "dropping schema"]) {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.on("data", (text) => {
      if (String(text).includes(step)) child.kill("SIGKILL");
    });
    const [, signal] = await once(child, "close");
    if (signal === "SIGKILL") killed += 1;
  }
  // As if it was killed behind the drop, and before it was noted.
  await servers.shared.pool.query("drop schema if exists web_2 cascade");
  const { slices, faults } = await sliceReport(servers.shared);
  const end = await remove("2", "--forget-changes");

  expect(killed).toBe(2);
  expect(slices.find(({ slice }) => slice === 2)?.state).toBe("removing");
  expect(faults).toEqual(["Slice 2 is half removed: nearcrawl slices remove 2 goes on."]);
  expect(end.code).toBe(0);
  expect(await schemas(0)).toEqual(["web"]);
});

it("takes a server that is gone for good out of the list, where it has no hosts, and its slot", async () => {
  const withHosts = async () => await remove("3", "--server-is-gone");
  const used = await withHosts();
  await drain(3);
  const answers = await withHosts();
  await servers.kill(1);
  const away = await remove("3", "--forget-changes");
  const gone = await withHosts();

  expect(used.err).toContain("slice 3 is in use");
  expect(answers.err).toContain("the server of slice 3 answers");
  expect(away).toMatchObject({ code: 2, err: expect.stringContaining("add --server-is-gone") });
  expect(gone).toMatchObject({ code: 0, out: expect.stringContaining("which is gone") });
  expect(await slots()).toEqual([]);
  const slices = await OpenSlices.open(servers.shared);
  expect(slices.open.map(({ number }) => number)).toEqual([0]);
  await slices.close();
  await world.slices.refresh();
  expect((await read(cursor)).changes.map(({ url }) => url)).toEqual(
    expect.arrayContaining([expect.stringContaining("second")]),
  );
  const found = await world.rows<{ host: string }>("select host from frontier_host");
  expect(found.map(({ host }) => host).sort()).toEqual([...hosts].sort());
});
