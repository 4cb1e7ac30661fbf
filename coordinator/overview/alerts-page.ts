/**
 * Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look.
 * Some lead to pages that are for operators; others see the same words without the link.
 */
import { type Actor, mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { mostNote } from "../alerts/alerts-api.ts";
import { countWords } from "../alerts/message.ts";
import { markdownHtml } from "../alerts/runbook-page.ts";
import { buttonForm, empty, small, tableOf } from "../web/components.ts";
import { ago, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { alertSeverities } from "./alert-facts.ts";
import { type Alert, type AlertList, bareTarget, listedRules } from "./alert-rules.ts";

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

/** On top of the overview: what is the matter, and what to do. */
function alertList(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return html`<p class="all-well">${allIsWell}</p>`;
  return html`<ul class="alerts">${alerts.map(
    (
      alert,
    ) => html`<li class="alert alert-${alert.severity}"><span class="severity">${alert.severity}</span><div>${whatLine(alert, reader)}
<p class="small">${alert.advice} <a class="mono" href="/alerts#${alert.name}">${alert.name}</a></p></div></li>`,
  )}</ul>`;
}

/** With a heading that counts them. */
export function alertSection(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return alertList(alerts, reader);
  return html`<h2><a href="/alerts">Needs attention</a> ${small(countWords(alerts))}</h2>${alertList(alerts, reader)}`;
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
${incomplete !== null && html`<p class="notice">This is not all: ${incomplete}. Here is what the coordinator knows of itself.</p>`}
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

const isGraveEnough = (severity: Alert["severity"], least: Alert["severity"]) =>
  alertSeverities.indexOf(severity) <= alertSeverities.indexOf(least);

function runbookPart(name: string, runbook: Runbook): Html {
  const markdown = runbook.get(name);
  if (markdown === undefined) return nothing;
  return fold("Runbook", ` about ${name}`, html`<div class="runbook">${markdownHtml(markdown)}</div>`);
}

/** `more`: for screen readers, since several of them stand on the page. */
const fold = (title: string, more: string, body: Html) =>
  html`<details class="alert-more"><summary>${title}<span class="hidden">${more}</span></summary>${body}</details>`;

function openActions(alert: Alert, around: Around): Html {
  if (!around.mayChange) return nothing;
  return html`${acknowledgeForm(alert, around.viewer)}${muteForm(alert, around.viewer)}`;
}

function acknowledgeForm({ name }: Alert, viewer: PageViewer): Html {
  return fold(
    "Acknowledge…",
    ` ${name}`,
    html`<form class="row" method="post" action="/alerts/${name}/acknowledge">${formToken(viewer)}
<div class="grow"><label for="ack-${name}">Note for the others (optional)</label><input id="ack-${name}" name="note"
maxlength="${mostNote}" autocomplete="off"></div>
<button class="slim">Acknowledge</button></form>
<p class="small">Nobody is told of it again until it ends or names something new.</p>`,
  );
}

const usualMuteHours = 24;

function muteForm({ name, targets }: Alert, viewer: PageViewer): Html {
  const id = (field: string) => `mute-${name}-${field}`;
  const chosen = targets.map((target) => html`<option>${bareTarget(target)}</option>`);
  return fold(
    "Mute…",
    ` ${name}`,
    html`<form class="row" method="post" action="/alerts/${name}/mute">${formToken(viewer)}
${
  targets.length > 0 &&
  html`<div><label for="${id("target")}">What</label><select id="${id("target")}" name="target"><option
value="">all of it</option>${chosen}</select></div>`
}<div><label for="${id("hours")}">Hours</label><input class="number short" id="${id("hours")}" name="hours" type="number"
min="0.1" max="720" step="any" value="${usualMuteHours}" required></div>
<div class="grow"><label for="${id("reason")}">Reason</label><input id="${id("reason")}" name="reason" maxlength="300"
required autocomplete="off"></div>
<button class="slim">Mute</button></form>`,
  );
}

function acknowledgedSection(around: Around): Html {
  const { acknowledged, at } = around.list;
  if (acknowledged.length === 0) return nothing;
  const cards = acknowledged.map((alert) => {
    const { name, by, note } = alert;
    const reopen = { path: `/alerts/${name}/reopen`, label: `Reopen ${name}` };
    const said = html`<p>Acknowledged by <bdi>${by}</bdi>, ${ago(alert.at, at)}${note && html`: <bdi>${note}</bdi>`}</p>`;
    return alertCard(alert, around, around.mayChange ? buttonForm(around.viewer, reopen) : nothing, said);
  });
  return html`<section><h2>Acknowledged</h2><ul class="alerts">${cards}</ul></section>`;
}

function mutedSection(muted: AlertList["muted"], { mayChange, viewer }: Around): Html {
  if (muted.length === 0) return nothing;
  const unmute = ({ name, mutedTarget }: AlertList["muted"][number]) =>
    buttonForm(
      viewer,
      { path: `/alerts/${name}/unmute`, label: `Unmute ${name}` },
      html`<input type="hidden" name="target" value="${mutedTarget ?? ""}">`,
    );
  return html`<section><h2>Muted</h2><ul class="alerts">${muted.map(
    (one) => html`<li class="alert alert-${one.severity}"><span class="severity">${one.severity}</span><div>
<p class="what"><strong>${one.words}</strong></p><p class="small alert-facts"><span class="mono">${one.name}</span>${
      one.mutedTarget !== null && html`<span>only <bdi>${one.mutedTarget}</bdi></span>`
    }<span>until ${instant(one.until)}</span></p><p>Muted by <bdi>${one.mutedBy}</bdi>: <bdi>${one.reason}</bdi></p>${
      mayChange && html`<div class="alert-actions">${unmute(one)}</div>`
    }</div></li>`,
  )}</ul></section>`;
}

// Who is told.

function deliverySection(around: Around): Html {
  const { channels } = around.list;
  const heading = html`<h2 id="delivery">Delivery</h2>`;
  if (channels.length === 0)
    return html`<section>${heading}${empty(
      "Alerts are sent to nobody.",
      html`Add a webhook (<code>[[alerts.webhooks]]</code>) or e-mail (<code>[alerts.email]</code>) to the coordinator’s file
and start it again; the runbook (monitoring) has examples.`,
    )}</section>`;
  const { mayChange, viewer } = around;
  const { at } = around.list;
  const heads = [
    "Channel",
    "Sends to .break",
    "Told of",
    "Last delivered",
    "State .wide break",
    mayChange && "(Test)",
  ];
  return html`<section>${heading}
${tableOf("Channels", heads, channels, (channel) => [
  channel.name,
  channel.kind === "email" ? channel.place : `webhook at ${channel.place}`,
  leastWords[channel.least],
  channel.deliveredAt === null ? "never" : ago(channel.deliveredAt, at),
  channelState(channel, at),
  mayChange && buttonForm(viewer, { path: `/alerts/channels/${channel.name}/test`, label: "Send a test" }),
])}</section>`;
}

const leastWords = {
  critical: "critical alone",
  warning: "critical, warning",
  info: "everything",
} as const satisfies Record<Alert["severity"], string>;

function channelState(channel: AlertList["channels"][number], at: string): Html {
  const { failingSince, failures, failure, deliveredAt, waiting } = channel;
  const queued = waiting > 0 && `; ${howMany(waiting, "alert")} waiting`;
  if (failingSince === null) return html`${deliveredAt === null ? "not used yet" : "works"}${queued}`;
  return html`<strong class="bad">failing</strong> since ${ago(failingSince, at)}, ${howMany(failures, "attempt")}:
<bdi>${failure}</bdi>${queued}`;
}

// What is looked at.

function ruleSection(around: Around): Html {
  return html`<section><h2 id="rules">Rules</h2>
<p class="small">Each rule is also the metric <code>nearcrawl_alerts{name="…"}</code>, and <code>nearcrawl alerts</code> ends with
exit code 4 while one finds something that nobody has acknowledged or muted.</p>
<ul class="rules">${listedRules.map((rule) => ruleEntry(rule, around))}</ul></section>`;
}

/** The name is the anchor that messages lead to, unless the alert itself has it. */
function ruleEntry(
  { name, looksFor, severity }: (typeof listedRules)[number],
  { list, runbook }: Around,
): Html {
  const isShown = [...list.alerts, ...list.acknowledged].some((alert) => alert.name === name);
  const markdown = runbook.get(name);
  const words = html`<span class="mono">${name}</span> <span class="severity severity-${severity}">${severity}</span>
<span class="looks-for">${looksFor}</span>`;
  if (markdown === undefined) return html`<li>${words}</li>`;
  const body = html`<div class="runbook"${!isShown && html` id="${name}"`}>${markdownHtml(markdown)}</div>`;
  return html`<li><details><summary>${words}</summary>${body}</details></li>`;
}
