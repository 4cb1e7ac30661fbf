/** /who: who crawls something, and why or why not. */

import { z } from "zod";
import { changeCauseWords, delegationCauseWords, roundCauseWords } from "#core/explanation";
import { bytesText, earlierVisitsWords, howMany, msText, rttText } from "#core/format";
import type { NameResolver } from "#core/name-resolver";
import { gateName } from "#protocol/bot-gate";
import { perHourWords, rateLimitWords } from "#protocol/result";
import {
  actions,
  column,
  empty,
  facts,
  list,
  note,
  picture,
  plain,
  present,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Column, type Document, type Fact, type Node, operationsOf } from "../../ask/operation.ts";
import { plainText, shellWord } from "../../ask/words.ts";
import { countWords } from "../../crawl/batch/stated-uses.ts";
import type { CrawlScope } from "../../crawl/frontier/frontier.ts";
import {
  type FetchLine,
  type HostReport,
  type PageReport,
  type UrlReport,
  visitsListed,
  type WaitingReport,
} from "../../crawl/frontier/frontier-reports-api.ts";
import type { FrontierOrder } from "../../crawl/frontier/order/strategies.ts";
import { statedSection } from "../../crawl/results/stated-uses-ask.ts";
import { fetchAgain, handIn } from "../../crawl/submissions/submissions-ask.ts";
import { roundPicture } from "../../place/delegation/round-picture-page.ts";
import type { FinerReport, ProbeRound, RoundProbe } from "../../place/delegation/rounds-api.ts";
import type { OrganisationReport, SubnetLine, SubnetList } from "../../place/subnets/subnets-api.ts";
import { answer as answered } from "../../web/api-operation.ts";
import { shareBar, small } from "../../web/components.ts";
import {
  askAbout,
  country,
  countText,
  crawlerLink,
  instant,
  sentence,
  stateBadge,
} from "../../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../../web/html.ts";
import { answerWho, maxQuestionLength } from "./answer.ts";
import { connectionText, robotsWords, worthWords } from "./explain-host.ts";
import {
  changeWords,
  contentWords,
  foundWords,
  hostTurnWords,
  nextFetchWords,
  placeWords,
  validatorWords,
} from "./explanation.ts";
import type { WhoReads } from "./reads.ts";
import { registryName, subnetTree } from "./subnet-tree-ask.ts";
import { type CrawlerReport, type OrderReport, type RollUp, type WhoAnswer, whoAnswer } from "./who-api.ts";
import {
  ageingWords,
  crawlWords,
  partOfCrawling,
  publishedWords,
  takenForText,
  verdictOf,
  whence,
} from "./words.ts";

export interface WhoPorts {
  readonly reads: WhoReads;
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  readonly order?: FrontierOrder;
  /** The coordinator's domain sets. If absent, every host is its own. */
  readonly domainSets?: readonly string[];
}

const { get } = operationsOf<WhoPorts>();

const who = get({
  ...{ path: "/api/who", needs: "read" },
  navigation: { group: "Crawl", order: 20, entry: "Look up" },
  alsoFound: "url host address organisation",
  summary: "Who crawls this, and why (not)?",
  input: z.object({
    q: z
      .string("ask with ?q=, for example /api/who?q=www.example.org")
      .min(1)
      .max(maxQuestionLength, `longer than ${maxQuestionLength} characters`)
      .meta({
        description: `URL, host, IP address, range (CIDR, or first - last), organisation (handle or name), crawler, or
country (DE, country:DE). At most ${maxQuestionLength} characters.`,
        example: "1.2.9.5",
      }),
  }),
  output: whoAnswer,
  faults: { 400: "Ask with ?q=" },
  answers: {
    404: answered(whoAnswer, "No match; `nearMatches` may hold similar names"),
  },
  command: [
    {
      ...{ name: "who", takes: "q...", says: "who crawls this, and why (not)?" },
      help: `

Examples:
  nearcrawl who https://www.example.org/
  nearcrawl who 198.51.100.0/24
  nearcrawl who Example Networks
  nearcrawl who country:DE

A country, an organisation or a range is answered with its subnets in use.
The same as a page: /who?q=…`,
    },
    {
      ...{
        name: "rir lookup",
        takes: "q",
        says: "the chain of ranges that hold an address or a range",
        part: "chain",
      },
      help: "\n\nWho crawls it, and why: nearcrawl who.\n\nExample:\n  nearcrawl rir lookup 193.0.6.139",
    },
  ],
  start: () => ({ title: "Who crawls it", hasOwnHeading: true, nodes: [picture(whoStart())] }),
  run: async ({ input: { q }, ports, now }): Promise<WhoAnswer> => await answerWho(q, ports, now),
  status: ({ found }) => (found ? 200 : 404),
  view: whoDocument,
});

