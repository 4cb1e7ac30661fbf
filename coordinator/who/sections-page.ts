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
import { fact, small, tableOf } from "../web/components.ts";
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
  const { page } = url;
  const href = safeHref(url.url);
  const [changes, validators] = [changeWords(url), validatorWords(url)];
  const status = url.lastStatus === null ? "" : ` (${url.lastStatus})`;
  const pageWords = page && `${howMany(page.words, "word")}${page.language ? `, ${page.language}` : ""}`;
  return html`<section><h2>This URL</h2>
<p class="mono break">${href ? html`<a href="${href}" rel="noreferrer nofollow">${url.url}</a>` : url.url}</p>
<dl class="facts">
${fact("State", url.state)}
${fact("Last outcome", url.lastOutcome === null ? "never fetched" : `${url.lastOutcome}${status}`)}
${fact("Next fetch", nextFetchWords(url))}
${order && fact("Its turn", html`${placeWords(order)} ${small(`order ${order.strategy}: ${order.words}`)}`)}
${order && fact("Priority", order.reason)}
${order && fact("Its host's turn", hostTurnWords(order))}
${fact("Visits", countText(url.visits))}
${fact("Links to it", countText(url.backLinks))}
${fact("Depth", url.depth)}
${fact("Found", html`${foundWords(url)} ${small(instant(url.discoveredAt))}`)}
${changes !== "" && fact("Changes", changes)}
${validators !== "" && fact("Validators", html`<span class="break">${validators}</span>`)}
${fact("Key", html`<span class="mono break">${url.id.hostHash} / ${url.id.urlHash}</span>`)}
${url.worth && fact("Counts as", worthWords[url.worth])}
${page && fact("Page", html`${page.title || "(no title)"} ${small(pageWords)}`)}
${page && pageFacts(page)}
</dl>
${fetchTable(url.fetches, false)}${notKept(url)}</section>${statedSection(url.stated)}`;
}

function pageFacts(page: PageReport): Html {
  const { structured, declaredLanguage, detectedLanguage } = page;
  const detected = detectedLanguage ? `; the text looks like ${detectedLanguage}` : "";
  return html`${page.publishedAt && fact("Published", instant(page.publishedAt))}
${page.modifiedAt && fact("Changed", instant(page.modifiedAt))}
${declaredLanguage && fact("Language", html`${declaredLanguage} ${small(`stated${detected}`)}`)}
${structured && fact("Describes", html`${structured.name} ${small(structured.type)}`)}
${page.duplicateOf && fact("Nearly the same as", askAbout(page.duplicateOf))}`;
}

function due(instantDue: string, at: string): Html {
  return instantDue <= at ? html`due since ${instant(instantDue)}` : html`not before ${instant(instantDue)}`;
}

