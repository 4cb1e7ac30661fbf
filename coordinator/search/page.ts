/** Search over the crawled pages. */

import { canParseUrl } from "#core/ip/url-host";
import { answersText } from "../results/stated-uses.ts";
import { options } from "../web/components.ts";
import { type FilterChip, filterChips } from "../web/filter-chips.ts";
import { country, countryName, countText, crawlerLink } from "../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../web/html.ts";
import { maxSearchLength, maxSearchOffset } from "./query.ts";
import {
  type FacetName,
  type FilterName,
  type FoundPage,
  facetNames,
  filterNames,
  type Reason,
  type SearchAnswer,
} from "./search-answer.ts";
import { operatorHelp } from "./search-api.ts";

/** Null: nothing was asked yet. */
export function searchBody(answer: SearchAnswer | null): Html {
  if (answer === null) {
    return html`<h1>Search the crawled pages</h1>
${searchForm(null)}
${searchHelp}`;
  }
  const { didYouMean: meant } = answer;
  return html`<h1 class="hidden">Search the crawled pages</h1>
${searchForm(answer)}
${meant === null ? nothing : html`<p class="did-you-mean">Did you mean <a href="${searchLink(answer, { q: meant })}"><strong>${meant}</strong></a>?</p>`}
${activeChips(answer)}
<div class="search-columns"><div>${results(answer)}</div>${filterAside(answer)}</div>`;
}

const searchHelp = html`<p class="small">Words, <code>"a phrase"</code>, <code>or</code>, <code>-without</code>. Filters may stand among them:</p>
<dl class="operators small">${operatorHelp.map(([typed, words]) => html`<div><dt><code>${typed}</code></dt><dd>${words}</dd></div>`)}</dl>`;

function searchForm(answer: SearchAnswer | null): Html {
  return html`<form class="ask" action="/search" method="get" role="search"><label class="hidden" for="q">Words</label>
<div class="field"><input id="q" name="q" type="search" maxlength="${maxSearchLength}" value="${answer?.words ?? ""}"
  placeholder="Words" autocomplete="off"${answer === null ? html` autofocus` : nothing}><button>Search</button></div>
${answer === null ? nothing : hiddenFields(answer)}</form>`;
}

/** New words are searched with the filters that are in force. */
function hiddenFields(answer: SearchAnswer): Html[] {
  return [...filterNames.map((name) => hidden(name, answer[name])), ...orderFields(answer)];
}

const orderFields = (answer: SearchAnswer): Html[] => [
  hidden("sort", answer.sort === "date" ? "date" : null),
  hidden("explain", isExplained(answer) ? "1" : null),
];

const hidden = (name: string, value: string | null): Html =>
  value === null ? nothing : html`<input type="hidden" name="${name}" value="${value}">`;

function results(answer: SearchAnswer): Html {
  if (answer.total === 0) return nothingFound(answer);
  if (answer.pages.length === 0) {
    const first = searchLink(answer, { offset: null });
    return html`<div class="empty"><p>There are only ${countText(answer.total)} results. <a href="${first}">Back to the first</a></p></div>`;
  }
  const from = answer.offset + 1;
  const to = answer.offset + answer.pages.length;
  const total = `${answer.more ? "at least " : ""}${countText(answer.total)}`;
  return html`<div class="result-head"><p class="small">${countText(from)} to ${countText(to)} of ${total}</p>${orderTabs(answer)}</div>
${answer.note === null ? nothing : html`<p class="small" role="status">${answer.note}</p>`}
<ol class="results" start="${from}">${answer.pages.map(resultItem)}</ol>
${pager(answer)}`;
}

function orderTabs(answer: SearchAnswer): Html {
  const tab = (name: string, sort: SearchAnswer["sort"]) =>
    linkTo(answer, { sort: sort === "date" ? "date" : null }, name, answer.sort === sort);
  const explained = isExplained(answer);
  return html`<p class="orders small">${tab("best first", "relevance")}${tab("newest first", "date")}${linkTo(
    answer,
    { explain: explained ? null : 1 },
    explained ? "without reasons" : "why this order",
  )}</p>`;
}

function nothingFound(answer: SearchAnswer): Html {
  if (answer.note !== null) return html`<div class="empty"><p>${answer.note}</p></div>`;
  const active = activeFilters(answer);
  const wider = (what: string, without: readonly FilterName[]) => {
    const changes = Object.fromEntries(without.map((name) => [name, null]));
    return html`<li>${linkTo(answer, changes, `without ${what}`)}</li>`;
  };
  return html`<div class="empty"><p><strong>No page matches.</strong> Try fewer or other words.</p>${
    active.length === 0
      ? nothing
      : html`<p>Or search more widely:</p><ul>${active.map((name) => wider(`“${filterLabels[name]}: ${shownValue(name, answer[name] ?? "")}”`, [name]))}${
          active.length > 1 ? wider("any filter", active) : nothing
        }</ul>`
  }</div>`;
}

