/** How near the delegations are: the estimate, how it is made, and the samples behind it. */

import { howMany, leastSamples, msText } from "#core/format";
import type { ChartHistory } from "../web/chart-history.ts";
import { ago, askAbout, country, crawlerLink, msOrDash, percentText } from "../web/format.ts";
import { type CsvTable, type Html, html } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import type { AccuracyEstimate, AccuracySampleEntry } from "./accuracy.ts";

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
<p class="small">Now and then a delegated subnet is picked at random, and every crawler measures it by the method of the probe rounds. Samples change no delegation; where the subnet's crawler is far off, a probe round is asked for. An address is measured for this once a month at most. The range is the Wilson score interval at 95 % confidence; where the subnet's crawler alone got no answer, it counts as far.</p>
<section><h2>Samples <span class="ranges">${filterLink("", "all", !view.farOnly)}${filterLink("?only=far", `more than ${estimate.withinMs} ms off`, view.farOnly)}</span></h2>
${sampleTable(view)}</section>
${historySection("/accuracy", { only: view.farOnly ? "far" : null }, view.history)}`;
}

function estimateWords({ share, low, high, samples, nearlyBest, withinMs, days }: AccuracyEstimate): Html {
  if (share === null) {
    return html`<div class="empty"><p><strong>No subnet was sampled in the last ${days} days.</strong> Samples begin when two crawlers are connected and a subnet is delegated; <code>accuracy.subnetsPerHour</code> says how often.</p></div>`;
  }
  if (samples < leastSamples) {
    return html`<p class="lead"><strong>Too few yet (${samples} of ${leastSamples})</strong> to say how near the delegations are: ${nearlyBest} of ${howMany(samples, "sample")} in ${days} days are with a crawler within ${withinMs} ms of the nearest.</p>`;
  }
  return html`<p class="lead"><strong>${percentText(share)}</strong> of the sampled subnets are with a crawler within ${withinMs} ms of the nearest: ${nearlyBest.toLocaleString("en-GB")} of ${howMany(samples, "sample")} in ${days} days. The true share is between <strong>${percentText(low)}</strong> and <strong>${percentText(high)}</strong>.</p>`;
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
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Samples"><table>
<thead><tr><th scope="col">Subnet</th><th scope="col">Its crawler</th><th scope="col" class="number">RTT</th><th scope="col">Nearest</th><th scope="col" class="number">RTT</th><th scope="col" class="number">Off by</th><th scope="col" class="number">Answers</th><th scope="col">When</th></tr></thead>
<tbody>${samples.map((sample) => sampleRow(sample, { at, withinMs: estimate.withinMs }))}</tbody>
</table></div>`;
}

function sampleRow(sample: AccuracySampleEntry, { at, withinMs }: { at: string; withinMs: number }): Html {
  const { range, country: code, owner, best, ownerRttMs, bestRttMs } = sample;
  const offMs = offByMs(sample);
  const isFar = best !== null && (offMs === null || offMs > withinMs);
  const off = offMs === null ? "–" : msText(offMs);
  return html`<tr><th scope="row">${askAbout(range)} ${country(code)}<span class="small">${sample.targetHost}</span></th><td>${crawlerLink(owner)}</td><td class="number">${ownerRttMs === null ? "no answer" : msOrDash(ownerRttMs)}</td><td>${best === null ? "nobody" : crawlerLink(best)}</td><td class="number">${msOrDash(bestRttMs)}</td><td class="number">${isFar ? html`<strong class="far">${off}</strong>` : off}</td><td class="number">${sample.answered} of ${sample.asked}<span class="small">${sample.method}</span></td><td>${ago(sample.sampledAt, at)}</td></tr>`;
}

/** Null: one of the two was not measured. */
function offByMs({ ownerRttMs, bestRttMs }: AccuracySampleEntry): number | null {
  return ownerRttMs === null || bestRttMs === null ? null : Math.round((ownerRttMs - bestRttMs) * 100) / 100;
}

export function accuracyCsv({ samples }: AccuracyView): CsvTable {
  return {
    columns: [
      "sampled_at",
      "subnet",
      "name",
      "country",
      "host",
      "address",
      "method",
      "crawler",
      "rtt_ms",
      "nearest",
      "nearest_rtt_ms",
      "off_by_ms",
      "asked",
      "answered",
    ],
    rows: samples.map((one) => [
      one.sampledAt,
      one.range,
      one.name,
      one.country,
      one.targetHost,
      one.targetAddress,
      one.method,
      one.owner,
      one.ownerRttMs,
      one.best,
      one.bestRttMs,
      offByMs(one),
      one.asked,
      one.answered,
    ]),
  };
}
