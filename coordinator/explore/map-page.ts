/** The map of who crawls what, with what it comes to. Every block is a link into it, so nothing here needs a script. */
import { parseRange } from "#core/ip/range";
import { column, dataTable, fact, numberColumn } from "../web/components.ts";
import { countText, percentText } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { MapAnswer } from "./explore-api.ts";
import { blockText, squareHolding } from "./hilbert-map.ts";
import { type Asking, placeName, shareBar } from "./list-page.ts";
import { shareWords } from "./shares.ts";

type Block = MapAnswer["blocks"][number];

export function mapBody(answer: MapAnswer, asking: Asking): Html {
  const { at, totals, blocks } = answer;
  const { subnets, crawled, pagesPerDay, dueHosts } = totals;
  return html`${wayOut(answer, asking)}
<div class="explore-view"><div>${picture(answer, asking)}
<p class="small">A cell has the colour of the crawler with most subnets in it; grey: nobody crawls any. Each block opens into its own sixteen.
Addresses run along a Hilbert curve. Clear: not registered.</p></div>
<div class="map-side"><dl class="facts">
${fact("Subnets", countText(subnets))}
${fact(
  "Crawled, by own or inherited delegation",
  html`${countText(crawled)}${
    subnets === 0
      ? nothing
      : html` <span
class="small">${shareText(crawled / subnets)}</span>`
  }`,
)}
${fact("Pages per day", countText(pagesPerDay))}
${fact("Hosts due", countText(dueHosts))}
</dl>${legend(answer)}</div></div>
<section aria-labelledby="blocks-title"><h2 id="blocks-title">Blocks of ${placeName(at)} with subnets</h2>
${dataTable(
  "Blocks",
  blockColumns(asking),
  blocks.filter(({ subnets: count }) => count > 0),
)}</section>`;
}

/** From the whole family down to where one is. */
function wayOut({ at, above, family }: MapAnswer, asking: Asking): Html {
  const other = family === 4 ? "ipv6" : "ipv4";
  return html`<nav class="way-out" aria-label="Larger blocks">${above.map(
    (to) => html`<a class="mono"
href="${asking({ at: to })}">${placeName(to)}</a> › `,
  )}<strong class="mono">${placeName(at)}</strong> <span
class="other-family"><a href="${asking({ at: other })}">${other === "ipv6" ? "IPv6" : "IPv4"} instead</a></span></nav>`;
}

function squareText(text: string): string {
  const range = parseRange(text);
  return range === null ? text : blockText(squareHolding(range));
}

/** Units of the picture to a cell, and cells of a block to a side. */
const [unit, cellsPerBlock] = [10, 16];

function picture({ at, legend: parts, blocks }: MapAnswer, asking: Asking): Html {
  const side = 4 * cellsPerBlock * unit;
  return html`<svg class="space-map" viewBox="0 0 ${side} ${side}" role="group"
aria-label="${placeName(at)} by crawler; the table below says the same in figures">
<g transform="scale(${unit})" shape-rendering="crispEdges">${parts.map(
    ({ kind, colour, path }) => html`<path d="${path}"
fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/>`,
  )}</g>
${blocks.map((block) => blockLink(block, asking))}</svg>`;
}

function blockLink(block: Block, asking: Asking): Html {
  const { range, subnets, crawledBy } = block;
  const [x, y, side] = [unit * block.x, unit * block.y, unit * cellsPerBlock];
  const words = `${range}: ${countText(subnets)} subnets${subnets === 0 ? "" : ` (${shareWords(crawledBy)})`}`;
  return html`<a href="${blockAddress(block, asking)}"><title>${words}</title><rect x="${x}" y="${y}" width="${side}" height="${side}"/><text x="${x + 6}"
y="${y + 17}">${range}</text></a>`;
}

/** What is smaller than the smallest square is looked at in the tree. */
const blockAddress = ({ range }: Block, asking: Asking) =>
  asking({ at: range, view: squareText(range) === range ? "map" : "tree" });

function legend({ legend: parts, totals }: MapAnswer): Html {
  if (parts.length === 0) return nothing;
  return html`<h2>By crawler</h2><ul class="map-key">${parts.map(
    ({ label, colour, kind, subnets }) =>
      html`<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16"
fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/></svg> <span class="name"><bdi>${label}</bdi></span> <span
class="small number">${countText(subnets)} <span class="part">${shareText(subnets / totals.subnets)}</span></span></li>`,
  )}</ul>`;
}

const blockColumns = (asking: Asking) => [
  column<Block>(
    "Block",
    (block) => html`<a class="mono" href="${blockAddress(block, asking)}">${block.range}</a>`,
  ),
  numberColumn<Block>("Subnets", ({ subnets }) => countText(subnets)),
  numberColumn<Block>("Crawled", ({ crawled, subnets }) => shareText(crawled / subnets)),
  column<Block>("By whom", ({ crawledBy }) => shareBar(crawledBy)),
  column<Block>("Subnets", ({ range }) => html`<a href="${asking({ at: range, view: "list" })}">list</a>`),
];

/** A little is not nothing, and nearly all is not all. */
function shareText(share: number): string {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return share < 1 && share > 0.9995 ? "> 99.9 %" : percentText(share);
}
