/** Everything that was noted of one crawler, by time; on its own page, since it may be long. */

import { crawlerPath, empty, pager } from "../web/components.ts";
import { ago, instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import type { CrawlerLogPage } from "./fleet-ports.ts";

export function crawlerLogBody(name: string, log: CrawlerLogPage, at: string): Html {
  return html`<h1>Log of <a href="${crawlerPath(name)}">${name}</a></h1>
${log.lines.length === 0 ? empty("Nothing more was noted.", html`<a href="${crawlerPath(name)}">Back to ${name}</a>`) : logTable(log, at)}
${pager({ path: crawlerPath(name, "/log"), query: {}, page: log.page, more: log.more })}`;
}

export function logTable({ lines }: Pick<CrawlerLogPage, "lines">, at: string): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Log"><table class="log">
<thead><tr><th scope="col">When</th><th scope="col">Kind</th><th scope="col">What</th><th scope="col">By, or from</th></tr></thead>
<tbody>${lines.map(
    (line) =>
      html`<tr><td>${instant(line.at.toISOString())}<span class="small">${ago(line.at.toISOString(), at)}</span></td><td>${line.kind}</td><td class="break">${line.words}</td><td>${line.by ?? "–"}</td></tr>`,
  )}</tbody></table></div>`;
}
