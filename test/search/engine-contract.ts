/** What every engine of the search does, whichever it is: filled as an export fills it, and asked as the search asks it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineQuestion, SearchEngine, TermArm } from "#coordinator/tell/search/engine/search-engine";
import type { ExportState, ExportTarget } from "#coordinator/tell/search/export/export-index";
import {
  documentId,
  type ExportedDocument,
  type Operation,
} from "#coordinator/tell/search/export/export-operation";
import { filterNames, type SearchFilters } from "#coordinator/tell/search/search-answer";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { queryTerms, stemmingOf } from "#core/words/words";

export interface OpenedEngine {
  readonly target: ExportTarget;
  readonly engine: Pick<SearchEngine, "search" | "configurations" | "wordsLike">;
  /** Resolves when searches see what was written. */
  settled(): Promise<void>;
  /** Closes it, and opens the same index again. */
  reopened(): Promise<OpenedEngine>;
  close(): Promise<void>;
}

/** `open` opens an engine without pages. */
export function engineContract(name: string, open: () => Promise<OpenedEngine>): void {
  describe(name, () => {
    let opened: OpenedEngine;
    beforeEach(async () => {
      opened = await open();
      expect(await opened.target.state()).not.toMatchObject({ format: 1 });
    });
    afterEach(async () => {
      await opened.close();
    });

    const write = async (...operations: Operation[]) => {
      const written = await opened.target.write(operations);
      await opened.settled();
      return written;
    };

    const pages = async (...documents: Page[]) =>
      await write(...documents.map((document) => indexed(document, 1)));

    const ask = async (question: Asked) => await opened.engine.search(await questionOf(question));

    /** The last part of the addresses of the pages that match, sorted. */
    const found = async (question: Asked) =>
      (await ask(question)).matches.map(({ url }) => url.split("/").at(-1)).sort();

    describe("words", () => {
      it("finds nothing in an empty index", async () => {
        expect(await ask({ all: ["ferry"] })).toEqual({
          ...{ matches: [], total: 0 },
          ...{ isExact: true, isPartial: false },
        });
        expect(await opened.engine.configurations()).toEqual([]);
        expect(await opened.engine.wordsLike("ferry")).toEqual([]);
      });

      it("finds a word in every field of a page, and in what may not be quoted", async () => {
        await pages(
          { url: "https://a.example/title", title: "Ferry" },
          { url: "https://a.example/description", description: "A ferry" },
          { url: "https://a.example/heading", headings: ["Boats", "The ferry"] },
          { url: "https://a.example/text", text: "Boats\nThe ferry leaves" },
          { url: "https://a.example/unquoted", unquoted: "the ferry" },
          { url: "https://a.example/anchor", anchors: ["boats", "ferry tickets"] },
          { url: "https://a.example/ferry" },
          { url: "https://ferry.example/host" },
          { url: "https://a.example/no", text: "A boat" },
        );

        expect(await found({ all: ["ferry"] })).toEqual([
          ...["anchor", "description", "ferry", "heading", "host", "text", "title", "unquoted"],
        ]);
      });

      it("wants all words, in any fields", async () => {
        await pages(
          { url: "https://a.example/both", title: "Ferry", text: "in the harbour" },
          { url: "https://a.example/one", title: "Ferry" },
        );

        expect(await found({ all: ["ferry", "harbour"] })).toEqual(["both"]);
      });

      it("wants one of the words of a group, and none of the excluded ones", async () => {
        await pages(
          { url: "https://a.example/ferry", text: "ferry harbour" },
          { url: "https://a.example/boat", text: "boat harbour" },
          { url: "https://a.example/train", text: "train harbour" },
        );

        expect(await found({ all: [["ferry", "boat"], "harbour"] })).toEqual(["boat", "ferry"]);
        expect(await found({ all: ["harbour"], none: ["ferry", "night train"] })).toEqual(["boat", "train"]);
      });

      it("finds phrases where their words follow one another, and excludes them so", async () => {
        await pages(
          { url: "https://a.example/phrase", text: "the night ferry to Chios" },
          { url: "https://a.example/apart", text: "a ferry at night, the ferry" },
        );

        expect(await found({ all: ["night ferry"] })).toEqual(["phrase"]);
        expect(await found({ all: ["the night ferry"] })).toEqual(["phrase"]);
        expect(await found({ all: ["ferry"], none: ["night ferry"] })).toEqual(["apart"]);
      });

      it("finds words of the title in the title only", async () => {
        await pages(
          { url: "https://a.example/title", title: "Night ferry", text: "harbour" },
          { url: "https://a.example/heading", headings: ["Night ferry"], text: "harbour" },
        );

        expect(await found({ all: ["harbour"], title: ["night ferry"] })).toEqual(["title"]);
        expect(await found({ all: [], title: ["ferry"] })).toEqual(["title"]);
      });

      it("finds a dotted name by its end, with the sign before it or without", async () => {
        await pages(
          { url: "https://a.example/name", text: "Follow @glendunlap.bsky.social today" },
          { url: "https://a.example/other", text: "social bsky" },
        );

        for (const words of ["bsky", "bsky.social", "@glendunlap.bsky.social", "glendunlap"])
          expect(await found({ all: [words] }), words).toContain("name");
        expect(await found({ all: ["bsky.social"] })).toEqual(["name"]);
      });

      it.each([
        ["english", "The harbours were crowded", "crowding harbour"],
        ["german", "Die Häuser der Kinder", "haus kind"],
        ["french", "Les maisons anciennes", "ancienne maison"],
        ["spanish", "Las gatas negras", "gata negra"],
        ["italian", "Le gatte nere", "gatta nera"],
        ["portuguese", "As cidades antigas", "antiga cidade"],
        ["dutch", "De huizen en boten", "boot"],
        ["swedish", "Båtarna i hamnarna", "hamnen båten"],
        ["finnish", "Talot ja laivat", "talo laiva"],
        ["russian", "Старые книги", "старая книга"],
        ["turkish", "Kitaplar ve evler", "kitap ev"],
      ])("finds other forms of a word in %s", async (configuration, text, asked) => {
        await pages({ url: "https://a.example/page", text_search_config: configuration, text });

        const forms = asked.split(" ");
        const stems = await Promise.all(
          forms.map(async (form) => await found({ configuration, all: [form] })),
        );

        expect(stems).toEqual(forms.map(() => ["page"]));
      });

      it("looks for each page's words under the rules of its own language", async () => {
        await pages(
          { url: "https://a.example/en", text: "crowded harbours" },
          { url: "https://a.example/de", text_search_config: "german", text: "crowded harbours" },
        );
        const english = await armOf({ all: ["crowd"] });
        const german = await armOf({ configuration: "german", all: ["crowded"] });

        expect(await found({ arms: [english] })).toEqual(["en"]);
        expect(await found({ arms: [english, german] })).toEqual(["de", "en"]);
        expect(await found({ arms: [{ ...english, configurations: ["english", "german"] }] })).toEqual([
          "en",
        ]);
        expect((await opened.engine.configurations()).toSorted()).toEqual(["english", "german"]);
      });

      it("does not take the name of a configuration for a word", async () => {
        await pages({ url: "https://a.example/page", text: "ferry" });

        expect(await found({ all: ["english"] })).toEqual([]);
      });

      it("finds ideographs by pairs, by whole runs, and one alone wherever it stands", async () => {
        const configuration = "simple";
        await pages(
          { url: "https://a.example/japan", text_search_config: configuration, text: "日本語の本を読む" },
          { url: "https://a.example/hsinchu", text_search_config: configuration, text: "台灣新竹市的天氣" },
          { url: "https://a.example/sunday", text_search_config: configuration, text: "今日 Tokyo" },
        );
        const asked = {
          日本: ["japan"],
          新竹: ["hsinchu"],
          日本語: ["japan"],
          新竹市: ["hsinchu"],
          本語日: [],
        };
        for (const [words, urls] of Object.entries(asked))
          expect(await found({ configuration, all: [words] }), words).toEqual(urls);
        expect(await found({ configuration, all: ["日"] })).toEqual(["japan", "sunday"]);
        expect(await found({ configuration, all: ["氣"] })).toEqual(["hsinchu"]);
        expect(await found({ configuration, all: ["tokyo", "日"] })).toEqual(["sunday"]);
        expect(await found({ configuration, all: ["tokyo"], none: ["日"] })).toEqual([]);
        expect(await found({ configuration, all: [], title: ["日"] })).toEqual([]);
      });

      it("keeps letters with marks apart from those without, and finds words of every script", async () => {
        const configuration = "simple";
        await pages(
          { url: "https://a.example/marked", text_search_config: configuration, text: "résumé" },
          { url: "https://a.example/plain", text_search_config: configuration, text: "resume" },
          { url: "https://a.example/hindi", text_search_config: configuration, text: "हिन्दी में" },
          { url: "https://a.example/adlam", text_search_config: configuration, text: "𞤀𞤁𞤂𞤃" },
          { url: "https://a.example/thai", text_search_config: configuration, text: "ภาษาไทย" },
        );

        expect(await found({ configuration, all: ["résumé"] })).toEqual(["marked"]);
        expect(await found({ configuration, all: ["re\u0301sume\u0301"] })).toEqual(["marked"]);
        expect(await found({ configuration, all: ["resume"] })).toEqual(["plain"]);
        expect(await found({ configuration, all: ["हिन्दी"] })).toEqual(["hindi"]);
        expect(await found({ configuration, all: ["हिन्"] })).toEqual([]);
        expect(await found({ configuration, all: ["𞤀𞤁𞤂𞤃"] })).toEqual(["adlam"]);
        expect(await found({ configuration, all: ["ไทย"] })).toEqual(["thai"]);
      });

      it("matches all pages of a configuration without words, and none with a group of nothing", async () => {
        await pages({ url: "https://a.example/page", text: "ferry" });
        const arm = await armOf({ all: [] });

        expect(await found({ arms: [arm] })).toEqual(["page"]);
        expect(await found({ arms: [{ ...arm, configurations: ["german"] }] })).toEqual([]);
        expect(await found({ arms: [{ ...arm, all: [[]] }] })).toEqual([]);
        expect(await found({ arms: [{ ...arm, all: [[[]]] }] })).toEqual([]);
      });

      it("takes the syntax of its own queries for words", async () => {
        await pages({ url: "https://a.example/page", text: "ferry and or not near title" });
        const arm = await armOf({ all: [] });
        for (const term of [
          '") OR ("',
          '"',
          "title:ferry",
          "*",
          "ferry*",
          "a b",
          "\\",
          "(",
          "{",
          "AND",
          "\0",
        ])
          expect(await found({ arms: [{ ...arm, all: [[[term, "x"]]], none: [[term]] }] }), term).toEqual([]);
        expect(await found({ all: ["or not near"] })).toEqual(["page"]);
      });
    });

    describe("filters", () => {
      const filtered = async (filters: Partial<SearchFilters>) => await found({ all: ["ferry"], filters });

      beforeEach(async () => {
        await pages(
          {
            ...{ url: "https://chios.example/top", text: "ferry", language: "el", country: "GR" },
            ...{ crawler: "athens", published_at: "2026-03-01T10:00:00.000Z", uses: ["ai-train=denied"] },
          },
          {
            ...{ url: "https://www.chios.example/below", text: "ferry", language: "en", country: "GR" },
            ...{ crawler: "berlin", fetched_at: "2026-03-02T23:59:59.999Z", content_type: "text/plain" },
          },
          {
            ...{ url: "https://notchios.example/other", text: "ferry", language: "en", country: "DE" },
            ...{ uses: ["ai-train=allowed", "search=allowed"], content_type: "application/xhtml+xml" },
          },
        );
      });

      it.each<[Partial<SearchFilters>, readonly string[]]>([
        [{ host: "chios.example" }, ["below", "top"]],
        [{ host: "www.chios.example" }, ["below"]],
        [{ host: "example" }, ["below", "other", "top"]],
        [{ host: "%.example" }, []],
        [{ host: "hios.example" }, []],
        [{ excludeHost: "chios.example" }, ["other"]],
        [{ excludeHost: "www.chios.example,notchios.example" }, ["top"]],
        [{ host: "chios.example", excludeHost: "www.chios.example" }, ["top"]],
        [{ language: "en" }, ["below", "other"]],
        [{ country: "GR" }, ["below", "top"]],
        [{ country: "GR", language: "en" }, ["below"]],
        [{ crawler: "athens" }, ["top"]],
        [{ crawler: "paris" }, []],
        [{ type: "text" }, ["below"]],
        [{ type: "html" }, ["other", "top"]],
        [{ from: "2026-03-01" }, ["below", "top"]],
        [{ from: "2026-03-02" }, ["below"]],
        [{ to: "2026-03-01" }, ["other", "top"]],
        [{ from: "2026-03-01", to: "2026-03-02" }, ["below", "top"]],
        [{ from: "2026-03-02", to: "2026-03-01" }, []],
        [{ preference: "ai-train=denied" }, ["top"]],
        [{ preference: "ai-train=unstated" }, ["below"]],
        [{ preference: "search=allowed" }, ["other"]],
      ])("%o leaves %o", async (filters, urls) => {
        expect(await filtered(filters)).toEqual(urls);
        expect(await ask({ all: ["ferry"], filters })).toMatchObject({ total: urls.length, isExact: true });
      });
    });

    describe("answers", () => {
      it("tells of each page what it was told", async () => {
        const told: Page = {
          ...{ url: "https://chios.example/page", text: "ferry", language: "el", country: "GR" },
          ...{
            crawler: "athens",
            published_at: "2026-03-01T10:00:00.000Z",
            text_group: "-12",
            is_copy: true,
          },
          ...{ linking_hosts: 7, page_rank: 0.25, uses: ["ai-train=denied", "search=allowed"] },
        };
        await pages(told, { url: "https://chios.example/plain", text: "boat" });
        const { hostHash, urlHash } = keyOf(told.url);

        const { matches } = await ask({ all: ["ferry"] });
        const { matches: plain } = await ask({ all: ["boat"] });

        expect(matches).toEqual([
          {
            ...{ hostHash, urlHash, url: told.url, host: "chios.example", score: expect.any(Number) },
            ...{ textSearchConfig: "english", language: "el", country: "GR", crawler: "athens" },
            ...{ publishedAt: new Date(told.published_at!), fetchedAt: new Date(defaults.fetched_at) },
            ...{ textGroup: "-12", isCopy: true, linkingHosts: 7, pageRank: 0.25 },
            uses: { "ai-train": "denied", search: "allowed" },
          },
        ]);
        expect(plain).toMatchObject([
          {
            ...{ language: null, country: null, crawler: null, publishedAt: null, textGroup: null },
            ...{ isCopy: false, linkingHosts: 0, pageRank: null, uses: {} },
          },
        ]);
      });

      it("puts the title before the headings and these before the text, and what is short before what is long", async () => {
        const filler = Array.from({ length: 40 }, (_, at) => `word${at}`).join(" ");
        const others = Array.from({ length: 20 }, (_, at) => ({
          url: `https://b.example/${at}`,
          text: filler,
        }));
        await pages(
          { url: "https://a.example/long", text: `ferry ${filler} ${filler}` },
          { url: "https://a.example/text", text: `ferry ${filler}` },
          { url: "https://a.example/heading", headings: ["ferry"], text: filler },
          { url: "https://a.example/title", title: "ferry", text: filler },
          ...others,
        );

        const { matches } = await ask({ all: ["ferry"] });

        expect(matches.map(({ url }) => url.split("/").at(-1))).toEqual(["title", "heading", "text", "long"]);
        expect(matches.map(({ score }) => score)).toEqual(
          matches.map(({ score }) => score).toSorted((a, b) => b - a),
        );
      });

      it("puts pages of equal score in the order of their keys, and counts all of more than are wanted", async () => {
        const urls = Array.from({ length: 12 }, (_, at) => `https://h${at}.example/page`);
        await pages(...urls.map((url) => ({ url, text: "ferry harbour", headings: [] })));
        const inOrder = urls.toSorted((a, b) => (documentId(keyOf(a)) < documentId(keyOf(b)) ? -1 : 1));

        const all = await ask({ all: ["ferry"], most: 100 });
        const some = await ask({ all: ["ferry"], most: 5 });

        expect(all.matches.map(({ url }) => url)).toEqual(inOrder);
        expect(all).toMatchObject({ total: 12, isExact: true, isPartial: false });
        expect(some.matches).toHaveLength(5);
        expect(some.total).toBeGreaterThanOrEqual(5);
        if (some.isExact) expect(some.total).toBe(12);
      });

      it("knows words as written that are within two slips, and how many pages have them in titles or headings", async () => {
        await pages(
          { url: "https://a.example/1", title: "Python tutorials" },
          { url: "https://a.example/2", title: "Learning", headings: ["Python"], text: "pythons" },
          { url: "https://a.example/3", title: "Pylons, Psychology and hamburgers" },
          { url: "https://a.example/4", title: "Résumé" },
        );
        const python = { word: "python", pages: 2 };
        const pylons = { word: "pylons", pages: 1 };

        expect(await opened.engine.wordsLike("pyhton")).toEqual([python]);
        expect(await opened.engine.wordsLike("ptyhon")).toEqual([python]);
        expect(await opened.engine.wordsLike("yphton")).toEqual([python]);
        expect(await opened.engine.wordsLike("pythons")).toEqual([python, pylons]);
        expect(await opened.engine.wordsLike("résume")).toEqual([{ word: "résumé", pages: 1 }]);
        for (const strange of ["", "x", "日本", '"', "%", "*", "a".repeat(100)])
          expect(await opened.engine.wordsLike(strange), strange).toEqual([]);
      });
    });

    describe("writes", () => {
      const url = "https://a.example/page";
      const first = { url, text: "ferry" };

      it("keeps the later of two versions, in whichever order they come", async () => {
        await write(indexed({ ...first, text: "boat" }, 2));
        const older = await write(indexed(first, 1));

        expect(older).toEqual({ indexed: 0, deleted: 0, alreadyThere: 1, rejected: 0 });
        expect([await found({ all: ["ferry"] }), await found({ all: ["boat"] })]).toEqual([[], ["page"]]);

        const newer = await write(indexed({ ...first, text: "ferry", title: "harbour" }, 3));

        expect(newer).toEqual({ indexed: 1, deleted: 0, alreadyThere: 0, rejected: 0 });
        expect([await found({ all: ["ferry"] }), await found({ all: ["boat"] })]).toEqual([["page"], []]);
      });

      it("has a page once that is written twice, with the links and ranks of the last time", async () => {
        await write(indexed({ ...first, title: "Python" }, 1), indexed({ ...first, title: "Python" }, 1));
        await write(indexed({ ...first, title: "Python", linking_hosts: 4, page_rank: 0.5 }, 1));

        const { matches, total } = await ask({ all: ["ferry"] });

        expect(matches).toMatchObject([{ linkingHosts: 4, pageRank: 0.5 }]);
        expect(total).toBe(1);
        expect(await opened.engine.wordsLike("python")).toEqual([{ word: "python", pages: 1 }]);
      });

      it("finds a page by its new words only, in its new language", async () => {
        await write(indexed({ ...first, title: "Crowded harbours" }, 1));
        await write(indexed({ ...first, title: "Crowded harbours", text_search_config: "german" }, 2));

        expect(await found({ all: ["crowd"] })).toEqual([]);
        expect(await found({ configuration: "german", all: ["crowded"] })).toEqual(["page"]);
        expect(await opened.engine.configurations()).toEqual(["german"]);

        await write(indexed({ ...first, title: "Häfen", text_search_config: "german" }, 3));

        expect(await found({ configuration: "german", all: ["crowded"] })).toEqual([]);
        expect(await found({ configuration: "german", all: ["Häfen"] })).toEqual(["page"]);
        expect(await opened.engine.wordsLike("harbours")).toEqual([]);
      });

      it("deletes a page, unless it is newer, and takes it back later", async () => {
        await write(indexed(first, 2));
        await write(removal(url, 1));
        expect(await found({ all: ["ferry"] })).toEqual(["page"]);

        const deleted = await write(removal(url, 3), removal("https://a.example/unknown", 3));
        expect(deleted).toEqual({ indexed: 0, deleted: 2, alreadyThere: 0, rejected: 0 });
        expect(await found({ all: ["ferry"] })).toEqual([]);
        expect(await opened.engine.configurations()).toEqual([]);

        await write(indexed(first, 4));
        expect(await found({ all: ["ferry"] })).toEqual(["page"]);
      });

      it("removes at the end of a full round what the round did not bring", async () => {
        await write(indexed(first, 1), indexed({ url: "https://a.example/gone", text: "ferry" }, 1));
        await opened.target.beginFull(2);
        await write(indexed(first, 2));
        await opened.target.endFull(2);
        await opened.settled();

        expect(await found({ all: ["ferry"] })).toEqual(["page"]);
        expect(await ask({ all: ["ferry"] })).toMatchObject({ total: 1 });
      });

      it("has its pages and the state of the export when it is opened again", async () => {
        await write(indexed(first, 1));
        await opened.target.keep(state(1));
        await opened.target.keep(state(2));

        opened = await opened.reopened();

        expect(await opened.target.state()).toEqual(state(2));
        expect(await found({ all: ["ferry"] })).toEqual(["page"]);
        await write(indexed({ ...first, text: "boat" }, 2));
        expect([await found({ all: ["ferry"] }), await found({ all: ["boat"] })]).toEqual([[], ["page"]]);
      });

      it("takes texts of megabytes, and whatever characters a text has", async () => {
        const long = "boat ".repeat(500_000).concat("harbour ".repeat(300_000));
        await pages(
          { url: "https://a.example/long", text: long, unquoted: long },
          { url: "https://a.example/word", text: "x".repeat(3_000_000) },
          { url: "https://a.example/marks", text: `o${"\u0301".repeat(200_000)} ferry` },
          {
            ...{
              url: "https://a.example/strange",
              title: "nu\0l \ud800 \udfff \uffff",
              text: "\ud83d ferry\0\0 \0",
            },
            ...{ headings: ["", "\0"], anchors: ["\ud800"], description: '"\\\u2028' },
          },
          { url: "https://a.example/empty" },
        );

        expect(await found({ all: ["harbour", "boat"] })).toEqual(["long"]);
        expect(await found({ all: ["ferry"] })).toEqual(["marks", "strange"]);
        expect(await found({ all: ["nu"] })).toEqual(["strange"]);
        expect(await found({ all: [] })).toHaveLength(5);
      });
    });
  });
}

