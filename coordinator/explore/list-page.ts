/** Subnets as a table: the list view, and the lines of the tree. */
import { howMany } from "#core/format";
import { column, dataTable, numberColumn } from "../web/components.ts";
import { ago, askAbout, country, countText, crawlerLink, msOrDash } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { ExploredBranch, ExploredSubnet, ListAnswer, SharePart, TreeAnswer } from "./explore-api.ts";
import { removedCrawler, shareWords } from "./shares.ts";

/** Query of the same question with some things changed. */
export type Asking = (changed: Readonly<Record<string, string | number | null>>) => string;

export function placeName(at: string): string {
  if (at === "0.0.0.0/0") return "IPv4";
  return at === "2000::/3" || at === "::/0" ? "IPv6" : at;
}

const orders = {
  address: "address",
  load: "pages per day, most first",
  rtt: "round-trip time, longest first",
} as const;

export function listBody(answer: ListAnswer, asking: Asking, now: string): Html {
  if (answer.subnets.length === 0) return emptyList(asking);
  return html`
<section aria-labelledby="list-title">
<h2 id="list-title">${countWords(answer)}</h2>
<p class="sorts small">Sorted by ${orderLinks(["address", "load", "rtt"], answer.sort, asking)}</p>
${subnetTable(answer.subnets, now)}
${pager(answer, asking)}
<p class="small files">The whole list, up to 1,000,000 subnets: <a href="/explore/subnets.csv?${asking({ view: null }).split("?")[1] ?? ""}">CSV</a>.</p>
</section>`;
}

const haveWords = { address: "", load: " with pages to fetch", rtt: " measured" } as const;

function countWords({ count, isWholeCount, subnets, sort }: ListAnswer): string {
  if (isWholeCount) return `${howMany(count, "subnet")}${haveWords[sort]}`;
  return count > subnets.length
    ? `More than ${countText(count)} subnets`
    : `${countText(count)} more subnets`;
}

function orderLinks(names: readonly (keyof typeof orders)[], chosen: string, asking: Asking): Html[] {
  return names.map((order) =>
    order === chosen
      ? html`<strong>${orders[order]}</strong> `
      : html`<a href="${asking({ sort: order === "address" ? null : order })}">${orders[order]}</a> `,
  );
}

function emptyList(asking: Asking): Html {
  return html`
<div class="empty"><p>No subnet here matches. Look in <a href="${asking({ at: null })}">all of IPv4</a> or
<a href="${asking({ at: "ipv6" })}">all of IPv6</a>, or remove a filter above.</p></div>`;
}

function pager(answer: ListAnswer, asking: Asking): Html {
  if (answer.sort !== "address" && answer.count > answer.subnets.length)
    return html`<p class="small">The first ${answer.subnets.length} in this order. Filter to see others, or sort by address to page through all.</p>`;
  if (answer.next === null) return nothing;
  return html`<nav class="pager" aria-label="Pages"><a href="${asking({ after: answer.next })}" rel="next">More subnets</a></nav>`;
}

function subnetTable(subnets: readonly ExploredSubnet[], now: string): Html {
  const columns = [
    column<ExploredSubnet>("Subnet", ({ range, name }) => html`${askAbout(range)}${named(name)}`),
    column("Registered to", holder),
    column("Registry", (one: ExploredSubnet) => html`${one.registry} ${country(one.country)}`),
    column("Crawler", crawler),
    ...measured(now),
    numberColumn("Pages per day", load),
    numberColumn("Within", within),
  ];
  return dataTable("Subnets", columns, subnets, "subnets");
}

const measured = (now: string) => [
  numberColumn<ExploredSubnet>("RTT", ({ rttMs }) => msOrDash(rttMs)),
  column<ExploredSubnet>("Since", ({ delegatedAt }) => (delegatedAt === null ? "–" : ago(delegatedAt, now))),
];

const within = ({ subnetsWithin }: ExploredSubnet) => (subnetsWithin === 0 ? "–" : countText(subnetsWithin));

const named = (name: string) =>
  name === "" ? nothing : html` <span class="small"><bdi>${name}</bdi></span>`;

function holder({ holder: known }: ExploredSubnet): Html {
  return known === null ? html`–` : html`<bdi class="holder">${known.name}</bdi>`;
}

