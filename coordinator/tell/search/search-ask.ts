/** Search over the crawled pages (/search): results, values to narrow them by, and why they are in that order. */
import { z } from "zod";
import { UsageError } from "#core/errors";
import { printable } from "#core/terminal-text";
import { aside, empty, group, onward, picture, present, recordColumns } from "../../ask/document.ts";
import { type Field, fieldsIn } from "../../ask/fields.ts";
import { type Document, Fault, type Node, operationsOf } from "../../ask/operation.ts";
import { plainText } from "../../ask/words.ts";
import { answersText } from "../../crawl/batch/stated-uses.ts";
import { submitLink } from "../../crawl/submissions/submissions-ask.ts";
import { type FilterChip, filterChips, options } from "../../web/components.ts";
import { country, countryName, countText, crawlerLink } from "../../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import { EngineAway } from "./engine/search-engine.ts";
import { readOperators } from "./operators.ts";
import { crumbs, pageLink } from "./page-ask.ts";
import { maxSearchLength, maxSearchLimit, maxSearchOffset } from "./query.ts";
import { type SearchReads, searchPages } from "./search.ts";
import {
  type FacetName,
  type FilterName,
  type FoundPage,
  facetNames,
  filterNames,
  type Reason,
  type SearchAnswer,
} from "./search-answer.ts";
import { operatorHelp, searchAnswer } from "./search-api.ts";

const usualLimit = 10;

/** The engine is started again soon after it has ended. */
const askAgainSeconds = 5;

const filter = <One extends z.ZodType>(schema: One, title: string, description: string, example: string) =>
  schema.optional().meta({ title, description, example });

const day = z.string().meta({ format: "date" });

const input = z.object({
  q: z
    .string()
    .max(maxSearchLength)
    .default("")
    .meta({
      description: `Words; "a phrase", or, -without. At most ${maxSearchLength} characters. You can add filters among the words, and
hold in place of the parameter: ${operatorHelp.map(([typed]) => typed).join(", ")}.`,
      example: "ferry harbour",
    }),
  limit: z
    .int()
    .min(1)
    .max(maxSearchLimit)
    .default(usualLimit)
    .meta({
      ...{ description: "Results at most.", example: usualLimit },
    }),
  offset: z
    .int()
    .min(0)
    .max(maxSearchOffset)
    .default(0)
    .meta({
      ...{ description: "Results to leave out from the start.", example: 0 },
    }),
  host: filter(z.string(), "Host", "Only pages of this host and of its subdomains.", "example.org"),
  excludeHost: filter(
    z.string(),
    "Without host",
    "No pages of these hosts (eight at most, with commas between them), nor of their subdomains.",
    "ads.example.org",
  ),
  title: filter(z.string().max(100), "In the title", "Only pages whose title has these words.", "ferry"),
  language: filter(z.string(), "Language", "ISO 639-1 code.", "en"),
  country: filter(z.string(), "Country", "ISO 3166-1 code: only pages of hosts registered there.", "GR"),
  crawler: filter(z.string(), "Crawler", "Only pages that this crawler fetched last.", "athens"),
  preference: filter(
    z.string().max(40),
    "Preference",
    `Only pages of which the site states this of one use (search, ai-input, ai-train, text-and-data-mining): \`=allowed\`,
\`=licensed\`, \`=denied\`, or \`=unstated\` where it states nothing of it.`,
    "ai-train=denied",
  ),
  type: filter(z.enum(["html", "text"]), "Type", "Only pages of this type; text is plain text.", "html"),
  from: filter(
    day,
    "Published from",
    "Only pages published on this day (UTC) or later; where a page does not say, its fetch counts.",
    "2026-01-01",
  ),
  to: filter(day, "Published until", "Only pages published on this day or earlier.", "2026-12-31"),
  sort: z
    .enum(["relevance", "date"])
    .default("relevance")
    .meta({
      ...{ description: "`date`: newest first, of the matches that were ranked.", example: "relevance" },
    }),
  explain: z
    .enum(["1"])
    .optional()
    .meta({ description: "1: each page says where its points come from.", example: "1" }),
});