type Page = Partial<ExportedDocument> & Pick<ExportedDocument, "url">;

const defaults: Omit<ExportedDocument, "url" | "host" | "change"> = {
  ...{ title: "", description: "", headings: [], heading_levels: [], structured: null },
  ...{ text: "", unquoted: null, snippet_characters: null },
  ...{ text_search_config: "english", language: null, country: null, content_type: "text/html" },
  ...{ canonical_url: null, published_at: null, modified_at: null, fetched_at: "2026-01-15T12:00:00.000Z" },
  ...{ crawler: null, words: 1, linking_hosts: 0, page_rank: null, anchors: [] },
  ...{ text_group: null, is_copy: false, uses: [] },
};

function keyOf(url: string): UrlKey {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

/** As of that change. */
export function indexed(page: Page, change: number): Operation {
  const { host, ...key } = keyOf(page.url);
  const document = { ...defaults, host, ...page, change };
  return { op: "index", id: documentId(key), version: 2 * change + 1, document };
}

const removal = (url: string, change: number): Operation => ({
  ...{ op: "delete", id: documentId(keyOf(url)), version: 2 * change + 1 },
});

const state = (cursor: number): ExportState => ({
  ...{ format: 1, databaseId: "a database", epoch: 1, cursor, full: null, optOuts: {} },
});

/** Words that follow one another are one string; a list is a group of which one is wanted. */
interface AskedWords {
  readonly configuration?: string;
  readonly all: readonly (string | readonly string[])[];
  readonly title?: readonly string[];
  readonly none?: readonly string[];
}

type Asked = (AskedWords | { readonly arms: readonly TermArm[] }) & {
  readonly filters?: Partial<SearchFilters>;
  readonly most?: number;
};

export async function questionOf(asked: Asked): Promise<EngineQuestion> {
  const none = Object.fromEntries(filterNames.map((name) => [name, null])) as unknown as SearchFilters;
  const arms = "arms" in asked ? asked.arms : [await armOf(asked)];
  return { arms, filters: { ...none, ...asked.filters }, most: asked.most ?? 100 };
}

async function armOf({
  configuration = "english",
  all,
  title = [],
  none = [],
}: AskedWords): Promise<TermArm> {
  const stemming = await stemmingOf(configuration);
  const terms = (words: string) => queryTerms(words, stemming);
  return {
    configurations: [configuration],
    all: all.map((group) => [group].flat().map(terms)),
    title: title.map(terms),
    none: none.map(terms),
  };
}