function crawler(subnet: ExploredSubnet): Html {
  const marks = [subnet.anycast ? "anycast" : "", subnet.finer ? "overrides" : ""].filter(
    (mark) => mark !== "",
  );
  const words = marks.length === 0 ? nothing : html` <span class="small">${marks.join(", ")}</span>`;
  if (subnet.state === "none") return html`${subnet.waiting ? "due, nobody yet" : "nobody"}${words}`;
  const name =
    subnet.crawler === null ? html`${removedCrawler}` : html`<bdi>${crawlerLink(subnet.crawler)}</bdi>`;
  if (subnet.state === "delegated") return html`${name}${words}`;
  const from = `from ${subnet.decidedFor ?? "a less specific one"}`;
  const waits = subnet.waiting ? "; due, not assigned directly" : "";
  return html`${name}${words} <span class="small">${from}${waits}</span>`;
}

function load({ pagesPerDay, dueHosts }: ExploredSubnet): Html {
  if (pagesPerDay === 0 && dueHosts === 0) return html`–`;
  const due = dueHosts === 0 ? nothing : html` <span class="small">${howMany(dueHosts, "due host")}</span>`;
  return html`${countText(Math.ceil(pagesPerDay))}${due}`;
}

// The tree view: the way down from the root, one subnet, and what is directly within it.

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
</section>`;
}

interface Around {
  readonly asking: Asking;
  readonly now: string;
  readonly isHere: boolean;
}

function line(subnet: ExploredBranch, { asking, isHere }: Around): Html {
  const here = isHere ? html` aria-current="true"` : nothing;
  const rtt = subnet.rttMs === null ? nothing : html`, ${msOrDash(subnet.rttMs)}`;
  const range = html`<a class="mono" href="${asking({ at: subnet.range })}"${here}>${subnet.range}</a>`;
  const why = html` <a class="small" href="${pathWith("/who", { q: subnet.range })}">why?</a>`;
  return html`${range} <bdi>${subnet.name}</bdi> ${country(subnet.country)}
<span class="small">${crawler(subnet)}${rtt}</span>${isHere ? html`${why}${shareBar(subnet.crawledBy)}` : nothing}`;
}

function noChildren({ subnet }: TreeAnswer): Html {
  const words =
    subnet === null
      ? "No registry has been imported yet. The command nearcrawl rir apply imports one."
      : "Nothing is registered within it.";
  return html`<div class="empty"><p>${words}</p></div>`;
}

function childTable(answer: TreeAnswer, asking: Asking, now: string): Html {
  const sorts = orderLinks(["address", "load"], answer.sort, asking);
  const columns = [
    column<ExploredBranch>(
      "Subnet",
      ({ range, name }) => html`<a class="mono" href="${asking({ at: range })}">${range}</a>${named(name)}`,
    ),
    column("Registered to", (one: ExploredBranch) => html`${holder(one)} ${country(one.country)}`),
    column("Crawler", crawler),
    column("Crawled below", ({ crawledBy }: ExploredBranch) => shareBar(crawledBy)),
    ...measured(now),
    numberColumn("Within", within),
    column("Why", ({ range }: ExploredBranch) => askAbout(range, "why?")),
  ];
  return html`
<p class="sorts small">${countText(answer.childCount)} directly within, sorted by ${sorts}</p>
${dataTable("Subnets directly within", columns, answer.children, "subnets")}
${treePager(answer, asking)}`;
}

function treePager({ next, sort, children, childCount }: TreeAnswer, asking: Asking): Html {
  if (sort !== "address" && childCount > children.length)
    return html`<p class="small">The first ${children.length} in this order. Sort by address to page through all.</p>`;
  if (next === null) return nothing;
  return html`<nav class="pager" aria-label="Pages"><a href="${asking({ after: next })}" rel="next">More subnets</a></nav>`;
}

const bar = { width: 120, height: 10 };

/** Who has how many of some subnets, side by side; its title says it in words. */
export function shareBar(parts: readonly SharePart[]): Html {
  const all = parts.reduce((sum, { subnets }) => sum + subnets, 0);
  let before = 0;
  const fills = parts.map(({ colour, kind, subnets }) => {
    const left = (bar.width * before) / all;
    before += subnets;
    const width = (bar.width * subnets) / all;
    return html`<rect x="${left.toFixed(2)}" width="${width.toFixed(2)}" height="${bar.height}"
fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/>`;
  });
  return html`<svg class="share-bar" viewBox="0 0 ${bar.width} ${bar.height}" preserveAspectRatio="none" role="img"
aria-label="${shareWords(parts)}"><title>${shareWords(parts)}</title>${fills}</svg>`;
}
