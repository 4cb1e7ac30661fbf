/** Failed fetches by cause and crawler, the latest of them with their reason, and incidents. */
import { z } from "zod";
import { leastSamples, percentText, sampledShare } from "#core/format";
import { type IncidentEntry, incidentDays } from "#core/incidents";
import { timeRange } from "#core/time-range";
import { blames } from "#protocol/result";
import {
  aside,
  column,
  filters,
  history,
  lead,
  note,
  present,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Column, type Node, operationsOf, type Table } from "../../ask/operation.ts";
import { record } from "../../web/api-operation.ts";
import { chartHistorySchema, rangeParameters } from "../../web/chart-history.ts";
import { crawlerOr } from "../../web/components.ts";
import { askAbout, countText, instant } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import {
  type Blame,
  blameNames,
  type FailureLine,
  type FailureShares,
  failureLine,
  failureShares,
  incident,
} from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";

const { get } = operationsOf<Pick<FleetPorts, "reads" | "past" | "incidents">>();

const mostFailures = 200;
const hourMs = 3_600_000;

const failures = get({
  ...{ path: "/api/fleet/failures", needs: "read" },
  navigation: { group: "Crawl", order: 42, entry: "Queue", tab: "Failures" },
  alsoFound: "errors",
  summary: "Fetches that failed: shares by blame and crawler, and the latest with words",
  input: z.object({
    blame: z
      .enum(blames)
      .optional()
      .meta({ title: "The fault of", description: "The fault of this side only." }),
    crawler: z
      .string()
      .max(63)
      .optional()
      .meta({ title: "Crawler", description: "Of this crawler only (the latest)." }),
    host: z
      .string()
      .max(253)
      .optional()
      .meta({ title: "Host", description: "Of this host only (the latest)." }),
    hours: z.enum(["1", "24"]).default("24").meta({ title: "In the last", description: "Of so many hours." }),
    ...rangeParameters,
  }),
  output: record("Failures", {
    ...{ hours: z.literal([1, 24]), shares: failureShares, latest: z.array(failureLine), more: z.boolean() },
    history: chartHistorySchema,
  }),
  command: { name: "fleet failures" },
  run: async ({ input, ports, now }) => {
    const hours = input.hours === "1" ? 1 : 24;
    const since = new Date(now.getTime() - hours * hourMs);
    const [shares, past, found] = await Promise.all([
      ports.reads.failureShares(hours),
      ports.past.charts("failures", timeRange(input, now)),
      ports.reads.failures({ ...input, since, most: mostFailures + 1 }),
    ]);
    const latest = found.slice(0, mostFailures);
    return { hours, shares, latest, more: found.length > mostFailures, history: past } as const;
  },
  view: ({ hours, shares, latest, more, history: past }, { input: { blame, crawler, host } }) => ({
    title: "Failed fetches",
    nodes: present([
      filters({
        ...{ label: "Failed fetches", names: ["blame", "crawler", "host", "hours"] },
        choices: { blame: blameNames, hours: { "1": "hour", "24": "24 hours" } },
      }),
      tiles(
        blames.map((one) => [
          `The fault of ${blameNames[one]}`,
          sampledShare(shares.failures[one], shares.fetches),
          html`<a href="${pathWith("/fleet/failures", { crawler, host, hours, blame: one })}">${countText(shares.failures[one])}</a> of
${countText(shares.fetches)} fetches: ${hints[one]}`,
        ]),
      ),
      note(html`Of all fetches of the fleet since ${instant(shares.since)}.`),
      shares.byCrawler.length > 0 && section("By crawler", [byCrawlerTable(shares, hours)]),
      history(past),
      section("The latest", [
        table<FailureLine>({
          ...{ label: "Failed fetches", rows: latest },
          empty: [
            "Nothing failed.",
            crawler === undefined && host === undefined && blame === undefined
              ? "Every fetch in this time was answered."
              : html`<a href="/fleet/failures?hours=${hours}">Show all failures</a>`,
          ],
          columns: [
            column("at", "When", ({ at }) => at),
            column("crawler", "By", ({ crawler: by }) => crawlerOr(by, "(removed)"), {
              value: ({ crawler: by }) => by,
            }),
            column("blame", "The fault of", (line) => blameNames[line.blame], {
              value: (line) => line.blame,
            }),
            column("status", null, ({ status }) => status),
            column(
              "url",
              "URL",
              ({ url, host: of }) => (url === null ? (of ?? "no longer known") : askAbout(url)),
              {
                ...{ kind: "break", value: ({ url }) => url },
              },
            ),
            column("host", null, ({ host: of }) => of),
            column("words", "In words", ({ words }) => words, {
              ...{ kind: "why", none: "It was fetched again since." },
            }),
          ],
        }),
        more && aside(`These are the latest ${countText(latest.length)}.`),
      ]),
    ]),
  }),
});