const search = operationsOf<SearchReads>().get({
  ...{ path: "/api/search", needs: "read", input },
  navigation: { group: "Sites", order: 20, entry: "Search", also: ["/pages"] },
  summary: "Pages that hold these words, best first",
  description: `What is ranked is bounded: \`more\` says that there may be more matches, and facets count what was ranked. The same
question gets the same ranking for ten seconds.`,
  output: searchAnswer,
  faults: {
    400: "The words are too long, or a filter cannot be one",
    503: "The search engine does not answer at the moment",
  },
  command: {
    ...{
      name: "search",
      takes: "q...",
      says: "search the crawled pages; export the index to a search engine",
    },
    help: `

Examples:
  nearcrawl search 'harbour -ferry' --language en
  nearcrawl search '"harbour wall"' --host example.org --sort date
  nearcrawl search ferry site:example.org after:2026-01-01

Filters among the words:
${operatorHelp.map(([typed, words]) => `  ${typed.padEnd(24)}${words}`).join("\n")}`,
  },
  start: ({ viewer }) => ({
    title: "Search the crawled pages",
    nodes: [picture(html`${searchForm(null)}${searchHelp}${submitLink(viewer)}`)],
  }),
  run: async ({ input: { q, explain, ...given }, ports, now }) => {
    const read = readOperators(q, { ...given, explain: explain === "1" });
    if (typeof read === "string") throw new UsageError(`The filter ${read}.`);
    return await searchPages(ports, read.words, read.options, now).catch((error: unknown) => {
      if (!(error instanceof EngineAway)) throw error;
      const why = `The search engine does not answer at the moment (${error.message}). Nothing was searched.`;
      throw new Fault(503, why, "Search", { refreshSeconds: askAgainSeconds });
    });
  },
  view: (answer, { viewer }) => searchDocument(answer, viewer),
});

export const searchOperations = { search };

const csvNames = [
  "url",
  "title",
  "host",
  "language",
  "country",
  "crawler",
  "publishedAt",
  "fetchedAt",
] as const;

function searchDocument(answer: SearchAnswer, viewer: PageViewer): Document {
  const { words, pages, didYouMean: meant } = answer;
  const points = { key: "points", title: null, cell: ({ rank }: FoundPage) => rank };
  const better = meant !== null && linkTo(answer, { q: meant }, html`<strong>${meant}</strong>`);
  return {
    ...{ title: `${words} · Search`, hasOwnHeading: true },
    csv: { columns: [...recordColumns<FoundPage>(csvNames), points], rows: pages },
    nodes: present([
      picture(html`<h1 class="hidden">Search the crawled pages</h1>${searchForm(answer)}`),
      meant !== null &&
        picture(html`<p class="did-you-mean">Did you mean ${better}?</p>`, `Did you mean: ${meant}`),
      picture(activeChips(answer)),
      group("search-columns", [group("", results(answer)), picture(filterAside(answer), countLines(answer))]),
      picture(submitLink(viewer)),
    ]),
  };
}

const searchHelp = html`<p class="small">Words, <code>"a phrase"</code>, <code>or</code>, <code>-without</code>. You can add filters:</p>
<dl class="operators small">${operatorHelp.map(([typed, words]) => html`<div><dt><code>${typed}</code></dt><dd>${words}</dd></div>`)}</dl>`;

/** New words keep the active filters. */
function searchForm(answer: SearchAnswer | null): Html {
  return html`<form class="ask" action="/search" method="get" role="search"><label class="hidden" for="q">Search pages</label>
<div class="field"><input id="q" name="q" type="search" maxlength="${maxSearchLength}" value="${answer?.words ?? ""}"
  placeholder="Search pages" autocomplete="off"${answer === null && html` autofocus`}><button>Search</button></div>
${answer && [...filterNames.map((name) => hidden(name, answer[name])), ...orderFields(answer)]}</form>`;
}

const orderFields = (answer: SearchAnswer): Html[] => [
  hidden("sort", answer.sort === "date" ? "date" : null),
  hidden("explain", isExplained(answer) ? "1" : null),
];

const hidden = (name: string, value: string | null): Html =>
  value === null ? nothing : html`<input type="hidden" name="${name}" value="${value}">`;

function results(answer: SearchAnswer): readonly Node[] {
  const { total, pages, offset, limit, note } = answer;
  if (total === 0) return [nothingFound(answer)];
  if (pages.length === 0)
    return [
      empty(
        `There are only ${countText(total)} results.`,
        linkTo(answer, { offset: null }, "Back to the first"),
      ),
    ];
  const from = `${countText(offset + 1)} to ${countText(offset + pages.length)}`;
  const after = offset + limit;
  return present([
    picture(
      html`<div class="result-head"><p class="small">${from} of ${totalText(answer)}</p>${orderTabs(answer)}</div>`,
    ),
    note !== null && aside(note),
    picture(html`<ol class="results" start="${offset + 1}">${pages.map(resultItem)}</ol>`, () =>
      pages.map((page, at) => resultText(page, offset + at + 1)).join("\n\n"),
    ),
    onward({
      ...{ name: "offset", words: "Next →", before: offset > limit ? offset - limit : null },
      next: after < total && after <= maxSearchOffset ? after : null,
    }),
  ]);
}

