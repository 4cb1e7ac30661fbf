/** The views of the index: search, and what is known of one page. */

import { type AskedView, numberIn } from "../ask/views.ts";
import type { WebPart } from "../ask/web-part.ts";
import { submitLink } from "../submissions/submissions-ask.ts";
import { wantsJson } from "../web/guard.ts";
import { type CsvTable, html } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { pageBody } from "./document-page.ts";
import { readOperators } from "./operators.ts";
import { searchBody } from "./page.ts";
import { type PageReads, pageFacts } from "./page-facts.ts";
import { type SearchOptions, wordsFault } from "./query.ts";
import { searchPages } from "./search.ts";
import { filterNames, type SearchAnswer, type SearchReads } from "./search-answer.ts";
import { maxListOffset, searchApi } from "./search-api.ts";

export const searchViews =
  (reads: SearchReads & PageReads): WebPart =>
  ({ app, views }) => {
    app.pages?.push({ page: "/search", ...searchApi.search });
    views.add({
      ...{ path: "/search", api: searchApi.search.path, needs: "read" },
      view: async (asked) => await searchView(asked, reads),
    });
    views.add({
      ...{ path: "/pages", api: searchApi.page.path, needs: "read" },
      view: async (asked) => await pageView(asked, reads),
    });
  };

async function pageView({ query, request }: AskedView, reads: PageReads) {
  const question = { url: query("url"), hostHash: query("host_hash"), urlHash: query("url_hash") };
  if (Object.values(question).every((part) => part === "") && !wantsJson(request)) {
    return {
      status: 200,
      value: null,
      title: "A page of the index",
      body: (viewer: PageViewer) => pageBody(null, viewer),
    };
  }
  const offset = (name: string) => Math.min(maxListOffset, numberIn(query(name), 0));
  const offsets = { fetches: offset("fetches"), inLinks: offset("in"), outLinks: offset("out") };
  const value = await pageFacts(reads, question, offsets);
  if (typeof value === "string") return value;
  const title = value.page === null ? "No page to show" : value.page.title.trim() || value.page.url;
  return {
    status: value.found ? 200 : 404,
    value,
    title,
    body: (viewer: PageViewer) => pageBody(value, viewer),
  };
}

async function searchView(asked: AskedView, reads: SearchReads) {
  const typed = asked.query("q");
  const search = wordsFault(typed) ?? readOperators(typed, optionsOf(asked));
  if (typeof search === "string") return search.endsWith(".") ? search : `The filter ${search}.`;
  const { words, options } = search;
  if (typed.trim() === "" && words === "" && !wantsJson(asked.request)) {
    return {
      status: 200,
      value: null,
      title: "Search",
      body: (viewer: PageViewer) => html`${searchBody(null)}${submitLink(viewer)}`,
    };
  }
  const value = await searchPages(reads, words, options, asked.now);
  return {
    status: 200,
    value,
    title: `${value.words} · Search`,
    body: (viewer: PageViewer) => html`${searchBody(value)}${submitLink(viewer)}`,
    csv: () => csvOf(value),
  };
}

function csvOf({ pages }: SearchAnswer): CsvTable {
  const columns = [
    "url",
    "title",
    "host",
    "language",
    "country",
    "crawler",
    "publishedAt",
    "fetchedAt",
    "points",
  ];
  const rows = pages.map((page) => [
    ...[page.url, page.title, page.host, page.language, page.country, page.crawler],
    ...[page.publishedAt, page.fetchedAt, page.rank],
  ]);
  return { columns, rows };
}

function optionsOf({ query }: AskedView): SearchOptions {
  return {
    ...Object.fromEntries(filterNames.map((name) => [name, query(name)])),
    sort: query("sort"),
    limit: numberIn(query("limit"), 10),
    offset: numberIn(query("offset"), 0),
    explain: query("explain") === "1",
  };
}
