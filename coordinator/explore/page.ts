/** The explorer's page around its three views: where one is, which subnets are meant, what they are coloured by. */
import { registries } from "../subnets/subnet.ts";
import { ago, countText, crawlerLink, msOrDash, percentText } from "../web/format.ts";
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
import { indexOfCell } from "./space.ts";
import type { LegendEntry, MapBlock } from "./summary.ts";

export interface ExploreContext {
  readonly question: ExploreQuestion;
  /** Names, in order. */
  readonly crawlers: readonly string[];
  readonly now: string;
}

export function exploreTitle({ at, view }: ExploreAnswer): string {
  return `${placeName(at)} · Explore${view === "map" ? "" : ` as a ${view}`}`;
}

function placeName(at: string): string {
  if (at === "0.0.0.0/0") return "IPv4";
  return at === "2000::/3" || at === "::/0" ? "IPv6" : at;
}

export function exploreBody(answer: ExploreAnswer, context: ExploreContext): Html {
  const asking = askingFrom(answer, context.question);
  return html`
<div class="title-row"><h1>Explore ${placeName(answer.at)}</h1><a href="/graph">The graph of links</a></div>
<nav class="tabs" aria-label="Views">${exploreViews.map((view) => tab(view, answer.view, asking))}</nav>
${questionForm(answer, context)}
${viewBody(answer, context, asking)}
<script src="/assets/explore.js" type="module"></script>`;
}

export function notReadyBody(progress: number): Html {
  return html`
<h1>Explore</h1>
<div class="empty" role="status"><p>The explorer is reading the registry and the delegations into its map:
${Math.round(100 * progress)} % done. Reload the page in a moment.</p></div>`;
}

function askingFrom(answer: ExploreAnswer, { filter, colouring }: ExploreQuestion): Asking {
  const own = {
    view: answer.view,
    at: answer.at,
    colour: colouring === "crawler" ? null : colouring,
    ...filterQuery(filter),
  };
  return (changed) => pathWith("/explore", { ...own, ...changed });
}

const viewNames: Readonly<Record<ExploreView, string>> = { map: "Map", tree: "Tree", list: "List" };

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
${answer.view === "map" ? html`<label>Colour by <select name="colour">${colourings.map((name) => option(name, colourNames[name], question.colouring))}</select></label>` : nothing}
<button class="slim">Show</button>
</div>
${answer.view === "tree" ? nothing : filterFields(answer, filter, crawlers)}
</form>`;
}

/** A tree has all its branches: filters are for maps and lists. */
function filterFields(answer: ExploreAnswer, filter: SubnetFilter, crawlers: readonly string[]): Html {
  const filtered = !isEmptyFilter(filter);
  return html`<details class="filters"${filtered ? html` open` : nothing}>
<summary>Only some subnets</summary>
<div class="filter-row">
<label>Crawler <select name="crawler">${option("", "any", filter.crawler ?? "")}${crawlers.map((name) => option(name, name, filter.crawler ?? ""))}</select></label>
<label>State <select name="state">${option("", "any", filter.state ?? "")}${subnetStates.map((state) => option(state, stateWords[state], filter.state ?? ""))}</select></label>
<label>Registry <select name="registry">${option("", "any", filter.registry ?? "")}${registries.map((name) => option(name, name, filter.registry ?? ""))}</select></label>
<label>Country <input name="country" value="${filter.country ?? ""}" size="3" maxlength="2" placeholder="CY"></label>
<label>Holder <input name="holder" value="${filter.holder ?? ""}" size="18" maxlength="200" placeholder="handle or full name"></label>
<label>RTT from ${numberField("minRttMs", filter.minRttMs)} ms</label>
<label>RTT to ${numberField("maxRttMs", filter.maxRttMs)} ms</label>
<label>Load from ${numberField("minLoad", filter.minPagesPerDay)} pages per day</label>
<label>Delegated for over ${numberField("olderThanDays", filter.olderThanDays)} days</label>
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

const colourNames = {
  crawler: "crawler",
  rtt: "round-trip time",
  load: "load",
  age: "age of the decision",
  registry: "registry",
} as const;

const stateWords = {
  delegated: "delegated itself",
  inherited: "goes with a larger one",
  waiting: "waits for a decision",
  none: "nobody crawls it",
  anycast: "answers from many places",
  finer: "delegated in parts",
} as const;

