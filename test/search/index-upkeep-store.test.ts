/** The walk through the pages: linking hosts, the first tier, and the words people use. */
import { beforeAll, describe, expect, it } from "vitest";
import { keepSearch } from "#coordinator/tell/search/index-upkeep-store";
import { searchPages } from "#coordinator/tell/search/search";
import { searchTurn } from "#coordinator/tell/search/start";
import { urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";
import { seedPage, seedWorld, worldNow } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase());
const page = (host: string, path = "/") => `https://${host}.example.org${path}`;

beforeAll(async () => {
  const { pool } = database;
  await seedWorld(pool);
  await seedPage(pool, { url: page("www"), title: "Harbour", text: "Harbour lights." });
  await seedPage(pool, { url: page("a", "/1"), title: "Harbour", text: "A harbour with a crane." });
  await seedPage(pool, { url: page("b", "/2"), title: "Harbour", text: "The harbour master." });
  await seedPage(pool, { url: page("c", "/3"), title: "Secretive", text: "Hidden words.", noindex: true });
  await link(page("a", "/1"), page("b", "/2"));
  await link(page("a", "/other"), page("b", "/2"));
  await link(page("www"), page("b", "/2"));
  await link(page("b", "/9"), page("b", "/2"));
  await link(page("c", "/3"), page("b", "/2"), true);
});

async function link(from: string, to: string, nofollow = false): Promise<void> {
  const [a, b] = [keyOf(from), keyOf(to)];
  await addLinks(database.pool, [{ from: a, to: b, anchor: "words", nofollow }]);
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  return key;
}

const round = async (now: Date) => await searchTurn({ pool: database.pool, now: () => now, nowMs: () => 0 });
const search = async (words: string) =>
  await searchPages(
    everyRead(database.pool, () => performance.now()),
    words,
    { explain: true },
    worldNow,
  );

describe("a round of the upkeep", () => {
  it("counts the other hosts that link to a page, which raise its rank", async () => {
    const looked = await round(worldNow);

    const { rows } = await database.pool.query(
      "select url, popularity from page order by popularity desc limit 2",
    );
    const [first] = (await search("harbour")).pages;
    expect(looked).toBe(4);
    expect(rows.map((row) => row.popularity)).toEqual([2, 0]);
    expect(first?.url).toBe(page("b", "/2"));
    expect(first?.reasons?.find(({ part }) => part === "links")?.words).toBe("2 other hosts link to it");
  });

  it("learns the words of public pages and offers them for mistyped ones", async () => {
    const { rows } = await database.pool.query<{ word: string }>("select word from search_word");
    const slipped = await search("hrabour");
    const phrase = await search('"harbuor lights"');

    expect(rows.map((row) => row.word)).toContain("harbour");
    expect(rows.map((row) => row.word)).not.toContain("hidden");
    expect([slipped.total, slipped.didYouMean]).toEqual([0, "harbour"]);
    expect(phrase.didYouMean).toBe('"harbour lights"');
    expect((await search("harbour")).didYouMean).toBeNull();
    expect((await search("zzzzzz")).didYouMean).toBeNull();
  });

  it("puts all pages of a small index into the first tier in the round after counting them", async () => {
    const resting = await keepSearch(database.pool, worldNow);
    await round(new Date(worldNow.getTime() + 120_000));

    const { rows } = await database.pool.query("select distinct tier from page");
    expect(resting).toEqual({ pages: 0, rests: true });
    expect(rows).toEqual([{ tier: 0 }]);
    expect((await search("harbour")).total).toBe(3);
  });

  it("forgets words that are on no page any more", async () => {
    await database.pool.query("update page set excerpt = '' where url = $1", [page("b", "/2")]);

    await round(new Date(worldNow.getTime() + 240_000));

    const { rows } = await database.pool.query<{ word: string; pages: number }>(
      "select word, pages from search_word where word in ('master', 'harbour')",
    );
    expect(rows).toEqual([{ word: "harbour", pages: 5.25 }]);
  });

  it("is done by one coordinator at a time", async () => {
    const client = await database.pool.connect();
    await client.query("begin");
    await client.query("select from search_upkeep for update");

    const other = await keepSearch(database.pool, new Date(worldNow.getTime() + 999_000));

    await client.query("rollback");
    client.release();
    expect(other).toEqual({ pages: 0, rests: true });
  });
});
