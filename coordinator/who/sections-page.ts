/** The parts of the answer below the verdict: URL, host, history, organisation, crawler, lists of subnets. */

import { changeCauseWords } from "#core/delegation-cause";
import { bytesText, earlierVisitsWords, howMany, msText, rttText } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import { perHourWords, rateLimitWords } from "#protocol/pace-words";
import type { DelegationChange, FinerReport } from "../delegation/rounds-api.ts";
import {
  type FetchLine,
  type HostReport,
  type PageReport,
  type UrlReport,
  visitsListed,
  type WaitingReport,
} from "../frontier/frontier-reports-api.ts";
import { countWords } from "../results/stated-uses.ts";
import { statedSection } from "../results/stated-uses-page.ts";
import type { ChainSubnet, OrganisationReport, SubnetLine, SubnetList } from "../subnets/subnets-api.ts";
import { askAbout, country, countText, crawlerLink, instant, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../web/html.ts";
import { connectionText, robotsWords, worthWords } from "./explain-host.ts";
import {
  changeWords,
  contentWords,
  foundWords,
  hostTurnWords,
  nextFetchWords,
  placeWords,
  validatorWords,
} from "./explain-url.ts";
import type { CrawlerReport, OrderReport, WhoAnswer } from "./who-api.ts";

export function urlSection(url: UrlReport, order: OrderReport | null): Html {
  const href = safeHref(url.url);
  return html`<section><h2>This URL</h2>
<p class="mono break">${href ? html`<a href="${href}" rel="noreferrer nofollow">${url.url}</a>` : url.url}</p>
<dl class="facts">
${fact("State", url.state)}
${fact("Last outcome", url.lastOutcome === null ? "never fetched" : `${url.lastOutcome}${url.lastStatus === null ? "" : ` (${url.lastStatus})`}`)}
${fact("Next fetch", nextFetchWords(url))}
${order ? fact("Its turn", html`${placeWords(order)} <span class="small">order ${order.strategy}: ${order.words}</span>`) : nothing}
${order ? fact("Priority", order.reason) : nothing}
${order ? fact("Its host's turn", hostTurnWords(order)) : nothing}
${fact("Visits", countText(url.visits))}
${fact("Links to it", countText(url.backLinks))}
${fact("Depth", url.depth)}
${fact("Found", html`${foundWords(url)} <span class="small">${instant(url.discoveredAt)}</span>`)}
${changeWords(url) === "" ? nothing : fact("Changes", changeWords(url))}
${validatorWords(url) === "" ? nothing : fact("Validators", html`<span class="break">${validatorWords(url)}</span>`)}
${fact("Key", html`<span class="mono break">${url.id.hostHash} / ${url.id.urlHash}</span>`)}
${url.worth ? fact("Counts as", worthWords[url.worth]) : nothing}
${url.page ? fact("Page", html`${url.page.title || "(no title)"} <span class="small">${howMany(url.page.words, "word")}${url.page.language ? `, ${url.page.language}` : ""}</span>`) : nothing}
${url.page ? pageFacts(url.page) : nothing}
</dl>
${fetchTable(url.fetches, false)}${notKept(url)}</section>${statedSection(url.stated)}`;
}

function pageFacts(page: PageReport): Html {
  const { structured } = page;
  return html`${page.publishedAt ? fact("Published", instant(page.publishedAt)) : nothing}
${page.modifiedAt ? fact("Changed", instant(page.modifiedAt)) : nothing}
${page.declaredLanguage ? fact("Language", html`${page.declaredLanguage} <span class="small">stated${page.detectedLanguage ? `; the text looks like ${page.detectedLanguage}` : ""}</span>`) : nothing}
${structured ? fact("Describes", html`${structured.name} <span class="small">${structured.type}</span>`) : nothing}
${page.duplicateOf ? fact("Nearly the same as", askAbout(page.duplicateOf)) : nothing}`;
}

function due(instantDue: string, at: string): Html {
  return instantDue <= at ? html`due since ${instant(instantDue)}` : html`not before ${instant(instantDue)}`;
}

function fact(name: string, value: Html | string | number): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

export function hostSection(host: HostReport, at: string, besideUrl: boolean): Html {
  const states = Object.entries(host.urlStates).map(([state, urls]) => `${countText(urls)} ${state}`);
  return html`<section><h2>${besideUrl ? "Its host" : "This host"}</h2>
<dl class="facts">
${fact("Host", html`${askAbout(host.host)} <a class="small" href="/sites/${encodeURIComponent(host.host)}">its pages, changes and speed</a>`)}
${fact("Address", host.state)}
${fact("URLs", html`${countText(host.urlCount)} <span class="small">${states.join(", ")}</span>`)}
${fact("Budget", html`${howMany(host.budget.earnedUrls, "URL")} earned <span class="small">${howMany(host.budget.pages.good, "good page")}${host.budget.heldUrls > 0 ? `, ${countText(host.budget.heldUrls)} held back` : ""}${host.budget.leftOutUrls > 0 ? `, URLs skipped ${countText(host.budget.leftOutUrls)} times` : ""}</span>`)}
${host.robots ? fact("robots.txt", html`${robotsWords[host.robots.state]} <span class="small">${instant(host.robots.at)}</span>`) : nothing}
${host.pace && host.pace.crawlDelayMs > 0 ? fact("Crawl-delay", `${host.pace.crawlDelayMs / 1000} s`) : nothing}
${host.capDelayMs === null ? nothing : fact("Cap", html`one request every ${host.capDelayMs / 1000} s <a class="small" href="/fleet/site-caps">caps</a>`)}
${host.pace?.tolerated ? fact("Tolerates", html`${perHourWords(host.pace.tolerated.perHour)} <span class="small">${rateLimitWords(host.pace.tolerated)}${host.pace.tolerated.refusedAt === null ? "" : html`, ${instant(host.pace.tolerated.refusedAt)}`}</span>`) : nothing}
${host.connection ? fact("Connection", connectionText(host.connection)) : nothing}
${host.stated.counts.length > 0 ? fact("States", html`${countWords(host.stated.counts)} <span class="small">${host.stated.more ? "of the first " : "of "}${howMany(host.stated.pages, "page")} in the index</span>`) : nothing}
${host.payment ? fact("Asks to be paid", html`${howMany(host.payment.inARow, "answer")} 402 in a row <span class="small">${host.payment.price === null ? "no price named" : `price ${host.payment.price}`}</span>`) : nothing}
${host.botGate ? fact("Bot gate", html`${gateName(host.botGate.provider)} <span class="small">since ${instant(host.botGate.since)}, ${host.botGate.tries === 1 ? "1 try" : `${countText(host.botGate.tries)} tries`}</span>`) : nothing}
${host.dueAt ? fact("Next fetch", due(host.dueAt, at)) : nothing}
${host.lease ? fact("In progress at", html`${crawlerLink(host.lease.crawler)} <span class="small">until ${instant(host.lease.expiresAt)}</span>`) : nothing}
</dl>
${host.nextUrls.length > 0 ? nextUrls(host) : nothing}
${besideUrl ? nothing : fetchTable(host.fetches, true)}</section>`;
}

function nextUrls(host: HostReport): Html {
  return html`<details><summary>Next to be fetched</summary><ol class="plain">${host.nextUrls.map(
    (next) => html`<li>${askAbout(next.url)} <span class="small">${instant(next.nextFetchAt)}</span></li>`,
  )}</ol></details>`;
}

/** Said where the list is not merely cut. */
function notKept({ visits, fetches }: UrlReport): Html {
  const words = fetches.length < visitsListed ? earlierVisitsWords(visits, fetches.length) : "";
  return words === "" ? nothing : html`<p class="small">${words}.</p>`;
}

function fetchTable(fetches: readonly FetchLine[], withUrl: boolean): Html {
  if (fetches.length === 0) return nothing;
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Fetched</th>${withUrl ? html`<th scope="col">URL</th>` : nothing}<th scope="col">By</th><th scope="col">Outcome</th><th scope="col">Content</th><th scope="col" class="number">Time</th><th scope="col" class="number">Page</th><th scope="col" class="number">Shipped</th></tr></thead>
<tbody>${fetches.map(
    (line) =>
      html`<tr><td>${instant(line.fetchedAt)}</td>${withUrl ? html`<td class="break">${line.url === "" ? "–" : askAbout(line.url)}</td>` : nothing}<td>${crawlerLink(line.crawler)}</td><td>${line.outcome} ${line.status} ${line.blame ? html`<span class="small">blame: ${line.blame}</span>` : nothing}</td><td>${contentWords(line)}</td><td class="number">${msText(line.totalMs)}</td><td class="number">${bytesText(line.bodyBytes)}</td><td class="number">${bytesText(line.shippedBytes)}</td></tr>`,
  )}</tbody></table></div>`;
}

export function waitingSection(waiting: WaitingReport): Html {
  return html`<section><h2>Waiting in this subnet</h2><p>${howMany(waiting.hosts, "host")}${waiting.more ? " or more" : ""} with something to fetch, not in progress:</p>
<ul class="plain">${waiting.next.map((next) => html`<li>${askAbout(next.host)} <span class="small">${howMany(next.urls, "URL")}, due ${instant(next.dueAt)}</span></li>`)}</ul></section>`;
}

export function historySection(history: readonly DelegationChange[]): Html {
  return html`<section><h2>Delegation history</h2><div class="scroll"><table>
<thead><tr><th scope="col">When</th><th scope="col">From</th><th scope="col">To</th><th scope="col">Why</th></tr></thead>
<tbody>${history.map(
    (change) =>
      html`<tr><td>${instant(change.changedAt)}</td><td>${change.from === null ? "–" : crawlerLink(change.from)}</td><td>${change.to === null ? "nobody" : crawlerLink(change.to)}</td><td>${change.reason || changeCauseWords[change.cause]}</td></tr>`,
  )}</tbody></table></div></section>`;
}

export function organisationSection(organisation: OrganisationReport): Html {
  return html`<section><h2>Subnets that it holds</h2>
<p class="small">${organisation.handle ?? organisation.holderKey}${organisation.registry ? ` · ${registryName(organisation.registry)}` : ""}</p>
${organisation.list.subnets.length > 0 ? subnetList(organisation.list) : html`<div class="empty"><p>The registry in force lists no subnet of this organisation.</p></div>`}</section>`;
}

export function subnetList(list: SubnetList): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Subnet</th><th scope="col">Name</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th></tr></thead>
<tbody>${list.subnets.map(subnetRow)}</tbody></table></div>${list.more ? html`<p class="small">There are more; these are the first ${list.subnets.length}.</p>` : nothing}`;
}

function subnetRow(line: SubnetLine): Html {
  const crawler =
    line.crawler === null
      ? html`<span class="small">nobody</span>`
      : html`${crawlerLink(line.crawler)}${line.inherited ? html` <span class="small">inherited</span>` : nothing}`;
  return html`<tr><th scope="row">${askAbout(line.range)}</th><td class="wide">${line.name || "–"} ${country(line.country)}</td><td>${crawler}</td><td class="number">${line.crawler === null ? "–" : rttText(line.rttMs)}</td></tr>`;
}

export function crawlerSection(crawler: CrawlerReport): Html {
  return html`<section><h2>${crawlerLink(crawler.name)} ${stateBadge(crawler.state)}</h2>${crawlerFacts(crawler, askAbout)}</section>`;
}

/** `ask`: how an address is shown, for whoever may ask about it and for others. */
export function crawlerFacts(crawler: CrawlerReport, ask: (address: string) => Html): Html {
  return html`<dl class="facts">
${fact("Place", html`${crawler.place ?? "not stated"} ${country(crawler.country)}`)}
${crawler.address ? fact("Address", ask(crawler.address)) : nothing}
${crawler.lastSeenAt ? fact("Last seen", instant(crawler.lastSeenAt)) : fact("Last seen", "never")}
${crawler.connectedAt && crawler.state !== "offline" ? fact("Connected", instant(crawler.connectedAt)) : nothing}
${crawler.state === "offline" && crawler.offlineReason ? fact("Offline because", crawler.offlineReason) : nothing}
${crawler.holdingBack.length > 0 ? fact("Idle because", crawler.holdingBack.join("; ")) : nothing}
${fact("May fetch", `${howMany(crawler.pagesPerDay, "page")} per day, ${howMany(crawler.concurrentHosts, "host")} at once`)}
${fact("Probes by", crawler.probeMethods.join(", ") || "nothing stated")}
${crawler.speaksIpv6 === null ? nothing : fact("IPv6", crawler.speaksIpv6 ? "spoken" : "not spoken: hosts with IPv6 addresses alone go to others")}
${crawler.softwareVersion ? fact("Version", crawler.softwareVersion) : nothing}
${crawler.revoked ? fact("Key", "revoked") : nothing}
</dl>`;
}

// The parts of a leaf that is split below its registered range, as a table.

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

function registryName(registry: string): string {
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
      : html`<span class="small">${subnet.unary ? "one address: its parent counts" : "not assigned directly"}</span>`
  }</p>`;
}
