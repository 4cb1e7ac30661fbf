/** The index in a file follows its database, in a process of its own that nobody misses for long when it dies. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { ownAlertsOf } from "#coordinator/tell/overview/alert-rules";
import { Fts5Client } from "#coordinator/tell/search/engine/fts5-client";
import { openFts5 } from "#coordinator/tell/search/engine/fts5-engine-store";
import { EngineAway, type SearchEngine } from "#coordinator/tell/search/engine/search-engine";
import { silentLog } from "#core/log";
import { urlKeyOf } from "#core/url-key";
import { healthy } from "../overview/alert-world.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedChange } from "../support/seed-changes.ts";
import { seedPage, seedWorld, worldNow } from "../support/seed-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { questionOf } from "./engine-contract.ts";

/** Starting a process from sources takes a while. */
const longMs = 60_000;

const { pool, url: databaseUrl } = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(pool);
  await store("https://a.example/1", "First ferry");
  await store("https://a.example/2", "Second ferry");
});

async function store(url: string, title: string): Promise<void> {
  await seedPage(pool, { url, title, text: "The text" });
  await seedChange(pool, { url, kind: "first-seen" });
  await numberChanges(pool, worldNow);
}

async function remove(url: string): Promise<void> {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  await pool.query("delete from page where url_hash = $1", [key.urlHash]);
  await seedChange(pool, { url, kind: "gone" });
  await numberChanges(pool, worldNow);
}

async function found(engine: SearchEngine, words: string): Promise<string[]> {
  const { matches } = await engine.search(await questionOf({ all: [words] }));
  return matches.map(({ url }) => url.split("/").at(-1)!).sort();
}

describe("an index that follows the database", () => {
  it("has all pages after its first round, and what has changed after each further one", async () => {
    const engine = await openFts5(pool, ":memory:");
    const before = engine.state();
    await engine.catchUp();
    const built = [engine.state(), await found(engine, "ferry")];

    await store("https://a.example/3", "Third ferry");
    await remove("https://a.example/2");
    await engine.catchUp();

    expect(before).toMatchObject({ type: "building" });
    expect(built).toMatchObject([{ type: "ready", pages: 2 }, ["1", "2"]]);
    expect(await found(engine, "ferry")).toEqual(["1", "3"]);
    expect(engine.state()).toMatchObject({ type: "ready", pages: 2, bytes: expect.any(Number) });
    engine.close();
  });

  it("finds pages by links that have come without a change of the page, after a round of all pages", async () => {
    const engine = await openFts5(pool, ":memory:");
    await engine.catchUp();
    await pool.query("update page set title = 'Zeppelin' where url like '%/1'");
    await engine.catchUp();
    const without = await found(engine, "zeppelin");
    await engine.catchUp({ full: true });

    expect([without, await found(engine, "zeppelin")]).toEqual([[], ["1"]]);
    engine.close();
  });

  it("begins anew with a file of another database, and of a database that went back", async () => {
    const path = join(temporaryFolder("fts5-"), "search.sqlite");
    const engine = await openFts5(pool, path);
    await engine.catchUp();
    engine.close();
    await pool.query("update page set title = 'Airship' where url like '%/1'");
    await pool.query("update change_feed set last_number = last_number - 1");

    const again = await openFts5(pool, path);
    await again.catchUp();

    expect(await found(again, "airship")).toEqual(["1"]);
    again.close();
    await pool.query("update change_feed set last_number = last_number + 1");
  });
});

