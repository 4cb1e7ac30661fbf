import { beforeAll, describe, expect, it } from "vitest";
import { searchPages } from "#coordinator/tell/search/search";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { extractPage } from "#crawler/extract/extract-page";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedPage, seedWorld, worldNow } from "../support/seed-world.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  const { pool } = database;
  await seedWorld(pool);
  const base = "https://www.example.org";
  await seedPage(pool, {
    url: `${base}/ferry`,
    title: "Ferry timetable",
    text: "Ferries leave the harbour at seven.",
  });
  await seedPage(pool, {
    url: `${base}/walk`,
    title: "A walk",
    text: "Walk along the harbour wall and watch a ferry.",
  });
  await seedPage(pool, { url: `${base}/secret`, title: "Ferry", text: "hidden harbour", noindex: true });
  await seedPage(pool, {
    url: `${base}/odd`,
    title: "Ferry",
    text: "harbour",
    textSearchConfig: "no_such_config",
  });
  await seedPage(pool, {
    url: "https://de.example.org/",
    title: "Die Häfen",
    text: "Das Schiff verlässt den Hafen um sieben.",
    language: "de",
    textSearchConfig: "german",
  });
});

const search = (words: string, options: Parameters<typeof searchPages>[2] = {}) =>
  searchPages(
    everyRead(database.pool, () => performance.now()),
    words,
    options,
    worldNow,
  );
const paths = (answer: { pages: readonly { url: string }[] }) =>
  answer.pages.map((page) => new URL(page.url).pathname);

