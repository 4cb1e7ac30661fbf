/** The explorer's page around its three views: where one is, which subnets are meant, what they are coloured by. */
import { registries } from "../subnets/subnet.ts";
import { pageScript } from "../web/assets.ts";
import { skeleton } from "../web/components.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import {
  type ExploreAnswer,
  type ExploreQuestion,
  type ExploreView,
  exploreViews,
  type MapAnswer,
} from "./answer.ts";
import { colourings } from "./colours.ts";
import { filterQuery, isEmptyFilter, type SubnetFilter, subnetStates } from "./filter.ts";
import { type Asking, listBody, treeBody } from "./list-page.ts";
import { colourWords, mapBody, placeName } from "./map-page.ts";
import { measures } from "./occupied.ts";

export interface ExploreContext {
  readonly question: ExploreQuestion;
  /** Names, in order. */
  readonly crawlers: readonly string[];
  readonly now: string;
}

export function exploreTitle({ at, view }: ExploreAnswer): string {
  return `${placeName(at)} · Explore${view === "map" ? "" : ` as a ${view}`}`;
}

export function exploreBody(answer: ExploreAnswer, context: ExploreContext): Html {
  const asking = askingFrom(answer, context.question);
  return html`
<div class="title-row"><h1>Explore ${placeName(answer.at)}</h1><a href="/explore/map">Map of countries</a></div>
<nav class="tabs" aria-label="Views">${exploreViews.map((view) => tab(view, answer.view, asking))}</nav>
${questionForm(answer, context)}
${viewBody(answer, context, asking)}
${pageScript("explore.js")}`;
}

export function notReadyBody(progress: number): Html {
  return html`<h1>Explore</h1>
${skeleton(`The explorer is reading the registry and the delegations into memory: ${Math.round(100 * progress)} % done. The page shows them as soon as they are there.`)}`;
}

function askingFrom(answer: ExploreAnswer, { filter, colouring, layout, measure }: ExploreQuestion): Asking {
  const own = {
    view: answer.view,
    at: answer.at,
    layout: layout === "occupied" ? null : layout,
    measure: measure === "subnets" ? null : measure,
    colour: colouring === "crawler" ? null : colouring,
    ...filterQuery(filter),
  };
  return (changed) => pathWith("/explore", { ...own, ...changed });
}

const viewNames: Readonly<Record<ExploreView, string>> = { map: "Blocks", tree: "Tree", list: "List" };

function tab(view: ExploreView, current: ExploreView, asking: Asking): Html {
  return html`<a href="${asking({ view })}"${view === current ? html` aria-current="page"` : nothing}>${viewNames[view]}</a>`;
}

function viewBody(answer: ExploreAnswer, context: ExploreContext, asking: Asking): Html {
  if (answer.view === "map") return mapBody(answer, asking, context.now);
  if (answer.view === "tree") return treeBody(answer, asking, context.now);
  return listBody(answer, asking, context.now);
}

function questionForm(answer: ExploreAnswer, { question, crawlers }: ExploreContext): Html {
  const { filter } = question;
  return html`
<form class="explore-form" action="/explore" method="get">
<input type="hidden" name="view" value="${answer.view}">
<div class="explore-row">
<label>Block or address <input name="at" value="${answer.at}" maxlength="100" size="24" autocomplete="off" spellcheck="false"></label>
${answer.view === "map" ? mapFields(answer, question) : nothing}
<button class="slim">Show</button>
</div>
${answer.view === "tree" ? nothing : filterFields(answer, filter, crawlers)}
</form>`;
}

function mapFields(answer: MapAnswer, { colouring, measure, layout }: ExploreQuestion): Html {
  const area = html`<label>Area by <select name="measure">${measures.map((name) => option(name, measureNames[name], measure))}</select></label>`;
  return html`<label>Colour by <select name="colour">${colourings.map((name) => option(name, colourWords[name], colouring))}</select></label>
${answer.layout === "occupied" ? area : html`<input type="hidden" name="layout" value="${layout}">`}`;
}

const measureNames = {
  subnets: "number of subnets",
  pages: "pages per day",
  addresses: "addresses (log)",
} as const;

/** More names than a list that is opened should have are typed. */
const mostListed = 200;

function crawlerField(crawlers: readonly string[], chosen: string): Html {
  if (crawlers.length > mostListed)
    return html`<input name="crawler" value="${chosen}" size="18" maxlength="200" placeholder="name">`;
  return html`<select name="crawler">${option("", "any", chosen)}${crawlers.map((name) => option(name, name, chosen))}</select>`;
}

/** A tree has all its branches: filters are for maps and lists. */
function filterFields(answer: ExploreAnswer, filter: SubnetFilter, crawlers: readonly string[]): Html {
  const filtered = !isEmptyFilter(filter);
  return html`<details class="filters"${filtered ? html` open` : nothing}>
<summary>Filter subnets</summary>
<div class="filter-row">
<label>Crawler ${crawlerField(crawlers, filter.crawler ?? "")}</label>
<label>State <select name="state">${option("", "any", filter.state ?? "")}${subnetStates.map((state) => option(state, stateWords[state], filter.state ?? ""))}</select></label>
<label>Registry <select name="registry">${option("", "any", filter.registry ?? "")}${registries.map((name) => option(name, name, filter.registry ?? ""))}</select></label>
<label>Country <input name="country" value="${filter.country ?? ""}" size="3" maxlength="2" placeholder="CY"></label>
<label>Holder <input name="holder" value="${filter.holder ?? ""}" size="18" maxlength="200" placeholder="handle or full name"></label>
<label>RTT from ${numberField("minRttMs", filter.minRttMs)} ms</label>
<label>RTT to ${numberField("maxRttMs", filter.maxRttMs)} ms</label>
<label>Load from ${numberField("minLoad", filter.minPagesPerDay)} pages per day</label>
<label>Assigned over ${numberField("olderThanDays", filter.olderThanDays)} days ago</label>
<label>Size from / ${numberField("minPrefix", filter.minPrefix)}</label>
<label>Size to / ${numberField("maxPrefix", filter.maxPrefix)}</label>
<span class="actions"><button class="quiet slim">Filter</button>${filtered ? html`<a href="${pathWith("/explore", { view: answer.view, at: answer.at })}">All subnets</a>` : nothing}</span>
</div>
</details>`;
}

function option(value: string, shown: string, chosen: string): Html {
  return html`<option value="${value}"${value === chosen ? html` selected` : nothing}>${shown}</option>`;
}

function numberField(name: string, value: number | null): Html {
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
