/** How near the delegations are: the estimate, how it is made, and the samples behind it. */

import { howMany, leastSamples, msText } from "#core/format";
import type { ChartHistory } from "../web/chart-history.ts";
import { column, dataTable, numberColumn } from "../web/components.ts";
import { ago, askAbout, country, crawlerLink, msOrDash, percentText } from "../web/format.ts";
import { type CsvTable, type Html, html } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import type { AccuracyEstimate } from "./accuracy.ts";
import type { AccuracySampleEntry } from "./delegation.ts";

interface AccuracyView {
  readonly at: string;
  readonly estimate: AccuracyEstimate;
  /** Only samples whose crawler was not nearly the nearest are listed. */
  readonly farOnly: boolean;
  /** The latest first. */
  readonly samples: readonly AccuracySampleEntry[];
  readonly history: ChartHistory;
}

export function accuracyBody(view: AccuracyView): Html {
  const { estimate } = view;
  return html`<h1>How near the delegations are</h1>
${estimateWords(estimate)}
<p class="small">Now and then a delegated subnet is picked at random, and every crawler measures it by the method of the
probe rounds. Samples change no delegation; where the subnet's crawler is far off, a probe round is asked for. An address
is measured for this once a month at most. The range is the Wilson score interval at 95 % confidence; where the subnet's
crawler alone got no answer, it counts as far.</p>
<section><h2>Samples <span class="ranges">${filterLink("", "all", !view.farOnly)}${filterLink(
    "?only=far",
    `more than ${estimate.withinMs} ms off`,
    view.farOnly,
  )}</span></h2>
${sampleTable(view)}</section>
${historySection("/accuracy", { only: view.farOnly ? "far" : null }, view.history)}`;
}

function estimateWords({ share, low, high, samples, nearlyBest, withinMs, days }: AccuracyEstimate): Html {
  if (share === null) {
    return html`<div class="empty"><p><strong>No subnet was sampled in the last ${days} days.</strong>
Samples begin when two crawlers are connected and a subnet is delegated; <code>accuracy.subnetsPerHour</code> says how
often.</p></div>`;
  }
  const near = `with a crawler within ${withinMs} ms of the nearest`;
  const of = `${nearlyBest.toLocaleString("en-GB")} of ${howMany(samples, "sample")} in ${days} days`;
  if (samples < leastSamples) {
    return html`<p class="lead"><strong>Too few yet (${samples} of ${leastSamples})</strong> to say how near the
delegations are: ${of} are ${near}.</p>`;
  }
  return html`<p class="lead"><strong>${percentText(share)}</strong> of the sampled subnets are ${near}: ${of}.
The true share is between <strong>${percentText(low)}</strong> and <strong>${percentText(high)}</strong>.</p>`;
}

function filterLink(query: string, words: string, isCurrent: boolean): Html {
  const mark = isCurrent ? html` aria-current="true"` : null;
  return html`<a href="/accuracy${query}"${mark}>${words}</a>`;
}

function sampleTable({ samples, at, farOnly, estimate }: AccuracyView): Html {
  if (samples.length === 0) {
    const words =
      farOnly && estimate.samples > 0 ? "No sampled subnet is farther off." : "There is no sample yet.";
    return html`<div class="empty"><p><strong>${words}</strong></p></div>`;
  }
  type One = AccuracySampleEntry;
  const columns = [
    column<One>("Subnet", subnetCell),
    column<One>("Its crawler", ({ owner }) => crawlerLink(owner)),
    numberColumn<One>("RTT", ({ ownerRttMs }) => (ownerRttMs === null ? "no answer" : msOrDash(ownerRttMs))),
    column<One>("Nearest", ({ best }) => (best === null ? "nobody" : crawlerLink(best))),
    numberColumn<One>("RTT", ({ bestRttMs }) => msOrDash(bestRttMs)),
    numberColumn<One>("Off by", (one) => offCell(one, estimate.withinMs)),
    numberColumn<One>(
      "Answers",
      ({ answered, asked, method }) => html`${answered} of ${asked}<span class="small">${method}</span>`,
    ),
    column<One>("When", ({ sampledAt }) => ago(sampledAt, at)),
  ];
  return dataTable("Samples", columns, samples);
}

const subnetCell = ({ range, country: code, targetHost }: AccuracySampleEntry) =>
  html`${askAbout(range)} ${country(code)}<span class="small">${targetHost}</span>`;

function offCell(sample: AccuracySampleEntry, withinMs: number): Html | string {
  const offMs = offByMs(sample);
  const off = offMs === null ? "–" : msText(offMs);
  const isFar = sample.best !== null && (offMs === null || offMs > withinMs);
  return isFar ? html`<strong class="far">${off}</strong>` : off;
}

/** Null: one of the two was not measured. */
function offByMs({ ownerRttMs, bestRttMs }: AccuracySampleEntry): number | null {
  return ownerRttMs === null || bestRttMs === null ? null : Math.round((ownerRttMs - bestRttMs) * 100) / 100;
}

const csvColumns = {
  sampled_at: (one: AccuracySampleEntry) => one.sampledAt,
  subnet: (one: AccuracySampleEntry) => one.range,
  name: (one: AccuracySampleEntry) => one.name,
  country: (one: AccuracySampleEntry) => one.country,
  host: (one: AccuracySampleEntry) => one.targetHost,
  address: (one: AccuracySampleEntry) => one.targetAddress,
  method: (one: AccuracySampleEntry) => one.method,
  crawler: (one: AccuracySampleEntry) => one.owner,
  rtt_ms: (one: AccuracySampleEntry) => one.ownerRttMs,
  nearest: (one: AccuracySampleEntry) => one.best,
  nearest_rtt_ms: (one: AccuracySampleEntry) => one.bestRttMs,
  off_by_ms: offByMs,
  asked: (one: AccuracySampleEntry) => one.asked,
  answered: (one: AccuracySampleEntry) => one.answered,
} as const;

export function accuracyCsv({ samples }: AccuracyView): CsvTable {
  const cells = Object.values(csvColumns);
  return { columns: Object.keys(csvColumns), rows: samples.map((one) => cells.map((cell) => cell(one))) };
}
