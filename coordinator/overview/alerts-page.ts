/**
 * Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look.
 * Some lead to pages that are for operators; others see the same words without the link.
 */
import { type Actor, mayDo } from "#core/actor";
import { instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import { type Alert, type AlertList, listedRules } from "./alert-rules.ts";

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

function alertList(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return html`<p class="all-well">${allIsWell}</p>`;
  return html`<ul class="alerts">${alerts.map((alert) => alertLine(alert, reader))}</ul>`;
}

/** With a heading that counts them. */
export function alertSection(alerts: readonly Alert[], reader: AlertReader): Html {
  if (alerts.length === 0) return alertList(alerts, reader);
  return html`<h2><a href="/alerts">Needs attention</a> <span class="small">${alertCountWords(alerts)}</span></h2>${alertList(alerts, reader)}`;
}

/** Of these lists operators alone may read. */
const operatorsOnly = /^\/fleet\/(incidents|trust|versions)\b/;

function alertLine({ name, severity, words, advice, link }: Alert, reader: AlertReader): Html {
  const isOpen = reader === "operator" || !operatorsOnly.test(link);
  const what = isOpen ? html`<a href="${link}">${words}</a>` : html`<strong>${words}</strong>`;
  return html`<li class="alert alert-${severity}"><span class="severity">${severity}</span><div><p class="what">${what}</p><p class="small">${advice} <span class="mono">${name}</span></p></div></li>`;
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

export function alertsBody({ at, alerts }: AlertList, reader: AlertReader): Html {
  const counts = alerts.length === 0 ? "none" : alertCountWords(alerts);
  return html`<h1>Alerts</h1>
<p class="lead"><strong>${counts}</strong> as of ${instant(at)}</p>
<section>${alertList(alerts, reader)}</section>
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
