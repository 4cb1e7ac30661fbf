/**
 * Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look.
 * Some lead to pages that are for operators; others see the same words without the link.
 */
import { type Actor, mayDo } from "#core/actor";
import { buttonForm } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type Alert, type AlertList, listedRules, type MutedAlert } from "./alert-rules.ts";

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

/** `viewer`: where it is given, operators can mute. */
function alertList(alerts: readonly Alert[], reader: AlertReader, viewer: PageViewer | null = null): Html {
  if (alerts.length === 0) return html`<p class="all-well">${allIsWell}</p>`;
  return html`<ul class="alerts">${alerts.map((alert) => alertLine(alert, reader, viewer))}</ul>`;
}

/** With a heading that counts them. */
export function alertSection(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return alertList(alerts, reader);
  return html`<h2><a href="/alerts">Needs attention</a> <span class="small">${alertCountWords(alerts)}</span></h2>${alertList(alerts, reader)}`;
}

/** Of these lists operators alone may read. */
const operatorsOnly = /^\/fleet\/(incidents|trust|versions)\b/;

function alertLine(alert: Alert, reader: AlertReader, viewer: PageViewer | null): Html {
  const { name, severity, words, advice, link } = alert;
  const isOpen = reader === "operator" || !operatorsOnly.test(link);
  const what = isOpen ? html`<a href="${link}">${words}</a>` : html`<strong>${words}</strong>`;
  return html`<li class="alert alert-${severity}"><span class="severity">${severity}</span><div><p class="what">${what}</p><p class="small">${advice} <span class="mono">${name}</span></p>${viewer === null ? nothing : muteForm(alert, viewer)}</div></li>`;
}

const usualMuteHours = 24;

function muteForm({ name, targets }: Alert, viewer: PageViewer): Html {
  if (!mayDo(viewer.actor, "fleet-write") || viewer.formToken === null) return nothing;
  const id = (field: string) => `mute-${name}-${field}`;
  return html`<details class="mute"><summary>Acknowledge</summary><form method="post" action="/alerts/${name}/mute">${formToken(viewer)}
${
  targets.length === 0
    ? nothing
    : html`<div><label for="${id("target")}">Of</label><select id="${id("target")}" name="target"><option value="">all of them</option>${targets.map((target) => html`<option>${target.replace(/ \(.*$/, "")}</option>`)}</select></div>`
}<div><label for="${id("hours")}">Tell nobody for (hours)</label><input class="number" id="${id("hours")}" name="hours" type="number" min="0.1" max="720" step="any" value="${usualMuteHours}" required></div>
<div><label for="${id("reason")}">Since</label><input id="${id("reason")}" name="reason" maxlength="300" required autocomplete="off"></div>
<button class="slim">Mute</button></form></details>`;
}

function mutedSection(muted: readonly MutedAlert[], viewer: PageViewer): Html {
  if (muted.length === 0) return nothing;
  const mayUnmute = mayDo(viewer.actor, "fleet-write") && viewer.formToken !== null;
  return html`<section><h2>Muted</h2><ul class="plain">${muted.map(
    ({ name, words, until, reason, mutedBy, mutedTarget }) =>
      html`<li>${words} <span class="small"><span class="mono">${name}</span>${mutedTarget === null ? nothing : html` of ${mutedTarget}`}: until ${instant(until)}, by ${mutedBy}: ${reason}</span>${
        mayUnmute
          ? buttonForm(
              viewer,
              { path: `/alerts/${name}/unmute`, label: `Tell ${name} again` },
              html`<input type="hidden" name="target" value="${mutedTarget ?? ""}">`,
            )
          : nothing
      }</li>`,
  )}</ul></section>`;
}

/** "1 critical, 2 warnings"; an empty text when there is none. */
function alertCountWords(alerts: readonly Alert[]): string {
  const critical = alerts.filter(({ severity }) => severity === "critical").length;
  const warnings = alerts.length - critical;
  const parts = [
    critical > 0 && `${critical} critical`,
    warnings > 0 && `${warnings} ${warnings === 1 ? "warning" : "warnings"}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Said where there is none. */
export const allIsWell = "Nothing needs attention.";

// Every alert there is now, and which rules are looked at: a page for whoever was sent there by a message.

export function alertsBody(
  { at, alerts, muted, incomplete }: AlertList,
  reader: AlertReader,
  viewer: PageViewer,
): Html {
  const counts = alerts.length === 0 ? "none" : alertCountWords(alerts);
  return html`<h1>Alerts</h1>
<p class="lead"><strong>${counts}</strong> as of ${instant(at)}</p>
${incomplete === null ? nothing : html`<p class="notice">This is not all: ${incomplete}. Here is what the coordinator knows of itself.</p>`}
<section>${incomplete !== null && alerts.length === 0 ? nothing : alertList(alerts, reader, viewer)}</section>
${mutedSection(muted, viewer)}
<section><h2>What is looked at</h2>
<p class="small">Each rule is also the metric <code>nearcrawl_alerts{name="…"}</code>, and <code>nearcrawl alerts</code> ends with exit code 4 while one finds something.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Rules"><table>
<thead><tr><th scope="col">Rule</th><th scope="col">Finds that</th><th scope="col">Severity</th><th scope="col" class="number">Now</th></tr></thead>
<tbody>${listedRules.map((rule) => ruleRow(rule, alerts))}</tbody>
</table></div></section>`;
}

function ruleRow(
  { name, looksFor, severity }: (typeof listedRules)[number],
  alerts: AlertList["alerts"],
): Html {
  const count = alerts.find((alert) => alert.name === name)?.count ?? 0;
  return html`<tr><th scope="row" class="mono">${name}</th><td class="wide">${looksFor}</td><td>${severity}</td><td class="number">${count === 0 ? "–" : count}</td></tr>`;
}