// The map view: the tile as a picture with a link on each of its sixteen blocks, a legend, totals, and the blocks as
// a table. The script makes the picture one that is moved and zoomed; nothing here needs it.

/** A tile's blocks lie four by four. */
const blockOrder = 2;

const blockSide = 2 ** blockOrder;

function mapBody(answer: MapAnswer, asking: Asking, now: string): Html {
  return html`
${wayDown(answer, asking)}
<div class="explore-view">
<div class="map-frame" id="explore-map" data-family="${answer.family}" data-zoom="${answer.zoom}" data-x="${answer.corner.x}" data-y="${answer.corner.y}" data-deepest="${answer.family === 4 ? 8 : 18}" data-query="${tileQuery(answer)}">
<img class="map-tile" src="${tileAddress(answer)}" width="512" height="512" alt="Map of ${placeName(answer.at)} by ${colourWords[answer.colour] ?? answer.colour}; the table below says the same in figures">
<nav class="map-links" aria-label="Blocks of ${placeName(answer.at)}">${grid(answer, asking)}</nav>
</div>
<div class="map-side" data-part="side">
<h2>What is drawn</h2>
${totals(answer)}
${legend(answer)}
</div>
</div>
<section aria-labelledby="blocks-title" data-part="blocks">
<h2 id="blocks-title">The sixteen blocks of ${placeName(answer.at)}</h2>
${blockTable(answer, asking, now)}
</section>`;
}

function tileQuery(answer: MapAnswer): string {
  return pathWith("", { colour: answer.colour, ...answer.filter }).slice(1);
}

function tileAddress(answer: MapAnswer): string {
  const { family, zoom, corner, colour, filter } = answer;
  return pathWith("/explore/tile.png", { family, zoom, x: corner.x, y: corner.y, colour, ...filter });
}

const colourWords: Readonly<Record<string, string>> = {
  crawler: "crawler",
  rtt: "round-trip time",
  load: "load",
  age: "age of the decision",
  registry: "registry",
};

/** Links to what holds this tile, and to the other family. */
function wayDown(answer: MapAnswer, asking: Asking): Html {
  const [address = "", length = "0"] = answer.at.split("/");
  const base = answer.family === 4 ? 0 : 3;
  const root = answer.family === 4 ? "0.0.0.0/0" : "2000::/3";
  const between = [];
  for (let zoom = 2; zoom < answer.zoom; zoom += 2) {
    const at = `${address}/${base + 2 * zoom}`;
    between.push(html` › <a class="mono" href="${asking({ at })}">/${base + 2 * zoom}</a>`);
  }
  const other = answer.family === 4 ? "ipv6" : null;
  return html`<p class="way-out"><a href="${asking({ at: root })}">${placeName(root)}</a>${between}${answer.zoom === 0 ? nothing : html` › <span class="mono">${address}/${length}</span>`}
<a class="other-family" href="${asking({ at: other })}">${answer.family === 4 ? "IPv6 instead" : "IPv4 instead"}</a></p>`;
}

/** In the order in which they are seen: row by row. */
function grid(answer: MapAnswer, asking: Asking): Html[] {
  const order = answer.zoom + blockOrder;
  const before = answer.tileIndex * blockSide ** 2;
  return Array.from({ length: blockSide ** 2 }, (_, seen) => {
    const x = answer.corner.x * blockSide + (seen % blockSide);
    const y = answer.corner.y * blockSide + Math.floor(seen / blockSide);
    const block = answer.blocks[indexOfCell({ x, y }, order) - before] as MapBlock;
    return html`<a href="${blockAddress(answer, block, asking)}" title="${blockWords(block)}"><span>${block.range}</span></a>`;
  });
}

/** A block of the deepest zoom is looked at in the tree. */
function blockAddress(answer: MapAnswer, block: MapBlock, asking: Asking): string {
  const deepest = answer.family === 4 ? 8 : 18;
  return asking({ at: block.range, view: answer.zoom === deepest ? "tree" : "map" });
}

function blockWords({ range, subnets, delegatedShare, crawler }: MapBlock): string {
  const by = crawler === null ? "" : `, mostly by ${crawler}`;
  return `${range}: ${countText(subnets)} subnets, ${shareText(delegatedShare)} crawled${by}`;
}

