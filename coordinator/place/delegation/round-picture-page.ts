/**
 * Draws the deciding round: a bar per probe on one ms scale, the chosen crawler and the runner-up by name, and for crawlers
 * not asked the range that the triangle inequality left them.
 */

import { msText } from "#core/format";
import { crawlerLink } from "../../web/format.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import type { ProbeRound, RoundProbe, RuledOut } from "./rounds-api.ts";

const notAskedShown = 10;

const legend = [
  ["chosen", "chosen"],
  ["runner-up", "runner-up"],
  ["other", "asked"],
  ["bound", "not probed; possible range"],
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

/** Fits all measurements. Bounds beyond four times that end at the edge. */
function scaleOf(round: ProbeRound): number {
  const measured = round.probes.flatMap((probe) => (probe.rttMs === null ? [] : [probe.rttMs]));
  const largest = Math.max(1, ...measured);
  const bounds = round.notAsked.map((one) => one.lowerBoundMs ?? 0).filter((ms) => ms <= 4 * largest);
  return Math.max(largest, ...bounds) * 1.1;
}

function probeRow(probe: RoundProbe, round: ProbeRound, scaleMs: number): Html {
  const role = roleOf(probe, round);
  const words = role === "chosen" ? "chosen" : role === "runner-up" ? "runner-up" : "";
  const bar = probe.rttMs === null ? nothing : barOf(role, 0, share(probe.rttMs, scaleMs));
  const outcome =
    probe.rttMs === null ? html`<span class="failed">${probe.outcome}</span>` : msText(probe.rttMs);
  const detail = probe.detail === "" ? nothing : html`<span class="small detail">${probe.detail}</span>`;
  const who = html`<span class="ordinal">${probe.ordinal}</span>${crawlerLink(probe.crawler.name)}`;
  return rowOf(role, who, html`${bar}${detail}`, outcome, words || probe.method);
}

function roleOf(probe: RoundProbe, round: ProbeRound): "chosen" | "runner-up" | "other" {
  if (probe.crawler.crawlerId === round.crawler?.crawlerId) return "chosen";
  return probe.crawler.crawlerId === round.runnerUp?.crawlerId ? "runner-up" : "other";
}

function notAskedRow(one: RuledOut, scaleMs: number): Html {
  const from = one.lowerBoundMs === null ? 100 : share(one.lowerBoundMs, scaleMs);
  const bar =
    one.lowerBoundMs === null ? nothing : barOf("bound", Math.min(from, 99), Math.max(1, 100 - from));
  const value = one.lowerBoundMs === null ? "–" : `≥ ${msText(one.lowerBoundMs)}`;
  const who = html`<span class="ordinal"></span>${crawlerLink(one.crawler.name)}`;
  return rowOf("not-asked", who, bar, value, one.ruledOut ? "ruled out" : "not asked");
}

const barOf = (role: string, x: number, width: number) =>
  html`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
<rect class="bar-${role}" x="${x}" width="${width}" height="10"/></svg>`;

function rowOf(role: string, who: Html, track: Html, value: Html | string, note: string): Html {
  return html`<li class="probe probe-${role}"><span class="who">${who}</span><span class="track">${track}</span
><span class="value">${value}</span><span class="note">${note}</span></li>`;
}

function share(ms: number, scaleMs: number): number {
  return Math.min(100, Math.max(0.5, Math.round((ms / scaleMs) * 1000) / 10));
}