export function hostSection(host: HostReport, at: string, besideUrl: boolean): Html {
  const states = Object.entries(host.urlStates).map(([state, urls]) => `${countText(urls)} ${state}`);
  const { budget, robots, pace, stated, payment, botGate, lease } = host;
  const earned = [
    howMany(budget.pages.good, "good page"),
    budget.heldUrls > 0 && `${countText(budget.heldUrls)} held back`,
    budget.leftOutUrls > 0 && `URLs skipped ${countText(budget.leftOutUrls)} times`,
  ].filter(Boolean);
  const tolerated = pace?.tolerated;
  const refusedAt = tolerated?.refusedAt && html`, ${instant(tolerated.refusedAt)}`;
  const site = html`<a class="small" href="/sites/${encodeURIComponent(host.host)}">its pages, changes and speed</a>`;
  return html`<section><h2>${besideUrl ? "Its host" : "This host"}</h2>
<dl class="facts">
${fact("Host", html`${askAbout(host.host)} ${site}`)}
${fact("Address", host.state)}
${fact("URLs", html`${countText(host.urlCount)} ${small(states.join(", "))}`)}
${fact("Budget", html`${howMany(budget.earnedUrls, "URL")} earned ${small(earned.join(", "))}`)}
${robots && fact("robots.txt", html`${robotsWords[robots.state]} ${small(instant(robots.at))}`)}
${pace !== null && pace.crawlDelayMs > 0 && fact("Crawl-delay", `${pace.crawlDelayMs / 1000} s`)}
${
  host.capDelayMs !== null &&
  fact(
    "Cap",
    html`one request every ${host.capDelayMs / 1000} s <a class="small" href="/fleet/site-caps">caps</a>`,
  )
}
${tolerated && fact("Tolerates", html`${perHourWords(tolerated.perHour)} ${small(html`${rateLimitWords(tolerated)}${refusedAt}`)}`)}
${host.connection && fact("Connection", connectionText(host.connection))}
${
  stated.counts.length > 0 &&
  fact(
    "States",
    html`${countWords(stated.counts)} ${small(`${stated.more ? "of the first" : "of"} ${howMany(stated.pages, "page")} in the index`)}`,
  )
}
${
  payment &&
  fact(
    "Asks to be paid",
    html`${howMany(payment.inARow, "answer")} 402 in a row ${small(payment.price === null ? "no price named" : `price ${payment.price}`)}`,
  )
}
${
  botGate &&
  fact(
    "Bot gate",
    html`${gateName(botGate.provider)} ${small(html`since ${instant(botGate.since)}, ${howMany(botGate.tries, "try", "tries")}`)}`,
  )
}
${host.dueAt && fact("Next fetch", due(host.dueAt, at))}
${lease && fact("In progress at", html`${crawlerLink(lease.crawler)} ${small(html`until ${instant(lease.expiresAt)}`)}`)}
</dl>
${host.nextUrls.length > 0 && nextUrls(host)}
${!besideUrl && fetchTable(host.fetches, true)}</section>`;
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
  const heads = [
    "Fetched",
    withUrl && "URL .break",
    "By",
    "Outcome",
    "Content",
    "Time .number",
    "Page .number",
    "Shipped .number",
  ];
  return tableOf("Fetches", heads, fetches, (line) => [
    instant(line.fetchedAt),
    line.url === "" ? "–" : askAbout(line.url),
    crawlerLink(line.crawler),
    html`${line.outcome} ${line.status} ${line.blame && small(`blame: ${line.blame}`)}`,
    contentWords(line),
    msText(line.totalMs),
    bytesText(line.bodyBytes),
    bytesText(line.shippedBytes),
  ]);
}

export function waitingSection(waiting: WaitingReport): Html {
  const hosts = `${howMany(waiting.hosts, "host")}${waiting.more ? " or more" : ""}`;
  return html`<section><h2>Waiting in this subnet</h2><p>${hosts} with something to fetch, not in progress:</p>
<ul class="plain">${waiting.next.map(
    (next) =>
      html`<li>${askAbout(next.host)} ${small(html`${howMany(next.urls, "URL")}, due ${instant(next.dueAt)}`)}</li>`,
  )}</ul></section>`;
}

export function historySection(history: readonly DelegationChange[]): Html {
  const heads = ["When", "From", "To", "Why"];
  return html`<section><h2>Delegation history</h2>${tableOf(
    "Delegation history",
    heads,
    history,
    (change) => [
      instant(change.changedAt),
      change.from === null ? "–" : crawlerLink(change.from),
      change.to === null ? "nobody" : crawlerLink(change.to),
      change.reason || changeCauseWords[change.cause],
    ],
  )}</section>`;
}

export function organisationSection({ handle, holderKey, registry, list }: OrganisationReport): Html {
  return html`<section><h2>Subnets that it holds</h2>
<p class="small">${handle ?? holderKey}${registry && ` · ${registryName(registry)}`}</p>
${
  list.subnets.length > 0
    ? subnetList(list)
    : html`<div class="empty"><p>The registry in force lists no subnet of this organisation.</p></div>`
}</section>`;
}

export function subnetList({ subnets, more }: SubnetList): Html {
  const heads = ["Subnet", "Name .wide", "Crawler", "RTT .number"];
  return html`${tableOf(
    "Subnets",
    heads,
    subnets,
    ({ range, name, country: code, crawler, inherited, rttMs }) => [
      askAbout(range),
      html`${name || "–"} ${country(code)}`,
      crawler === null
        ? small("nobody")
        : html`${crawlerLink(crawler)}${inherited && html` ${small("inherited")}`}`,
      crawler === null ? "–" : rttText(rttMs),
    ],
  )}${more && html`<p class="small">There are more; these are the first ${subnets.length}.</p>`}`;
}

