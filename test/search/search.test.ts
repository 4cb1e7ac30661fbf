import { beforeAll, describe, expect, it } from "vitest";
import { EngineAway, type SearchEngine } from "#coordinator/tell/search/engine/search-engine";
import type { SearchOptions } from "#coordinator/tell/search/query";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { extractPage } from "#crawler/extract/extract-page";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";
import { engineOver, levelEngine, searchOver } from "../support/search-engine.ts";
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
    url: "https://de.example.org/",
    title: "Die Häfen",
    text: "Das Schiff verlässt den Hafen um sieben.",
    language: "de",
    textSearchConfig: "german",
  });
});

const level = async () => await levelEngine(database.pool);
const search = async (words: string, options: SearchOptions = {}) =>
  await searchOver(database.pool, words, worldNow, options);
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
    await level();

    const answer = await search("Häfen");

    expect(answer.pages.map((page) => page.host)).toEqual(["de.example.org"]);
  });

  it("finds pages with most of the words where none has all, and says so", async () => {
    const answer = await search("ferry timetable aeroplane");

    expect(paths(answer)).toEqual(["/ferry"]);
    expect(answer).toMatchObject({ total: 1, more: false });
    expect(answer.note).toBe("No page has all of these words: these have most of them.");
    expect((await search("ferry timetable -harbour aeroplane")).pages).toEqual([]);
    expect((await search("ferry timetable")).note).toBeNull();
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
    const { title, text, description } = page;
    await seedPage(database.pool, { url, title, text, language: "de", textSearchConfig: "german" });
    const { hostHash, host } = urlKeyOf(url) as UrlKey;
    await database.pool.query("update document set description = $1 where host_hash = $2", [
      description,
      hostHash,
    ]);
    await database.pool.query("insert into frontier_host (host_hash, host) values ($1, $2)", [
      hostHash,
      host,
    ]);
    await level();

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

  it("takes the words of an unknown configuration as they are written", async () => {
    await seedPage(database.pool, {
      url: "https://www.example.org/odd",
      title: "Buoys",
      text: "Odd buoys.",
      textSearchConfig: "no_such_config",
    });
    await level();

    expect([paths(await search("buoys")), paths(await search("buoy"))]).toEqual([["/odd"], []]);
  });

  it("leaves out pages that ask for it, also where the engine does not know yet, and does not count them", async () => {
    const before = await search("harbour");
    await database.pool.query("update page set noindex = true where url like '%/walk'");
    const hidden = await search("harbour");
    await level();
    const level2 = await search("harbour");
    await database.pool.query("update page set noindex = false where url like '%/walk'");
    await level();

    expect(paths(before)).not.toContain("/secret");
    expect(paths(before)).toContain("/walk");
    expect(paths(hidden)).toEqual(paths(before).filter((path) => path !== "/walk"));
    expect([hidden.total, level2.total]).toEqual([before.total - 1, before.total - 1]);
  });

  it("leaves out pages of a site that opted out since the engine was level", async () => {
    const marked = "update frontier_host set opt_out_id = $1 where host = 'www.example.org'";
    const { rows } = await database.pool.query<{ opt_out_id: number }>(
      `insert into opt_out (site, source, token, created_at, in_force_at)
       values ('www.example.org', 'operator', 't', now(), now()) returning opt_out_id`,
    );
    await database.pool.query(marked, [rows[0]!.opt_out_id]);
    const hidden = await search("harbour");
    await database.pool.query(marked, [null]);

    expect([hidden.total, hidden.pages]).toEqual([0, []]);
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
      for (const table of ["page", "document"])
        await pool.query(
          `insert into ${table}
           select (jsonb_populate_record(r, jsonb_build_object('url_hash', r.url_hash + n, 'url', $1 || '/' || n))).*
           from ${table} r, generate_series(1, $2::int - 1) n
           where (r.host_hash, r.url_hash) = (select host_hash, url_hash from page where url = $1)`,
          [url, count],
        );
      await level();
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

  it("never shows what is not to be quoted, and quotes no more than the page allows", async () => {
    const base = "https://www.example.org/quoted";
    for (const [path, snippetCharacters] of [
      ["none", 0],
      ["few", 20],
      ["any", null],
    ] as const) {
      await seedPage(database.pool, {
        url: `${base}/${path}`,
        title: path,
        text: "A lighthouse keeper lives here.",
      });
      await database.pool.query(
        `update document d
         set unquoted = 'The secret lantern.', snippet_characters = $1, description = 'About the lighthouse.'
         from page p where p.host_hash = d.host_hash and p.url_hash = d.url_hash and p.url = $2`,
        [snippetCharacters, `${base}/${path}`],
      );
    }
    await level();

    for (const words of ["lighthouse", "lantern"]) {
      const answer = await search(words);
      const snippets = Object.fromEntries(
        answer.pages.map(({ title, snippet }) => [title, snippet.map(({ text }) => text).join("")]),
      );
      expect(Object.keys(snippets).sort()).toEqual(["any", "few", "none"]);
      expect(JSON.stringify(answer)).not.toContain("secret");
      expect([snippets.none, snippets.few?.replace(" …", "").length]).toEqual([
        "",
        expect.toSatisfy((length) => length <= 20),
      ]);
    }
  });

  it("counts the other hosts that link to a page, which raise its rank", async () => {
    const urls = ["a", "b", "c"].map((host) => `https://${host}.example.org/bridge`);
    for (const url of urls) await seedPage(database.pool, { url, title: "Bridge", text: "The old bridge." });
    for (const from of [urls[0]!, urls[2]!])
      await addLinks(database.pool, [
        { from: urlKeyOf(from) as UrlKey, to: urlKeyOf(urls[1]!) as UrlKey, anchor: "b" },
      ]);
    await level();

    const [first] = (await search("bridge", { explain: true })).pages;

    expect(first?.url).toBe(urls[1]);
    expect(first?.reasons?.find(({ part }) => part === "links")?.words).toBe("2 other hosts link to it");
  });

  it("offers a word of public pages for a mistyped one, also within a phrase", async () => {
    for (const at of [1, 2])
      await seedPage(database.pool, {
        url: `https://www.example.org/lamp/${at}`,
        title: "Lanterns and lights",
        text: "x",
      });
    await level();

    expect((await search("lantrens")).didYouMean).toBe("lanterns");
    expect((await search('"lantrens and lights" -ferry')).didYouMean).toBe('"lanterns and lights" -ferry');
    expect((await search("lanterns")).didYouMean).toBeNull();
    // As many pages have both words as have one of those typed.
    expect(await search("lantrens lights")).toMatchObject({
      ...{ didYouMean: "lanterns lights", note: expect.stringContaining("most of them") },
    });
    expect((await search("zzzzzz")).didYouMean).toBeNull();
  });
});

describe("an engine", () => {
  const engineWith = (changed: Partial<SearchEngine>): SearchEngine => {
    const own = engineOver(database.pool);
    const { search: find, configurations, wordsLike } = own;
    return { state: () => own.state(), search: find, configurations, wordsLike, ...changed };
  };
  const searchWith = async (changed: Partial<SearchEngine>) =>
    await searchPages(
      createSearchReads(database.pool, () => 0, engineWith(changed)),
      "ferry",
      {},
      worldNow,
    );

  it("that does not answer makes no answer that looks like nothing found", async () => {
    const away = new EngineAway("it is being started");

    await expect(searchWith({ search: async () => await Promise.reject(away) })).rejects.toBe(away);
  });

  it("that is being filled answers with what it has, and says how much that is", async () => {
    const answer = await searchWith({ state: () => ({ type: "building", pages: 37, ofPages: 100 }) });

    expect(answer.total).toBeGreaterThan(0);
    expect(answer.note).toBe("The index is being filled (37 %): there may be more.");
  });

  it("that ran out of time says so and shows what it found until then", async () => {
    const { search: complete } = engineOver(database.pool);
    const answer = await searchWith({
      search: async (question) => ({ ...(await complete(question)), isPartial: true }),
    });

    expect(answer.total).toBeGreaterThan(0);
    expect(answer.note).toContain("Not all of the index was searched in time");
  });

  it("is asked once for the same question of several people at once, and again after a while", async () => {
    const { search: own } = engineOver(database.pool);
    let [asked, nowMs] = [0, 1000];
    const engine = engineWith({
      search: async (question) => {
        asked += 1;
        return await own(question);
      },
    });
    const reads = createSearchReads(database.pool, () => nowMs, engine);
    const ask = async (offset = 0) => await searchPages(reads, "harbour", { offset, limit: 1 }, worldNow);

    await Promise.all([ask(), ask(), ask(1)]);
    await ask();
    const soon = asked;
    nowMs = 61_000;
    await ask();

    expect([soon, asked]).toEqual([1, 2]);
  });
});