describe("search", () => {
  it("finds word forms, those in titles first", async () => {
    expect(paths(await search("ferry"))).toEqual(["/ferry", "/walk"]);
    expect(paths(await search("walking"))).toEqual(["/walk"]);
  });

  it("stems each page by its language", async () => {
    await seedPage(database.pool, {
      url: "https://www.example.org/stem",
      title: "haf",
      text: "A stem is no English word.",
    });

    const answer = await search("Häfen");

    expect(answer.pages.map((page) => page.host)).toEqual(["de.example.org"]);
  });

  it("treats combining marks as the composed letters", async () => {
    const asked = "Die Häfen".normalize("NFD");

    const answer = await search(asked);

    expect(paths(answer)).toEqual(paths(await search("Die Häfen")));
    expect(answer).toMatchObject({ words: "Die Häfen", pages: [{ title: "Die Häfen" }] });
  });

  it("finds a page written with combining marks by the ordinary spelling, on an IDN host", async () => {
    const html = `<title>Zürcher Käse</title><meta name="description" content="Über Löcher">
      <h1>Wörter</h1><p>Die Küche ist für die Gäste geöffnet, und der Bäcker auch.`;
    const url = "https://xn--zrich-kva.example/";
    const bytes = Buffer.from(html.normalize("NFD"));
    const body = {
      url,
      bytes,
      contentType: "text/html; charset=utf-8",
      contentLanguage: "de",
      robotsTag: undefined,
    };
    const { page } = await extractPage({ ...body, quiet: async () => {} });
    await seedPage(database.pool, {
      url,
      title: page.title,
      text: "",
      language: "de",
      textSearchConfig: "german",
    });
    await database.pool.query(
      "update page set lexemes = $1::tsvector, description = $2, excerpt = $3 where url = $4",
      [page.lexemes, page.description, page.excerpt, url],
    );

    const { hostHash, host } = urlKeyOf(url) as UrlKey;
    await database.pool.query("insert into frontier_host (host_hash, host) values ($1, $2)", [
      hostHash,
      host,
    ]);

    for (const words of ["Zürcher", "Löcher", "Wörter", "Bäcker", "Gäste"])
      for (const form of ["NFC", "NFD"])
        for (const host of ["zürich.example", "Zürich.EXAMPLE."]) {
          const answer = await search(words.normalize(form), { host: host.normalize(form) });
          expect(
            answer.pages.map((one) => one.url),
            `${words} ${form}`,
          ).toEqual([url]);
        }
    expect((await search("Zürcher", { host: "genève.example" })).total).toBe(0);
  });

  it("understands phrases, or, and excluded words", async () => {
    expect(paths(await search('"harbour wall"'))).toEqual(["/walk"]);
    expect(paths(await search("ferry -walk"))).toEqual(["/ferry"]);
    expect((await search("schiff or timetable")).total).toBe(2);
  });

  it("leaves out pages that ask for it, and those of a configuration unknown to the server", async () => {
    const found = paths(await search("harbour"));

    expect(found).not.toContain("/secret");
    expect(found).not.toContain("/odd");
  });

  it("marks the words in the snippet without markup", async () => {
    const [page] = (await search("seven ferry")).pages;

    expect(page?.snippet.filter((part) => part.matches).map((part) => part.text)).toEqual([
      "Ferries",
      "seven",
    ]);
    expect(page?.snippet.map((part) => part.text).join("")).toContain("leave the harbour at");
  });

  it("filters by language and host", async () => {
    expect((await search("sieben or harbour", { language: "de" })).total).toBe(1);
    expect((await search("harbour", { host: "DE.example.org" })).total).toBe(0);
    expect((await search("harbour", { host: "www.example.org." })).total).toBe(2);
  });

  it("filters by every combination on the same connections", async () => {
    const most = { language: "en", crawler: "athens", from: "2000-01-01", to: "2100-01-01" };

    for (let round = 0; round < 3; round += 1) {
      await search("harbour", most);
      await search("harbour", { ...most, host: "www.example.org" });
      await search("harbour", { ...most, country: "GR" });
    }
  });

  it("pages through results, with the full count even past the end", async () => {
    const second = await search("harbour", { limit: 1, offset: 1 });
    const beyond = await search("harbour", { limit: 1, offset: 50 });

    expect([second.pages.length, second.total]).toEqual([1, 2]);
    expect([beyond.pages.length, beyond.total]).toEqual([0, 2]);
  });

  it("explains why words cannot be searched", async () => {
    expect((await search("  ")).note).toBe(
      "Type one or more words to search for; filters alone find nothing.",
    );
    expect((await search("-:!&|()")).note).toBe(
      "Type one or more words to search for; filters alone find nothing.",
    );
    expect((await search("-ferry")).note).toContain("only exclude");
  });

  it("accepts any text as words", async () => {
    for (const words of [
      "'",
      "\\",
      "a:*b & | !",
      "((((",
      "'; drop table page; --",
      "ferry\0",
      "\ud800",
      "% _",
      "<script>",
    ]) {
      expect((await search(words)).words.length).toBeGreaterThanOrEqual(0);
    }
    expect((await search("ferry")).total).toBe(2);
  });

  it.each([402, 550])(
    "of %i matches in a small index each is reached by paging, or where paging ends is said",
    async (count) => {
      const { pool } = database;
      const word = `quay${count}`;
      const url = `https://www.example.org/${word}`;
      await seedPage(pool, { url, title: word, text: "boats" });
      const copied =
        "host_hash, host, crawler_id, fetched_at, status, content_type, language, text_search_config, title, description, " +
        "excerpt, headings, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes, lexemes";
      await pool.query(
        `insert into page (url_hash, url, ${copied})
       select url_hash + n, url || '/' || n, ${copied} from page, generate_series(1, $2::int - 1) n where url = $1`,
        [url, count],
      );
      const reached = new Set<string>();
      let answer = await search(word);
      while (answer.pages.length > 0 && answer.offset < 500) {
        for (const page of answer.pages) reached.add(page.url);
        answer = await search(word, { offset: answer.offset + answer.limit });
      }
      for (const page of answer.pages) reached.add(page.url);

      expect([reached.size, answer.total, answer.more]).toEqual([Math.min(count, 510), count, false]);
      expect(answer.note).toBe(
        count > 510 ? "Only the best 510 can be paged through. Add a word or a filter to see others." : null,
      );
    },
  );

  it("bounds words, limit and offset", async () => {
    const answer = await search("ferry ".repeat(500), { limit: 1e9, offset: -5 });

    expect(answer.words.split(" ").length).toBeLessThanOrEqual(24);
    expect([answer.limit, answer.offset]).toEqual([100, 0]);
  });

  it("strips its own marks from a page's text", async () => {
    await seedPage(database.pool, {
      url: "https://www.example.org/marks",
      title: "x",
      text: "lighthouse \u0002fake\u0003 keeper",
    });

    const [page] = (await search("lighthouse")).pages;

    expect(page?.snippet.filter((part) => part.matches).map((part) => part.text)).toEqual(["lighthouse"]);
  });
});

// Issue 41: 142 of 402 matches in an index of 613 pages.
it("every page of an index of hundreds is reached, page after page", async () => {
  for (let at = 0; at < 402; at++)
    await seedPage(database.pool, {
      url: `https://h${at % 40}.example/${at}`,
      title: at % 3 === 0 ? `Meadow ${at}` : `Page ${at}`,
      text: `A meadow of number ${at}, with ${"grass ".repeat(at % 7)}.`,
    });

  const found = new Set<string>();
  for (let offset = 0; offset <= 500; offset += 100)
    for (const { url } of (await search("meadow", { limit: 100, offset })).pages) found.add(url);

  expect(found.size).toBe(402);
});
