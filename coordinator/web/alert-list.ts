/** Alerts as they stand on top of the overview and on their own page: what is the matter, what to do, where to look. */
import type { Alert } from "#core/alerts/alert";
import { alertCountWords, allIsWell } from "../flows/show-alerts.ts";
import { type Html, html } from "./html.ts";

export function alertList(alerts: readonly Alert[]): Html {
  if (alerts.length === 0) return html`<p class="all-well">${allIsWell}</p>`;
  return html`<ul class="alerts">${alerts.map(alertLine)}</ul>`;
}

/** With a heading that counts them. */
export function alertSection(alerts: readonly Alert[]): Html {
  if (alerts.length === 0) return alertList(alerts);
  return html`<h2><a href="/alerts">Needs attention</a> <span class="small">${alertCountWords(alerts)}</span></h2>${alertList(alerts)}`;
}

function alertLine({ name, severity, words, advice, link }: Alert): Html {
  return html`<li class="alert alert-${severity}"><span class="severity">${severity}</span><div><p class="what"><a href="${link}">${words}</a></p><p class="small">${advice} <span class="mono">${name}</span></p></div></li>`;
}
