/** /accuracy: the estimate of how near delegations are, how it is made, and its samples. */
import { z } from "zod";
import { howMany, leastSamples, msText } from "#core/format";
import { timeRange } from "#core/time-range";
import { column, empty, history, lead, member, note, section, table, tabs } from "../../ask/document.ts";
import { type Document, type Node, operationsOf } from "../../ask/operation.ts";
import { accuracyEstimate } from "../../place/delegation/accuracy.ts";
import type { AccuracySampleEntry } from "../../place/delegation/delegation.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { rangeParameters } from "../../web/chart-history.ts";
import { ago, askAbout, country, crawlerLink, percentText } from "../../web/format.ts";
import { type Html, html } from "../../web/html.ts";
import { accuracyView } from "./overview-api.ts";
import type { OverviewReads } from "./overview-reads.ts";
import { csvFormat } from "./queue-api.ts";
import { rowsShown } from "./queue-ask.ts";

const { get } = operationsOf<{ readonly reads: OverviewReads }>();

export const accuracyOperations = {
  accuracy: get({
    ...{ path: "/api/accuracy", needs: "read" },
    navigation: { group: "Crawl", order: 55, entry: "Reports", tab: "Accuracy" },
    summary: "Delegation accuracy, by samples",
    description:
      "The share of sampled subnets whose crawler is within 5 ms of the nearest, over 30 days, with its Wilson score interval (95 %).",
    input: z.object({
      only: z.enum(["far"]).optional().meta({
        description: "far: only samples whose crawler was not nearly the nearest.",
        example: "far",
      }),
      ...rangeParameters,
      format: csvFormat,
    }),
    output: accuracyView,
    command: {
      name: "accuracy",
      says: "delegation accuracy: sampled subnets whose crawler is within 5 ms of the nearest",
    },
    run: async ({ input, ports: { reads }, now, isCsv }) => {
      const farOnly = input.only === "far";
      const [counts, past, samples] = await Promise.all([
        reads.accuracyCounts(now),
        reads.charts("accuracy", timeRange(input, now, "30d")),
        reads.accuracySamples({ most: rowsShown({ isCsv }), farOnly }, now),
      ]);
      return {
        at: now.toISOString(),
        estimate: accuracyEstimate(counts),
        ...{ farOnly, samples, history: past },
      };
    },
    view: accuracyDocument,
  }),
};

type Estimate = ToldOf<typeof accuracyView>["estimate"];

function accuracyDocument({
  estimate,
  farOnly,
  samples,
  at,
  history: past,
}: ToldOf<typeof accuracyView>): Document {
  const far = `More than ${estimate.withinMs} ms off`;
  return {
    title: "Delegation accuracy",
    nodes: [
      estimateNode(estimate),
      note(`Now and then a delegated subnet is picked at random, and every crawler measures it by the method of the
probe rounds. Samples change no delegation; where the subnet's crawler is far off, a probe round is asked for. An address
is measured for this once a month at most. The range is the Wilson score interval at 95 % confidence; where the subnet's
crawler alone got no answer, it counts as far.`),
      section("Samples", [
        tabs("Samples", [
          { title: "All", href: "/accuracy", isCurrent: !farOnly },
          { title: far, href: "/accuracy?only=far", isCurrent: farOnly },
        ]),
        table<AccuracySampleEntry>({
          ...{ label: "Samples", rows: samples },
          empty: [
            farOnly && estimate.samples > 0 ? "No sampled subnet is farther off." : "There is no sample yet.",
            "",
          ],
          columns: [
            column("", "Subnet", ({ range, country: code }) => html`${askAbout(range)} ${country(code)}`, {
              more: ({ targetHost }) => targetHost,
            }),
            column("", "Its crawler", ({ owner }) => crawlerLink(owner)),
            member("ownerRttMs", "RTT", { unit: "ms", none: "no answer" }),
            column("", "Nearest", ({ best }) => (best === null ? "nobody" : crawlerLink(best))),
            member("bestRttMs", "RTT", { unit: "ms" }),
            column("", "Off by", (one) => offCell(one, estimate.withinMs), { kind: "number" }),
            column("", "Answers", ({ answered, asked }) => `${answered} of ${asked}`, {
              ...{ kind: "number", more: ({ method }) => method },
            }),
            column("", "When", ({ sampledAt }) => ago(sampledAt, at)),
          ],
        }),
      ]),
      history(past),
    ],
    csv: {
      rows: samples,
      columns: Object.entries(inCsv).map(([key, cell]) => column(key, null, cell)),
    },
  };
}

function estimateNode({ share, low, high, samples, nearlyBest, withinMs, days }: Estimate): Node {
  if (share === null)
    return empty(
      `No subnet was sampled in the last ${days} days.`,
      html`Samples begin when two crawlers are connected and a subnet is delegated; <code>accuracy.subnetsPerHour</code> says how
often.`,
    );
  const near = `with a crawler within ${withinMs} ms of the nearest`;
  const of = `${nearlyBest.toLocaleString("en-GB")} of ${howMany(samples, "sample")} in ${days} days`;
  if (samples < leastSamples)
    return lead(html`<strong>${samples} of ${leastSamples} samples</strong>: too few to say how near the
delegations are: ${of} are ${near}.`);
  return lead(html`<strong>${percentText(share)}</strong> of the sampled subnets are ${near}: ${of}.
The true share is between <strong>${percentText(low)}</strong> and <strong>${percentText(high)}</strong>.`);
}

function offCell(sample: AccuracySampleEntry, withinMs: number): Html | string {
  const offMs = offByMs(sample);
  const off = offMs === null ? "–" : msText(offMs);
  const isFar = sample.best !== null && (offMs === null || offMs > withinMs);
  return isFar ? html`<strong class="far">${off}</strong>` : off;
}

/** Null if one of the two RTTs was not measured. */
function offByMs({ ownerRttMs, bestRttMs }: AccuracySampleEntry): number | null {
  return ownerRttMs === null || bestRttMs === null ? null : Math.round((ownerRttMs - bestRttMs) * 100) / 100;
}

const inCsv: Readonly<Record<string, (one: AccuracySampleEntry) => string | number | null>> = {
  sampled_at: ({ sampledAt }) => sampledAt,
  subnet: ({ range }) => range,
  name: ({ name }) => name,
  country: (one) => one.country,
  host: ({ targetHost }) => targetHost,
  address: ({ targetAddress }) => targetAddress,
  method: ({ method }) => method,
  crawler: ({ owner }) => owner,
  rtt_ms: ({ ownerRttMs }) => ownerRttMs,
  nearest: ({ best }) => best,
  nearest_rtt_ms: ({ bestRttMs }) => bestRttMs,
  off_by_ms: offByMs,
  asked: ({ asked }) => asked,
  answered: ({ answered }) => answered,
};
