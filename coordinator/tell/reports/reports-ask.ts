/** /reports/…: organisations, subnets, crawlers and placement, each with a summary sentence and its table. */
import { z } from "zod";
import { bytesText, howMany, msText, tooFewWords } from "#core/format";
import { aside, column, lead, member, note, picture, table, tiles } from "../../ask/document.ts";
import { type Document, type Node, operationsOf } from "../../ask/operation.ts";
import { countText } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import { coverageOperations } from "./coverage-ask.ts";
import type { ReportReads } from "./report-store.ts";
import {
  barColumn,
  countryText,
  crawlerPage,
  figure,
  legend,
  most,
  pagesBar,
  pagesText,
  shareText,
  waitedText,
  who,
} from "./report-table-page.ts";
import { type CrawlFacts, crawlersReport, placementReport, subnetsReport } from "./reports.ts";
import {
  type ComparedPart,
  type CrawlersReport,
  crawlersSchema,
  type OrganisationsReport,
  organisationsSchema,
  type PlacementReport,
  placementSchema,
  type SubnetsReport,
  subnetsSchema,
} from "./reports-api.ts";

export interface ReportPorts {
  readonly reads: ReportReads;
  /** The basis of the reports, which is costly and cached for a while. */
  readonly crawl: () => Promise<CrawlFacts>;
  readonly organisations: (now: Date) => Promise<OrganisationsReport>;
}

const { get } = operationsOf<ReportPorts>();

export const reportOperations = {
  ...coverageOperations,
  organisationsReport: get({
    ...{ path: "/api/reports/organisations", needs: "read" },
    navigation: { group: "Crawl", order: 51, entry: "Reports", tab: "Organisations" },
    summary: "Which organisation has how much of the crawl",
    input: z.object({}),
    output: organisationsSchema,
    command: { name: "report organisations" },
    titleWhileSlow: "Organisations",
    run: async ({ ports, now }) => await ports.organisations(now),
    view: organisationsDocument,
  }),
  subnetsReport: get({
    ...{ path: "/api/reports/subnets", needs: "read" },
    navigation: { group: "Crawl", order: 52, entry: "Reports", tab: "Subnets" },
    summary: "Poorly served subnets, and what would help",
    input: z.object({}),
    output: subnetsSchema,
    command: { name: "report subnets" },
    titleWhileSlow: "Poorly served subnets",
    run: async ({ ports, now }) => await subnetsReport(await ports.crawl(), ports.reads, now),
    view: subnetsDocument,
  }),
  crawlersReport: get({
    ...{ path: "/api/reports/crawlers", needs: "read" },
    navigation: { group: "Crawl", order: 53, entry: "Reports", tab: "Crawlers" },
    summary: "Impact of losing a crawler",
    input: z.object({}),
    output: crawlersSchema,
    command: { name: "report crawlers" },
    titleWhileSlow: "Impact of losing a crawler",
    run: async ({ ports, now }) => crawlersReport(await ports.crawl(), now),
    view: crawlersDocument,
  }),
  placementReport: get({
    ...{ path: "/api/reports/placement", needs: "read" },
    navigation: { group: "Crawl", order: 54, entry: "Reports", tab: "Placement" },
    summary: "Where to add crawlers",
    description:
      "Countries without a crawler and holders' networks, in the order of the round-trip time that crawlers there would save in addition to the earlier ones.",
    input: z.object({}),
    output: placementSchema,
    command: [
      { name: "report placement", says: "where to add crawlers, and what each would save" },
      // This second command is for people who look for it among the commands on crawlers.
      { name: "fleet advise", says: "where to add crawlers, and what each would save" },
    ],
    titleWhileSlow: "Where to add crawlers",
    run: async ({ ports, now }) => await placementReport(await ports.crawl(), ports.reads, { now }),
    view: placementDocument,
  }),
};