function totals({ totals: all, addressesPerCell, family }: MapAnswer): Html {
  const cell =
    family === 4 ? countText(Number(addressesPerCell)) : `2^${addressesPerCellBits(addressesPerCell)}`;
  return html`<dl class="facts">
<div><dt>Subnets</dt><dd>${countText(all.subnets)}</dd></div>
<div><dt>Addresses registered</dt><dd>${shareText(all.registeredShare)}</dd></div>
${all.chosenShare === all.registeredShare ? nothing : html`<div><dt>Addresses that the filter leaves</dt><dd>${shareText(all.chosenShare)}</dd></div>`}
<div><dt>Addresses crawled by somebody</dt><dd>${shareText(all.delegatedShare)}</dd></div>
<div><dt>Load</dt><dd>${countText(all.pagesPerDay)} pages per day</dd></div>
<div><dt>One cell of the map</dt><dd>${cell} ${addressesPerCell === "1" ? "address" : "addresses"}</dd></div>
</dl>`;
}

const addressesPerCellBits = (count: string) => BigInt(count).toString(2).length - 1;

function legend({ legend: entries, colour }: MapAnswer): Html {
  const shown = entries.filter(({ cells }) => cells > 0 || colour === "rtt");
  return html`<h3>${colour === "load" ? "Load of a cell" : `By ${colourWords[colour] ?? colour}`}</h3>
<ul class="map-key">${shown.map(legendLine)}
<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" fill="#869694" opacity="0.28"/></svg> registered, ${colour === "load" ? "nothing to fetch" : "no value"}</li>
<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect class="clear" x="0.5" y="0.5" width="15" height="15"/></svg> not registered</li></ul>
<p class="small">The fainter a cell, the less of it is meant; where few have a value, each is drawn larger.</p>`;
}

function legendLine({ label, colour, patterned, share, cells }: LegendEntry): Html {
  const dark = patterned ? html`<path d="M0 0h8v8H0zM8 8h8v8H8z" fill="#000" opacity="0.45"/>` : nothing;
  return html`<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" fill="${colour}"/>${dark}</svg> <span>${label}</span> <span class="small number">${countText(cells)} ${cells === 1 ? "cell" : "cells"}, ${shareText(share)}</span></li>`;
}

function blockTable(answer: MapAnswer, asking: Asking, now: string): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Blocks">
<table>
<thead><tr><th scope="col">Block</th><th scope="col" class="number">Subnets</th><th scope="col" class="number">Registered</th><th scope="col" class="number">Crawled</th><th scope="col">Most by</th><th scope="col" class="number">Mean RTT</th><th scope="col">Decided, on average</th><th scope="col">Registry</th><th scope="col" class="number">Pages per day</th><th scope="col">Subnets</th></tr></thead>
<tbody>${answer.blocks.map((block) => blockRow(block, { answer, asking, now }))}</tbody>
</table>
</div>`;
}

function blockRow(
  block: MapBlock,
  { answer, asking, now }: { readonly answer: MapAnswer; readonly asking: Asking; readonly now: string },
): Html {
  return html`<tr>
<th scope="row"><a class="mono" href="${blockAddress(answer, block, asking)}">${block.range}</a></th>
<td class="number">${countText(block.subnets)}</td>
<td class="number">${shareText(block.registeredShare)}</td>
<td class="number">${shareText(block.delegatedShare)}</td>
<td>${block.crawler === null ? "–" : crawlerLink(block.crawler)}</td>
<td class="number">${msOrDash(block.meanRttMs)}</td>
<td>${block.meanDelegatedAt === null ? "–" : ago(block.meanDelegatedAt, now)}</td>
<td>${block.registry ?? "–"}</td>
<td class="number">${block.pagesPerDay === 0 ? "–" : countText(block.pagesPerDay)}</td>
<td>${block.subnets === 0 ? "–" : html`<a href="${asking({ at: block.range, view: "list" })}">list</a>`}</td>
</tr>`;
}

/** A little is not nothing. */
function shareText(share: number): string {
  return share > 0 && share < 0.0005 ? "< 0.1 %" : percentText(share);
}
