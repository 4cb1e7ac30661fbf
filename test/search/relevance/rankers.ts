/** Orders a set's pages for a text: plain BM25 as SQLite has it, and this search over one of its engines. */
import sqlite from "node-sqlite3-wasm";
import { pageDate } from "#coordinator/database/transaction";
import type { EngineState } from "#coordinator/tell/search/engine/search-engine";
import { documentId, operationOf, type PageNow } from "#coordinator/tell/search/export/export-operation";
import { type SearchReads, searchPages } from "#coordinator/tell/search/search";
import { urlKeyOf } from "#core/url-key";
import type { OpenedEngine } from "../engine-contract.ts";
import type { PageSet, SetPage } from "./page-set.ts";

/** URLs, the best first. */
export type Ranker = (text: string) => Promise<readonly string[]>;

const most = 100;

/** FTS5 as it comes: title and text in one table, no stemmer, all words, or any where no page has all. */
export function plainBm25({ pages }: PageSet): Ranker & { close(): void } {
  const file = new sqlite.Database(":memory:");
  file.exec("create virtual table page using fts5 (url unindexed, title, text)");
  for (const { url, extract } of pages)
    file.run("insert into page values (?, ?, ?)", [url, extract.title, extract.text]);
  const find = (words: readonly string[], by: string) =>
    file.all("select url from page where page match ? order by rank limit ?", [words.join(by), most]);
  const rank = async (text: string) => {
    const words = (text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).map((word) => `"${word}"`);
    const all = find(words, " AND ");
    return (all.length > 0 ? all : find(words, " OR ")).map(({ url }) => url as string);
  };
  return Object.assign(rank, { close: () => file.close() });
}

/** All that the search does, except that pages are shown from the set. */
export async function engineRanker(
  { pages }: PageSet,
  { engine, target, settled }: Pick<OpenedEngine, "engine" | "target" | "settled">,
): Promise<Ranker> {
  // Makes the index where there is none.
  await target.state();
  await target.write(pages.map((page) => operationOf({ ...keyOf(page.url), ...documentOf(page) }, 1)));
  await settled();
  const byId = new Map(pages.map((page) => [documentId(keyOf(page.url)), page]));
  const reads: SearchReads = {
    engine: Object.assign(engine, { state: () => ready }),
    keep: async (_, make) => await make(),
    shown: async (keys) =>
      keys.map((key) => {
        const { url, extract } = byId.get(documentId(key))!;
        const { title, description, text, words } = extract;
        return { url, title, description, text, words, snippetCharacters: null };
      }),
  };
  const search = async (text: string) => await searchPages(reads, text, { limit: most }, now);
  return async (text) => {
    const answer = await search(text);
    // Who finds nothing follows what is offered.
    const followed =
      answer.total === 0 && answer.didYouMean !== null ? await search(answer.didYouMean) : answer;
    return followed.pages.map(({ url }) => url);
  };
}

const ready: EngineState = { type: "ready", pages: 1, bytes: 1, secondsBehind: 0 };
const now = new Date("2026-11-22T12:00:00Z");
const fetchedAt = "2026-10-22T12:00:00.000Z";

const keyOf = (url: string) => {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
};

function documentOf({ url, extract, anchors }: SetPage): Pick<PageNow, "page" | "text"> {
  const {
    title,
    description,
    headings,
    text,
    unquoted = null,
    language,
    textSearchConfig,
    publishedAt,
    words,
  } = extract;
  const page = {
    ...{ url, title, language, words, anchors },
    host: new URL(url).host,
    text_search_config: textSearchConfig,
    published_at: pageDate(publishedAt, now)?.toISOString() ?? null,
    fetched_at: fetchedAt,
    linking_hosts: anchors.length,
    ...{ content_type: "text/html", canonical_url: null, modified_at: null, country: null, crawler: null },
    ...{ page_rank: null, text_group: null, is_copy: false, uses: null },
  };
  const texts = { description, headings, structured: null, text, unquoted, snippetCharacters: null };
  return { page, text: texts };
}
