/** The index in memory in its own process: it answers, follows, and nobody misses it when it dies. */
import { beforeAll, describe, expect, it } from "vitest";
import { IndexClient } from "#coordinator/tell/search/memory/index-client";
import { IndexKeeper } from "#coordinator/tell/search/memory/index-keeper-store";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import { silentLog } from "#core/log";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { until } from "../../support/until.ts";
import { seedMadePages } from "./made-index.ts";

/** Starting a process from sources takes a while. */
const longMs = 60_000;

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedMadePages(database.pool, 120, 3);
});

describe("the process of the index in memory", () => {
  it("answers while it follows the database, and the database answers when it has died", async () => {
    const { pool, url: databaseUrl } = database;
    const index = new IndexClient({ databaseUrl, mostBytes: 2 ** 31, log: silentLog });
    const reads = {
      ...createSearchReads(pool, () => performance.now(), index),
      keep: <T>(_: string, make: () => Promise<T>) => make(),
    };
    const search = async (words: string) => await searchPages(reads, words, {}, worldNow);
    try {
      index.start();
      const early = await search("ferry");
      await until(() => index.state().type === "ready", longMs);
      const ready = await search("ferry");
      await pool.query(
        "update page set lexemes = 'zeppelin:1A' where url_hash = (select min(url_hash) from page where not noindex)",
      );
      await until(async () => (await index.ask(questionOf("zeppelin")))?.total === 1, longMs);

      expect(early.note).toContain("is being built");
      expect(early.pages.map(({ url }) => url).sort()).toEqual(ready.pages.map(({ url }) => url).sort());
      expect([ready.note, ready.more, ready.facets.pages]).toEqual([null, false, ready.total]);

      const before = index.pid;
      process.kill(before!, "SIGKILL");
      await until(() => index.state().type === "failed", longMs);
      const fallen = await search("ferry");
      await until(() => index.state().type === "ready", longMs);

      expect(fallen.note).toContain("not there at the moment");
      expect(fallen.total).toBe(early.total);
      expect(index.pid).not.toBe(before);
    } finally {
      await index.stop();
    }
    expect(index.state().type).toBe("off");
  });

  it("says why it gives up when it lacks memory", async () => {
    const index = new IndexClient({ databaseUrl: database.url, mostBytes: 2 ** 20, log: silentLog });
    try {
      index.start();
      await until(() => index.state().type === "failed", longMs);

      expect(index.state()).toMatchObject({ why: expect.stringContaining("search.indexMegabytes") });
    } finally {
      await index.stop();
    }
  });
});

describe("whether there is an index in memory", () => {
  const stateWith = async (index: "memory" | "database" | null) => {
    const keeper = new IndexKeeper({
      ...{ pool: database.pool, databaseUrl: database.url, log: silentLog },
      settings: { index, indexMegabytes: null },
    });
    keeper.start();
    await until(() => JSON.stringify(keeper.state()).includes("looked") === false, longMs);
    const state = keeper.state();
    await keeper.stop();
    return state;
  };

  it("depends on the settings, or on the number of pages", async () => {
    expect(await stateWith("database")).toEqual({ type: "off", why: 'search.index is "database"' });
    expect(await stateWith(null)).toEqual({ type: "off", why: "there are fewer than 20000 pages" });
    expect(await stateWith("memory")).toMatchObject({ type: "building" });
  });
});

function questionOf(word: string) {
  const quoted = `'${word}'`;
  return {
    arms: [
      {
        configurations: ["english", "german", "simple"],
        query: quoted,
        headQuery: quoted,
        anyQuery: quoted,
        titleQuery: null,
      },
    ],
    ...{ plainWords: [], crawlerId: null, sort: "relevance" as const, wanted: 10, nowS: 0 },
    filters: {
      host: null,
      language: null,
      country: null,
      crawler: null,
      from: null,
      to: null,
      preference: null,
      excludeHost: null,
      title: null,
      type: null,
    },
  };
}
