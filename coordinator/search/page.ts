/** Search over the crawled pages. */

import { countText } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { maxSearchLength, maxSearchOffset } from "./query.ts";
import { filterNames, type SearchAnswer } from "./reads.ts";
import { activeFilters, filterAside, filterChips } from "./search-filters.ts";
import { isExplained, searchLink } from "./search-links.ts";
import { resultItem } from "./search-result.ts";

/** Null: nothing was asked yet. */
export function searchBody(answer: SearchAnswer | null): Html {
  if (answer === null) {
    return html`<h1>Search the crawled pages</h1>
${searchForm(null)}
<p class="small">Words; <code>"a phrase"</code>, <code>or</code>, <code>-without</code>. Filters for host, language, country, crawler and date come with the results.</p>`;
  }
  return html`<h1 class="hidden">Search the crawled pages</h1>
${searchForm(answer)}
${answer.didYouMean === null ? nothing : html`<p class="did-you-mean">Did you mean <a href="${searchLink(answer, { q: answer.didYouMean })}"><strong>${answer.didYouMean}</strong></a>?</p>`}
${filterChips(answer)}
<div class="search-columns"><div>${results(answer)}</div>${filterAside(answer)}</div>`;
}

function searchForm(answer: SearchAnswer | null): Html {
  return html`<form class="ask" action="/search" method="get" role="search"><label class="hidden" for="q">Words</label><div class="field"><input id="q" name="q" type="search" maxlength="${maxSearchLength}" value="${answer?.words ?? ""}" placeholder="Words" autocomplete="off"${answer === null ? html` autofocus` : nothing}><button>Search</button></div>${answer === null ? nothing : hiddenFields(answer)}</form>`;
}

/** New words are searched with the filters that are in force. */
function hiddenFields(answer: SearchAnswer): Html[] {
  const fields: [string, string | null][] = [
    ...filterNames.map((name): [string, string | null] => [name, answer[name]]),
    ["sort", answer.sort === "date" ? "date" : null],
    ["explain", isExplained(answer) ? "1" : null],
  ];
  return fields.flatMap(([name, value]) =>
    value === null ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  );
}

function results(answer: SearchAnswer): Html {
  if (answer.total === 0) return nothingFound(answer);
  if (answer.pages.length === 0) {
    return html`<div class="empty"><p>There are only ${countText(answer.total)} results. <a href="${searchLink(answer, { offset: null })}">Back to the first</a></p></div>`;
  }
  const from = answer.offset + 1;
  const to = answer.offset + answer.pages.length;
  return html`<div class="result-head"><p class="small">${countText(from)} to ${countText(to)} of ${answer.more ? "at least " : ""}${countText(answer.total)}</p>${orderTabs(answer)}</div>
${answer.note === null ? nothing : html`<p class="small" role="status">${answer.note}</p>`}
<ol class="results" start="${from}">${answer.pages.map(resultItem)}</ol>
${pager(answer)}`;
}

function orderTabs(answer: SearchAnswer): Html {
  const tab = (name: string, sort: SearchAnswer["sort"]) =>
    html`<a href="${searchLink(answer, { sort: sort === "date" ? "date" : null })}"${answer.sort === sort ? html` aria-current="true"` : nothing}>${name}</a>`;
  const explained = isExplained(answer);
  return html`<p class="orders small">${tab("best first", "relevance")}${tab("newest first", "date")}<a href="${searchLink(answer, { explain: explained ? null : 1 })}">${explained ? "without reasons" : "why this order"}</a></p>`;
}

function nothingFound(answer: SearchAnswer): Html {
  if (answer.note !== null) return html`<div class="empty"><p>${answer.note}</p></div>`;
  const active = activeFilters(answer);
  return html`<div class="empty"><p><strong>No page matches.</strong> Try fewer or other words.</p>${
    active.length === 0
      ? nothing
      : html`<p>Or search more widely:</p><ul>${active.map((name) => html`<li><a href="${searchLink(answer, { [name]: null })}">without the filter ${name} ${answer[name]}</a></li>`)}${active.length > 1 ? html`<li><a href="${searchLink(answer, Object.fromEntries(active.map((name) => [name, null])))}">without any filter</a></li>` : nothing}</ul>`
  }</div>`;
}

function pager(answer: SearchAnswer): Html {
  const before = answer.offset > 0 ? Math.max(0, answer.offset - answer.limit) : null;
  const after = answer.offset + answer.limit;
  const hasAfter = after < answer.total && after <= maxSearchOffset;
  if (before === null && !hasAfter) return nothing;
  return html`<nav class="pager" aria-label="Pages of results">${before === null ? nothing : html`<a rel="prev" href="${searchLink(answer, { offset: before === 0 ? null : before })}">← Before</a>`}${hasAfter ? html`<a rel="next" href="${searchLink(answer, { offset: after })}">Next →</a>` : nothing}</nav>`;
}