export function crawlerSection(crawler: CrawlerReport): Html {
  return html`<section><h2>${crawlerLink(crawler.name)} ${stateBadge(crawler.state)}</h2>${crawlerFacts(crawler, askAbout)}</section>`;
}

/** `ask`: how an address is shown, for whoever may ask about it and for others. */
export function crawlerFacts(crawler: CrawlerReport, ask: (address: string) => Html): Html {
  const { lastSeenAt, connectedAt, offlineReason, state, speaksIpv6 } = crawler;
  const ipv6 = speaksIpv6 ? "spoken" : "not spoken: hosts with IPv6 addresses alone go to others";
  return html`<dl class="facts">
${fact("Place", html`${crawler.place ?? "not stated"} ${country(crawler.country)}`)}
${crawler.address && fact("Address", ask(crawler.address))}
${fact("Last seen", lastSeenAt ? instant(lastSeenAt) : "never")}
${connectedAt && state !== "offline" && fact("Connected", instant(connectedAt))}
${state === "offline" && offlineReason && fact("Offline because", offlineReason)}
${crawler.holdingBack.length > 0 && fact("Idle because", crawler.holdingBack.join("; "))}
${fact("May fetch", `${howMany(crawler.pagesPerDay, "page")} per day, ${howMany(crawler.concurrentHosts, "host")} at once`)}
${fact("Probes by", crawler.probeMethods.join(", ") || "nothing stated")}
${speaksIpv6 !== null && fact("IPv6", ipv6)}
${crawler.softwareVersion && fact("Version", crawler.softwareVersion)}
${crawler.revoked && fact("Key", "revoked")}
</dl>`;
}

// The parts of a leaf that is split below its registered range, as a table.

export function partsSection(parts: readonly FinerReport[]): Html {
  const heads = ["Addresses", "Crawler", "RTT .number", "From the subnet's crawler .number", "Found"];
  return html`<section><h2>Split below its registered range</h2>${tableOf("Parts", heads, parts, (part) => [
    askAbout(part.range ?? ""),
    crawlerLink(part.crawler.name),
    rttText(part.rttMs),
    rttText(part.subnetRttMs),
    instant(part.foundAt),
  ])}</section>`;
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
  return html`<ul class="tree">${beside?.moreBefore && more("before")}${[...(beside?.before ?? [])].reverse().map(neighbour)}<li><div
class="${kind}">${node(subnet)}</div>${branch(below, answer)}</li>${(beside?.after ?? []).map(neighbour)}${
    beside?.moreAfter && more("after")
  }</ul>`;
}

/** A subnet beside the one that was asked about, in one line. */
function neighbour(line: SubnetLine): Html {
  const crawler =
    line.crawler === null
      ? small("nobody")
      : html`${crawlerLink(line.crawler)} ${small(line.inherited ? "inherited" : rttText(line.rttMs))}`;
  return html`<li class="beside"><p>${askAbout(line.range)} <span class="netname">${line.name}</span> ${country(line.country)}
<span class="arrow" aria-hidden="true">→</span> ${crawler}</p></li>`;
}

function more(side: "before" | "after"): Html {
  return html`<li class="beside"><p class="small">more ${side} ${side === "before" ? "these" : "them"}</p></li>`;
}

function node(subnet: ChainSubnet): Html {
  const { delegation, holder } = subnet;
  const link =
    holder && html`<a href="${pathWith("/who", { q: holder.handle ?? holder.name })}">${holder.name}</a> · `;
  return html`<p class="node-head">${askAbout(subnet.range)} ${subnet.name && html`<span class="netname">${subnet.name}</span>`}</p>
<p class="node-facts">${link}${country(subnet.country)} ${registryName(subnet.registry)}</p>
<p class="node-crawler">${
    delegation
      ? html`${crawlerLink(delegation.crawler.name)} ${small(rttText(delegation.rttMs))}`
      : small(subnet.unary ? "one address: its parent counts" : "not assigned directly")
  }</p>`;
}
