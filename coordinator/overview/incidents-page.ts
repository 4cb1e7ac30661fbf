/** Incidents: what was refused and why, by crawler, kind and hour. */
import { type IncidentEntry, incidentDays } from "#core/incidents";
import { crawlerOr, empty, options, tableOf, titleRow } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";

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
<p class="lead">What crawlers and unknown clients did that they should not do. The same kind by the same crawler within an hour is
one line with a count.</p>
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
    : html`${incidentTable(incidents, { withCrawler: true })}${
        isCut &&
        html`<p class="small">The latest ${countText(incidents.length)}; filter by crawler or kind to see others.</p>`
      }`
}`;
}

export function incidentTable(
  incidents: readonly IncidentEntry[],
  { withCrawler }: { readonly withCrawler: boolean },
): Html {
  const heads = ["Last", withCrawler && "Crawler", "Kind", "Count .number", "From", "What happened .why"];
  return tableOf("Incidents", heads, incidents, (one) => [
    instant(one.lastAt),
    crawlerOr(one.crawler, "unknown client"),
    one.kind,
    countText(one.count),
    one.remoteAddress ?? "–",
    html`${one.words}${one.file !== null && html`<details><summary>The file</summary><pre>${one.file}</pre></details>`}`,
  ]);
}
