/** The list of sites as people see it. */
import { bytesText, howMany, instantWords, spanWords } from "#core/format";
import { empty, options } from "../web/components.ts";
import { filterChips } from "../web/filter-chips.ts";
import { country, countryName, countText, crawlerLink, instant, msOrDash } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import {
  type ListedSite,
  type SiteFilter,
  type SiteSort,
  type SitesAnswer,
  siteStates,
} from "./sites-api.ts";
import {
  countWords,
  type Direction,
  isUnfiltered,
  languageName,
  type SitesQuestion,
  sinceWords,
  sitesQuery,
  stateNames,
  stateWords,
  usualDirection,
} from "./sites-list.ts";

interface SitesPage {
  readonly answer: SitesAnswer;
  readonly question: SitesQuestion;
  /** Names, some of them. */
  readonly crawlers: readonly string[];
}

const path = "/sites";

export function sitesBody(page: SitesPage): Html {
  return html`<div class="title-row"><h1>Sites</h1></div>
${filterForm(page)}
${chips(page)}
${list(page)}`;
}

function filterForm({ question: { filter, sort, direction }, crawlers }: SitesPage): Html {
  const text = (
    name: keyof SiteFilter,
    label: string,
    more: { readonly size: number; readonly hint: string; readonly most?: number },
  ) =>
    html`<label>${label} <input name="${name}" value="${filter[name] ?? ""}" size="${more.size}" maxlength="${more.most ?? 300}" placeholder="${more.hint}"
autocomplete="off" autocapitalize="none" spellcheck="false"${name === "crawler" ? html` list="crawler-names"` : nothing}></label>`;
  const hidden = (name: string, value: string | null | undefined) =>
    value == null ? nothing : html`<input type="hidden" name="${name}" value="${value}">`;
  const states = [["", "any"], ...siteStates.map((state) => [state, stateNames[state]] as const)] as const;
  const { sort: sorted = null, order = null } = sitesQuery({ filter, sort, direction });
  return html`<form class="filter-row fleet-filters" method="get" action="${path}" role="search" aria-label="Sites">
${text("host", "Host begins with", { size: 16, hint: "www." })}
${text("under", "In the domain", { size: 16, hint: "example.org" })}
<label>State <select name="state">${options(states, filter.state ?? "")}</select></label>
${text("crawler", "Crawler", { size: 12, hint: "any" })}
${text("language", "Language", { size: 4, hint: "el", most: 3 })}
${text("country", "Country", { size: 4, hint: "CY", most: 2 })}
${text("tld", "TLD", { size: 5, hint: "gr", most: 63 })}
${text("organisation", "Organisation", { size: 16, hint: "handle or full name" })}
<label>Channel <select name="channel">${options(
    [
      ["", "any"],
      ["with", "with a channel"],
      ["without", "without"],
    ],
    filter.channel ?? "",
  )}</select></label>
${hidden("sort", sorted)}${hidden("order", order)}
<button class="slim">Show</button>
<datalist id="crawler-names">${crawlers.map((name) => html`<option value="${name}"></option>`)}</datalist>
</form>`;
}

const filterLabels: Readonly<Record<keyof SiteFilter, string>> = {
  crawler: "Crawler",
  state: "State",
  language: "Language",
  country: "Country",
  organisation: "Organisation",
  tld: "TLD",
  channel: "Channel",
  host: "Host begins with",
  under: "In the domain",
};

function chips({ question }: SitesPage): Html {
  const { filter } = question;
  const shown: Partial<Record<keyof SiteFilter, (value: string) => string>> = {
    state: () => stateNames[filter.state!],
    language: languageName,
    country: countryName,
  };
  const active = (Object.keys(filterLabels) as (keyof SiteFilter)[]).flatMap((name) => {
    const value = filter[name];
    return value === undefined
      ? []
      : [{ name, label: filterLabels[name], value: shown[name]?.(value) ?? value }];
  });
  return filterChips(path, sitesQuery(question), active);
}

