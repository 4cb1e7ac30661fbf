/** The chain of subnets as a tree, from the widest down to the one that was asked about. */

import { askAbout, country, crawlerLink } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { ChainSubnet, SubnetLine, WhoAnswer } from "./who-answer.ts";
import { rttText } from "./words.ts";

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