export const failureOperations = { failures };

const hints: Readonly<Record<Blame, string>> = {
  target: "the site answered wrongly, or not in time",
  network: "names, routes, connections on the way",
  crawler: "its machine, its disk, its limits",
  us: "a fault of our own: report it",
};

const byCrawlerTable = ({ byCrawler }: FailureShares, hours: 1 | 24) =>
  table<FailureShares["byCrawler"][number]>({
    ...{ label: "By crawler", rows: byCrawler, most: 50, empty: ["Nothing was fetched.", ""] },
    columns: [
      column("", "Crawler", ({ crawler }) => crawlerOr(crawler, "")),
      column("", "Fetches", ({ fetches }) => fetches, { unit: "count" }),
      ...blames.map((blame) =>
        column<FailureShares["byCrawler"][number]>("", blameNames[blame], ({ failures: of }) => of[blame], {
          unit: "count",
          link: ({ crawler, failures: of }) =>
            of[blame] === 0 ? null : pathWith("/fleet/failures", { crawler, blame, hours }),
          more: ({ fetches, failures: of }) =>
            of[blame] > 0 && fetches >= leastSamples ? percentText(of[blame] / fetches) : null,
        }),
      ),
    ],
  });

const mostIncidents = 500;
const dayMs = 86_400_000;
const spanDays = { "24h": 1, "7d": 7, "30d": 30, "90d": incidentDays } as const;

const incidents = get({
  ...{ path: "/api/fleet/incidents", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 31, entry: "Trust", tab: "Incidents" },
  summary: "What was refused and why, by crawler, kind and hour, the latest first",
  input: z.object({
    crawler: z.string().max(63).optional().meta({ title: "Crawler", description: "Of this crawler only." }),
    kind: z
      .string()
      .max(60)
      .optional()
      .meta({ title: "Kind", description: "Of this kind only, such as bad-signature." }),
    since: z
      .enum(["24h", "7d", "30d", "90d"])
      .default("7d")
      .meta({ title: "In the last", description: "How far back." }),
  }),
  output: record("Incidents", { incidents: z.array(incident), more: z.boolean() }),
  command: { name: "fleet incidents", named: { crawler: "name" } },
  run: async ({ input: { crawler, kind, since }, ports, now }) => {
    const listed = await ports.incidents.list({
      since: new Date(now.getTime() - spanDays[since] * dayMs),
      ...(crawler === undefined ? {} : { name: crawler }),
      ...(kind === undefined ? {} : { kind }),
      most: mostIncidents + 1,
    });
    return { incidents: listed.slice(0, mostIncidents), more: listed.length > mostIncidents };
  },
  view: ({ incidents: all, more }, { input: { crawler, kind } }) => ({
    title: "Incidents",
    nodes: present([
      lead(`What crawlers and unknown clients did that they should not do. The same kind by the same crawler within an hour is
one line with a count.`),
      filters({
        ...{ label: "Incidents", names: ["crawler", "kind", "since"] },
        choices: {
          since: {
            ...{ "24h": "24 hours", "7d": "7 days", "30d": "30 days" },
            "90d": `${incidentDays} days (all kept)`,
          },
        },
      }),
      incidentTable(all, [
        "No incidents.",
        crawler === undefined && kind === undefined
          ? "Nothing was rejected in this period."
          : html`<a href="/fleet/incidents">Show all</a>`,
      ]),
      more && aside(`The latest ${countText(all.length)}; filter by crawler or kind to see others.`),
    ]),
  }),
});

export const incidentOperations = { incidents };

export const incidentTable = (rows: readonly IncidentEntry[], empty: Table<unknown>["empty"]): Node =>
  table<IncidentEntry>({ label: "Incidents", columns: incidentColumns, rows, empty });

const incidentColumns: readonly Column<IncidentEntry>[] = [
  column("first", null, ({ firstAt }) => firstAt),
  column("last", "Last", ({ lastAt }) => lastAt),
  column("crawler", "Crawler", ({ crawler }) => crawlerOr(crawler, "unknown client"), {
    value: ({ crawler }) => crawler,
  }),
  column("kind", "Kind", ({ kind }) => kind),
  column("times", "Count", ({ count }) => count, { unit: "count" }),
  column("from", "From", ({ remoteAddress }) => remoteAddress),
  column(
    "words",
    "What happened",
    ({ words, file }) =>
      html`${words}${file !== null && html`<details><summary>The file</summary><pre>${file}</pre></details>`}`,
    { kind: "why", value: ({ words }) => words },
  ),
];
