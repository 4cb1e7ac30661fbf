/** One crawler: its state, what it owns, what it measured, how its fetches end. */
import type { CrawlerDetail } from "../flows/show-overview.ts";
import { msText } from "../flows/who-words.ts";
import { countText, crawlerLink, msOrDash, shippedShare, stateBadge } from "./figures.ts";
import { type Html, html, nothing } from "./html.ts";
import { crawlerFacts, subnetList } from "./who-sections.ts";

export function crawlerBody(detail: CrawlerDetail): Html {
  const { crawler } = detail;
  return html`<div class="title-row"><h1>${crawler.name}</h1>${stateBadge(crawler.state)}</div>
<dl class="tiles">
${tile("Subnets", countText(crawler.subnets))}
${tile("Mean RTT to them", msOrDash(crawler.meanRttMs))}
${tile("Pages", countText(crawler.pages))}
${tile("Shipped of what was fetched", shippedShare(crawler))}
${tile("Open leases", countText(crawler.openLeases))}
</dl>
${crawlerFacts(crawler)}
<section><h2>Its subnets, latest first</h2>${
    detail.subnets.subnets.length > 0
      ? subnetList(detail.subnets)
      : html`<div class="empty"><p><strong>None yet.</strong> It gets the subnets that it turns out to be nearest to.</p></div>`
  }</section>
${outcomes(detail)}
${peers(detail)}`;
}

function tile(name: string, figure: string): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${figure}</span></dd></div>`;
}

function outcomes(detail: CrawlerDetail): Html {
  if (detail.outcomes.length === 0) return nothing;
  return html`<section><h2>Latest fetches</h2><ul class="shares">${detail.outcomes.map(
    (line) => html`<li>${line.outcome} <strong>${countText(line.fetches)}</strong></li>`,
  )}</ul></section>`;
}

function peers(detail: CrawlerDetail): Html {
  if (detail.peers.length === 0) return nothing;
  return html`<section><h2>How far the others are</h2><div class="scroll"><table><thead><tr><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">By</th></tr></thead><tbody>${detail.peers.map(
    (peer) =>
      html`<tr><th scope="row">${crawlerLink(peer.name)}</th><td class="number">${msText(peer.rttMs)}</td><td>${peer.method}</td></tr>`,
  )}</tbody></table></div></section>`;
}
