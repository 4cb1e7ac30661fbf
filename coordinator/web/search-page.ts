/** Search over the crawled pages. */
import {
  type FoundPage,
  maxSearchLength,
  maxSearchOffset,
  type SearchAnswer,
} from "../flows/search-pages.ts";
import { countText, crawlerLink, instant } from "./figures.ts";
import { type Html, html, nothing, pathWith, safeHref } from "./html.ts";

export function searchBody(answer: SearchAnswer | null): Html {
  return html`<h1 class="${answer === null ? "" : "hidden"}">Search the crawled pages</h1>
${searchForm(answer)}
${answer === null ? html`<p class="small">Words; <code>"a phrase"</code>, <code>or</code>, <code>-without</code>.</p>` : results(answer)}`;
}

function searchForm(answer: SearchAnswer | null): Html {
  return html`<form class="ask" action="/search" method="get" role="search"><label class="hidden" for="q">Words</label><div class="field"><input id="q" name="q" type="search" maxlength="${maxSearchLength}" value="${answer?.words ?? ""}" placeholder="Words" autocomplete="off"><button>Search</button></div>
<details class="filters"${answer?.language || answer?.host ? html` open` : nothing}><summary>Filters</summary><div class="filter-row"><label>Language <input name="language" size="4" maxlength="3" value="${answer?.language ?? ""}" placeholder="en"></label><label>Host <input name="host" maxlength="253" value="${answer?.host ?? ""}" placeholder="www.example.org"></label></div></details></form>`;
}

function results(answer: SearchAnswer): Html {
  if (answer.note !== null) return html`<div class="empty"><p>${answer.note}</p></div>`;
  if (answer.total === 0) {
    return html`<div class="empty"><p><strong>No page matches.</strong> Try fewer words${answer.language || answer.host ? ", or leave out the filters" : ""}.</p></div>`;
  }
  if (answer.pages.length === 0) {
    return html`<div class="empty"><p>There are only ${countText(answer.total)} results. <a href="${pageLink(answer, 0)}">Back to the first</a></p></div>`;
  }
  const from = answer.offset + 1;
  const to = answer.offset + answer.pages.length;
  return html`<p class="small">${countText(from)} to ${countText(to)} of ${answer.more ? "more than " : ""}${countText(answer.total)}</p>
<ol class="results" start="${from}">${answer.pages.map(result)}</ol>
${pager(answer)}`;
}

function result(page: FoundPage): Html {
  const href = safeHref(page.url);
  const title = page.title.trim() || page.url;
  return html`<li><h2>${href ? html`<a href="${href}" rel="noreferrer nofollow">${title}</a>` : title}</h2>
<p class="url mono">${page.url}</p>
<p>${page.snippet.map((part) => (part.matches ? html`<mark>${part.text}</mark>` : part.text))}</p>
<p class="small">${page.crawler ? html`fetched by ${crawlerLink(page.crawler)} · ` : nothing}${instant(page.fetchedAt)}${page.language ? ` · ${page.language}` : ""}${page.alike > 0 ? ` · ${countText(page.alike)} more with nearly the same text` : ""} · <a href="${pathWith("/who", { q: page.url })}">who crawls it</a></p></li>`;
}

function pager(answer: SearchAnswer): Html {
  const before = answer.offset > 0 ? Math.max(0, answer.offset - answer.limit) : null;
  const after = answer.offset + answer.limit;
  const hasAfter = after < answer.total && after <= maxSearchOffset;
  if (before === null && !hasAfter) return nothing;
  return html`<nav class="pager" aria-label="Pages of results">${before === null ? nothing : html`<a rel="prev" href="${pageLink(answer, before)}">← Before</a>`}${hasAfter ? html`<a rel="next" href="${pageLink(answer, after)}">Next →</a>` : nothing}</nav>`;
}

function pageLink(answer: SearchAnswer, offset: number): string {
  return pathWith("/search", {
    q: answer.words,
    language: answer.language,
    host: answer.host,
    limit: answer.limit === 10 ? null : answer.limit,
    offset: offset === 0 ? null : offset,
  });
}
