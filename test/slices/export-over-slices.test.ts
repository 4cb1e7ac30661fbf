/**
 * The index exported from four slices on two servers is that of one database: while hosts move, while a server is away, and
 * whenever the export is killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/changes/change-writes";
import type { ChangeKind } from "#coordinator/changes/page-change";
import { bucketOf } from "#coordinator/database/slices";
import { createOptOutMarks } from "#coordinator/opt-outs/mark-writes";
import { exportIndex } from "#coordinator/search/export/export-index";
import { createExportReads } from "#coordinator/search/export/export-reads";
import { OpenSearchIndex } from "#coordinator/search/export/opensearch-client";
import { exportReads } from "#coordinator/slices/export-reads";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import { moveBuckets } from "#coordinator/slices/slice-writes";
import { seededRandom } from "#core/random";
import { searchCommand } from "#ops/cli/commands/search";
import { builtProgram } from "../support/built-command.ts";
import { inProcess } from "../support/command-in-process.ts";
import { OpenSearchStandIn } from "../support/opensearch-stand-in.ts";
import { seedChange } from "../support/seed-changes.ts";
import { seedHost, seedPage, seedWorld, worldNow } from "../support/seed-world.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const hosts = Array.from({ length: 60 }, (_, n) => `site-${n}.example.org`);
const urlOf = (n: number) => `https://${hosts[n % hosts.length]}/${n}`;
const pages = 600;

let servers: SliceServers;
let world: SlicedWorld;
/** Followed since there was one slice, and one that is exported to now and then. */
let engine: OpenSearchStandIn;
let origin: string;
let whole: ReadonlyMap<string, unknown>;
beforeAll(async () => {
  servers = await SliceServers.begin();
  const { pool } = servers.shared;
  await seedWorld(pool);
  for (const host of hosts) await seedHost(pool, { host, subnet: "1.2.3.0", address: "1.2.3.4" });
  world = await slicedWorld(servers.shared);
  for (let n = 0; n < pages; n += 1) await store(n, "First");
  engine = new OpenSearchStandIn();
  origin = await engine.listen();
  await exported("followed", createExportReads(pool));
  whole = documents("followed");
  await addSlices(servers, 4);
  await world.moveAll();
}, 300_000);
afterAll(async () => {
  await engine?.close();
  await world?.close();
  await servers?.close();
});
beforeEach(() => {
  engine.refuse = () => null;
});

const reads = () =>
  exportReads({
    slices: world.slices,
    refresh: async () => {
      await world.slices.refresh();
      await world.slices.look();
    },
    pause: async (ms) => {
      await world.advance().catch(() => {});
      await delay(ms / 50);
    },
  });

async function exported(index: string, from = reads(), full = false) {
  const target = new OpenSearchIndex({
    ...{ origin, index, authorization: null, authorities: null, timeoutMs: 5000 },
    ...{ pause: async () => {}, random: () => 1, onTrouble: () => {} },
  });
  try {
    return await exportIndex({ reads: from, target, nowMs: () => performance.now() }, { full });
  } finally {
    await target.close();
  }
}

