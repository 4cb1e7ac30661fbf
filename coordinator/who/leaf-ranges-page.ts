/** The parts of a leaf that is split below its registered range, as a table. */

import { rttText } from "#core/format";
import type { FinerReport } from "../delegation/overrides/reads.ts";
import type { ChainSubnet, SubnetLine } from "../subnets/subnet-reads.ts";
import { askAbout, country, crawlerLink, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { WhoAnswer } from "./who-report.ts";

export function partsSection(parts: readonly FinerReport[]): Html {
  return html`<section><h2>Split below its registered range</h2><div class="scroll"><table>
<thead><tr><th scope="col">Addresses</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col" class="number">From the subnet's crawler</th><th scope="col">Found</th></tr></thead>
<tbody>${parts.map(partRow)}</tbody></table></div></section>`;
}

function partRow(part: FinerReport): Html {
  return html`<tr><th scope="row">${askAbout(part.range ?? "")}</th><td>${crawlerLink(part.crawler.name)}</td><td class="number">${rttText(part.rttMs)}</td><td class="number">${rttText(part.subnetRttMs)}</td><td>${instant(part.foundAt)}</td></tr>`;
}

// The chain of subnets as a tree, from the widest down to the one that was asked about.

const registryNames: Readonly<Record<string, string>> = {
  iana: "IANA",
  afrinic: "AFRINIC",
  apnic: "APNIC",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE NCC",
};

export function registryName(registry: string): string {
  return registryNames[registry] ?? registry;
}

export function subnetTree(answer: WhoAnswer): Html {
  const fromTop = [...answer.chain].reverse();
  return branch(fromTop, answer);
}

function branch(chain: readonly ChainSubnet[], answer: WhoAnswer): Html {
  const [subnet, ...below] = chain;
  if (!subnet) return nothing;
  const effective = subnet.subnetId === answer.effective?.subnetId;
  const kind = effective ? "node node-effective" : subnet.unary ? "node node-unary" : "node";
  const isLeaf = !subnet.unary && below.every(({ unary }) => unary);
  const beside = isLeaf ? answer.neighbours : null;
  return html`<ul class="tree">${beside?.moreBefore ? more("before") : nothing}${[...(beside?.before ?? [])].reverse().map(neighbour)}<li><div class="${kind}">${node(subnet)}</div>${branch(below, answer)}</li>${(beside?.after ?? []).map(neighbour)}${beside?.moreAfter ? more("after") : nothing}</ul>`;
}

/** A subnet beside the one that was asked about, in one line. */
function neighbour(line: SubnetLine): Html {
  const crawler =
    line.crawler === null
      ? html`<span class="small">nobody</span>`
      : html`${crawlerLink(line.crawler)} <span class="small">${line.inherited ? "inherited" : rttText(line.rttMs)}</span>`;
  return html`<li class="beside"><p>${askAbout(line.range)} <span class="netname">${line.name}</span> ${country(line.country)} <span class="arrow" aria-hidden="true">→</span> ${crawler}</p></li>`;
}

function more(side: "before" | "after"): Html {
  return html`<li class="beside"><p class="small">more ${side} ${side === "before" ? "these" : "them"}</p></li>`;
}

function node(subnet: ChainSubnet): Html {
  const { delegation, holder } = subnet;
  return html`<p class="node-head">${askAbout(subnet.range)} ${subnet.name ? html`<span class="netname">${subnet.name}</span>` : nothing}</p>
<p class="node-facts">${holder ? html`<a href="${pathWith("/who", { q: holder.handle ?? holder.name })}">${holder.name}</a> · ` : nothing}${country(subnet.country)} ${registryName(subnet.registry)}</p>
<p class="node-crawler">${
    delegation
      ? html`${crawlerLink(delegation.crawler.name)} <span class="small">${rttText(delegation.rttMs)}</span>`
      : html`<span class="small">${subnet.unary ? "one address: its parent counts" : "no delegation of its own"}</span>`
  }</p>`;
}