export const whoOperations = { who };

/** The empty look-up page. */
const whoStart = () => html`<h1>Who crawls this site or network?</h1>${whoForm("")}
<p>Every URL belongs to a registered subnet, and the nearest crawler crawls each subnet. Ask about:</p>
<ul class="kinds">
<li><strong>a URL or a host</strong>: its subnet, its crawler, and its fetches</li>
<li><strong>an address or a range</strong>: the subnets that hold it, and their crawlers</li>
<li><strong>an organisation</strong>, by name or registry handle, or <strong>a country</strong> by its code: subnets in use, and their crawlers</li>
<li><strong>a crawler</strong>: the subnets assigned to it</li>
</ul>`;

const whoForm = (question: string) =>
  html`<form class="ask" action="/who" method="get" role="search"><label class="hidden"
for="q">URL, host, address, range, organisation, country or crawler</label><div class="field"><input id="q" name="q" type="search" maxlength="2048"
value="${question}" placeholder="URL, host, IP, range, organisation, country or crawler" autocomplete="off"
spellcheck="false"><button>Look up</button></div></form>`;

function whoDocument(answer: WhoAnswer): Document {
  const { url, host, round, chain, parts, crawler, inside, waiting, history, found, takenFor } = answer;
  return {
    ...{ title: verdictOf(answer), hasOwnHeading: true },
    nodes: present([
      picture(html`<h1 class="hidden">Who crawls ${takenFor.value}</h1>${whoForm(answer.question)}`),
      ...verdict(answer),
      !found && nearMatches(answer),
      round && roundSection(round, answer),
      chain.length > 0 &&
        section("Network hierarchy", [subnetTree(answer), published(answer)], { id: "chain" }),
      parts.length > 0 && partsSection(parts),
      crawler &&
        section(html`${crawlerLink(crawler.name)} ${stateBadge(crawler.state)}`, [
          crawlerFacts(crawler, askAbout),
        ]),
      url && urlSection(url, answer.order),
      url && statedSection(url.stated),
      actions(url ? fetchAgain(url.url) : takenFor.type === "url" && handIn(takenFor.value)),
      host && hostSection(host, answer.at, url !== null),
      answer.rollUp && isShown(answer) && rollUpSection(answer, answer.rollUp),
      answer.organisation && organisationSection(answer.organisation),
      inside &&
        inside.subnets.length > 0 &&
        section(crawler ? "Its subnets, latest first" : "Registered subnets inside", subnetList(inside)),
      waiting && waiting.hosts > 0 && waitingSection(waiting),
      history.length > 0 && section("Delegation history", [historyTable(history)]),
      found && nearMatches(answer),
      picture(html`<p class="small share"><a href="${pathWith("/who", { q: answer.question })}">Link to this answer</a>,
as of ${instant(answer.at)}. For a terminal:
<code>nearcrawl who ${shellWord(answer.question)}</code></p>`),
    ]),
  };
}

/** An empty range is left out, because it has been reported as such already. */
const isShown = ({ takenFor, rollUp, found }: WhoAnswer) =>
  found && (takenFor.type !== "range" || (rollUp?.subnets ?? 0) > 0);

