/** The feed read by cursor during writes: every change once and in order, whoever commits when. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ChangesRead, createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges, removeOldChanges } from "#coordinator/crawl/changes/change-writes";
import { type ChangeFilter, type ChangeKind, everyChange } from "#coordinator/crawl/changes/page-change";
import { seededRandom } from "#core/random";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedChange } from "../support/seed-changes.ts";

const noon = new Date("2030-01-01T12:00:00Z");
const later = (days: number) => new Date(noon.getTime() + days * 86_400_000);

const database = await forThisFile(testDatabase({ maxConnections: 12 }));
let pool: Pool;
beforeAll(async () => {
  pool = database.pool;
});
beforeEach(async () => {
  await pool.query("delete from page_change; delete from page_change_inbox");
  await pool.query("update change_feed set last_number = 0, removed_through = 0");
});

const write = async (
  client: Pool | PoolClient,
  url: string,
  kind?: ChangeKind,
  language: string | null = null,
) => await seedChange(client, { url, language, ...(kind && { kind }) });

const read = async (since: number, filter: Partial<ChangeFilter> = {}, limit = 100) =>
  await createChangeFeed(pool).after(since, { filter: { ...everyChange, ...filter }, limit });

function changesOf(answer: ChangesRead) {
  if (answer.type !== "read") throw new Error(answer.type);
  return answer.changes;
}
const urlsOf = (answer: ChangesRead) => changesOf(answer).map(({ url }) => url);

describe("three writers committing in any order, two appenders, and readers that stop anywhere", () => {
  it("every reader sees every change once, by rising numbers, and those of a URL in order", async () => {
    const random = seededRandom(8);
    const written: string[] = [];
    let writing = true;
    const writer = async (name: string) => {
      for (let batch = 0; batch < 12; batch += 1) {
        const client = await pool.connect();
        await client.query("begin");
        const urls = Array.from(
          { length: 1 + Math.floor(random() * 4) },
          (_, n) => `http://${name}.example/${batch}/${n}`,
        );
        for (const url of urls) await write(client, url);
        await delay(random() * 15);
        const aborts = random() < 0.2;
        await client.query(aborts ? "rollback" : "commit");
        client.release();
        if (!aborts) written.push(...urls);
      }
    };
    const appender = async () => {
      while (writing) {
        await numberChanges(pool, noon, 1 + Math.floor(random() * 5));
        await delay(1);
      }
    };
    const reader = async () => {
      const seen: { readonly number: number; readonly url: string }[] = [];
      let at = 0;
      for (let done = false; !done; ) {
        done = !writing;
        for (;;) {
          const answer = await read(at, {}, 1 + Math.floor(random() * 7));
          if (answer.type !== "read") throw new Error(answer.type);
          seen.push(...answer.changes);
          at = answer.next;
          if (!answer.more) break;
        }
        await delay(random() * 10);
      }
      return seen;
    };

    const readers = [reader(), reader()];
    const appenders = [appender(), appender()];
    await Promise.all(["a", "b", "c"].map(writer));
    while ((await numberChanges(pool, noon)) > 0);
    writing = false;
    await Promise.all(appenders);

    for (const seen of await Promise.all(readers)) {
      expect(seen.map(({ number }) => number)).toEqual(written.map((_, index) => index + 1));
      expect(seen.map(({ url }) => url).sort()).toEqual([...written].sort());
      for (const host of ["a", "b", "c"]) {
        const batches = seen
          .filter(({ url }) => url.includes(`//${host}.`))
          .map(({ url }) => Number(url.split("/")[3]));
        expect(batches).toEqual([...batches].sort((one, other) => one - other));
      }
    }
  });
});

describe("a reader's query", () => {
  beforeEach(async () => {
    await write(pool, "http://a.example/docs/1", "first-seen", "de");
    await write(pool, "http://b.example/", "gone");
    await write(pool, "http://a.example/news", "changed");
    await write(pool, "http://a.example/docs/1", "changed", "de");
    await numberChanges(pool, noon);
  });

  it("filters by host, beginning, kind and domain set, and continues after what did not fit", async () => {
    const german: ChangeFilter["domains"] = ({ language }) => language === "de";

    expect(urlsOf(await read(0, { host: "b.example" }))).toEqual(["http://b.example/"]);
    expect(urlsOf(await read(1, { prefix: "http://a.example/docs/" }))).toEqual(["http://a.example/docs/1"]);
    expect(urlsOf(await read(0, { kinds: ["gone", "first-seen"] }))).toHaveLength(2);
    expect(urlsOf(await read(0, { domains: german }))).toHaveLength(2);
    expect(await read(0, { kinds: ["came-back"] })).toMatchObject({ changes: [], next: 4, more: false });
    expect(await read(0, {}, 3)).toMatchObject({ next: 3, more: true });
  });

  it("from the end returns the latest in order, and the end of the feed", async () => {
    const feed = createChangeFeed(pool);

    const all = await feed.latest({ filter: everyChange, limit: 2 });
    const ofHost = await feed.latest({ filter: { ...everyChange, host: "b.example" }, limit: 2 });

    expect(all.changes.map(({ number }) => number)).toEqual([3, 4]);
    expect(ofHost).toMatchObject({ next: 4, changes: [{ number: 2, kind: "gone", host: "b.example" }] });
  });

  it("for a host with too many changes reads a limited part of them, and continues after it", async () => {
    const many = 20_500;
    await pool.query(
      `insert into page_change (change_number, noted_at, host_hash, url_hash, url, kind, seen_at)
       select 4 + n, noted_at, host_hash, n, 'http://b.example/' || n, 'changed', seen_at
       from page_change, generate_series(1, $1::int) n
       where url = 'http://b.example/'`,
      [many],
    );
    await pool.query("update change_feed set last_number = 4 + $1::int", [many]);
    const prefix = { host: "b.example", prefix: "http://b.example/none" };
    const kinds: Partial<ChangeFilter> = { host: "b.example", kinds: ["came-back"] };

    const found = [await read(4, prefix), await read(4, kinds)];
    const latest = await createChangeFeed(pool).latest({
      filter: { ...everyChange, host: "b.example", kinds: ["gone"] },
      limit: 10,
    });

    for (const one of found) expect(one).toMatchObject({ changes: [], next: 20_004, more: true });
    expect(await read(20_004, prefix)).toMatchObject({ changes: [], next: 4 + many, more: false });
    // The matching one is before the part that is read.
    expect(latest).toMatchObject({ changes: [], next: 4 + many });
  });

  it("before the beginning of the feed or behind its end is refused", async () => {
    expect(await read(5)).toEqual({ type: "unknown", last: 4 });
    expect(await read(4)).toMatchObject({ changes: [], next: 4, more: false });
  });
});

describe("old changes", () => {
  it("are deleted by number, in batches; a cursor before them has missed some", async () => {
    for (const path of ["1", "2", "3"]) await write(pool, `http://a.example/${path}`);
    await numberChanges(pool, noon);
    await write(pool, "http://a.example/4");
    await numberChanges(pool, later(10));
    // The clock went back: newer numbers with an older time wait for those before them.
    await write(pool, "http://a.example/5");
    await numberChanges(pool, noon);

    const removed = [await removeOldChanges(pool, later(5), 2), await removeOldChanges(pool, later(5), 2)];
    const none = await removeOldChanges(pool, later(5), 2);

    expect([...removed, none]).toEqual([2, 1, 0]);
    expect(await read(2)).toEqual({ type: "too-old", removedThrough: 3 });
    expect(urlsOf(await read(3))).toEqual(["http://a.example/4", "http://a.example/5"]);
    expect(await createChangeFeed(pool).state()).toEqual({ last: 5, removedThrough: 3, jumps: [] });
  });

  it("leave the numbers where they were when all are deleted", async () => {
    await write(pool, "http://a.example/1");
    await numberChanges(pool, noon);
    await removeOldChanges(pool, later(1));
    await write(pool, "http://a.example/2");
    await numberChanges(pool, noon);

    expect(await read(1)).toMatchObject({ changes: [{ number: 2 }], next: 2 });
  });
});