function list(page: SitesPage): Html {
  const { answer, question } = page;
  if (answer.sites.length === 0) return emptyList(page);
  return html`<section aria-label="Sites">
<p class="small">${countWords(answer)}${isUnfiltered(question.filter) ? html`. Which ${shortcuts(question)}?` : nothing}</p>
${fillingNote(page)}
<div class="scroll" tabindex="0" role="region" aria-label="Sites"><table class="sites">
<thead><tr>${columns.map((column) => head(column, question))}</tr></thead>
<tbody>${answer.sites.map((site) => row(site, answer.at))}</tbody></table></div>
${pager(page)}
${footnote(page)}</section>`;
}

const shortcutNames: readonly (readonly [SiteSort, string])[] = [
  ["failures", "fail most"],
  ["due", "have most to do"],
  ["fetched", "were not fetched for longest"],
  ["rtt", "are farthest from their crawler"],
  ["bytes", "took most bytes"],
];

function shortcuts({ filter }: SitesQuestion): Html[] {
  return shortcutNames.map(([sort, words], at) => {
    const href = pathWith(path, sitesQuery({ filter, sort, direction: usualDirection[sort] }));
    return html`${at === 0 ? "" : at === shortcutNames.length - 1 ? " or " : ", "}<a href="${href}">${words}</a>`;
  });
}

function fillingNote({ answer: { progress, sites } }: SitesPage): Html {
  if (!progress.isFirstRound || sites.length === 0) return nothing;
  const of = progress.knownHosts > 0 ? ` of about ${countText(progress.knownHosts)} known hosts` : "";
  return html`<p class="small" role="status">The list is being filled: some${of} are still missing. Reload the page in a moment.</p>`;
}

interface Column {
  readonly title: string;
  readonly sort?: SiteSort;
  readonly isNumber?: boolean;
  readonly cell: (site: ListedSite, now: Date) => Html;
}

const columns: readonly Column[] = [
  { title: "Host", sort: "host", cell: hostCell },
  { title: "State", cell: stateCell },
  {
    title: "Crawler",
    cell: ({ crawler }) =>
      crawler === null ? html`<span class="soft">not assigned</span>` : crawlerLink(crawler),
  },
  { title: "Language", cell: ({ language }) => languageCell(language) },
  { title: "Registered to", cell: organisationCell },
  { title: "Pages", sort: "pages", isNumber: true, cell: ({ pages }) => html`${countText(pages)}` },
  { title: "Due URLs", sort: "due", isNumber: true, cell: dueCell },
  { title: "Failed, 7 days", sort: "failures", isNumber: true, cell: failuresCell },
  { title: "Fetched", sort: "fetched", cell: ({ fetchedAt }, now) => since(fetchedAt, now, "its crawler's") },
  { title: "Added", sort: "added", cell: ({ addedAt }, now) => since(addedAt, now, "the coordinator's") },
  { title: "RTT", sort: "rtt", isNumber: true, cell: ({ rttMs }) => html`${msOrDash(rttMs)}` },
  { title: "Bytes", sort: "bytes", isNumber: true, cell: ({ bytes }) => html`${bytesText(bytes)}` },
];

const ariaSorts: Readonly<Record<Direction, string>> = { up: "ascending", down: "descending" };

/** Of the order in force, the link turns it round. */
function head({ title, sort, isNumber }: Column, { filter, sort: sorted, direction }: SitesQuestion): Html {
  const number = isNumber ? html` class="number"` : nothing;
  if (sort === undefined) return html`<th scope="col"${number}>${title}</th>`;
  const isSorted = sort === sorted;
  const turned: Direction = direction === "up" ? "down" : "up";
  const query = sitesQuery({ filter, sort, direction: isSorted ? turned : usualDirection[sort] });
  const arrow = direction === "up" ? "↑" : "↓";
  return html`<th scope="col"${number}${isSorted && html` aria-sort="${ariaSorts[direction]}"`}><a href="${pathWith(path, query)}">${title}${
    isSorted && html` <span aria-hidden="true">${arrow}</span>`
  }</a></th>`;
}

function row(site: ListedSite, now: Date): Html {
  const [first, ...others] = columns;
  return html`<tr><th scope="row">${first!.cell(site, now)}</th>${others.map(
    ({ isNumber, cell }) => html`<td${isNumber ? html` class="number"` : nothing}>${cell(site, now)}</td>`,
  )}</tr>`;
}

/** A name in another script has the one that is asked for beside it: it may look like another's. */
function hostCell({ host, name }: ListedSite): Html {
  const link = html`<a class="break" href="/sites/${encodeURIComponent(host)}"><bdi>${name}</bdi></a>`;
  return name === host ? link : html`${link}<span class="small mono break">${host}</span>`;
}

