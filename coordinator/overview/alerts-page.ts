/**
 * Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look.
 * Some lead to pages that are for operators; others see the same words without the link.
 */
import { type Actor, mayDo } from "#core/actor";
import { type Html, html } from "../web/html.ts";
import type { Alert } from "./alerts.ts";
import { alertCountWords, allIsWell } from "./show-alerts.ts";

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

export function alertList(alerts: readonly Alert[], reader: AlertReader): Html {
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
