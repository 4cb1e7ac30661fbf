/** What lies in a space, as a section: figures, and a bar for each crawler's subnets. */

import { bytesText, howMany, msText, tooFewWords } from "#core/format";
import { empty, shareBar, small, tableOf, tile } from "../web/components.ts";
import { countText, crawlerLink } from "../web/format.ts";
import { type Html, html, pathWith } from "../web/html.ts";
import type { RollUp, WhoAnswer } from "./who-api.ts";

export function rollUpSection(answer: WhoAnswer, rollUp: RollUp): Html {
  const sites = sitesQuery(answer);
  const hosts = rollUp.hosts === 1 ? "host" : `${countText(rollUp.hosts)} hosts`;
  return html`<section><h2>In its space</h2>
${
  rollUp.subnets === 0
    ? empty(
        "No subnet in use.",
        html`${registeredWords(rollUp)}Nobody has met a host here: <a href="/submit">submit a URL</a> that lies in it, and its subnet gets a crawler.`,
      )
    : figures(rollUp)
}
${
  sites !== null &&
  rollUp.hosts > 0 &&
  html`<p class="after-table"><a href="${pathWith("/sites", sites)}">The ${hosts} in the list of sites</a></p>`
}</section>`;
}

function figures(rollUp: RollUp): Html {
  const { rtt } = rollUp;
  const pages = howMany(rtt.pages, "page");
  const rttWords =
    rtt.medianMs === null
      ? `${pages} in measured subnets`
      : `median ${msText(rtt.medianMs)}, weighted by ${pages}`;
  return html`<dl class="tiles">
${tile("Subnets in use", countText(rollUp.subnets), registeredWords(rollUp))}
${tile("Pages", countText(rollUp.pages), `${bytesText(rollUp.bytes)} fetched`)}
${tile("Hosts", countText(rollUp.hosts), `${countText(rollUp.dueHosts)} due`)}
${tile("Mean RTT", rtt.meanMs === null ? tooFewWords : msText(rtt.meanMs), rttWords)}
</dl>
${crawlerTable(rollUp)}`;
}

function registeredWords({ registered }: RollUp): string {
  return registered === null ? "" : `${countText(registered)} registered. `;
}

function crawlerTable(rollUp: RollUp): Html {
  const { byCrawler, others, unassigned } = rollUp;
  const most = Math.max(1, unassigned, ...byCrawler.map(({ subnets }) => subnets));
  const rows: { readonly name: Html; readonly subnets: number; readonly pages: number | null }[] = [
    ...byCrawler.map((one) => ({ ...one, name: crawlerLink(one.crawler) })),
    ...(others === null ? [] : [{ ...others, name: html`${howMany(others.crawlers, "other crawler")}` }]),
    ...(unassigned === 0 ? [] : [{ name: small("not assigned directly"), subnets: unassigned, pages: null }]),
  ];
  const heads = ["Crawler .break", "(Share) .bar-column", "Subnets .number", "Pages .number"];
  return tableOf("Crawlers in this space", heads, rows, ({ name, subnets, pages }) => [
    name,
    shareBar(Math.max(0.01, subnets / most)),
    countText(subnets),
    pages === null ? "–" : countText(pages),
  ]);
}

/** The filter of the list of sites that shows the same hosts; null: it has none for this. */
function sitesQuery({ takenFor, organisation }: WhoAnswer): Record<string, string> | null {
  if (takenFor.type === "country") return { country: takenFor.value };
  if (organisation) return { organisation: organisation.handle ?? organisation.name };
  return null;
}
