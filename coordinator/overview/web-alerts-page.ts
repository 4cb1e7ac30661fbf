/** Every alert there is now, and which rules are looked at: a page for whoever was sent there by a message. */

import { instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import { type AlertName, alertSeverities } from "./alerts.ts";
import { type AlertReader, alertList } from "./alerts-page.ts";
import { ruleWords } from "./rule-words.ts";
import { type AlertList, alertCountWords } from "./show-alerts.ts";

export function alertsBody({ at, alerts }: AlertList, reader: AlertReader): Html {
  const counts = alerts.length === 0 ? "none" : alertCountWords(alerts);
  return html`<h1>Alerts</h1>
<p class="lead"><strong>${counts}</strong> as of ${instant(at)}</p>
<section>${alertList(alerts, reader)}</section>
<section><h2>What is looked at</h2>
<p class="small">Each rule is also the metric <code>nearcrawl_alerts{name="…"}</code>, and <code>nearcrawl alerts</code> ends with exit code 4 while one finds something.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Rules"><table>
<thead><tr><th scope="col">Rule</th><th scope="col">Finds that</th><th scope="col">Severity</th><th scope="col" class="number">Now</th></tr></thead>
<tbody>${(Object.keys(alertSeverities) as AlertName[]).map((name) => ruleRow(name, alerts))}</tbody>
</table></div></section>`;
}

function ruleRow(name: AlertName, alerts: AlertList["alerts"]): Html {
  const count = alerts.find((alert) => alert.name === name)?.count ?? 0;
  return html`<tr><th scope="row" class="mono">${name}</th><td class="wide">${ruleWords[name]}</td><td>${alertSeverities[name]}</td><td class="number">${count === 0 ? "–" : count}</td></tr>`;
}
