/** Fetches that failed: whose fault it was, by crawler, and the latest of them with words. */
import { z } from "zod";
import { leastSamples, percentText, sampledShare } from "#core/format";
import { timeRange } from "#core/time-range";
import { blames } from "#protocol/result";
import { aside, column, filters, history, note, present, section, table, tiles } from "../../ask/document.ts";
import { operationsOf } from "../../ask/operation.ts";
import { record } from "../../web/api-operation.ts";
import { chartHistorySchema, rangeParameters } from "../../web/chart-history.ts";
import { crawlerOr } from "../../web/components.ts";
import { askAbout, countText, instant } from "../../web/format.ts";
import { html, pathWith } from "../../web/html.ts";
import { type Blame, type FailureLine, type FailureShares, failureLine, failureShares } from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";

const { get } = operationsOf<Pick<FleetPorts, "reads" | "past">>();

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

export const blameNames: Readonly<Record<Blame, string>> = {
  target: "the site",
  network: "the network",
  crawler: "the crawler",
  us: "our software",
};

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