function pager(answer: SearchAnswer): Html {
  const before = answer.offset > 0 ? Math.max(0, answer.offset - answer.limit) : null;
  const after = answer.offset + answer.limit;
  const hasAfter = after < answer.total && after <= maxSearchOffset;
  if (before === null && !hasAfter) return nothing;
  const link = (rel: string, offset: number | null, words: string) =>
    html`<a rel="${rel}" href="${searchLink(answer, { offset })}">${words}</a>`;
  return html`<nav class="pager" aria-label="Pages of results">${
    before === null ? nothing : link("prev", before === 0 ? null : before, "← Before")
  }${hasAfter ? link("next", after, "Next →") : nothing}</nav>`;
}

// What narrows a search: the filters' form, the values that the results have, and those that are active.

const filterLabels: Readonly<Record<FilterName, string>> = {
  host: "Host",
  language: "Language",
  country: "Country",
  crawler: "Crawler",
  from: "Published from",
  to: "Published until",
  preference: "Preference",
  excludeHost: "Without host",
  title: "In the title",
  type: "Type",
};

/** Everything beside the results. */
function filterAside(answer: SearchAnswer): Html {
  const counted = answer.facets.pages;
  const what = answer.more ? "best matches that were looked at" : counted === 1 ? "match" : "matches";
  return html`<aside class="narrow" aria-label="Filters">
<details${activeFilters(answer).length > 0 ? html` open` : nothing}><summary>Filters</summary>${filterForm(answer)}</details>
${facetNames.map((name) => facet(answer, name))}
${counted > 0 ? html`<p class="small">Counted over the ${countText(counted)} ${what}.</p>` : nothing}
</aside>`;
}

/** What is active, each with the way to search without it; of several excluded hosts each by itself. */
function activeChips(answer: SearchAnswer): Html {
  const chips = activeFilters(answer).flatMap((name): FilterChip[] => {
    const value = answer[name] ?? "";
    if (name !== "excludeHost") return [{ name, label: filterLabels[name], value: shownValue(name, value) }];
    const hosts = value.split(",");
    return hosts.map((host) => ({
      ...{ name, label: filterLabels[name], value: host },
      without: { excludeHost: hosts.filter((one) => one !== host).join(",") },
    }));
  });
  return filterChips("/search", searchQueryOf(answer), chips);
}

function shownValue(name: FilterName | FacetName, value: string): string {
  return name === "country" ? countryName(value) : value;
}

function activeFilters(answer: SearchAnswer): FilterName[] {
  return filterNames.filter((name) => answer[name] !== null);
}

function filterForm(answer: SearchAnswer): Html {
  const field = (name: FilterName, rest: Html) =>
    html`<p><label for="filter-${name}">${filterLabels[name]}</label><input id="filter-${name}" name="${name}"
  value="${answer[name] ?? ""}" ${rest}></p>`;
  return html`<form class="filter-form" action="/search" method="get">${hidden("q", answer.words)}${orderFields(answer)}
${field("host", html`maxlength="253" placeholder="example.org" autocomplete="off"`)}
${field("excludeHost", html`maxlength="2000" placeholder="ads.example.org" autocomplete="off"`)}
${field("title", html`maxlength="100" autocomplete="off"`)}
<div class="pair">${field("language", html`maxlength="3" placeholder="en" autocomplete="off"`)}
${field("country", html`maxlength="2" placeholder="DE" autocomplete="off"`)}</div>
${field("crawler", html`maxlength="100" autocomplete="off"`)}
${field("preference", html`maxlength="40" placeholder="ai-train=denied" autocomplete="off"`)}
<p><label for="filter-type">Type</label><select id="filter-type" name="type">${options(
    [
      ["", "any"],
      ["html", "HTML"],
      ["text", "plain text"],
    ],
    answer.type ?? "",
  )}</select></p>
${field("from", html`type="date"`)}${field("to", html`type="date"`)}
<p class="small">A host includes everything below it. A preference is what the site states about a use of its pages, or
<code>unstated</code>. Dates are those of publication, or of the fetch where a page has none (UTC).</p>
<button class="quiet slim">Apply</button></form>`;
}