const totalText = ({ more, total }: SearchAnswer) => `${more ? "at least " : ""}${countText(total)}`;

function orderTabs(answer: SearchAnswer): Html {
  const { sort } = answer;
  const explained = isExplained(answer);
  return html`<p class="orders small">${linkTo(answer, { sort: null }, "best first", sort === "relevance")}${linkTo(
    answer,
    { sort: "date" },
    "newest first",
    sort === "date",
  )}${linkTo(answer, { explain: explained ? null : 1 }, explained ? "without reasons" : "why this order")}</p>`;
}

function nothingFound(answer: SearchAnswer): Node {
  if (answer.note !== null) return empty(answer.note);
  const active = activeFilters(answer);
  const without = (what: string, names: readonly FilterName[]) =>
    linkTo(answer, Object.fromEntries(names.map((name) => [name, null])), `without ${what}`);
  const wider = [
    ...active.map((name) => without(`“${labels[name]}: ${shownValue(name, answer[name] ?? "")}”`, [name])),
    ...(active.length > 1 ? [without("any filter", active)] : []),
  ];
  return empty(
    "No page matches.",
    html`Try fewer or other words.${wider.length > 0 && " Or search more widely: "}${wider.map((link, at) => html`${at > 0 && ", "}${link}`)}`,
  );
}

// Narrowing a search: the form, the values among the results, and the active filters.

const filterFields = filterNames.map((name) => fieldsIn(input).find((field) => field.name === name)!);

const labels = Object.fromEntries(filterFields.map(({ name, label }) => [name, label])) as Record<
  FilterName,
  string
>;

/** Everything beside the results. */
function filterAside(answer: SearchAnswer): Html {
  const counted = answer.facets.pages;
  const what = answer.more ? "best matches" : counted === 1 ? "match" : "matches";
  return html`<aside class="narrow" aria-label="Filters">
<details${activeFilters(answer).length > 0 && html` open`}><summary>Filters</summary>${filterForm(answer)}</details>
${facetNames.map((name) => facet(answer, name))}
${counted > 0 && html`<p class="small">Counted over the ${countText(counted)} ${what}.</p>`}
</aside>`;
}

/** For a terminal: how many match, and the values to narrow the results by, where there is more than one. */
function countLines(answer: SearchAnswer): string {
  const { total, facets } = answer;
  if (total === 0) return "";
  const lines = facetNames.flatMap((name) => {
    const values = facets[name].map(({ value, pages }) => `${value} ${countText(pages)}`);
    return values.length < 2 ? [] : [`${name}: ${values.join(", ")}`];
  });
  return [`${totalText(answer)} ${total === 1 ? "page" : "pages"}`, ...lines].join("\n");
}

/** The active filters, each with a link to the search without it; excluded hosts one by one. */
function activeChips(answer: SearchAnswer): Html {
  const chips = activeFilters(answer).flatMap((name): FilterChip[] => {
    const [label, value] = [labels[name], answer[name] ?? ""];
    if (name !== "excludeHost") return [{ name, label, value: shownValue(name, value) }];
    const hosts = value.split(",");
    return hosts.map((host) => ({
      ...{ name, label, value: host },
      without: { excludeHost: hosts.filter((one) => one !== host).join(",") },
    }));
  });
  return filterChips("/search", searchQueryOf(answer), chips);
}

const shownValue = (name: FilterName | FacetName, value: string) =>
  name === "country" ? countryName(value) : value;

const activeFilters = (answer: SearchAnswer) => filterNames.filter((name) => answer[name] !== null);

function filterForm(answer: SearchAnswer): Html {
  return html`<form class="filter-form" action="/search" method="get">${hidden("q", answer.words)}${orderFields(answer)}
${filterFields.map((field) => filterField(field, answer[field.name as FilterName] ?? ""))}
<p class="small">A host includes its subdomains. A preference is what the site states about a use of its pages, or
<code>unstated</code>. Dates are those of publication, or of the fetch where a page has none (UTC).</p>
<button class="quiet slim">Apply</button></form>`;
}

