/** The tree view: the way down from the root, one subnet, and what is directly within it. */

import { ago, askAbout, country, countText, msOrDash } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { TreeAnswer } from "./answer.ts";
import type { ExploredSubnet } from "./lines.ts";
import { crawler, filesLine } from "./list-page.ts";
import type { Asking } from "./page.ts";

const orders = { address: "address", size: "size, largest first", load: "load, most first" } as const;

export function treeBody(answer: TreeAnswer, asking: Asking, now: string): Html {
  const way = [...answer.above, ...(answer.subnet === null ? [] : [answer.subnet])];
  const root = answer.family === 4 ? "IPv4" : "IPv6";
  const whole = answer.family === 4 ? "0.0.0.0/0" : "::/0";
  return html`
<section aria-labelledby="tree-title">
<h2 id="tree-title">${answer.subnet === null ? root : answer.subnet.range}</h2>
<ol class="way">
<li><a href="${asking({ at: whole })}"${way.length === 0 ? html` aria-current="true"` : nothing}>${root}</a></li>
${way.map((subnet, depth) => html`<li class="depth-${Math.min(depth + 1, 9)}">${line(subnet, { asking, now, isHere: depth === way.length - 1 })}</li>`)}
</ol>
${answer.children.length === 0 ? noChildren(answer) : childTable(answer, asking, now)}
${filesLine(asking)}
</section>`;
}

interface Around {
  readonly asking: Asking;
  readonly now: string;
  readonly isHere: boolean;
}

function line(subnet: ExploredSubnet, { asking, isHere }: Around): Html {
  const here = isHere ? html` aria-current="true"` : nothing;
  const rtt = subnet.rttMs === null ? nothing : html`, ${msOrDash(subnet.rttMs)}`;
  return html`<a class="mono" href="${asking({ at: subnet.range })}"${here}>${subnet.range}</a> ${subnet.name} ${country(subnet.country)}
<span class="small">${crawler(subnet)}${rtt}</span>${isHere ? html` <a class="small" href="/who?q=${encodeURIComponent(subnet.range)}">why?</a>` : nothing}`;
}

function noChildren({ subnet }: TreeAnswer): Html {
  const words =
    subnet === null
      ? "No registry was imported yet: nearcrawl rir apply does it."
      : "Nothing is registered within it: it is a leaf of the tree.";
  return html`<div class="empty"><p>${words}</p></div>`;
}

function childTable(answer: TreeAnswer, asking: Asking, now: string): Html {
  const count = answer.childCount === null ? "Many" : countText(answer.childCount);
  return html`
<p class="sorts small">${count} directly within, sorted by ${Object.entries(orders).map(([order, words]) =>
    order === answer.sort
      ? html`<strong>${words}</strong> `
      : html`<a href="${asking({ sort: order === "address" ? null : order })}">${words}</a> `,
  )}</p>
<div class="scroll" tabindex="0" role="region" aria-label="Subnets directly within">
<table class="subnets">
<thead><tr><th scope="col">Subnet</th><th scope="col">Registered to</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">Since</th><th scope="col" class="number">Within</th><th scope="col">Why</th></tr></thead>
<tbody>${answer.children.map((subnet) => childRow(subnet, asking, now))}</tbody>
</table>
</div>
${pager(answer, asking)}`;
}

function childRow(subnet: ExploredSubnet, asking: Asking, now: string): Html {
  return html`<tr>
<th scope="row"><a class="mono" href="${asking({ at: subnet.range })}">${subnet.range}</a>${subnet.name === "" ? nothing : html` <span class="small">${subnet.name}</span>`}</th>
<td>${subnet.holder?.name ?? "–"} ${country(subnet.country)}</td>
<td>${crawler(subnet)}</td>
<td class="number">${msOrDash(subnet.rttMs)}</td>
<td>${subnet.delegatedAt === null ? "–" : ago(subnet.delegatedAt, now)}</td>
<td class="number">${subnet.subnetsWithin === 0 ? "–" : countText(subnet.subnetsWithin)}</td>
<td>${askAbout(subnet.range, "why?")}</td>
</tr>`;
}

function pager({ next, sort, children, childCount }: TreeAnswer, asking: Asking): Html {
  if (sort !== "address" && (childCount ?? 0) > children.length)
    return html`<p class="small">The first ${children.length} in this order; by address all can be paged through.</p>`;
  if (next === null) return nothing;
  return html`<nav class="pager" aria-label="Pages"><a href="${asking({ after: next })}" rel="next">Further subnets</a></nav>`;
}
