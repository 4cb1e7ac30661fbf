/**
 * The overview at /, which operators keep open: alerts, figures, history, queue, failures, the crawlers on a map and in a
 * table, the latest decisions. The live script replaces whole regions, so page and update share one rendering. Each figure
 * links to its details.
 */
import { z } from "zod";
import { bytesText, howMany, leastSamples, percentText, sampledShare, spanWords } from "#core/format";
import { type TimeRange, timeRange } from "#core/time-range";
import { blames } from "#protocol/result";
import {
  aside,
  column,
  empty,
  group,
  history as historyNode,
  lead,
  member,
  picture,
  present,
  region,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { nodesHtml } from "../../ask/html-rendering.ts";
import { type Document, type Node, operationsOf, type Tile } from "../../ask/operation.ts";
import { nothingDueReason } from "../../crawl/frontier/hand-out-tasks.ts";
import { accuracyEstimate } from "../../place/delegation/accuracy.ts";
import { nearlyBestMs } from "../../place/delegation/delegation.ts";
import { rangeOf, rangeParameters } from "../../web/chart-history.ts";
import { shareBar, small } from "../../web/components.ts";
import {
  ago,
  askAbout,
  country,
  countText,
  crawlerLink,
  instant,
  msOrDash,
  rateText,
  shippedShare,
  stateBadge,
} from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";
import { historyCharts, rangePicker } from "../../web/time-chart.ts";
import { type Blame, blameNames, type FleetLine } from "../fleet/fleet-api.ts";
import { fleetMap } from "../fleet/fleet-map-page.ts";
import { accuracyOperations } from "./accuracy-ask.ts";
import { type Alert, showAlerts } from "./alert-rules.ts";
import { type AlertReader, alertReader, alertSection } from "./alerts/alerts-ask.ts";
import { crawlPicture } from "./crawl-picture-page.ts";
import { type Overview, overview as overviewSchema } from "./overview-api.ts";
import type { OverviewReads } from "./overview-reads.ts";
import type { SpanFigures } from "./queue-api.ts";
import { queueOperations, queueTable } from "./queue-ask.ts";

export interface OverviewPorts {
  readonly reads: OverviewReads;
  /** Returns null in a command, which has only the database. */
  readonly live: () => LiveState | null;
  /** Whether a coordinator works on the database. If absent, this process is one. */
  readonly runs?: () => Promise<boolean>;
}

const { get } = operationsOf<OverviewPorts>();

/** The default range of the history, which is also the one that is updated live. */
export const usualRange = "1h";

export const overviewOperations = {
  overview: get({
    ...{ path: "/api/overview", page: "/", needs: "read" },
    navigation: { group: "Crawl", order: 10, entry: "Overview" },
    alsoFound: "home start",
    summary: "The state of the whole crawl",
    description: `Totals are kept for a while when the tables are large, and told from a part of those; rates are of the last
minute or two, what is under way is of this moment. The history is of the last hour where no range is named.`,
    input: z.object(rangeParameters),
    output: overviewSchema,
    faults: { 400: "It cannot be answered" },
    command: {
      ...{ name: "overview", help: "\n\nExample:\n  nearcrawl overview --range 24h --json" },
      says: "the state of the whole crawl: alerts, figures, what waits, what fails, the crawlers",
    },
    run: async ({ input, ports: { reads, live, runs }, now }) =>
      await showOverview(reads, live(), {
        ...{ range: timeRange(input, now, usualRange), now },
        runs: (await runs?.()) ?? true,
      }),
    view: (overview, { viewer }) => overviewDocument(overview, alertReader(viewer.actor)),
  }),
  ...queueOperations,
  ...accuracyOperations,
};

function overviewDocument(overview: Overview, reader: AlertReader): Document {
  const { alerts, history } = overview;
  const regions = regionsOf(overview);
  const live = (name: string) => region(name, regions[name]!);
  const charts = live("history");
  const past = html`<section class="history" id="history"><h2>History</h2>
${rangePicker("/", {}, rangeOf(history))}
${history.range === usualRange ? nodesHtml([charts]) : nodesHtml(regions.history!)}</section>`;
  return {
    // The title of a background tab shows that something needs attention.
    title: alerts.length === 0 ? "Overview" : `(${alerts.length}) Overview`,
    hasOwnHeading: true,
    nodes: [
      picture(html`<div class="title-row"><h1>Overview</h1><p class="live" id="live" hidden>live</p></div>`),
      group("first-look", [group("", [live(alertRegion(reader)), picture(lookUp)]), live("picture")]),
      live("figures"),
      picture(past, historyNode(history)),
      group("two-columns", [live("queue"), live("errors")]),
      live("map"),
      live("fleet"),
      live("recent"),
    ],
  };
}

const lookUp = html`<form class="ask" action="/who" method="get" role="search">
<label for="q">Who crawls this site or network?</label>
<div class="field"><input id="q" name="q" type="search" maxlength="2048" autocomplete="off" spellcheck="false"
placeholder="URL, host, IP, range, organisation or crawler"><button>Look up</button></div>
</form>`;

const alertRegion = (reader: AlertReader) => `alerts-${reader}`;

/** The sections by name, as live events send them, with one version of the alerts per kind of reader. */
const regionsOf = (overview: Overview): Readonly<Record<string, readonly Node[]>> => ({
  ...alertsOf(overview.alerts),
  picture: [picture(crawlPicture(overview))],
  figures: figures(overview),
  history: [picture(historyCharts(overview.history))],
  queue: [queueSection(overview)],
  errors: [errorSection(overview.lastHour, overview.lastDay)],
  map: [picture(fleetMap(overview.fleet))],
  fleet: [fleetSection(overview.fleet, overview.at)],
  recent: [recentSection(overview)],
});

const alertsOf = (alerts: readonly Alert[]): Readonly<Record<string, readonly Node[]>> =>
  Object.fromEntries(
    (["operator", "reader"] as const).map((reader) => [alertRegion(reader), [alertSection(alerts, reader)]]),
  );

const htmlOfEach = (regions: Readonly<Record<string, readonly Node[]>>) =>
  Object.fromEntries(Object.entries(regions).map(([name, nodes]) => [name, nodesHtml(nodes)]));

export const overviewRegions = (overview: Overview) => htmlOfEach(regionsOf(overview));
/** The alerts alone, for when the rest cannot be read. */
export const alertRegions = (alerts: readonly Alert[]) => htmlOfEach(alertsOf(alerts));

const tile = (name: string, figure: string | Html, href: string, more: string | Html): Tile => [
  name,
  figure,
  more,
  href,
];

function figures(overview: Overview): readonly Node[] {
  const { totals, rates, queue, lastDay } = overview;
  const about = (count: number) => `${totals.isEstimate ? "about " : ""}${countText(count)}`;
  const unresolved =
    totals.hostsUnresolved > 0 ? `, ${countText(totals.hostsUnresolved)} without an address yet` : "";
  const [probed, bytes] = [
    rateText(rates.probesPerMinute),
    bytesText(Math.round(rates.fetchedBytesPerMinute)),
  ];
  const fetched = `${bytes} per minute, ${probed} probes`;
  const waiting =
    totals.subnetsWaiting === 0
      ? "none is waiting"
      : html`<a href="/explore?state=waiting">${countText(totals.subnetsWaiting)} waiting</a> for a probe round`;
  const perRound = totals.rounds > 0 ? (totals.probes / totals.rounds).toFixed(2) : "–";
  const probes = `${countText(totals.probes)} in ${howMany(totals.rounds, "round")}, ${probed} per minute`;
  const wait = queue.p95Seconds === null ? "none is due" : `95 % under ${spanWords(queue.p95Seconds)}`;
  // If nothing was fetched in the last day, the stored pages are used.
  const sent = lastDay.fetchedBytes > 0 ? lastDay : { ...totals, fetchedBytes: totals.bodyBytes };
  const part = sent.fetchedBytes > 0 ? percentText(sent.shippedBytes / sent.fetchedBytes) : "–";
  const shipped = `${bytesText(sent.shippedBytes)} of ${bytesText(sent.fetchedBytes)} fetched`;
  const done = totals.urls - totals.urlsPending;
  const words = `${countText(done)} of ${howMany(totals.urls, "known URL")} processed`;
  return present([
    lead(leadWords(overview)),
    tiles([
      tile("Pages", about(totals.pages), "/search", `${howMany(totals.hostsResolved, "host")}${unresolved}`),
      tile("Pages per minute", rateText(rates.pagesPerMinute), "#history", fetched),
      tile("Subnets delegated", about(totals.subnetsDelegated), "/explore?state=delegated", waiting),
      tile(
        "Mean RTT",
        msOrDash(totals.meanRttMs),
        "/explore?view=list&sort=rtt",
        "from the crawler to its subnets",
      ),
      tile("Probes per round", perRound, "#recent", probes),
      tile("Bytes sent", part, "#fleet", `${shipped}${sent === lastDay ? " in 24 hours" : ""}`),
      accuracyTile(overview),
      tile(
        "Waiting hosts",
        `${queue.isEstimate ? "about " : ""}${countText(queue.hosts)}`,
        "/fleet/queue",
        wait,
      ),
    ]),
    totals.urls === 0
      ? empty(
          "The frontier is empty.",
          html`<a href="/submit">Submit URLs</a>, or run <code>nearcrawl urls add https://…</code>.`,
        )
      : picture(
          html`<div class="progress"><label for="progress">${words}</label>
<span class="percent">${percentText(done / totals.urls)}</span><progress id="progress" max="${totals.urls}" value="${done}"></progress></div>`,
          `${words} (${percentText(done / totals.urls)})`,
        ),
    urlStates(overview),
  ]);
}

function leadWords({ phase, sessions, roundsUnderWay, probesUnderWay, startedAt }: Overview): Html {
  const underWay =
    roundsUnderWay === null || probesUnderWay === null
      ? ""
      : ` · ${howMany(roundsUnderWay, "probe round")} and ${howMany(probesUnderWay, "probe")} in progress`;
  return html`<strong>${phase.charAt(0).toUpperCase() + phase.slice(1)}</strong> · ${howMany(sessions, "crawler")} connected${underWay}${
    startedAt !== null && html` · coordinator up since ${instant(startedAt)}`
  }`;
}

function accuracyTile({ accuracy: { samples, nearlyBest, low, high } }: Overview): Tile {
  const isFew = samples < leastSamples;
  const figure = sampledShare(nearlyBest, samples);
  const words =
    samples === 0
      ? "no subnet has been sampled"
      : isFew
        ? "of the subnets that are sampled"
        : `${percentText(low)} to ${percentText(high)}, by ${howMany(samples, "sample")}`;
  const shown = samples > 0 && isFew ? html`<span class="few">${figure}</span>` : figure;
  return tile(`Within ${nearlyBestMs} ms of the nearest`, shown, "/accuracy", words);
}

function urlStates({ totals }: Overview): Node | null {
  const parts = [
    [totals.urlsDue, "scheduled or due"],
    [totals.urlsLeased, "in progress"],
    [totals.urlsRefused, "refused"],
    [totals.urlsGone, "gone"],
    [totals.urlsPaymentRequired, "not crawled: the site asks for payment"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0);
  if (shown.length === 0) return null;
  const words = shown.map(([count, state]) => `${countText(count)} ${state}`).join(" · ");
  const gated = html` · <a href="/fleet/queue#bot-gates">${howMany(totals.hostsGated, "host")} behind bot gates</a>`;
  return aside(html`${words}${totals.hostsGated > 0 && gated}`);
}

const recentSection = ({ recent, at }: Overview): Node =>
  section(
    "Latest delegations",
    [
      table<Overview["recent"][number]>({
        ...{ label: "Latest delegations", rows: recent },
        empty: [
          "No subnet is delegated yet.",
          "The first probe round starts when a crawler is connected and a URL belongs to a registered subnet.",
        ],
        columns: [
          column("", "Subnet", ({ range }) => askAbout(range)),
          column("", "Name", ({ name, country: code }) => html`${name || "–"} ${country(code)}`, {
            kind: "wide",
          }),
          column("", "Crawler", ({ crawler }) => crawlerLink(crawler)),
          member("rttMs", "RTT", { unit: "ms" }),
          column("", "When", ({ since }) => ago(since, at)),
        ],
      }),
    ],
    { id: "recent" },
  );

function queueSection({ queue }: Overview): Node {
  const none = empty("No host is due.", "Hosts appear here as soon as one of their URLs may be fetched.");
  return section(
    html`<a href="/fleet/queue">Queue</a>`,
    queue.hosts === 0 ? [none] : [aside(`The crawl is ${queue.verdict.words}.`), queueTable(queue)],
  );
}

function errorSection(hour: SpanFigures, day: SpanFigures): Node {
  const figures = `${countText(hour.fetches)} in the last hour, ${countText(day.fetches)} in 24 hours`;
  const share = ({ failures, fetches }: SpanFigures, blame: Blame) => sampledShare(failures[blame], fetches);
  return section(html`<a href="/fleet/failures">Failures</a>`, [
    table<Blame>({
      ...{ label: "Failed fetches by cause", rows: blames },
      columns: [
        column("", "Cause", (blame) => blameCell(blame)),
        column("", "Last hour", (blame) => hour.failures[blame], { unit: "count" }),
        column("", "Share", (blame) => share(hour, blame), { kind: "number" }),
        column("", "24 hours", (blame) => day.failures[blame], { unit: "count" }),
        column("", "Share", (blame) => share(day, blame), { kind: "number" }),
      ],
    }),
    aside(
      day.fetches === 0
        ? "Nothing was fetched in the last 24 hours."
        : `Shares of all fetches: ${figures}. What a site answers, such as 404, is no failure.`,
    ),
  ]);
}

const blameCell = (blame: Blame) =>
  html`<a href="${pathWith("/fleet/failures", { blame })}">${blameNames[blame]}</a>${
    blame === "us" && html` <span class="small inline">(should be none)</span>`
  }`;

// Crawlers that need attention come first, then those with the most subnets.

/** How many crawlers the table shows. The map shows all of them, and /fleet lists them. */
const fleetShown = 25;

function fleetSection(fleet: readonly FleetLine[], at: string): Node {
  const most = Math.max(1, ...fleet.map(({ subnets }) => subnets));
  const rows = [...fleet].sort(byNeedOfALook).slice(0, fleetShown);
  const counts = (["online", "draining", "offline"] as const)
    .map((state) => [state, fleet.filter((crawler) => crawler.state === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${countText(count)} ${state}`);
  const more = fleet.length - rows.length;
  return section(
    html`<a href="/fleet">Crawlers</a> ${counts.length > 0 && small(counts.join(" · "))}`,
    [
      table<FleetLine>({
        ...{ label: "Crawlers", kind: "fleet", rows },
        empty: [
          "No crawler is registered yet.",
          html`Invite a partner with <code>nearcrawl fleet invite --name NAME</code>; it prints the line that starts a crawler there.`,
        ],
        columns: [
          column("", "Crawler", ({ name }) => crawlerLink(name)),
          column("", "State", ({ state }) => stateBadge(state), {
            ...{ kind: "wide", more: (crawler) => whyNotAtWork(crawler, at) },
          }),
          member("subnets", "Subnets", { unit: "count" }),
          column("", "(Share)", ({ subnets }) => shareBar(subnets / most), {
            ...{ kind: "bar-column", isPicture: true },
          }),
          member("meanRttMs", "Mean RTT", { unit: "ms" }),
          member("pages", "Pages", { unit: "count" }),
          column("", "Bytes sent", shippedShare, { kind: "number" }),
          member("openLeases", "Leases", { unit: "count" }),
          column("", "Place", ({ place, country: code }) => html`${place ?? "–"} ${country(code)}`, {
            kind: "wide",
          }),
        ],
      }),
      more > 0 && aside(html`<a href="/fleet">and ${countText(more)} more</a>`),
    ],
    { id: "fleet" },
  );
}

function byNeedOfALook(a: FleetLine, b: FleetLine): number {
  const need = ({ state, revoked, holdingBack }: FleetLine) => {
    if (revoked) return 3;
    return state !== "online" ? 0 : holdingBack.some((words) => words !== nothingDueReason) ? 1 : 2;
  };
  return need(a) - need(b) || b.subnets - a.subnets || (a.name < b.name ? -1 : 1);
}

function whyNotAtWork(
  { state, holdingBack, lastSeenAt, offlineReason }: FleetLine,
  at: string,
): Html | string {
  if (state === "draining") return "finishes what it has";
  if (state === "online") return holdingBack.join("; ");
  if (lastSeenAt === null) return "has not connected yet";
  return html`${offlineReason ?? "no reason known"}, seen ${ago(lastSeenAt, at)}`;
}

/** What only the coordinator's memory knows. */
export interface LiveState {
  readonly startedAt: Date;
  /** Such as "crawling" or "waiting for crawlers". */
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number;
  readonly probesUnderWay: number;
  /** The registry generation of the tree in memory; null while the tree is empty, absent if there is none. */
  readonly treeGeneration?: number | null;
}

const recentShown = 12;
const dayMinutes = 24 * 60;

/**
 * `live` is null in a process without a coordinator's memory. If `runs` is false, no coordinator works, and the crawlers'
 * states are outdated.
 */
export async function showOverview(
  reads: OverviewReads,
  live: LiveState | null,
  at: { readonly range: TimeRange; readonly now: Date; readonly runs?: boolean },
): Promise<Overview> {
  const { now, range, runs = true } = at;
  const [totals, fleet, recent, history, queue, lately, lastHour, lastDay, counts, { alerts }] =
    await Promise.all([
      reads.crawlTotals(),
      reads.fleet(),
      reads.recentDelegations(recentShown),
      reads.charts("overview", range),
      reads.queueAges(now),
      reads.figures(2, now),
      reads.figures(60, now),
      reads.figures(dayMinutes, now),
      reads.accuracyCounts(now),
      showAlerts(reads, now),
    ]);
  const connected = runs ? fleet.filter(({ state }) => state !== "offline").length : 0;
  const phase = connected === 0 ? "waiting for crawlers" : "crawling";
  return {
    at: now.toISOString(),
    startedAt: live?.startedAt.toISOString() ?? null,
    phase: live?.phase ?? (runs ? phase : "no coordinator runs"),
    sessions: live?.sessions ?? connected,
    roundsUnderWay: live?.roundsUnderWay ?? null,
    probesUnderWay: live?.probesUnderWay ?? null,
    alerts,
    rates: ratesOf(lately, now),
    history,
    queue,
    lastHour,
    lastDay,
    accuracy: accuracyEstimate(counts),
    totals,
    fleet,
    recent,
  };
}

/** The rates of the current minute and the one before. */
function ratesOf({ pages, fetchedBytes, probes }: SpanFigures, now: Date): Overview["rates"] {
  const minutes = 1 + now.getUTCSeconds() / 60;
  const perMinute = (count: number) => Math.round((10 * count) / minutes) / 10;
  return {
    pagesPerMinute: perMinute(pages),
    fetchedBytesPerMinute: perMinute(fetchedBytes),
    probesPerMinute: perMinute(probes),
  };
}