function organisationsDocument(report: OrganisationsReport): Document {
  const { lines, organisations, subnets, hosts, pages, bytes } = report;
  const listed = table<OrganisationsReport["lines"][number]>({
    ...{ label: "Organisations by pages", rows: lines },
    empty: [
      "No page was crawled yet.",
      html`<a href="/submit">Submit a URL</a>: its host is looked up, and counts for whoever holds its addresses.`,
    ],
    columns: [
      column("organisation", "Organisation", ({ name }) => name ?? "no holder registered", {
        ...{ kind: "break", value: ({ name }) => name, more: ({ handle }) => handle },
        link: ({ name, handle }) => (name === null ? null : who(handle ?? name)),
      }),
      pagesBar(lines),
      member("handle"),
      member("country", "Country"),
      figure("subnets", "Subnets"),
      figure("hosts", "Hosts", "count", {
        link: ({ name, handle }) =>
          name === null ? null : pathWith("/sites", { organisation: handle ?? name }),
      }),
      figure("pages", "Pages"),
      figure("share", "Share", shareText),
      figure("bytes", "Fetched", "bytes"),
    ],
  });
  if (lines.length === 0) return { title: "Organisations", nodes: [listed] };
  const part =
    lines.length < organisations ? `The ${countText(lines.length)} with the most pages are listed. ` : "";
  return {
    title: "Organisations",
    nodes: [
      lead(organisationsLead(report)),
      tiles([
        ["Organisations", countText(organisations)],
        ["Subnets with hosts", countText(subnets)],
        ["Hosts", countText(hosts)],
        ["Pages", countText(pages), `${bytesText(bytes)} fetched so far`],
      ]),
      listed,
      note(`${part}By the holder that the registries name for each host's subnet. A hoster's customers count for the hoster
where the registry does not name them.`),
    ],
  };
}

function organisationsLead({ organisations, pages, lines }: OrganisationsReport): string {
  const first = lines.find(({ name }) => name !== null);
  if (first === undefined || pages === 0) return "No page was crawled yet.";
  const share = lines.slice(0, 10).reduce((sum, one) => sum + one.pages, 0) / pages;
  const known = first.share !== null;
  const top = known ? ` ${first.name} has most: ${shareText(first.share)} of all pages.` : "";
  const ten = organisations > 10 && known ? ` The first ten together have ${shareText(share)}.` : "";
  return `${howMany(pages, "page")} belong to ${howMany(organisations, "organisation")}.${top}${ten}`;
}

function subnetsDocument(report: SubnetsReport): Document {
  const { lines, compared, far, savedMsPages } = report;
  const slowest = most(lines.map(({ rttMs }) => rttMs));
  const words =
    compared.subnets === 0
      ? "No subnet with hosts was measured yet."
      : far === 0
        ? `None of ${howMany(compared.subnets, "measured subnet")} is served worse than it could be.`
        : `${howMany(far, "subnet")} of ${countText(compared.subnets)} could be served from nearer, ` +
          `which would save ${waitedText(savedMsPages)} of waiting per day.`;
  const part = lines.length < far ? `The first ${countText(lines.length)} are listed. ` : "";
  return {
    title: "Poorly served subnets",
    nodes: [
      lead(words),
      ...(lines.length === 0
        ? []
        : [legend(["value", "RTT that would stay"], ["saved", "RTT that could be saved"])]),
      table<SubnetsReport["lines"][number]>({
        ...{ label: "Subnets by what would be saved", rows: lines },
        empty:
          compared.subnets === 0
            ? [
                "There is nothing to compare.",
                html`Subnets are measured when a host in them is known and crawlers are online: see <a href="/fleet">the crawlers</a> and <a
href="/fleet/queue">the queue</a>.`,
              ]
            : [
                "Every subnet is served about as well as it can be.",
                html`<a href="/reports/placement">Where one more crawler would help</a>.`,
              ],
        columns: [
          member("subnet", "Subnet", {
            link: ({ subnet }) => who(subnet),
            more: ({ holder, name, country }) =>
              [holder ?? name, country ?? ""].filter((text) => text !== "").join(", "),
          }),
          barColumn(
            ({ rttMs, savesMs }) => [
              { width: (100 * Math.max(0, rttMs - savesMs)) / slowest, kind: "value" },
              { width: (100 * savesMs) / slowest, kind: "saved" },
            ],
            ({ rttMs, savesMs }) => `${msText(savesMs)} of ${msText(rttMs)} could be saved`,
          ),
          member("holder"),
          member("country"),
          member("crawler", "Crawler", {
            ...{ kind: "break", link: ({ crawler }) => crawlerPage(crawler) },
            more: ({ crawlerCountry }) => crawlerCountry && `in ${crawlerCountry}`,
          }),
          member("crawlerCountry"),
          figure("rttMs", "RTT", "ms"),
          figure("pagesPerDay", "Pages per day", pagesText),
          figure("savesMs", "Would save", "ms", {
            more: (line) => `${waitedText(line.savedMsPages)} per day`,
          }),
          member("savedMsPages"),
          member("help"),
          member("words", "Remedy", { kind: "wide break" }),
          member("decidedAt"),
        ],
      }),
      comparedNode(compared),
      note(
        `${part}In the order of pages per day times what the best help would save. Less than 10 ms is not counted.`,
      ),
    ],
  };
}

