/**
 * The deciding round as a picture: a bar per probe on one scale of milliseconds, the chosen and the
 * runner-up named, and for crawlers that were not asked the stretch that the triangle inequality left them.
 */

import { msText } from "#core/format";
import { crawlerLink } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { ProbeRound, RoundProbe, RuledOut } from "./rounds-api.ts";

const notAskedShown = 10;

const legend = [
  ["chosen", "chosen"],
  ["runner-up", "runner-up"],
  ["other", "asked"],
  ["bound", "not asked: could only be here"],
] as const;

export function roundPicture(round: ProbeRound): Html {
  const scaleMs = scaleOf(round);
  const shown = round.notAsked.slice(0, notAskedShown);
  const hidden = round.notAsked.length - shown.length;
  return html`<ol class="round">
${round.probes.map((probe) => probeRow(probe, round, scaleMs))}
${shown.map((one) => notAskedRow(one, scaleMs))}
</ol>${hidden > 0 ? html`<p class="small">and ${hidden} more that ${hidden === 1 ? "was" : "were"} not asked</p>` : nothing}
<p class="legend small">${legend.map(([key, words]) => html`<span><span class="key key-${key}"></span>${words}</span>`)}</p>`;
}

/** All that was measured fits; bounds beyond four times that end at the edge. */
function scaleOf(round: ProbeRound): number {
  const measured = round.probes.flatMap((probe) => (probe.rttMs === null ? [] : [probe.rttMs]));
  const largest = Math.max(1, ...measured);
  const bounds = round.notAsked.map((one) => one.lowerBoundMs ?? 0).filter((ms) => ms <= 4 * largest);
  return Math.max(largest, ...bounds) * 1.1;
}

function probeRow(probe: RoundProbe, round: ProbeRound, scaleMs: number): Html {
  const role = roleOf(probe, round);
  const words = role === "chosen" ? "chosen" : role === "runner-up" ? "runner-up" : "";
  const bar =
    probe.rttMs === null
      ? nothing
      : html`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-${role}" width="${share(probe.rttMs, scaleMs)}" height="10"/></svg>`;
  const outcome =
    probe.rttMs === null ? html`<span class="failed">${probe.outcome}</span>` : msText(probe.rttMs);
  const detail = probe.detail === "" ? nothing : html`<span class="small detail">${probe.detail}</span>`;
  return html`<li class="probe probe-${role}"><span class="who"><span class="ordinal">${probe.ordinal}</span>${crawlerLink(probe.crawler.name)}</span><span class="track">${bar}${detail}</span><span class="value">${outcome}</span><span class="note">${words || probe.method}</span></li>`;
}

function roleOf(probe: RoundProbe, round: ProbeRound): "chosen" | "runner-up" | "other" {
  if (probe.crawler.crawlerId === round.crawler?.crawlerId) return "chosen";
  return probe.crawler.crawlerId === round.runnerUp?.crawlerId ? "runner-up" : "other";
}

function notAskedRow(one: RuledOut, scaleMs: number): Html {
  const from = one.lowerBoundMs === null ? 100 : share(one.lowerBoundMs, scaleMs);
  const bar =
    one.lowerBoundMs === null
      ? nothing
      : html`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-bound" x="${Math.min(from, 99)}" width="${Math.max(1, 100 - from)}" height="10"/></svg>`;
  const value = one.lowerBoundMs === null ? "–" : `≥ ${msText(one.lowerBoundMs)}`;
  return html`<li class="probe probe-not-asked"><span class="who"><span class="ordinal"></span>${crawlerLink(one.crawler.name)}</span><span class="track">${bar}</span><span class="value">${value}</span><span class="note">${one.ruledOut ? "ruled out" : "not asked"}</span></li>`;
}

function share(ms: number, scaleMs: number): number {
  return Math.min(100, Math.max(0.5, Math.round((ms / scaleMs) * 1000) / 10));
}