/** The verdict, how it was decided, and what blocks the next fetch. */
function verdict(answer: WhoAnswer): Node[] {
  const { effective, standing } = answer;
  const ageing = ageingWords(answer);
  const decided = effective === null ? [] : decidedBy(effective);
  const kind = effective ? "verdict" : "verdict verdict-none";
  const page = html`<section class="${kind}"><p class="asked">${takenForText(answer)}</p>
<p class="answer">${effective ? html`<strong>${crawlerLink(effective.crawler.name)}</strong> ${crawlWords(answer)}` : verdictOf(answer)}</p>
${decided.length > 0 && html`<dl class="facts">${decided.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`}${
  ageing !== null && html`<p class="small">${sentence(ageing)}</p>`
}
${addresses(answer)}</section>`;
  const lines = () => [
    ...[`${verdictOf(answer)}  (${takenForText(answer)})`, plainText(addresses(answer))],
    ...decided.map(([name, value]) => `${name.padEnd(11)}${plainText(value)}`),
    ageing ?? "",
  ];
  const text = () =>
    lines()
      .filter((line) => line !== "")
      .join("\n");
  const nodes = [picture(page, text)];
  return standing.length === 0 ? nodes : [...nodes, standingList(standing)];
}

/** Blocking and other remarks. */
export function standingList(
  standing: readonly { readonly stops: boolean; readonly code: string; readonly words: string }[],
): Node {
  const kindOf = ({ stops, code }: (typeof standing)[number]) =>
    stops && !partOfCrawling.has(code) ? "stops" : code === "ready" ? "ready" : "notes";
  const blocks = html`<span class="hidden">Blocked by: </span>`;
  const items = standing.map((line) => {
    const kind = kindOf(line);
    return html`<li class="${kind}">${kind === "stops" && blocks}${sentence(line.words)}</li>`;
  });
  const said = standing.map((line) => `${kindOf(line) === "stops" ? "✗" : "·"} ${plainText(line.words)}`);
  return picture(html`<ul class="standing">${items}</ul>`, said.join("\n"));
}

function decidedBy(effective: NonNullable<WhoAnswer["effective"]>): (readonly [string, Html])[] {
  const { runnerUp, runnerUpRttMs, measured, rttMs, since, cause, crawler } = effective;
  return [
    ["RTT", html`${rttText(rttMs)}${!measured && html` ${small("decided without an answer")}`}`],
    ...(runnerUp
      ? [["Runner-up", html`${crawlerLink(runnerUp.name)} ${small(rttText(runnerUpRttMs))}`] as const]
      : []),
    ["Since", instant(since)],
    ["Because", html`${delegationCauseWords[cause]} ${small(whence(effective))}`],
    ["Crawler", stateBadge(crawler.state)],
  ];
}

const mostAddresses = 8;

function addresses({ addresses: all, addressesFrom }: WhoAnswer): Html {
  if (addressesFrom === null || addressesFrom === "question") return nothing;
  const from = addressesFrom === "dns" ? html` ${small("(looked up in DNS just now)")}` : nothing;
  const listed = all.slice(0, mostAddresses).map((one, at) => html`${at > 0 ? ", " : ""}${askAbout(one)}`);
  return html`<p class="addresses">at ${listed}${from}</p>`;
}

function nearMatches({ nearMatches: all, found, takenFor, question }: WhoAnswer): Node | null {
  if (all.length > 0)
    return section(found ? "Similar names" : "Did you mean", [
      list(
        all.map(
          ({ name, handle, type }) =>
            html`<a href="${pathWith("/who", { q: handle ?? name })}">${name}</a> ${small(handle ?? type)}`,
        ),
        "near",
      ),
    ]);
  if (found || takenFor.type !== "unknown" || question === "") return null;
  return empty(
    "No organisation, crawler or host has a name like this.",
    html`Registry handles look like <code>ORG-EX1-RIPE</code>;
hosts and addresses are looked up even when nobody has crawled them.`,
  );
}

function roundSection(round: ProbeRound, { effective }: WhoAnswer): Node {
  const { roundId, policy, decidedAt, cause, targetUrl, targetAddress } = round;
  const decided = effective?.roundId === roundId;
  return section(decided ? "Deciding probe round" : "The latest probe round", [
    plain(sentence(round.reasonWords)),
    round.probes.length > 0 && picture(roundPicture(round), probeTable(round)),
    note(html`Round ${roundId}, policy ${policy}, ${instant(decidedAt)}, run because ${roundCauseWords[cause]}. Target: <span
class="mono">${targetUrl}</span> at ${askAbout(targetAddress)}.`),
  ]);
}

const probeTable = ({ probes }: ProbeRound) =>
  table<RoundProbe>({
    ...{ label: "Probes", rows: probes, empty: ["No probe.", ""] },
    columns: [
      column("ordinal", "#", ({ ordinal }) => ordinal, { kind: "number" }),
      column("crawler", "Crawler", ({ crawler }) => crawler.name),
      column("method", "Method", ({ method }) => method),
      column("rtt_ms", "RTT", ({ rttMs }) => rttMs, { unit: "ms" }),
      column("outcome", "Outcome", ({ outcome, detail }) => `${outcome} ${detail}`.trim()),
    ],
  });

function published({ published: all }: WhoAnswer): Node | null {
  if (all.length === 0) return null;
  const lines = all.map((one) => html`<li class="break">${publishedWords(one)}</li>`);
  const text = all.map((one) => `Published: ${publishedWords(one)}`).join("\n");
  return picture(html`<p class="small">Published:</p><ul class="plain small">${lines}</ul>`, text);
}

function urlSection(url: UrlReport, order: OrderReport | null): Node {
  const { page, lastStatus, lastOutcome, fetches, visits } = url;
  const href = safeHref(url.url);
  const [changes, validators] = [changeWords(url), validatorWords(url)];
  const status = lastStatus === null ? "" : ` (${lastStatus})`;
  const pageWords = page && `${howMany(page.words, "word")}${page.language ? `, ${page.language}` : ""}`;
  const notKept = fetches.length < visitsListed ? earlierVisitsWords(visits, fetches.length) : "";
  return section("This URL", [
    picture(
      html`<p class="mono break">${href ? html`<a href="${href}" rel="noreferrer nofollow">${url.url}</a>` : url.url}</p>`,
    ),
    facts(
      ["State", url.state],
      ["Last outcome", lastOutcome === null ? "never fetched" : `${lastOutcome}${status}`],
      ["Next fetch", nextFetchWords(url)],
      order && ["Its turn", html`${placeWords(order)} ${small(`order ${order.strategy}: ${order.words}`)}`],
      order && ["Priority", order.reason],
      order && ["Its host's turn", hostTurnWords(order)],
      ["Visits", countText(visits)],
      ["Links to it", countText(url.backLinks)],
      ["Depth", url.depth],
      ["Found", html`${foundWords(url)} ${small(instant(url.discoveredAt))}`],
      changes !== "" && ["Changes", changes],
      validators !== "" && ["Validators", html`<span class="break">${validators}</span>`],
      ["Key", html`<span class="mono break">${url.id.hostHash} / ${url.id.urlHash}</span>`],
      url.worth && ["Counts as", worthWords[url.worth]],
      page && ["Page", html`${page.title || "(no title)"} ${small(pageWords)}`],
      ...(page ? pageFacts(page) : []),
    ),
    fetches.length > 0 && fetchTable(fetches, false),
    notKept !== "" && plain(small(`${notKept}.`)),
  ]);
}

function pageFacts(page: PageReport): Fact[] {
  const { structured, declaredLanguage, detectedLanguage, publishedAt, modifiedAt, duplicateOf } = page;
  const detected = detectedLanguage ? `; the text looks like ${detectedLanguage}` : "";
  return [
    publishedAt !== null && ["Published", instant(publishedAt)],
    modifiedAt !== null && ["Changed", instant(modifiedAt)],
    declaredLanguage !== null && ["Language", html`${declaredLanguage} ${small(`stated${detected}`)}`],
    structured && ["Describes", html`${structured.name} ${small(structured.type)}`],
    duplicateOf !== null && ["Nearly the same as", askAbout(duplicateOf)],
  ];
}

const due = (at: string, now: string) => html`${at <= now ? "due since" : "not before"} ${instant(at)}`;

function hostSection(host: HostReport, at: string, besideUrl: boolean): Node {
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
  const caps = html`<a class="small" href="/fleet/site-caps">caps</a>`;
  const price = payment?.price == null ? "no price named" : `price ${payment.price}`;
  const ofPages = `${stated.more ? "of the first" : "of"} ${howMany(stated.pages, "page")} in the index`;
  const next = host.nextUrls.map((one) => html`${askAbout(one.url)} ${small(instant(one.nextFetchAt))}`);
  return section(besideUrl ? "Its host" : "This host", [
    facts(
      ["Host", html`${askAbout(host.host)} ${site}`],
      ["Address", host.state],
      ["URLs", html`${countText(host.urlCount)} ${small(states.join(", "))}`],
      ["Budget", html`${howMany(budget.earnedUrls, "URL")} earned ${small(earned.join(", "))}`],
      robots && ["robots.txt", html`${robotsWords[robots.state]} ${small(instant(robots.at))}`],
      pace !== null && pace.crawlDelayMs > 0 && ["Crawl-delay", `${pace.crawlDelayMs / 1000} s`],
      host.capDelayMs !== null && ["Cap", html`one request every ${host.capDelayMs / 1000} s ${caps}`],
      tolerated != null && [
        "Tolerates",
        html`${perHourWords(tolerated.perHour)} ${small(html`${rateLimitWords(tolerated)}${refusedAt}`)}`,
      ],
      host.connection && ["Connection", connectionText(host.connection)],
      stated.counts.length > 0 && ["States", html`${countWords(stated.counts)} ${small(ofPages)}`],
      payment && ["Asks to be paid", html`${howMany(payment.inARow, "answer")} 402 in a row ${small(price)}`],
      botGate && [
        "Bot gate",
        html`${gateName(botGate.provider)} ${small(html`since ${instant(botGate.since)}, ${howMany(botGate.tries, "try", "tries")}`)}`,
      ],
      host.dueAt !== null && ["Next fetch", due(host.dueAt, at)],
      lease && [
        "In progress at",
        html`${crawlerLink(lease.crawler)} ${small(html`until ${instant(lease.expiresAt)}`)}`,
      ],
    ),
    next.length > 0 &&
      picture(
        html`<details><summary>Next to be fetched</summary><ol class="plain">${next.map((one) => html`<li>${one}</li>`)}</ol></details>`,
        list(next.map((one) => html`next: ${one}`)),
      ),
    !besideUrl && host.fetches.length > 0 && fetchTable(host.fetches, true),
  ]);
}

function fetchTable(fetches: readonly FetchLine[], withUrl: boolean): Node {
  const columns: Column<FetchLine>[] = [
    column("fetched_at", "Fetched", ({ fetchedAt }) => instant(fetchedAt)),
    column("crawler", "By", ({ crawler }) => crawlerLink(crawler)),
    column(
      "outcome",
      "Outcome",
      ({ outcome, status, blame }) => html`${outcome} ${status} ${blame && small(`blame: ${blame}`)}`,
    ),
    column("content", "Content", contentWords),
    column("total_ms", "Time", ({ totalMs }) => totalMs, { unit: "ms" }),
    column("body_bytes", "Page", ({ bodyBytes }) => bodyBytes, { unit: "bytes" }),
    column("shipped_bytes", "Shipped", ({ shippedBytes }) => shippedBytes, { unit: "bytes" }),
  ];
  const url = column<FetchLine>("url", "URL", (line) => line.url && askAbout(line.url), { kind: "break" });
  return table({
    ...{ label: "Fetches", rows: fetches, empty: ["Never fetched.", ""] },
    columns: withUrl ? columns.toSpliced(1, 0, url) : columns,
  });
}

function waitingSection(waiting: WaitingReport): Node {
  const hosts = `${howMany(waiting.hosts, "host")}${waiting.more ? " or more" : ""}`;
  return section("Waiting in this subnet", [
    plain(`${hosts} with something to fetch, not in progress:`),
    list(
      waiting.next.map(
        ({ host, urls, dueAt }) =>
          html`${askAbout(host)} ${small(html`${howMany(urls, "URL")}, due ${instant(dueAt)}`)}`,
      ),
    ),
  ]);
}

const historyTable = (changes: WhoAnswer["history"]) =>
  table<WhoAnswer["history"][number]>({
    ...{ label: "Delegation history", rows: changes, empty: ["It never changed.", ""] },
    columns: [
      column("changed_at", "When", ({ changedAt }) => instant(changedAt)),
      column("from", "From", ({ from }) => from && crawlerLink(from)),
      column("to", "To", ({ to }) => (to === null ? "nobody" : crawlerLink(to))),
      column("why", "Why", ({ reason, cause }) => reason || changeCauseWords[cause]),
    ],
  });

function organisationSection({ handle, holderKey, registry, list: held }: OrganisationReport): Node {
  return section("Subnets that it holds", [
    plain(small(html`${handle ?? holderKey}${registry && ` · ${registryName(registry)}`}`)),
    ...(held.subnets.length > 0
      ? subnetList(held)
      : [empty("The registry in force lists no subnet of this organisation.")]),
  ]);
}

export function subnetList({ subnets, more }: SubnetList): Node[] {
  const shown = table<SubnetLine>({
    ...{ label: "Subnets", rows: subnets, empty: ["None.", ""] },
    columns: [
      column("range", "Subnet", ({ range }) => askAbout(range)),
      column("name", "Name", ({ name, country: of }) => html`${name || "–"} ${country(of)}`, {
        kind: "wide",
      }),
      column("crawler", "Crawler", ({ crawler, inherited }) =>
        crawler === null
          ? small("nobody")
          : html`${crawlerLink(crawler)}${inherited && html` ${small("inherited")}`}`,
      ),
      column("rtt_ms", "RTT", ({ crawler, rttMs }) => (crawler === null ? null : rttText(rttMs)), {
        ...{ kind: "number", value: ({ rttMs }) => rttMs },
      }),
    ],
  });
  return more ? [shown, plain(small(`There are more; these are the first ${subnets.length}.`))] : [shown];
}

/** `ask` links addresses if the viewer may look them up. */
export function crawlerFacts(crawler: CrawlerReport, ask: (address: string) => Html): Node {
  const { lastSeenAt, connectedAt, offlineReason, state, speaksIpv6, holdingBack } = crawler;
  const ipv6 = speaksIpv6 ? "spoken" : "not spoken: hosts with IPv6 addresses alone go to others";
  const may = `${howMany(crawler.pagesPerDay, "page")} per day, ${howMany(crawler.concurrentHosts, "host")} at once`;
  return facts(
    ["Place", html`${crawler.place ?? "not stated"} ${country(crawler.country)}`],
    crawler.address !== null && ["Address", ask(crawler.address)],
    ["Last seen", lastSeenAt ? instant(lastSeenAt) : "never"],
    connectedAt !== null && state !== "offline" && ["Connected", instant(connectedAt)],
    state === "offline" && offlineReason !== null && ["Offline because", offlineReason],
    holdingBack.length > 0 && ["Idle because", holdingBack.join("; ")],
    ["May fetch", may],
    ["Probes by", crawler.probeMethods.join(", ") || "nothing stated"],
    speaksIpv6 !== null && ["IPv6", ipv6],
    crawler.softwareVersion !== null && ["Version", crawler.softwareVersion],
    crawler.revoked && ["Key", "revoked"],
  );
}

/** The parts of a split leaf. */
const partsSection = (parts: readonly FinerReport[]) =>
  section("Split below its registered range", [
    table<FinerReport>({
      ...{ label: "Parts", rows: parts, empty: ["None.", ""] },
      columns: [
        column("range", "Addresses", ({ range }) => askAbout(range ?? "")),
        column("crawler", "Crawler", ({ crawler }) => crawlerLink(crawler.name)),
        column("rtt_ms", "RTT", ({ rttMs }) => rttText(rttMs), {
          kind: "number",
          value: ({ rttMs }) => rttMs,
        }),
        column("subnet_rtt_ms", "From the subnet's crawler", ({ subnetRttMs }) => rttText(subnetRttMs), {
          ...{ kind: "number", value: ({ subnetRttMs }) => subnetRttMs },
        }),
        column("found_at", "Found", ({ foundAt }) => instant(foundAt)),
      ],
    }),
  ]);

function rollUpSection(answer: WhoAnswer, rollUp: RollUp): Node {
  const { rtt, subnets, registered, hosts, pages, bytes, dueHosts } = rollUp;
  const registeredWords = registered === null ? "" : `${countText(registered)} registered. `;
  const measured = howMany(rtt.pages, "page");
  const rttWords =
    rtt.medianMs === null
      ? `${measured} in measured subnets`
      : `median ${msText(rtt.medianMs)}, weighted by ${measured}`;
  const sites = sitesQuery(answer);
  const link =
    sites &&
    html`<a href="${pathWith("/sites", sites)}">The ${howMany(hosts, "host").replace(/^1 /, "")} in the list of sites</a>`;
  return section("In its space", [
    ...(subnets === 0
      ? [
          empty(
            "No subnet in use.",
            html`${registeredWords}No host is known here: <a href="/submit">submit a URL</a> in this space, and its subnet gets a crawler.`,
          ),
        ]
      : [
          tiles([
            ["Subnets in use", countText(subnets), registeredWords],
            ["Pages", countText(pages), `${bytesText(bytes)} fetched`],
            ["Hosts", countText(hosts), `${countText(dueHosts)} due`],
            ["Mean RTT", rtt.meanMs === null ? "under 30 pages" : msText(rtt.meanMs), rttWords],
          ]),
          crawlersInSpace(rollUp),
        ]),
    link !== null && hosts > 0 && picture(html`<p class="after-table">${link}</p>`),
  ]);
}

interface SpaceLine {
  readonly name: Html;
  readonly subnets: number;
  readonly pages: number | null;
}

function crawlersInSpace({ byCrawler, others, unassigned }: RollUp): Node {
  const most = Math.max(1, unassigned, ...byCrawler.map(({ subnets }) => subnets));
  const rows: SpaceLine[] = [
    ...byCrawler.map((one) => ({ ...one, name: crawlerLink(one.crawler) })),
    ...(others === null ? [] : [{ ...others, name: html`${howMany(others.crawlers, "other crawler")}` }]),
    ...(unassigned === 0 ? [] : [{ name: small("not assigned directly"), subnets: unassigned, pages: null }]),
  ];
  return table<SpaceLine>({
    ...{ label: "Crawlers in this space", rows, empty: ["Nobody crawls here.", ""] },
    columns: [
      column("crawler", "Crawler", ({ name }) => name, { kind: "break" }),
      column("", "(Share)", ({ subnets }) => shareBar(Math.max(0.01, subnets / most)), {
        ...{ kind: "bar-column", isPicture: true },
      }),
      column("subnets", "Subnets", ({ subnets }) => subnets, { unit: "count" }),
      column("pages", "Pages", ({ pages }) => pages, { unit: "count" }),
    ],
  });
}

/** Returns the query for the same hosts in the list of sites, or null. */
function sitesQuery({ takenFor, organisation }: WhoAnswer): Record<string, string> | null {
  if (takenFor.type === "country") return { country: takenFor.value };
  return organisation ? { organisation: organisation.handle ?? organisation.name } : null;
}
