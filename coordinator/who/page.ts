/** The parts of a leaf that is split below its registered range, as a table. */

import { askAbout, crawlerLink, instant } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import type { FinerReport } from "./explain-delegation.ts";
import { rttText } from "./words.ts";

export function partsSection(parts: readonly FinerReport[]): Html {
  return html`<section><h2>Split below its registered range</h2><div class="scroll"><table>
<thead><tr><th scope="col">Addresses</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col" class="number">From the subnet's crawler</th><th scope="col">Found</th></tr></thead>
<tbody>${parts.map(partRow)}</tbody></table></div></section>`;
}

function partRow(part: FinerReport): Html {
  return html`<tr><th scope="row">${askAbout(part.range ?? "")}</th><td>${crawlerLink(part.crawler.name)}</td><td class="number">${rttText(part.rttMs)}</td><td class="number">${rttText(part.subnetRttMs)}</td><td>${instant(part.foundAt)}</td></tr>`;
}