function comparedNode(compared: ComparedPart): Node {
  const { subnets, ofSubnets, pagesPerDay, ofPagesPerDay, unmeasuredSubnets, unmeasuredPagesPerDay } =
    compared;
  const part =
    subnets === ofSubnets
      ? `All ${howMany(subnets, "measured subnet")} with hosts are compared.`
      : `The ${countText(subnets)} subnets with the most to wait for are compared, of ${countText(ofSubnets)} that were measured: ` +
        `${pagesText(pagesPerDay)} of ${pagesText(ofPagesPerDay)} pages per day.`;
  const unmeasured =
    unmeasuredSubnets === 0
      ? ""
      : ` ${howMany(unmeasuredSubnets, "subnet")} with ${pagesText(unmeasuredPagesPerDay)} pages per day ` +
        `${unmeasuredSubnets === 1 ? "was" : "were"} never measured.`;
  return aside(`${part}${unmeasured}`);
}

type MissedLine = CrawlersReport["lines"][number];

function crawlersDocument({ lines, crawlers, compared }: CrawlersReport): Document {
  const title = "Impact of losing a crawler";
  const mostPages = most(lines.map(({ pagesPerDay }) => pagesPerDay));
  const width = (pages: number) => (100 * pages) / mostPages;
  const listed = table<MissedLine>({
    ...{ label: "Crawlers by what would be lost", rows: lines },
    empty: [
      "No crawler is online.",
      html`<a href="/fleet">The crawlers</a> say why; <a href="/fleet/invitations">invite one</a>.`,
    ],
    columns: [
      member("crawler", "Crawler", {
        link: ({ crawler }) => crawlerPage(crawler),
        more: ({ country }) => country && countryText(country),
      }),
      barColumn(
        ({ measuredPages, predictedPages, unknownPages }) => [
          { width: width(measuredPages), kind: "value" },
          { width: width(predictedPages), kind: "predicted" },
          { width: width(unknownPages), kind: "unknown" },
        ],
        ({ pagesPerDay }) => `${pagesText(pagesPerDay)} pages per day`,
      ),
      member("country"),
      figure("subnets", "Subnets"),
      figure("pagesPerDay", "Pages per day", pagesText),
      figure("lostMsPages", "Lost per day", waitedText),
      figure("meanLostMs", "Per page", (ms) => `+${msText(ms)}`),
      member("successor", "Next nearest", {
        ...{ kind: "break", link: ({ successor }) => crawlerPage(successor) },
        more: ({ successor, successorPages }) =>
          successor && `for ${pagesText(successorPages)} pages per day`,
      }),
      member("measuredPages"),
      member("predictedPages"),
      member("unknownPages"),
      member("spreadMs"),
      column("how_sure", "How sure", sureWords, { kind: "wide break" }),
    ],
  });
  if (lines.length === 0) return { title, nodes: [listed] };
  const part =
    lines.length < crawlers
      ? `The first ${countText(lines.length)} of ${countText(crawlers)} crawlers are listed. `
      : "";
  return {
    title,
    nodes: [
      lead(crawlersLead(lines[0]!, crawlers)),
      legend(
        ["value", "next nearest measured"],
        ["predicted", "predicted"],
        ["unknown", "nobody else known"],
      ),
      listed,
      comparedNode(compared),
      note(`${part}Each subnet would go to the next nearest crawler, as measured in its last probe round, or as predicted from the
crawlers' distances to each other. Budgets are not considered.`),
    ],
  };
}

/** Such as "64 % measured, 36 % predicted ± 12 ms". */
function sureWords({ measuredPages, predictedPages, unknownPages, spreadMs }: MissedLine): string {
  const all = measuredPages + predictedPages + unknownPages;
  if (all === 0) return "nothing to fetch";
  const spread = spreadMs === null ? "" : ` ± ${msText(spreadMs)}`;
  const parts = [
    [measuredPages, "measured"],
    [predictedPages, `predicted${spread}`],
    [unknownPages, "not known"],
  ] as const;
  return parts
    .filter(([pages]) => pages > 0)
    .map(([pages, words]) => `${Math.round((100 * pages) / all)} % ${words}`)
    .join(", ");
}

function crawlersLead({ crawler, pagesPerDay, lostMsPages }: MissedLine, crawlers: number): string {
  if (crawlers === 1) return `${crawler} is the only crawler online: without it, nothing is crawled.`;
  if (lostMsPages === 0) return "No crawler is known to be nearer than the next one to anything.";
  return (
    `${crawler} is the most important crawler: without it, ` +
    `its ${pagesText(pagesPerDay)} pages per day would take ${waitedText(lostMsPages)} longer in all.`
  );
}

type PlacementLine = PlacementReport["lines"][number];

