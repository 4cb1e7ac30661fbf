/**
 * The explorer's picture of the address space: the occupied part as rectangles, or a tile of all of it, with the panel
 * of the subnet that was picked, a legend and totals. Every rectangle and block is a link, so that what is hit is what
 * is drawn, and nothing here needs a script.
 */
import { ago, countText, crawlerLink, msOrDash, percentText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { DrawnGroup, MapAnswer, OccupiedAnswer, WholeAnswer } from "./answer.ts";
import type { Colouring } from "./colours.ts";
import type { Asking } from "./list-page.ts";
import { partsFill, patternDefinitions, shareBar } from "./share-bar-page.ts";
import { indexOfCell } from "./space.ts";
import type { ExploredBranch } from "./subnet-view.ts";
import type { LegendEntry, MapBlock } from "./summary.ts";

export function placeName(at: string): string {
  if (at === "0.0.0.0/0") return "IPv4";
  return at === "2000::/3" || at === "::/0" ? "IPv6" : at;
}

export const colourWords: Readonly<Record<Colouring, string>> = {
  crawler: "crawler",
  rtt: "round-trip time",
  load: "pages per day",
  age: "age of the assignment",
  registry: "registry",
};

const measureWords = {
  subnets: "Area: number of subnets.",
  pages: "Area: pages to fetch per day. Subnets without pages are left out.",
  addresses: "Area: addresses, on a logarithmic scale.",
} as const;

export function mapBody(answer: MapAnswer, asking: Asking, now: string): Html {
  const picture = answer.layout === "occupied" ? treemapPicture(answer, asking) : tilePicture(answer, asking);
  return html`
${wayDown(answer, asking)}
<div class="explore-view">
<div class="map-column">${picture}</div>
<div class="map-side">
<div data-part="panel" id="panel" tabindex="-1">${answer.picked === null ? nothing : panel(answer.picked, asking, now)}</div>
<section aria-labelledby="drawn-title"><h2 id="drawn-title">In view: ${placeName(answer.at)}</h2>
${totals(answer)}
${legend(answer)}</section>
</div>
</div>
${answer.layout === "occupied" ? groupTable(answer, asking) : blockSection(answer, asking, now)}`;
}

// Where one is: what holds the view, the other family, the other layout.

function wayDown(answer: MapAnswer, asking: Asking): Html {
  const [address = "", length = "0"] = answer.at.split("/");
  const root = rootOf(answer);
  const other = answer.family === 4 ? "ipv6" : "ipv4";
  const isRoot = placeName(answer.at) === placeName(root);
  const above = answer.layout === "whole" ? tilesAbove(answer) : blocksAbove(answer);
  return html`<nav class="way-out" aria-label="Where you are"><span>${isRoot ? html`<strong>${placeName(root)}</strong>` : html`<a href="${asking({ at: root })}">${placeName(root)}</a>`}${above.map(({ at, name }) => html` › <a class="mono" href="${asking({ at })}">${name}</a>`)}${isRoot ? nothing : html` › <strong class="mono">${address}/${length}</strong>`}</span>
<span class="other-family"><a href="${asking({ at: other })}">${answer.family === 4 ? "IPv6" : "IPv4"} instead</a></span>
<span class="other-family">${otherLayout(answer, asking)}</span></nav>`;
}

const rootOf = ({ family, layout }: MapAnswer) =>
  family === 4 ? "0.0.0.0/0" : layout === "whole" ? "2000::/3" : "::/0";

function otherLayout(answer: MapAnswer, asking: Asking): Html {
  return answer.layout === "occupied"
    ? html`<a href="${asking({ layout: "whole" })}">Whole address space</a>`
    : html`<a href="${asking({ layout: null })}">Occupied space only</a>`;
}

interface Above {
  readonly at: string;
  readonly name: string;
}

function tilesAbove({ at, family, zoom }: WholeAnswer): Above[] {
  const [address = ""] = at.split("/");
  const base = family === 4 ? 0 : 3;
  const above: Above[] = [];
  for (let step = 2; step < zoom; step += 2)
    above.push({ at: `${address}/${base + 2 * step}`, name: `/${base + 2 * step}` });
  return above;
}

/** Where people cut addresses: at whole bytes, and in IPv6 where registries give blocks out. */
function blocksAbove({ at, family }: OccupiedAnswer): Above[] {
  const [address = "", length = "0"] = at.split("/");
  const lengths = family === 4 ? [8, 16, 24] : [12, 24, 32, 40, 48];
  return lengths
    .filter((prefixLength) => prefixLength < Number(length))
    .map((prefixLength) => ({ at: `${address}/${prefixLength}`, name: `/${prefixLength}` }));
}

// The occupied space.

function treemapPicture(answer: OccupiedAnswer, asking: Asking): Html {
  if (answer.groups.length === 0) return emptyMap(answer, asking);
  return html`<svg class="treemap" id="treemap" viewBox="0 0 ${answer.width} ${answer.height}" role="group" aria-label="${mapLabel(answer)}">
${patternDefinitions}${answer.groups.map((group) => groupLink(group, answer, asking))}
</svg>
<p class="map-read" aria-live="polite">${measureWords[answer.measure]} The smallest are drawn larger. A block opens into what is in it, a subnet tells about itself.</p>`;
}

function mapLabel(answer: OccupiedAnswer): string {
  return `${placeName(answer.at)} by ${colourWords[answer.colour as Colouring] ?? answer.colour}: ${countText(answer.totals.subnets)} subnets. The table below says the same in figures.`;
}

function groupLink(group: DrawnGroup, answer: OccupiedAnswer, asking: Asking): Html {
  const { x, y, width, height } = group;
  const isPicked = answer.picked?.range === group.range;
  return html`<a class="${isPicked ? "picked" : "drawn"}" href="${groupAddress(group, asking)}" data-range="${group.range}"><title>${groupWords(group)}</title>${partsFill(group.parts, group)}<rect class="edge" x="${x}" y="${y}" width="${width}" height="${height}"/>${groupName(group)}</a>`;
}

function groupAddress(group: DrawnGroup, asking: Asking): string {
  return group.isSubnet ? `${asking({ pick: group.range })}#panel` : asking({ at: group.range });
}

function groupWords({ range, isSubnet, subnets, parts }: DrawnGroup): string {
  if (isSubnet) return `${range}: ${parts[0]?.label ?? ""}`;
  const shares = parts.map(({ label, subnets: count }) => `${label} ${countText(count)}`);
  return `${range}: ${countText(subnets)} subnets (${shares.join(", ")})`;
}

/** Of the label's font, in units of the picture. */
const characterWidth = 6.7;

/** Where the picture is half as wide, its letters are twice as large. */
const narrowScale = 2;

function groupName({ range, x, y, width, height, isSubnet, subnets }: DrawnGroup): Html {
  const wide = range.length * characterWidth + 8;
  if (wide > width || height < 18) return nothing;
  const fitsNarrow = narrowScale * wide <= width && height >= 18 * narrowScale;
  const count =
    isSubnet || height < 36
      ? nothing
      : html`<text class="count" x="${x + 5}" y="${y + 28}">${countText(subnets)}</text>`;
  return html`<text${fitsNarrow ? html` class="large"` : nothing} x="${x + 5}" y="${y + 14}">${range}</text>${count}`;
}

function emptyMap(answer: OccupiedAnswer, asking: Asking): Html {
  const filtered = Object.values(answer.filter).some((value) => value !== null);
  if (filtered)
    return html`<div class="empty"><p>No subnet of ${placeName(answer.at)} matches the filter. <a href="${pathWith("/explore", { view: "map", at: answer.at })}">Show all of its subnets</a>.</p></div>`;
  if (answer.measure === "pages")
    return html`<div class="empty"><p>No subnet of ${placeName(answer.at)} has pages to fetch. <a href="${asking({ measure: null })}">Show all registered subnets</a>.</p></div>`;
  if (placeName(answer.at) !== placeName(rootOf(answer)))
    return html`<div class="empty"><p>Nothing is registered in ${placeName(answer.at)}. <a href="${asking({ at: rootOf(answer) })}">Show all of ${placeName(rootOf(answer))}</a>.</p></div>`;
  return html`<div class="empty"><p>No registry has been imported yet, so there is nothing to draw. The command <code>nearcrawl rir apply</code> imports one; <a href="/registry">Registry</a> shows what there is.</p></div>`;
}

function groupTable(answer: OccupiedAnswer, asking: Asking): Html {
  if (answer.groups.length === 0) return nothing;
  return html`<details class="as-table"><summary>The same as a table: ${countText(answer.groups.length)} ${answer.groups.length === 1 ? "row" : "rows"}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="What is drawn">
<table><thead><tr><th scope="col">Block or subnet</th><th scope="col" class="number">Subnets</th><th scope="col">By ${colourWords[answer.colour as Colouring] ?? answer.colour}</th></tr></thead>
<tbody>${answer.groups.map(
    (group) =>
      html`<tr><th scope="row"><a class="mono" href="${groupAddress(group, asking)}">${group.range}</a></th><td class="number">${countText(group.subnets)}</td><td>${group.parts.map(({ label, subnets }, at) => html`${at === 0 ? nothing : ", "}<bdi>${label}</bdi>${group.isSubnet ? nothing : html` ${countText(subnets)}`}`)}</td></tr>`,
  )}</tbody></table></div></details>`;
}

// The panel of a subnet.

function panel(subnet: ExploredBranch, asking: Asking, now: string): Html {
  const { range, holder, name, country, registry } = subnet;
  const within = subnet.subnetsWithin;
  return html`<section class="pick" aria-labelledby="pick-title">
<h2 id="pick-title"><span class="mono">${range}</span></h2>
${name === "" ? nothing : html`<p class="small"><bdi>${name}</bdi></p>`}
<dl class="facts">
<div><dt>Registered to</dt><dd>${holder === null ? "–" : html`<bdi>${holder.name}</bdi>`}</dd></div>
<div><dt>Registry</dt><dd>${registry}${country === null ? nothing : html`, ${country}`}</dd></div>
<div><dt>Crawler</dt><dd>${crawlerOf(subnet)}</dd></div>
<div><dt>Round-trip time</dt><dd>${msOrDash(subnet.rttMs)}</dd></div>
<div><dt>Since</dt><dd>${subnet.delegatedAt === null ? "–" : ago(subnet.delegatedAt, now)}</dd></div>
<div><dt>Pages per day</dt><dd>${countText(Math.ceil(subnet.pagesPerDay))}${subnet.dueHosts === 0 ? nothing : html` (${countText(subnet.dueHosts)} due ${subnet.dueHosts === 1 ? "host" : "hosts"})`}</dd></div>
<div><dt>Subnets within</dt><dd>${within === 0 ? "none" : countText(within)}</dd></div>
</dl>
${within === 0 ? nothing : shareBar(subnet.crawledBy)}
<p class="pick-links"><a href="${pathWith("/who", { q: range })}">Why this crawler?</a> <a href="${asking({ view: "tree", at: range, pick: null })}">Show in the tree</a>${within === 0 ? nothing : html` <a href="${asking({ at: range, pick: null })}">Zoom in</a>`}${holder?.handle ? html` <a href="${pathWith("/explore", { view: "list", holder: holder.handle })}">All of its holder's</a>` : nothing} <a href="${asking({ pick: null })}" data-close>Close</a></p>
</section>`;
}

function crawlerOf({ state, crawler, decidedFor, waiting, anycast, finer }: ExploredBranch): Html {
  const marks = [
    state === "inherited" && decidedFor !== null ? `inherited from ${decidedFor}` : "",
    waiting ? "due, not assigned directly" : "",
    anycast ? "anycast" : "",
    finer ? "has delegation overrides" : "",
  ].filter((mark) => mark !== "");
  const who =
    state === "none"
      ? html`nobody`
      : crawler === null
        ? html`removed crawler`
        : html`<bdi>${crawlerLink(crawler)}</bdi>`;
  return html`${who}${marks.length === 0 ? nothing : html` <span class="small">${marks.join(", ")}</span>`}`;
}

// Totals and legend.

function totals(answer: MapAnswer): Html {
  const { subnets, crawled, pagesPerDay, dueHosts } = answer.totals;
  const withPages = answer.layout === "occupied" && answer.measure === "pages";
  return html`<dl class="facts">
<div><dt>${withPages ? "Subnets with pages" : "Subnets"}</dt><dd>${countText(subnets)}</dd></div>
<div><dt>Crawled, by own or inherited delegation</dt><dd>${countText(crawled)}${subnets === 0 ? nothing : html` <span class="small">${shareText(crawled / subnets)}</span>`}</dd></div>
<div><dt>Pages per day</dt><dd>${countText(pagesPerDay)}</dd></div>
<div><dt>Hosts due</dt><dd>${countText(dueHosts)}</dd></div>
${answer.layout === "whole" ? addressFacts(answer) : nothing}
</dl>`;
}

function addressFacts({ addresses, addressesPerCell, family }: WholeAnswer): Html {
  const cell =
    family === 4 ? countText(Number(addressesPerCell)) : `2^${addressesPerCellBits(addressesPerCell)}`;
  return html`<div><dt>Addresses registered</dt><dd>${shareText(addresses.registered)}</dd></div>
${addresses.chosen === addresses.registered ? nothing : html`<div><dt>Addresses that match the filter</dt><dd>${shareText(addresses.chosen)}</dd></div>`}
<div><dt>Addresses crawled</dt><dd>${shareText(addresses.crawled)}</dd></div>
<div><dt>One cell of the picture</dt><dd>${cell} ${addressesPerCell === "1" ? "address" : "addresses"}</dd></div>`;
}

const addressesPerCellBits = (count: string) => BigInt(count).toString(2).length - 1;

function legend({ legend: entries, colour, layout }: MapAnswer): Html {
  if (entries.length === 0) return nothing;
  return html`<h3>By ${colourWords[colour as Colouring] ?? colour}</h3>
<ul class="map-key">${entries.map(legendLine)}</ul>
${layout === "whole" ? html`<p class="small">Clear: not registered. The fainter a cell, the smaller the part of it that has the value.</p>` : nothing}`;
}

function legendLine({ label, colour, patterned, kind, share, subnets }: LegendEntry): Html {
  const dark = patterned ? html`<path d="M0 0h8v8H0zM8 8h8v8H8z" fill="#000" opacity="0.45"/>` : nothing;
  return html`<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/>${dark}</svg> <span class="name"><bdi>${label}</bdi></span> <span class="small number">${countText(subnets)} <span class="part">${shareText(share)}</span></span></li>`;
}

// The whole address space: the tile as a picture with a link on each of its sixteen blocks, and these as a table.

/** A tile's blocks lie four by four. */
const blockOrder = 2;

const blockSide = 2 ** blockOrder;

function tilePicture(answer: WholeAnswer, asking: Asking): Html {
  const { family, zoom, corner, colour, filter } = answer;
  const tile = { family, zoom, x: corner.x, y: corner.y, colour, ...filter };
  return html`<div class="map-frame" id="explore-map" data-family="${family}" data-zoom="${zoom}" data-x="${corner.x}" data-y="${corner.y}" data-query="${pathWith("", { colour, ...filter }).slice(1)}" data-pick="${asking({ pick: "" })}">
<img class="map-tile" src="${pathWith("/explore/tile.png", tile)}" width="512" height="512" alt="${placeName(answer.at)} by ${colourWords[colour as Colouring] ?? colour}; the table below says the same in figures">
<nav class="map-links" aria-label="Blocks of ${placeName(answer.at)}">${grid(answer, asking)}</nav>
</div>
<p class="map-read" aria-live="polite">Each block opens into its own sixteen.</p>`;
}

/** In the order in which they are seen: row by row. */
function grid(answer: WholeAnswer, asking: Asking): Html[] {
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
function blockAddress(answer: WholeAnswer, block: MapBlock, asking: Asking): string {
  const deepest = answer.family === 4 ? 8 : 18;
  return asking({ at: block.range, view: answer.zoom === deepest ? "tree" : "map" });
}

function blockWords({ range, subnets, delegatedShare, crawler }: MapBlock): string {
  const by = crawler === null ? "" : `, mostly by ${crawler}`;
  return `${range}: ${countText(subnets)} subnets, ${shareText(delegatedShare)} of the addresses crawled${by}`;
}

function blockSection(answer: WholeAnswer, asking: Asking, now: string): Html {
  return html`<section aria-labelledby="blocks-title">
<h2 id="blocks-title">The sixteen blocks of ${placeName(answer.at)}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Blocks">
<table>
<thead><tr><th scope="col">Block</th><th scope="col" class="number">Subnets</th><th scope="col" class="number">Registered</th><th scope="col" class="number">Crawled</th><th scope="col">Most by</th><th scope="col" class="number">Mean RTT</th><th scope="col">Assigned, on average</th><th scope="col">Registry</th><th scope="col" class="number">Pages per day</th><th scope="col">Subnets</th></tr></thead>
<tbody>${answer.blocks.map((block) => blockRow(block, { answer, asking, now }))}</tbody>
</table>
</div>
</section>`;
}

function blockRow(
  block: MapBlock,
  { answer, asking, now }: { readonly answer: WholeAnswer; readonly asking: Asking; readonly now: string },
): Html {
  return html`<tr>
<th scope="row"><a class="mono" href="${blockAddress(answer, block, asking)}">${block.range}</a></th>
<td class="number">${countText(block.subnets)}</td>
<td class="number">${shareText(block.registeredShare)}</td>
<td class="number">${shareText(block.delegatedShare)}</td>
<td>${block.crawler === null ? "–" : html`<bdi>${crawlerLink(block.crawler)}</bdi>`}</td>
<td class="number">${msOrDash(block.meanRttMs)}</td>
<td>${block.meanDelegatedAt === null ? "–" : ago(block.meanDelegatedAt, now)}</td>
<td>${block.registry ?? "–"}</td>
<td class="number">${block.pagesPerDay === 0 ? "–" : countText(block.pagesPerDay)}</td>
<td>${block.subnets === 0 ? "–" : html`<a href="${asking({ at: block.range, view: "list" })}">list</a>`}</td>
</tr>`;
}

/** A little is not nothing, and nearly all is not all. */
function shareText(share: number): string {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return share < 1 && share > 0.9995 ? "> 99.9 %" : percentText(share);
}
