import { rttText } from "#core/format";
import { picture } from "../../ask/document.ts";
import type { Node } from "../../ask/operation.ts";
import { plainText } from "../../ask/words.ts";
import type { ChainSubnet, SubnetLine } from "../../place/subnets/subnets-api.ts";
import { small } from "../../web/components.ts";
import { askAbout, country, crawlerLink } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import type { WhoAnswer } from "./who-api.ts";

const registryNames: Readonly<Record<string, string>> = {
  iana: "IANA",
  afrinic: "AFRINIC",
  apnic: "APNIC",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE NCC",
};

export const registryName = (registry: string) => registryNames[registry] ?? registry;

export function subnetTree(answer: WhoAnswer): Node {
  const chain = [...answer.chain].reverse();
  return picture(branch(chain, answer), () => branchLines(chain, answer, "").join("\n"));
}

/** The leaf's siblings by address. */
function besideOf([subnet, ...below]: readonly ChainSubnet[], { neighbours }: WhoAnswer) {
  const isLeaf = subnet && !subnet.unary && below.every(({ unary }) => unary);
  const beside = isLeaf ? neighbours : null;
  return {
    before: [...(beside?.before ?? [])].reverse(),
    after: beside?.after ?? [],
    moreBefore: beside?.moreBefore === true,
    moreAfter: beside?.moreAfter === true,
  };
}

function branch(chain: readonly ChainSubnet[], answer: WhoAnswer): Html {
  const [subnet, ...below] = chain;
  if (!subnet) return nothing;
  const effective = subnet.subnetId === answer.effective?.subnetId;
  const kind = effective ? "node node-effective" : subnet.unary ? "node node-unary" : "node";
  const { before, after, moreBefore, moreAfter } = besideOf(chain, answer);
  const more = (words: string) => html`<li class="beside"><p class="small">${words}</p></li>`;
  const beside = (line: SubnetLine) => html`<li class="beside"><p>${neighbour(line)}</p></li>`;
  return html`<ul class="tree">${moreBefore && more("more before these")}${before.map(beside)}<li><div
class="${kind}">${nodeLines(subnet).map(([name, line]) => html`<p class="node-${name}">${line}</p>`)}</div>${branch(below, answer)}</li>${after.map(
    beside,
  )}${moreAfter && more("more after them")}</ul>`;
}

/** Each level is indented. */
function branchLines(chain: readonly ChainSubnet[], answer: WhoAnswer, indent: string): string[] {
  const [subnet, ...below] = chain;
  if (!subnet) return [];
  const { before, after } = besideOf(chain, answer);
  const own = nodeLines(subnet).map(([, line]) => plainText(line));
  const beside = (line: SubnetLine) => `${indent}├─ ${plainText(neighbour(line))}`;
  return [
    ...before.map(beside),
    `${indent}${after.length > 0 ? "├─" : "└─"} ${own.join(" · ")}`,
    ...branchLines(below, answer, `${indent}   `),
    ...after.map(beside),
  ];
}

/** A sibling in one line. */
function neighbour({ range, name, country: of, crawler, inherited, rttMs }: SubnetLine): Html {
  const by =
    crawler === null
      ? small("nobody")
      : html`${crawlerLink(crawler)} ${small(inherited ? "inherited" : rttText(rttMs))}`;
  return html`${askAbout(range)} <span class="netname">${name}</span> ${country(of)}
<span class="arrow" aria-hidden="true">→</span> ${by}`;
}

function nodeLines({ range, name, holder, country: of, registry, delegation, unary }: ChainSubnet) {
  const link =
    holder && html`<a href="${pathWith("/who", { q: holder.handle ?? holder.name })}">${holder.name}</a> · `;
  const by = delegation
    ? html`${crawlerLink(delegation.crawler.name)} ${small(rttText(delegation.rttMs))}`
    : small(unary ? "one address: its parent counts" : "not assigned directly");
  return [
    ["head", html`${askAbout(range)} ${name && html`<span class="netname">${name}</span>`}`],
    ["facts", html`${link}${country(of)} ${registryName(registry)}`],
    ["crawler", by],
  ] as const;
}