function stateCell(site: ListedSite, now: Date): Html {
  const [state, more] = stateWords(site, now);
  return html`<span class="state state-${site.state}">${state}</span>${more === null ? nothing : html`<span class="small">${more}</span>`}`;
}

function languageCell(language: string | null): Html {
  return language === null ? html`–` : html`<abbr title="${languageName(language)}">${language}</abbr>`;
}

function organisationCell({ organisation, country: code, subnet }: ListedSite): Html {
  if (subnet === null) return html`–`;
  const name =
    organisation === null
      ? html`<span class="mono">${subnet}</span>`
      : html`<a class="break" href="${pathWith(path, { organisation })}"><bdi>${organisation}</bdi></a>`;
  return html`${name} ${country(code)}`;
}

function dueCell({ dueUrls, moreDueUrls }: ListedSite): Html {
  return moreDueUrls ? html`over ${countText(dueUrls)}` : html`${countText(dueUrls)}`;
}

function failuresCell({ host, failures, fetches }: ListedSite): Html {
  if (fetches === 0) return html`–`;
  const figure =
    failures === 0
      ? html`0`
      : html`<a href="/sites/${encodeURIComponent(host)}#failures">${countText(failures)}</a>`;
  return html`${figure}<span class="small">of ${countText(fetches)}</span>`;
}

function since(date: Date | null, now: Date, whose: string): Html {
  if (date === null) return html`–`;
  const iso = date.toISOString();
  return html`<time class="ago" datetime="${iso}" title="${instantWords(iso)}">${sinceWords(date, now, whose)}</time>`;
}

function emptyList({ answer, question }: SitesPage): Html {
  const { progress } = answer;
  if (question.after !== null)
    return empty(
      "That was the last page.",
      html`<a href="${pathWith(path, sitesQuery(question))}">Back to the first</a>`,
    );
  if (!isUnfiltered(question.filter)) return noMatch(question, progress.isFirstRound);
  if (progress.isFirstRound && progress.knownHosts > 0)
    return empty(
      "The list is being filled.",
      `The crawl knows about ${howMany(progress.knownHosts, "host")}. Reload the page in a moment.`,
    );
  return empty(
    "No site is known yet.",
    html`The crawl begins with URLs that somebody hands in: <a
href="/submit">submit some</a>, or run <code>nearcrawl urls add https://www.example.org/</code>. Their hosts are listed here seconds later.`,
  );
}

function noMatch({ filter }: SitesQuestion, isFirstRound: boolean): Html {
  const name = filter.host ?? filter.under;
  const lookUp =
    name === undefined
      ? nothing
      : html` Or <a href="${pathWith("/who", { q: name })}">look up ${name}</a>: what the crawl has never met can be asked about, too.`;
  return empty(
    "No site matches.",
    html`${isFirstRound ? "The list is still being filled. " : ""}Remove a filter above, or <a href="${path}">show all sites</a>.${lookUp}`,
  );
}

function pager({ answer, question }: SitesPage): Html {
  const query = sitesQuery(question);
  const limit = question.limit === 50 ? null : question.limit;
  if (answer.next === null && question.after === null) return nothing;
  return html`<nav class="pager" aria-label="Pages of the list">${
    question.after === null ? nothing : html`<a href="${pathWith(path, { ...query, limit })}">First page</a>`
  }${
    answer.next === null
      ? html`<span>These are the last.</span>`
      : html`<a href="${pathWith(path, { ...query, limit, after: answer.next })}"
rel="next">Next sites →</a>`
  }</nav>`;
}

function footnote({ answer: { at, progress }, question }: SitesPage): Html {
  const query = sitesQuery(question);
  const round =
    progress.roundSeconds === null || progress.roundSeconds < 60
      ? "within a minute"
      : `within ${spanWords(progress.roundSeconds)}`;
  return html`<p class="small">As of ${instant(at)}: the list follows the crawl within seconds, and registries, delegations and languages ${round}.
Failed are fetches of the last seven days (UTC) without a usable answer; RTT is that of the delegation.
All of it, up to 1,000,000 sites: <a href="${pathWith("/sites.csv", query)}">CSV</a>.</p>`;
}
