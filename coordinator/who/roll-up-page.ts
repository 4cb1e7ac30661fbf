/** What lies in a space, as a section: figures, and a bar for each crawler's subnets. */

import { bytesText, howMany, msText, tooFewWords } from "#core/format";
import { tile } from "../web/components.ts";
import { countText, crawlerLink } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { RollUp, WhoAnswer } from "./who-api.ts";

export function rollUpSection(answer: WhoAnswer, rollUp: RollUp): Html {
  const sites = sitesQuery(answer);
  return html`<section><h2>In its space</h2>
${
  rollUp.subnets === 0
    ? html`<div class="empty"><p><strong>No subnet in use.</strong> ${registeredWords(rollUp)}Nobody has met a host here: <a href="/submit">submit a URL</a> that lies in it, and its subnet gets a crawler.</p></div>`
    : figures(rollUp)
}
${sites === null || rollUp.hosts === 0 ? nothing : html`<p class="after-table"><a href="${pathWith("/sites", sites)}">The ${rollUp.hosts === 1 ? "host" : `${countText(rollUp.hosts)} hosts`} in the list of sites</a></p>`}</section>`;
}

function figures(rollUp: RollUp): Html {
  const { rtt } = rollUp;
  return html`<dl class="tiles">
${tile("Subnets in use", countText(rollUp.subnets), registeredWords(rollUp))}
${tile("Pages", countText(rollUp.pages), `${bytesText(rollUp.bytes)} fetched`)}
${tile("Hosts", countText(rollUp.hosts), `${countText(rollUp.dueHosts)} due`)}
${tile("Mean RTT", rtt.meanMs === null ? tooFewWords : msText(rtt.meanMs), rtt.medianMs === null ? `${howMany(rtt.pages, "page")} in measured subnets` : `median ${msText(rtt.medianMs)}, weighted by ${howMany(rtt.pages, "page")}`)}
</dl>
${crawlerTable(rollUp)}`;
}

function registeredWords({ registered }: RollUp): string {
  return registered === null ? "" : `${countText(registered)} registered. `;
}

function crawlerTable(rollUp: RollUp): Html {
  const { byCrawler, others, unassigned } = rollUp;
  const most = Math.max(1, unassigned, ...byCrawler.map(({ subnets }) => subnets));
  const rows = [
    ...byCrawler.map((one) => crawlerRow(crawlerLink(one.crawler), one, most)),
    ...(others === null
      ? []
      : [crawlerRow(html`${howMany(others.crawlers, "other crawler")}`, others, most)]),
    ...(unassigned === 0
      ? []
      : [
          crawlerRow(
            html`<span class="small">not assigned directly</span>`,
            { subnets: unassigned, pages: null },
            most,
          ),
        ]),
  ];
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Crawlers in this space"><table>
<thead><tr><th scope="col">Crawler</th><th scope="col" class="bar-column"><span class="hidden">Share</span></th><th scope="col" class="number">Subnets</th><th scope="col" class="number">Pages</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function crawlerRow(
  name: Html,
  { subnets, pages }: { readonly subnets: number; readonly pages: number | null },
  most: number,
): Html {
  const width = Math.max(1, Math.round((100 * Math.min(subnets, most)) / most));
  return html`<tr><th scope="row" class="break">${name}</th><td class="bar-column"><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground" width="100" height="8"/><rect class="bar-value" width="${width}" height="8"/></svg></td><td class="number">${countText(subnets)}</td><td class="number">${pages === null ? "–" : countText(pages)}</td></tr>`;
}

/** The filter of the list of sites that shows the same hosts; null: it has none for this. */
function sitesQuery({ takenFor, organisation }: WhoAnswer): Record<string, string> | null {
  if (takenFor.type === "country") return { country: takenFor.value };
  if (organisation) return { organisation: organisation.handle ?? organisation.name };
  return null;
}
