/**
 * Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look.
 * Some lead to pages that are for operators; others see the same words without the link.
 */
import { type Actor, mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { mostNote } from "../alerts/alerts-api.ts";
import { countWords } from "../alerts/message.ts";
import { markdownHtml } from "../alerts/runbook-page.ts";
import { buttonForm } from "../web/components.ts";
import { ago, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import {
  type AcknowledgedAlert,
  type Alert,
  type AlertList,
  bareTarget,
  listedRules,
  type MutedAlert,
  type ShownChannel,
} from "./alert-rules.ts";

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

/** On top of the overview: what is the matter, and what to do. */
function alertList(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return html`<p class="all-well">${allIsWell}</p>`;
  return html`<ul class="alerts">${alerts.map(
    (alert) =>
      html`<li class="alert alert-${alert.severity}"><span class="severity">${alert.severity}</span><div>${whatLine(alert, reader)}<p class="small">${alert.advice} <a class="mono" href="/alerts#${alert.name}">${alert.name}</a></p></div></li>`,
  )}</ul>`;
}

/** With a heading that counts them. */
export function alertSection(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return alertList(alerts, reader);
  return html`<h2><a href="/alerts">Needs attention</a> <span class="small">${countWords(alerts)}</span></h2>${alertList(alerts, reader)}`;
}

/** Of these lists operators alone may read. */
const operatorsOnly = /^\/fleet\/(incidents|trust|versions)\b/;

function whatLine({ words, link }: Alert, reader: AlertReader): Html {
  const isElsewhere = !link.startsWith("/alerts") && (reader === "operator" || !operatorsOnly.test(link));
  return html`<p class="what">${isElsewhere ? html`<a href="${link}">${words}</a>` : html`<strong>${words}</strong>`}</p>`;
}

/** Said where there is none. */
export const allIsWell = "Nothing needs attention.";

// Every alert that there is now, who is told of them, and which rules are looked at: a page for whoever was sent there by a
// message.

/** By the alert's name: its paragraph of the runbook. */
type Runbook = ReadonlyMap<string, string>;

export interface AlertsPage {
  readonly list: AlertList;
  readonly runbook: Runbook;
  readonly viewer: PageViewer;
}

interface Around extends AlertsPage {
  readonly mayChange: boolean;
  readonly reader: AlertReader;
}

export function alertsBody(page: AlertsPage): Html {
  const { list, viewer } = page;
  const { at, alerts, acknowledged, muted, incomplete } = list;
  const mayChange = mayDo(viewer.actor, "fleet-write") && viewer.formToken !== null;
  const around = { ...page, mayChange, reader: alertReader(viewer.actor) };
  const counts = [
    alerts.length === 0 ? "none open" : countWords(alerts),
    acknowledged.length > 0 && `${acknowledged.length} acknowledged`,
    muted.length > 0 && `${muted.length} muted`,
  ].filter(Boolean);
  return html`<h1>Alerts</h1>
<p class="lead"><strong>${counts.join(" · ")}</strong> as of ${instant(at)}</p>
${incomplete === null ? nothing : html`<p class="notice">This is not all: ${incomplete}. Here is what the coordinator knows of itself.</p>`}
<section>${openAlerts(around)}</section>
${acknowledgedSection(around)}
${mutedSection(muted, around)}
${incomplete === null ? deliverySection(around) : nothing}
${ruleSection(around)}`;
}

function openAlerts(around: Around): Html {
  const { alerts, incomplete } = around.list;
  if (alerts.length === 0) return incomplete === null ? html`<p class="all-well">${allIsWell}</p>` : nothing;
  return html`<ul class="alerts">${alerts.map((alert) => alertCard(alert, around, openActions(alert, around)))}</ul>`;
}

function alertCard(alert: Alert, around: Around, actions: Html, more: Html = nothing): Html {
  const { name, severity, advice } = alert;
  return html`<li class="alert alert-${severity}" id="${name}"><span class="severity">${severity}</span><div>
${whatLine(alert, around.reader)}
<p class="small alert-facts"><span class="mono">${name}</span>${sinceWords(alert, around.list)}${toldWords(alert, around.list)}</p>
${more}<p class="small">${advice}</p>
<div class="alert-actions">${runbookPart(name, around.runbook)}${actions}</div></div></li>`;
}

function sinceWords({ since }: Alert, { at }: AlertList): Html {
  return since === null
    ? html`<span>just now</span>`
    : html`<span>since ${instant(since)}, ${ago(since, at)}</span>`;
}

/** Who has heard of it. */
function toldWords({ toldAt, severity }: Alert, { at, channels, incomplete }: AlertList): Html {
  if (incomplete !== null) return nothing;
  if (toldAt !== null) return html`<span>sent ${ago(toldAt, at)}</span>`;
  const hears = channels.some(({ least }) => isGraveEnough(severity, least));
  return html`<span>${hears ? "not sent yet" : "no channel is told of it"}</span>`;
}

const ranks: readonly Alert["severity"][] = ["critical", "warning", "info"];
const isGraveEnough = (severity: Alert["severity"], least: Alert["severity"]) =>
  ranks.indexOf(severity) <= ranks.indexOf(least);

function runbookPart(name: string, runbook: Runbook): Html {
  const markdown = runbook.get(name);
  if (markdown === undefined) return nothing;
  return html`<details class="alert-more"><summary>Runbook<span class="hidden"> about ${name}</span></summary><div class="runbook">${markdownHtml(markdown)}</div></details>`;
}

function openActions(alert: Alert, around: Around): Html {
  if (!around.mayChange) return nothing;
  return html`${acknowledgeForm(alert, around.viewer)}${muteForm(alert, around.viewer)}`;
}

function acknowledgeForm({ name }: Alert, viewer: PageViewer): Html {
  return html`<details class="alert-more"><summary>Acknowledge…<span class="hidden"> ${name}</span></summary>
<form class="row" method="post" action="/alerts/${name}/acknowledge">${formToken(viewer)}
<div class="grow"><label for="ack-${name}">Note for the others (optional)</label><input id="ack-${name}" name="note" maxlength="${mostNote}" autocomplete="off"></div>
<button class="slim">Acknowledge</button></form>
<p class="small">Nobody is told of it again until it ends or names something new.</p></details>`;
}

const usualMuteHours = 24;

function muteForm({ name, targets }: Alert, viewer: PageViewer): Html {
  const id = (field: string) => `mute-${name}-${field}`;
  return html`<details class="alert-more"><summary>Mute…<span class="hidden"> ${name}</span></summary><form class="row" method="post" action="/alerts/${name}/mute">${formToken(viewer)}
${
  targets.length === 0
    ? nothing
    : html`<div><label for="${id("target")}">What</label><select id="${id("target")}" name="target"><option value="">all of it</option>${targets.map((target) => html`<option>${bareTarget(target)}</option>`)}</select></div>`
}<div><label for="${id("hours")}">Hours</label><input class="number short" id="${id("hours")}" name="hours" type="number" min="0.1" max="720" step="any" value="${usualMuteHours}" required></div>
<div class="grow"><label for="${id("reason")}">Reason</label><input id="${id("reason")}" name="reason" maxlength="300" required autocomplete="off"></div>
<button class="slim">Mute</button></form></details>`;
}

function acknowledgedSection(around: Around): Html {
  const { acknowledged, at } = around.list;
  if (acknowledged.length === 0) return nothing;
  const reopen = ({ name }: AcknowledgedAlert) =>
    around.mayChange
      ? buttonForm(around.viewer, { path: `/alerts/${name}/reopen`, label: `Reopen ${name}` })
      : nothing;
  return html`<section><h2>Acknowledged</h2><ul class="alerts">${acknowledged.map((alert) =>
    alertCard(
      alert,
      around,
      reopen(alert),
      html`<p>Acknowledged by <bdi>${alert.by}</bdi>, ${ago(alert.at, at)}${alert.note === "" ? nothing : html`: <bdi>${alert.note}</bdi>`}</p>`,
    ),
  )}</ul></section>`;
}

function mutedSection(muted: readonly MutedAlert[], { mayChange, viewer }: Around): Html {
  if (muted.length === 0) return nothing;
  return html`<section><h2>Muted</h2><ul class="alerts">${muted.map(
    ({ name, severity, words, until, reason, mutedBy, mutedTarget }) =>
      html`<li class="alert alert-${severity}"><span class="severity">${severity}</span><div><p class="what"><strong>${words}</strong></p><p class="small alert-facts"><span class="mono">${name}</span>${mutedTarget === null ? nothing : html`<span>only <bdi>${mutedTarget}</bdi></span>`}<span>until ${instant(until)}</span></p><p>Muted by <bdi>${mutedBy}</bdi>: <bdi>${reason}</bdi></p>${
        mayChange
          ? html`<div class="alert-actions">${buttonForm(
              viewer,
              { path: `/alerts/${name}/unmute`, label: `Unmute ${name}` },
              html`<input type="hidden" name="target" value="${mutedTarget ?? ""}">`,
            )}</div>`
          : nothing
      }</div></li>`,
  )}</ul></section>`;
}

// Who is told.

function deliverySection(around: Around): Html {
  const { channels } = around.list;
  const heading = html`<h2 id="delivery">Delivery</h2>`;
  if (channels.length === 0)
    return html`<section>${heading}<div class="empty"><p><strong>Alerts are sent to nobody.</strong> Add a webhook (<code>[[alerts.webhooks]]</code>) or e-mail (<code>[alerts.email]</code>) to the coordinator’s file and start it again; the runbook (monitoring) has examples.</p></div></section>`;
  return html`<section>${heading}
<div class="scroll" tabindex="0" role="region" aria-label="Channels"><table>
<thead><tr><th scope="col">Channel</th><th scope="col">Sends to</th><th scope="col">Told of</th><th scope="col">Last delivered</th><th scope="col">State</th>${around.mayChange ? html`<th scope="col"><span class="hidden">Test</span></th>` : nothing}</tr></thead>
<tbody>${channels.map((channel) => channelRow(channel, around))}</tbody></table></div></section>`;
}

const leastWords = {
  critical: "critical alone",
  warning: "critical, warning",
  info: "everything",
} as const satisfies Record<Alert["severity"], string>;

function channelRow(channel: ShownChannel, { mayChange, viewer, list: { at } }: Around): Html {
  const { name, kind, place, least, deliveredAt } = channel;
  const test = html`<td>${buttonForm(viewer, { path: `/alerts/channels/${name}/test`, label: "Send a test" })}</td>`;
  return html`<tr><th scope="row">${name}</th><td class="break">${kind === "email" ? place : html`webhook at ${place}`}</td><td>${leastWords[least]}</td><td>${deliveredAt === null ? "never" : ago(deliveredAt, at)}</td><td class="wide break">${channelState(channel, at)}</td>${mayChange ? test : nothing}</tr>`;
}

function channelState(
  { failingSince, failures, failure, deliveredAt, waiting }: ShownChannel,
  at: string,
): Html {
  const queued = waiting === 0 ? nothing : html`; ${howMany(waiting, "alert")} waiting`;
  if (failingSince !== null)
    return html`<strong class="bad">failing</strong> since ${ago(failingSince, at)}, ${howMany(failures, "attempt")}: <bdi>${failure}</bdi>${queued}`;
  return html`${deliveredAt === null ? "not used yet" : "works"}${queued}`;
}

// What is looked at.

function ruleSection(around: Around): Html {
  return html`<section><h2 id="rules">Rules</h2>
<p class="small">Each rule is also the metric <code>nearcrawl_alerts{name="…"}</code>, and <code>nearcrawl alerts</code> ends with exit code 4 while one finds something that nobody has acknowledged or muted.</p>
<ul class="rules">${listedRules.map((rule) => ruleEntry(rule, around))}</ul></section>`;
}

/** The name is the anchor that messages lead to, unless the alert itself has it. */
function ruleEntry(
  { name, looksFor, severity }: (typeof listedRules)[number],
  { list, runbook }: Around,
): Html {
  const isShown = [...list.alerts, ...list.acknowledged].some((alert) => alert.name === name);
  const markdown = runbook.get(name);
  const words = html`<span class="mono">${name}</span> <span class="severity severity-${severity}">${severity}</span> <span class="looks-for">${looksFor}</span>`;
  if (markdown === undefined) return html`<li>${words}</li>`;
  return html`<li><details><summary>${words}</summary><div class="runbook"${isShown ? nothing : html` id="${name}"`}>${markdownHtml(markdown)}</div></details></li>`;
}
