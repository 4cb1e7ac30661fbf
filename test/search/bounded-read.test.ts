/**
 * The cost of hostile or unlucky words: a statement that takes too long is ended, and the connection can be used
 * again.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { boundedRead } from "#coordinator/tell/search/candidate-reads";
import { readSearch } from "#coordinator/tell/search/query";
import { rankPages } from "#coordinator/tell/search/ranking";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedPage, seedWorld, worldNow } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase({ maxConnections: 1 }));
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedPage(database.pool, { url: "https://www.example.org/", title: "Ferry", text: "ferry" });
});

describe("a bounded read", () => {
  it("ends what takes too long and leaves no setting behind", async () => {
    const ended = await boundedRead(
      database.pool,
      20,
      async (client) => await client.query("select pg_sleep(20)"),
    );

    const { rows } = await database.pool.query("show enable_seqscan");
    expect(ended).toBeNull();
    expect(rows).toEqual([{ enable_seqscan: "on" }]);
  });

  it("lets other errors through", async () => {
    const failing = boundedRead(database.pool, 1000, async (client) => await client.query("select 1 / 0"));

    await expect(failing).rejects.toThrow("division by zero");
  });
});

describe("a search that was cut short", () => {
  it("says so and shows what it found until then", async () => {
    const reads = createSearchReads(database.pool, () => 0);
    const slow = {
      ...reads,
      candidates: async (query: Parameters<typeof reads.candidates>[0]) => ({
        ...(await reads.candidates(query)),
        cutShort: true,
      }),
    };

    const answer = await searchPages(slow, "ferry", {}, worldNow);

    expect(answer.pages.length).toBe(1);
    expect(answer.note).toContain("cut short");
  });
});

describe("the same question", () => {
  it("is answered once for callers at the same moment, and anew after a while", async () => {
    let nowMs = 1000;
    const reads = createSearchReads(database.pool, () => nowMs);
    let made = 0;
    const ask = async () =>
      await reads.keep("ferry", async () => {
        made += 1;
        return await rankPages(reads, readSearch("ferry", {}), worldNow);
      });

    await Promise.all([ask(), ask(), ask()]);
    await ask();
    const soon = made;
    nowMs = 61_000;
    await ask();

    expect([soon, made]).toEqual([1, 2]);
  });
});