/** By their URLs, but for the number as of which they were written. */
function documents(index: string): Map<string, unknown> {
  const found = [...engine.documents(index).values()].map(
    ({ change: _, ...facts }) => [String(facts.url), facts] as const,
  );
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Where its host is at the moment: as a result leaves it, the row and its change. */
async function store(n: number, title: string, kind: ChangeKind = "first-seen"): Promise<void> {
  const url = urlOf(n);
  const { hostHash, urlHash } = keyOf(url);
  const { pool } = world.slices.ofHost(hostHash);
  await pool.query("delete from page where host_hash = $1 and url_hash = $2", [hostHash, urlHash]);
  if (kind !== "gone") await seedPage(pool, { url, title: `${title} ${n}`, text: `The text of ${n}.` });
  await seedChange(pool, { url, kind });
  await numberChanges(pool, worldNow);
}

/** What the slices have, each of the hosts that it holds. */
async function titles(): Promise<Map<string, string>> {
  const rows = await world.rows<{ url: string; title: string }>(
    "select p.url, p.title from page p cross join slice_self where held @> ((host_hash >> 52)::int + 2048)",
  );
  return new Map(rows.map(({ url, title }) => [url, title] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const titlesAt = (index: string) =>
  new Map([...documents(index)].map(([url, page]) => [url, (page as { title: string }).title]));

describe("an export over slices", () => {
  it("is that of one database", async () => {
    const summary = await exported("all");

    expect(summary).toMatchObject({ full: "the index was not there", indexed: pages, removed: 0 });
    expect(Object.keys(summary.cursor)).toEqual(["0", "1", "2", "3"]);
    expect(summary.partial).toBeUndefined();
    expect(documents("all")).toEqual(whole);
    expect((await world.rows("select from page")).length).toBe(pages);
  });

  it("goes on where one of one slice stood, and has what changed in each", async () => {
    for (let n = 0; n < 40; n += 1) await store(n, "Changed", "changed");
    await store(41, "", "gone");

    const followed = await exported("followed");
    const again = await exported("followed");

    expect(followed).toMatchObject({ full: null, indexed: 40, deleted: 1 });
    expect(again).toMatchObject({ full: null, indexed: 0, deleted: 0 });
    expect(titlesAt("followed")).toEqual(await titles());
    await exported("all");
    expect(documents("all")).toEqual(documents("followed"));
  });

  it("takes the newest of a page whose host moves to a slice that has given few numbers", async () => {
    const { hostHash } = keyOf(urlOf(0));
    for (const to of [3, 0, 2]) {
      const from = (await world.slices.refresh()).owners.ofHost(hostHash);
      if (from === to) continue;
      const bucket = bucketOf(hostHash);
      await moveBuckets(servers.shared, { buckets: { first: bucket, end: bucket + 1 }, from, to }, "test");
      await world.moveAll();
      await world.slices.refresh();
      await store(0, `In slice ${to},`, "changed");
      await exported("followed");
      expect(titlesAt("followed").get(urlOf(0))).toBe(`In slice ${to}, 0`);
    }
  });

  it("reads a page where its host is held, though the catalogue that it knows is old, and waits while nobody holds it", async () => {
    const other = await slicedWorld(servers.shared);
    const { hostHash } = keyOf(urlOf(5));
    const owner = (await world.slices.refresh()).owners.ofHost(hostHash);
    const bucket = bucketOf(hostHash);
    const to = (owner + 1) % 4;
    await moveBuckets(
      servers.shared,
      { buckets: { first: bucket, end: bucket + 1 }, from: owner, to },
      "test",
    );
    await store(5, "Before the move,", "changed");
    // Planned, letting go: nobody holds it now.
    await other.advance();
    await other.advance();
    let pauses = 0;
    const inBetween = exportReads({
      slices: world.slices,
      refresh: async () => {},
      pause: async () => {
        pauses += 1;
        await other.moveAll();
        if (pauses > 1) await world.slices.refresh();
      },
    });
    await exported("moving", inBetween);
    const seen = titlesAt("moving");
    // The old slice has no row of it any more.
    await other.slices.refresh();
    const slices = await OpenSlices.open(servers.shared);
    const back = { buckets: { first: bucket, end: bucket + 1 }, from: to, to: owner };
    await moveBuckets(servers.shared, back, "test");
    await other.moveAll();
    await world.slices.refresh();
    await store(5, "After it,", "changed");
    let isStale = true;
    const stale = exportReads({
      slices,
      refresh: async () => {
        if (!isStale) await slices.refresh();
      },
      pause: async () => {
        isStale = false;
      },
    });
    await exported("moving", stale);
    await slices.close();
    await other.close();

    expect(pauses).toBe(2);
    expect(seen.size).toBe((await titles()).size);
    expect(seen.get(urlOf(5))).toBe("Before the move, 5");
    expect(isStale).toBe(false);
    expect(titlesAt("moving")).toEqual(await titles());
  });

  it("hides the hosts of an opt-out in all slices, and shows them again", async () => {
    await servers.shared.pool.query(
      `insert into opt_out (site, source, token, created_at, in_force_at) values ('site-1.example.org', 'form', 't', $1, $1),
         ('site-2.example.org', 'form', 'u', $1, $1), ('site-3.example.org', 'form', 'v', $1, $1)`,
      [worldNow],
    );
    const marks = createOptOutMarks(world.slices);
    await marks.apply(worldNow);
    await exported("followed");
    const hidden = [...titlesAt("followed").keys()].map((url) => new URL(url).host);
    await servers.shared.pool.query("update opt_out set ended_at = $1, ending = 'lifted'", [worldNow]);
    await marks.apply(worldNow);
    await exported("followed");

    expect(new Set(hidden).size).toBe(hosts.length - 3);
    expect(titlesAt("followed")).toEqual(await titles());
  });

  it("loses nothing and doubles nothing wherever it is broken off, while hosts move and pages come and go", {
    timeout: 300_000,
  }, async () => {
    const random = seededRandom(26);
    let broken = 0;
    for (let round = 0; round < 25; round += 1) {
      const { moves, ranges } = await world.slices.refresh();
      if (moves.length === 0) {
        const range = ranges[Math.floor(random() * ranges.length)]!;
        const to = (range.slice + 1 + Math.floor(random() * 3)) % 4;
        const first = range.first + Math.floor(random() * (range.end - range.first));
        const buckets = { first, end: Math.min(range.end, first + 400) };
        await moveBuckets(servers.shared, { buckets, from: range.slice, to }, "test");
      }
      for (let n = 0; n < 6; n += 1) {
        const page = Math.floor(random() * pages);
        // Nobody writes what no slice holds.
        if (await isHeld(page)) await store(page, `Round ${round},`, random() < 0.3 ? "gone" : "changed");
      }
      const dies = Math.floor(random() * 12);
      let asked = 0;
      engine.refuse = () => {
        asked += 1;
        return asked === dies ? { status: 418, cut: random() < 0.5 } : null;
      };
      const moving = world.advance();
      await exported("followed", reads(), round % 10 === 5).catch(() => {
        broken += 1;
      });
      await moving;
      await world.slices.refresh();
    }
    engine.refuse = () => null;
    await world.moveAll();
    await exported("followed");

    expect(broken).toBeGreaterThan(3);
    expect(titlesAt("followed")).toEqual(await titles());
  });
});

async function isHeld(n: number): Promise<boolean> {
  const { hostHash } = keyOf(urlOf(n));
  await world.slices.refresh();
  const { rowCount } = await world.slices
    .ofHost(hostHash)
    .pool.query("select from slice_self where held @> (($1::bigint >> 52)::int + 2048)", [hostHash]);
  return rowCount === 1;
}

const hashOf = (host: string) => keyOf(`https://${host}/`).hostHash;
const placed = () => [
  ...["--database-url", servers.url(0), "--schema", servers.shared.schema],
  ...["--home", temporaryFolder("nearcrawl-export-")],
];
const target = () => ["--to", "opensearch", "--url", `${origin}/followed`];

describe("nearcrawl search export over slices", () => {
  it("goes on after each SIGKILL", { timeout: 300_000 }, async () => {
    const random = seededRandom(27);
    let killed = 0;
    for (let round = 0; round < 5; round += 1) {
      for (let n = 0; n < 60; n += 1)
        await store(Math.floor(random() * pages), `Killed ${round},`, "changed");
      const program = await builtProgram("ops/cli/main");
      const args = ["search", "export", ...target(), ...(round === 2 ? ["--full"] : []), ...placed()];
      const child: ChildProcess = spawn(process.execPath, [program, ...args], { stdio: "ignore" });
      let left = 1 + Math.floor(random() * 9);
      engine.refuse = () => {
        left -= 1;
        if (left === 0) child.kill("SIGKILL");
        return null;
      };
      const [, signal] = await once(child, "close");
      if (signal === "SIGKILL") killed += 1;
    }
    engine.refuse = () => null;
    const end = await inProcess(searchCommand(), ["export", ...target(), ...placed(), "--json"]);

    expect(killed).toBeGreaterThan(2);
    expect(end.code).toBe(0);
    expect(titlesAt("followed")).toEqual(await titles());
  });

  it("exports what the others have while a server is away, deletes nothing of it, and says so", {
    timeout: 120_000,
  }, async () => {
    const before = await titles();
    const changed = hosts.findIndex(
      (host) => world.slices.ofHost(keyOf(`https://${host}/`).hostHash).number === 2,
    );
    const away = hosts.findIndex(
      (host) => world.slices.ofHost(keyOf(`https://${host}/`).hostHash).number === 1,
    );
    await store(changed, "Beside", "changed");
    await store(away, "Unseen", "changed");
    // Its change is of a slice that answers, and its page where nobody does.
    const moved = hosts.findIndex(
      (host, n) => n !== changed && world.slices.ofHost(hashOf(host)).number === 2,
    );
    await store(moved, "Moved", "changed");
    const bucket = bucketOf(hashOf(hosts[moved]!));
    await moveBuckets(
      servers.shared,
      { buckets: { first: bucket, end: bucket + 1 }, from: 2, to: 1 },
      "test",
    );
    await world.moveAll();
    await servers.kill(1);

    const partial = await inProcess(searchCommand(), ["export", ...target(), ...placed()]);
    const full = await inProcess(searchCommand(), ["export", ...target(), ...placed(), "--full"]);
    const meanwhile = titlesAt("followed");
    await servers.start(1);
    const after = await inProcess(searchCommand(), ["export", ...target(), ...placed()]);

    expect(partial).toMatchObject({
      code: 1,
      out: expect.stringContaining("slices 1, 3 of the web do not answer"),
    });
    expect(full).toMatchObject({
      code: 1,
      err: expect.stringContaining("slice 1 of the web does not answer, and all pages are to be exported"),
    });
    expect(meanwhile).toEqual(new Map(before).set(urlOf(changed), `Beside ${changed}`));
    expect(after.code).toBe(0);
    expect(titlesAt("followed")).toEqual(await titles());
  });
});
