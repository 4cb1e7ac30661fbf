/** The explorer's page around its views: where one is, and which subnets are meant. */
import { howMany } from "#core/format";
import { registries } from "../subnets/subnet.ts";
import { column, dataTable, numberColumn, options, skeleton, titleRow } from "../web/components.ts";
import { countText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { type ExploreQuestion, isEmptyFilter } from "./answer.ts";
import {
  type CountriesAnswer,
  type CountryLine,
  type ExploreAnswer,
  exploreViews,
  type SubnetFilter,
  subnetStates,
} from "./explore-api.ts";
import { type Asking, listBody, placeName, shareBar, treeBody } from "./list-page.ts";
import { mapBody } from "./map-page.ts";
import { medianText } from "./shares.ts";

interface ExploreContext {
  readonly question: ExploreQuestion;
  /** Names, in order. */
  readonly crawlers: readonly string[];
  readonly now: string;
}

const viewNames = { map: "Map", tree: "Tree", list: "List", countries: "Countries" } as const;

export function exploreTitle(answer: ExploreAnswer): string {
  if (answer.view === "countries") return "Countries · Explore";
  return `${placeName(answer.at)} · Explore${answer.view === "map" ? "" : ` as a ${answer.view}`}`;
}

export function exploreBody(answer: ExploreAnswer, context: ExploreContext): Html {
  const at = answer.view === "countries" ? null : answer.at;
  const own = { view: answer.view, at, ...context.question.filter };
  const asking: Asking = (changed) => pathWith("/explore", { ...own, ...changed });
  const tabs = exploreViews.map(
    (view) =>
      html`<a href="${asking({ view })}"${view === answer.view ? html` aria-current="page"` : nothing}>${viewNames[view]}</a>`,
  );
  return html`${titleRow(at === null ? "Explore countries" : `Explore ${placeName(at)}`)}
<nav class="tabs" aria-label="Views">${tabs}</nav>
${at === null ? nothing : questionForm(answer, at, context)}
${viewBody(answer, asking, context.now)}`;
}

export function notReadyBody(): Html {
  return html`${titleRow("Explore")}
${skeleton("The explorer is reading what the subnets load. The page shows them as soon as they are there.")}`;
}

function viewBody(answer: ExploreAnswer, asking: Asking, now: string): Html {
  if (answer.view === "countries") return countriesBody(answer);
  if (answer.view === "map") return mapBody(answer, asking);
  return answer.view === "tree" ? treeBody(answer, asking, now) : listBody(answer, asking, now);
}

function questionForm(
  { view }: ExploreAnswer,
  at: string,
  { question: { filter }, crawlers }: ExploreContext,
): Html {
  return html`
<form class="explore-form" action="/explore" method="get">
<input type="hidden" name="view" value="${view}">
<div class="explore-row">
<label>Block or address <input name="at" value="${at}" maxlength="100" size="24" autocomplete="off" spellcheck="false"></label>
<button class="slim">Show</button>
</div>
${view === "list" ? filterFields(at, filter, crawlers) : nothing}
</form>`;
}

/** More names than a list that is opened should have are typed. */
const mostListed = 200;

function crawlerField(crawlers: readonly string[], chosen: string): Html {
  if (crawlers.length > mostListed)
    return html`<input name="crawler" value="${chosen}" size="18" maxlength="200" placeholder="name">`;
  return html`<select name="crawler">${choices(crawlers, chosen)}</select>`;
}

const choices = (values: readonly string[], chosen: string) =>
  options([["", "any"], ...values.map((value) => [value, value] as const)], chosen);

function filterFields(at: string, filter: SubnetFilter, crawlers: readonly string[]): Html {
  const filtered = !isEmptyFilter(filter);
  const states = subnetStates.map((state) => [state, stateWords[state]] as const);
  return html`<details class="filters"${filtered ? html` open` : nothing}>
<summary>Filter subnets</summary>
<div class="filter-row">
<label>Crawler ${crawlerField(crawlers, filter.crawler ?? "")}</label>
<label>State <select name="state">${options([["", "any"], ...states], filter.state ?? "")}</select></label>
<label>Registry <select name="registry">${choices(registries, filter.registry ?? "")}</select></label>
<label>Country <input name="country" value="${filter.country ?? ""}" size="3" maxlength="2" placeholder="CY"></label>
<label>Holder <input name="holder" value="${filter.holder ?? ""}" size="18" maxlength="200" placeholder="handle or full name"></label>
<label>RTT from ${numberField("minRttMs", filter.minRttMs)} ms</label>
<label>Load from ${numberField("minLoad", filter.minLoad)} pages per day</label>
<span class="actions"><button class="quiet slim">Filter</button>${
    filtered
      ? html`<a
href="${pathWith("/explore", { view: "list", at })}">All subnets</a>`
      : nothing
  }</span>
</div>
</details>`;
}

function numberField(name: string, value: number | undefined): Html {
  return html`<input name="${name}" value="${value ?? ""}" size="5" inputmode="decimal" maxlength="12">`;
}

const stateWords = {
  delegated: "assigned directly",
  inherited: "inherits its crawler",
  waiting: "due, not assigned directly",
  none: "registered, not crawled",
  anycast: "anycast",
  finer: "has delegation overrides",
} as const;

function countriesBody({ countries, totals }: CountriesAnswer): Html {
  if (countries.length === 0)
    return html`<div class="empty"><p>No registry has been imported yet, so no country has subnets.
The command <code>nearcrawl rir apply</code> imports one; <a href="/registry">Registry</a> shows what there is.</p></div>`;
  return html`<p class="lead">${howMany(totals.countries, "country", "countries")} with ${howMany(totals.subnets, "subnet")}, ${countText(totals.crawled)}
of them crawled, by a delegation of their own or of a less specific subnet. The round-trip time is the median of the subnets that are assigned directly.</p>
${dataTable("Countries", countryColumns, countries)}`;
}

const countryColumns = [
  column<CountryLine>("Country", ({ country, name }) =>
    country === null ? name : html`<a href="${pathWith("/explore", { country })}">${name}</a>`,
  ),
  numberColumn<CountryLine>("Subnets", ({ subnets }) => countText(subnets)),
  numberColumn<CountryLine>("Crawled", ({ crawled }) => countText(crawled)),
  column<CountryLine>("By whom", ({ crawledBy }) => shareBar(crawledBy)),
  numberColumn<CountryLine>("Median RTT", medianText),
  numberColumn<CountryLine>("Measured", ({ measured }) => countText(measured)),
  numberColumn<CountryLine>("Pages per day", ({ pagesPerDay }) => countText(pagesPerDay)),
  column<CountryLine>("Hosts", ({ country }) =>
    country === null ? "–" : html`<a href="${pathWith("/sites", { country })}">sites</a>`,
  ),
];