function filterField({ name, label, example, choices, isDate, mostLength }: Field, value: string): Html {
  const shared = html`id="filter-${name}" name="${name}"`;
  const looks = isDate
    ? html`type="date"`
    : html`maxlength="${mostLength ?? 2000}" placeholder="${example}" autocomplete="off"`;
  const field =
    choices === undefined
      ? html`<input ${shared} value="${value}" ${looks}>`
      : html`<select ${shared}>${options([["", "any"], ...choices.map((one) => [one, typeNames[one]!] as const)], value)}</select>`;
  const isShort = name === "language" || name === "country";
  return html`<p${isShort && html` class="half"`}><label for="filter-${name}">${label}</label>${field}</p>`;
}

const typeNames: Readonly<Record<string, string>> = { html: "HTML", text: "plain text" };

function facet(answer: SearchAnswer, name: FacetName): Html {
  const values = answer.facets[name];
  if (values.length === 0 || (values.length === 1 && answer[name] === values[0]!.value)) return nothing;
  return html`<section class="facet"><h3>${labels[name]}</h3><ul>${values.map(({ value, pages }) => {
    const isOn = answer[name] === value;
    const link = linkTo(answer, { [name]: isOn ? null : value }, shownValue(name, value), isOn);
    return html`<li>${link} <span class="small">${countText(pages)}</span></li>`;
  })}</ul></section>`;
}

// Addresses of the same search with something changed.

/** Null removes a filter; any change goes back to the first results. */
type Changes = Readonly<Record<string, string | number | null>>;

const linkTo = (answer: SearchAnswer, changes: Changes, words: string | Html, isCurrent = false): Html =>
  html`<a href="${pathWith("/search", { ...searchQueryOf(answer), ...changes })}"${isCurrent && html` aria-current="true"`}>${words}</a>`;

function searchQueryOf(answer: SearchAnswer): Changes {
  return {
    q: answer.words,
    ...Object.fromEntries(filterNames.map((name) => [name, answer[name]])),
    sort: answer.sort === "date" ? "date" : null,
    limit: answer.limit === usualLimit ? null : answer.limit,
    explain: isExplained(answer) ? 1 : null,
  };
}

const isExplained = ({ pages }: SearchAnswer) => pages.some(({ reasons }) => reasons !== null);

// One result of a search: title, address, the words around the match, facts, and why it ranks there.

const titleOf = ({ title, url }: FoundPage) => title.trim() || url;

function resultItem(page: FoundPage): Html {
  const href = safeHref(page.url);
  const facts = [
    ...factsOf(page),
    html`<a href="${pageLink(page.url)}">facts and links</a>`,
    html`<a href="${pathWith("/who", { q: page.url })}">who crawls it</a>`,
  ];
  return html`<li><p class="crumbs">${crumbs(page.url)}</p>
<h2>${href ? html`<a href="${href}" rel="noreferrer nofollow">${titleOf(page)}</a>` : titleOf(page)}</h2>
<p class="snippet">${page.snippet.map((part) => (part.matches ? html`<mark>${part.text}</mark>` : part.text))}</p>
<p class="result-facts small">${facts.map((fact) => html`<span>${fact}</span>`)}</p>
${page.reasons && reasons(page.reasons, page.rank)}</li>`;
}

function resultText(page: FoundPage, number: number): string {
  const { reasons, rank, snippet, url } = page;
  const facts = factsOf(page).map(plainText).join(" · ");
  const lines = [
    ...[url, snippet.map(({ text }) => text).join(""), facts],
    ...(reasons ?? []).map(
      ({ points, most, words }) => `${pointsText(points)} of ${String(most).padStart(2)}  ${words}`,
    ),
    ...(reasons === null ? [] : [`${pointsText(rank)} points`]),
  ];
  return [`${number}. ${titleOf(page)}`, ...lines.map((line) => `   ${line}`)]
    .map((line) => printable(line))
    .join("\n");
}

const pointsText = (points: number) => points.toFixed(1).padStart(5);

function factsOf(page: FoundPage): Html[] {
  const day = (iso: string) => html`<time datetime="${iso}" data-day>${iso.slice(0, 10)}</time>`;
  const uses = answersText(page.uses);
  return [
    page.publishedAt && html`published ${day(page.publishedAt)}`,
    html`fetched ${day(page.fetchedAt)}${page.crawler && html` by ${crawlerLink(page.crawler)}`}`,
    page.language && html`${page.language}`,
    country(page.country),
    uses !== "" && html`states ${uses}`,
    page.alike > 0 && html`${countText(page.alike)} more with nearly the same text`,
  ].filter((fact) => typeof fact === "object" && fact !== null);
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