describe("the process of an index", () => {
  const leads = () => false;

  it("has pages without a text fetched again, if its coordinator leads", async () => {
    const url = "https://a.example/dropped";
    await store(url, "Dropped airfield");
    await pool.query("delete from document d using page p where p.url = $1 and p.url_hash = d.url_hash", [
      url,
    ]);
    await pool.query(
      `insert into frontier_url (host_hash, url_hash, url, state, next_fetch_at, etag)
       select host_hash, url_hash, url, 'due', 'infinity', 'x' from page where url = $1`,
      [url],
    );
    const etag = async () =>
      (await pool.query("select etag from frontier_url where url = $1", [url])).rows[0].etag;
    const run = async (isLeading: boolean) => {
      const [path, told] = [":memory:", [] as unknown[]];
      const log = { ...silentLog, warn: (fields: object) => void told.push(fields) };
      const engine = new Fts5Client({ databaseUrl, path, leads: () => isLeading, log });
      engine.start();
      // How many were lost is told after the round, which the index may be ready before.
      const isTold = () => !isLeading || told.length > 0;
      await until(() => engine.state().type === "ready" && isTold(), longMs);
      await engine.stop();
      return told;
    };

    expect([await run(false), await etag()]).toEqual([[], "x"]);
    expect([await run(true), await etag()]).toEqual([[{ pages: 1 }], null]);
    await remove(url);
  });

  it("answers, follows, and comes back with its file when it has died", async () => {
    const path = join(temporaryFolder("fts5-"), "search.sqlite");
    const engine = new Fts5Client({ databaseUrl, path, leads, log: silentLog });
    try {
      await expect(engine.search(await questionOf({ all: ["ferry"] }))).rejects.toThrow(EngineAway);
      engine.start();
      await until(() => engine.state().type === "ready", longMs);
      const atFirst = await found(engine, "ferry");
      await store("https://a.example/4", "Fourth ferry");
      await until(async () => (await found(engine, "fourth")).length === 1, longMs);

      const { matches } = await engine.search(await questionOf({ all: ["fourth"] }));
      expect(atFirst).toContain("3");
      expect(matches).toMatchObject([{ fetchedAt: worldNow, crawler: "athens" }]);
      expect(await engine.configurations()).toEqual(["english"]);
      expect(await engine.wordsLike("ferri")).toMatchObject([{ word: "ferry" }]);

      const before = engine.pid;
      process.kill(before!, "SIGKILL");
      await until(() => engine.state().type === "away", longMs);
      await expect(engine.wordsLike("ferri")).rejects.toThrow(/its process ended \(SIGKILL\)/);
      await until(() => engine.state().type === "ready", longMs);

      expect(engine.pid).not.toBe(before);
      expect(await found(engine, "fourth")).toEqual(["4"]);

      // What it says of itself as long as it may still be one that keeps ending does not count.
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });
      await delay(1500);
      expect(engine.fault()?.words).toContain("it is behind, or keeps ending");
    } finally {
      vi.useRealTimers();
      await engine.stop();
    }
    expect(engine.state()).toEqual({ type: "away", why: "it was stopped" });
  });

  it("says why it cannot open its file, and makes a damaged one anew", async () => {
    const folder = temporaryFolder("fts5-");
    const damaged = join(folder, "search.sqlite");
    const letter = join(folder, "letter");
    for (const file of [damaged, letter]) writeFileSync(file, "no index".repeat(1000));
    const healed = new Fts5Client({ databaseUrl, path: damaged, leads, log: silentLog });
    const failing = new Fts5Client({
      databaseUrl,
      path: join(letter, "search.sqlite"),
      leads,
      log: silentLog,
    });
    try {
      healed.start();
      failing.start();
      await until(() => healed.state().type === "ready", longMs);
      await until(() => /letter/.test(JSON.stringify(failing.state())), longMs);

      expect(await found(healed, "ferry")).toContain("3");
    } finally {
      await healed.stop();
      await failing.stop();
    }
  });

  it("raises an alert with the reason once it has not opened its file for ten minutes", async () => {
    const path = join(temporaryFolder("fts5-"), "search.sqlite");
    mkdirSync(path);
    const engine = new Fts5Client({ databaseUrl, path, leads, log: silentLog });
    const alerts = (): object[] => {
      const fault = engine.fault();
      const search = fault && { words: fault.words, sinceMs: fault.since.getTime() };
      return ownAlertsOf({ ...healthy, search }, Date.now());
    };
    try {
      engine.start();
      await until(() => /directory/.test(JSON.stringify(engine.state())), longMs);
      const atFirst = [engine.fault(), alerts()];
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });

      expect(atFirst).toEqual([null, []]);
      const words = `The search's index does not follow the database: Path is a directory: rm returned EISDIR (is a directory) ${path}, since `;
      expect(alerts()).toMatchObject([{ name: "search-behind", words: expect.stringContaining(words) }]);
    } finally {
      vi.useRealTimers();
      await engine.stop();
    }
  });
});
