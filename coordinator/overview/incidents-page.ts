/** Incidents: what was refused and why, by crawler, kind and hour. */
import { type IncidentEntry, incidentDays } from "#core/incidents";
import { crawlerOr, empty, options, titleRow } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";

export interface IncidentsPage {
  readonly crawler: string;
  readonly kind: string;
  readonly since: string;
  readonly incidents: readonly IncidentEntry[];
  /** More there are than are listed. */
  readonly isCut: boolean;
}

const spanNames = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", `${incidentDays} days (all kept)`],
] as const;

export function incidentsBody(page: IncidentsPage): Html {
  const { crawler, kind, since, incidents, isCut } = page;
  return html`${titleRow("Incidents")}
<p class="lead">What crawlers and unknown clients did that they should not do. The same kind by the same crawler within an hour is one line with a count.</p>
<form class="filter-row fleet-filters" method="get" action="/fleet/incidents" role="search" aria-label="Incidents">
<label>Crawler <input name="crawler" value="${crawler}" maxlength="63" size="14"></label>
<label>Kind <input name="kind" value="${kind}" maxlength="60" size="16"></label>
<label>In the last <select name="since">${options(spanNames, since)}</select></label>
<button class="slim">Show</button></form>
${
  incidents.length === 0
    ? empty(
        "No incidents.",
        crawler === "" && kind === ""
          ? "Nothing was rejected in this period."
          : html`<a href="/fleet/incidents">Show all</a>`,
      )
    : html`${incidentTable(incidents, { withCrawler: true })}${isCut ? html`<p class="small">The latest ${countText(incidents.length)}; filter by crawler or kind to see others.</p>` : nothing}`
}`;
}

export function incidentTable(
  incidents: readonly IncidentEntry[],
  { withCrawler }: { readonly withCrawler: boolean },
): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Incidents"><table>
<thead><tr><th scope="col">Last</th>${withCrawler ? html`<th scope="col">Crawler</th>` : nothing}<th scope="col">Kind</th><th scope="col" class="number">Count</th><th scope="col">From</th><th scope="col">What happened</th></tr></thead>
<tbody>${incidents.map(
    (one) =>
      html`<tr><td>${instant(one.lastAt)}</td>${withCrawler ? html`<td>${crawlerOr(one.crawler, "unknown client")}</td>` : nothing}<td>${one.kind}</td><td class="number">${countText(one.count)}</td><td>${one.remoteAddress ?? "–"}</td><td class="why">${one.words}${one.file === null ? nothing : html`<details><summary>The file</summary><pre>${one.file}</pre></details>`}</td></tr>`,
  )}</tbody></table></div>`;
}