function placementDocument(report: PlacementReport): Document {
  const { lines, isEstimated, meanRttMs, pagesPerDay } = report;
  const slowest = most(lines.map(({ nowMs }) => nowMs));
  const width = (ms: number) => (100 * Math.max(0, ms)) / slowest;
  const measured =
    meanRttMs === null ? "" : ` ${countText(pagesPerDay)} pages per day come from measured subnets.`;
  return {
    title: "Where to add crawlers",
    nodes: [
      lead(placementLead(report)),
      ...(isEstimated && lines.length > 0 ? [legend(["value", "expected RTT"], ["saved", "saved"])] : []),
      table<PlacementLine>({
        ...{ label: "Places by what a crawler there would save", rows: lines },
        empty: [
          "Nothing to place.",
          html`Savings are estimated from subnets with hosts that were measured: see <a href="/reports/subnets">how subnets are served</a>.`,
        ],
        columns: [
          column("place", "Place", placeText, {
            ...{ kind: "break", value: ({ place }) => place },
            link: ({ kind, place }) => who(kind === "country" ? `country:${place}` : place),
          }),
          barColumn(
            ({ nowMs, thenMs }) => [
              { width: width(Math.min(thenMs ?? nowMs, nowMs)), kind: "value" },
              { width: width(nowMs - (thenMs ?? nowMs)), kind: "saved" },
            ],
            ({ nowMs, thenMs, savedMsPages }) =>
              thenMs === null
                ? `${msText(nowMs)} now, expected: ${tooFewWords}`
                : `${msText(nowMs)} now, ${msText(thenMs)} expected, ${waitedText(savedMsPages ?? 0)} per day`,
          ),
          member("kind"),
          member("country"),
          figure("pagesPerDay", "Pages per day", pagesText),
          figure("nowMs", "RTT now", "ms"),
          column("then_ms", "Expected", expectedText, {
            ...{ kind: "number wide", value: ({ thenMs }) => thenMs, more: basisWords },
          }),
          figure("savedMsPages", "Saves per day", waitedText),
          member("spreadMs"),
          member("placeSubnets"),
          member("measuredSubnets"),
          column("subnets", "Where it matters most", subnetsText, { kind: "wide break" }),
        ],
      }),
      ...(lines.length === 0
        ? []
        : [picture(html`<p><a href="/fleet/invitations">Invite a crawler</a></p>`)]),
      note(`A crawler is expected to reach its own place as fast as crawlers reach their own countries now:
the median of the subnets measured so, of the same country where there are 30, else of all.
What it would save elsewhere follows from what the same crawlers measured of both places, where they measured 5 subnets of its own.
Countries without a crawler and holders with 5 measured subnets are compared, and crawlers added in this order, each assuming those above it;
± is the standard deviation for a page.${measured}`),
    ],
  };
}

/** Such as "India" or "Example Networks, India". */
function placeText({ kind, place, country }: PlacementLine): string {
  if (kind === "country") return countryText(place);
  return country === null ? place : `${place}, ${countryText(country)}`;
}

const expectedText = ({ thenMs, spreadMs }: PlacementLine) =>
  thenMs === null ? tooFewWords : `${msText(thenMs)} ± ${msText(spreadMs ?? 0)}`;

const subnetsText = ({ subnets }: PlacementLine) =>
  subnets.map(({ subnet, holder }) => (holder === null ? subnet : `${subnet} (${holder})`)).join("; ");

function basisWords({ thenMs, placeSubnets, measuredSubnets, isOwnMeasure }: PlacementLine): string {
  if (thenMs === null) return "";
  const home = `${howMany(measuredSubnets, "subnet")} with ${isOwnMeasure ? "in-country measurements here" : "in-country measurements anywhere"}`;
  return `${howMany(placeSubnets, "subnet")} here; ${home}`;
}

function placementLead({
  lines,
  pagesPerDay,
  isEstimated,
  meanRttMs,
  thenMeanRttMs,
}: PlacementReport): string {
  const [first, ...others] = lines;
  if (pagesPerDay === 0) return "Nothing is fetched from a measured subnet yet.";
  if (first === undefined) return "No place is known where one more crawler would be nearer to anything.";
  if (!isEstimated)
    return `Fewer than 30 in-country measurements, too few for an estimate. Most waiting is here: ${placeText(first)}.`;
  const then = others.slice(0, 4).map(placeText).join("; ");
  const next = then === "" ? "" : ` Then, in this order: ${then}.`;
  const mean =
    meanRttMs === null || thenMeanRttMs === null
      ? ""
      : ` With one in each place listed, the mean RTT goes from ${msText(meanRttMs)} to ${msText(thenMeanRttMs)}.`;
  return `Next: ${placeText(first)}. A crawler there would save about ${waitedText(first.savedMsPages ?? 0)} of waiting per day.${next}${mean}`;
}
