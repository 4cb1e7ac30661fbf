/** The views of the index: search, and what is known of one page. */
import { filterFault, maxSearchLength, type SearchOptions } from "../flows/read-search.ts";
import { searchPages } from "../flows/search-pages.ts";
import { filterNames, type SearchReads } from "../flows/search-ports.ts";
import { searchBody } from "../web/search-page.ts";
import { wantsJson } from "./http-guard.ts";
import { type AskedView, numberIn, type Shown, type Views } from "./views.ts";

export function addSearchViews(views: Views, reads: SearchReads): void {
  views.add({
    path: "/search",
    api: "/api/search",
    section: "/search",
    needs: "read",
    view: async (asked) => await searchView(asked, reads),
  });
}

async function searchView(asked: AskedView, reads: SearchReads): Promise<Shown | string> {
  const words = asked.query("q");
  if (words.length > maxSearchLength) return `The words are longer than ${maxSearchLength} characters.`;
  const options = optionsOf(asked);
  const fault = filterFault(options);
  if (fault !== null) return `The filter ${fault}.`;
  if (words.trim() === "" && !wantsJson(asked.request)) {
    return { status: 200, value: null, title: "Search", body: () => searchBody(null) };
  }
  const value = await searchPages(reads, words, options, asked.now);
  return { status: 200, value, title: `${value.words} · Search`, body: () => searchBody(value) };
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