function facet(answer: SearchAnswer, name: FacetName): Html {
  const values = answer.facets[name];
  if (values.length === 0 || (values.length === 1 && answer[name] === values[0]!.value)) return nothing;
  return html`<section class="facet"><h3>${filterLabels[name]}</h3><ul>${values.map(({ value, pages }) => {
    const isOn = answer[name] === value;
    const link = linkTo(answer, { [name]: isOn ? null : value }, shownValue(name, value), isOn);
    return html`<li>${link} <span class="small">${countText(pages)}</span></li>`;
  })}</ul></section>`;
}

// Addresses of searches: the same one with something changed.

/** Null takes a filter away; whatever changes, results start from the first. */
type Changes = Readonly<Record<string, string | number | null>>;

const usualLimit = 10;

function searchLink(answer: SearchAnswer, changes: Changes): string {
  return pathWith("/search", { ...searchQueryOf(answer), ...changes });
}

const linkTo = (answer: SearchAnswer, changes: Changes, words: string, isCurrent = false): Html =>
  html`<a href="${searchLink(answer, changes)}"${isCurrent ? html` aria-current="true"` : nothing}>${words}</a>`;

function searchQueryOf(answer: SearchAnswer): Changes {
  return {
    q: answer.words,
    ...Object.fromEntries(filterNames.map((name) => [name, answer[name]])),
    sort: answer.sort === "date" ? "date" : null,
    limit: answer.limit === usualLimit ? null : answer.limit,
    explain: isExplained(answer) ? 1 : null,
  };
}

function isExplained({ pages }: SearchAnswer): boolean {
  return pages.some(({ reasons }) => reasons !== null);
}

export function pageLink(url: string): string {
  return pathWith("/pages", { url });
}

// One result of a search: title, where it is, the words around the match, facts, and why it stands there.

function resultItem(page: FoundPage): Html {
  const href = safeHref(page.url);
  const title = page.title.trim() || page.url;
  return html`<li><p class="crumbs">${crumbs(page.url)}</p>
<h2>${href ? html`<a href="${href}" rel="noreferrer nofollow">${title}</a>` : title}</h2>
<p class="snippet">${page.snippet.map((part) => (part.matches ? html`<mark>${part.text}</mark>` : part.text))}</p>
<p class="result-facts small">${factsOf(page).map((fact) => html`<span>${fact}</span>`)}</p>
${page.reasons === null ? nothing : reasons(page.reasons, page.rank)}</li>`;
}

/** The host and the path's parts, as a way to the page. */
export function crumbs(url: string): Html {
  if (!canParseUrl(url)) return html`${url}`;
  const { protocol, host, pathname, search } = new URL(url);
  const parts = pathname.split("/").filter((part) => part !== "");
  const shown = parts.length > 4 ? [...parts.slice(0, 2), "…", ...parts.slice(-2)] : parts;
  const start = protocol === "https:" ? host : `${protocol}//${host}`;
  const crumb = (part: string) => html`<span class="crumb">${decoded(part)}</span>`;
  return html`<strong>${start}</strong>${shown.map(crumb)}${search === "" ? nothing : crumb(search)}`;
}

const longestCrumb = 60;

function decoded(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // As it stands in the address.
  }
  return text.length > longestCrumb ? `${text.slice(0, longestCrumb - 1)}…` : text;
}

function factsOf(page: FoundPage): Html[] {
  const day = (iso: string) => html`<time datetime="${iso}" data-day>${iso.slice(0, 10)}</time>`;
  return [
    page.publishedAt ? html`published ${day(page.publishedAt)}` : null,
    html`fetched ${day(page.fetchedAt)}${page.crawler ? html` by ${crawlerLink(page.crawler)}` : nothing}`,
    page.language ? html`${page.language}` : null,
    answersText(page.uses) === "" ? null : html`states ${answersText(page.uses)}`,
    country(page.country),
    page.alike > 0 ? html`${countText(page.alike)} more with nearly the same text` : null,
    html`<a href="${pageLink(page.url)}">facts and links</a>`,
    html`<a href="${pathWith("/who", { q: page.url })}">who crawls it</a>`,
  ].flatMap((fact) => fact ?? []);
}

function reasons(parts: readonly Reason[], rank: number): Html {
  return html`<table class="reasons"><caption class="small">${rank.toFixed(1)} points of 100</caption><tbody>${parts.map(reasonRow)}</tbody></table>`;
}

function reasonRow({ points, most, words }: Reason): Html {
  const width = Math.round((100 * Math.abs(points)) / most);
  return html`<tr><td class="number">${points > 0 ? "+" : "−"}${Math.abs(points).toFixed(1)}</td>
<td class="track"><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground"
  width="100" height="8"/><rect class="${points > 0 ? "bar-value" : "bar-taken"}" width="${width}" height="8"/></svg></td>
<td>${words} <span class="small">of ${most}</span></td></tr>`;
}
