/** One crawler: how it stands and what to do, what it does against what it may, what it has, and its past. */
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { askFor, crawlerFor, empty, tile } from "../web/components.ts";
import { ago, countText, instant, msOrDash, percentText, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { crawlerFacts, subnetList } from "../who/sections-page.ts";
import { bytesText, msText } from "../who/words.ts";
import { crawlerDeeds } from "./crawler-deeds.ts";
import { absenceSection, insideSections } from "./crawler-history-page.ts";
import type { CrawlerView, Operation } from "./crawler-view.ts";
import type { Blame, FetchedOfLate } from "./fleet-ports.ts";
import { workFacts } from "./web-crawler-work.ts";

export function crawlerBody(view: CrawlerView, at: string, viewer: PageViewer): Html {
  const { crawler, operation, inside } = view;
  return html`${header(view, at)}
${crawlerDeeds(view, viewer)}
<dl class="tiles by-four">
${today("Pages today (UTC)", operation.pagesToday, operation.pagesPerDay, countText)}
${today("Bytes today", operation.bytesToday, operation.bytesPerDay, bytesText)}
${tile("Subnets", countText(crawler.subnets), subnetsLink(view, viewer))}
${tile("Mean RTT to them", msOrDash(crawler.meanRttMs))}
${tile("Pages in the index", countText(crawler.pages), crawler.bodyBytes > 0 ? `${shippedShare(crawler)} of their bytes were shipped` : "none yet")}
${tile("Open leases", countText(crawler.openLeases))}
${probeTile(operation)}
${tile("Failed in 24 h", failedShare(operation), operation.failures === null ? "nothing was fetched" : `of ${countText(operation.failures.fetches)} ${operation.failures.fetches === 1 ? "fetch" : "fetches"}`)}
</dl>
${crawlerFacts(crawler, (address) => askFor(viewer, address))}
${limitFacts(operation)}
${workFacts(operation)}
${failureSection(view, viewer)}
${absenceSection(operation)}
<section><h2>Its subnets, latest first</h2>${
    view.subnets.subnets.length > 0
      ? subnets(view, viewer)
      : empty("None yet.", "It gets the subnets that it turns out to be nearest to.")
  }</section>
${fetchSection(view, viewer)}
${inside === null ? nothing : insideSections({ crawler, inside, at }, viewer)}
${peers(view, viewer)}`;
}

function header({ crawler, operation: { standing } }: CrawlerView, at: string): Html {
  const { state, since, why, advice } = standing;
  const badge = { revoked: "shut out", never: "never connected" }[state as "revoked" | "never"] ?? state;
  return html`<div class="title-row"><h1>${crawler.name}</h1>${stateBadge(badge)}${since === null ? nothing : html`<span class="small">${state === "online" ? "connected" : "since"} ${ago(since, at)}</span>`}</div>
${
  why === null
    ? nothing
    : html`<div class="verdict ${state === "online" ? "" : "verdict-away"}"><p><strong>Why:</strong> ${why}.${since === null ? nothing : html` <span class="small">${instant(since)}</span>`}</p>${advice === null ? nothing : html`<p><strong>What to do:</strong> ${advice}</p>`}</div>`
}`;
}

function today(name: string, done: number, most: number, text: (value: number) => string): Html {
  const share = most > 0 ? ` (${percentText(done / most)})` : "";
  return tile(name, text(done), `of ${text(most)}${share}`);
}

function subnetsLink({ crawler }: CrawlerView, { actor }: PageViewer): Html {
  if (crawler.subnets === 0 || !mayDo(actor, "read")) return nothing;
  return html`<a href="${pathWith("/explore", { crawler: crawler.name })}">on the map of the IP space</a>`;
}

function probeTile({ activity: { probes } }: Operation): Html {
  const of = `in the latest ${howMany(probes.rounds, "round")}${probes.asked > 0 ? `, ${percentText(probes.measured / probes.asked)} answered` : ""}`;
  return tile("Probes of late", countText(probes.asked), of);
}

function failedShare({ failures }: Operation): string {
  if (failures === null || failures.fetches === 0) return "–";
  const failed = Object.values(failures.failures).reduce((sum, count) => sum + count, 0);
  return percentText(failed / failures.fetches);
}

function limitFacts({ granted, partnerAllows, pagesPerDay, bytesPerDay }: Operation): Html {
  const of = (pages: number | null, bytes: number | null, none: string) =>
    pages === null && bytes === null
      ? none
      : `${pages === null ? "any number of pages" : howMany(pages, "page")}, ${bytes === null ? "any bytes" : bytesText(bytes)}`;
  return html`<dl class="facts">
<div><dt>Operators grant a day</dt><dd>${of(granted.pagesPerDay, granted.bytesPerDay, "as its partner allows")}</dd></div>
<div><dt>Its partner allows a day</dt><dd>${of(partnerAllows.pagesPerDay, partnerAllows.bytesPerDay, "not told yet")}</dd></div>
<div><dt>In force: the least of both</dt><dd>${howMany(pagesPerDay, "page")}, ${bytesText(bytesPerDay)}</dd></div>
</dl>`;
}

/** Those who may ask about any subnet get the list that asks. */
function subnets({ subnets: list }: CrawlerView, { actor }: PageViewer): Html {
  if (mayDo(actor, "read")) return subnetList(list);
  return html`<ul class="shares">${list.subnets.map((line) => html`<li><span class="mono">${line.range}</span> ${msOrDash(line.rttMs)}</li>`)}</ul>`;
}

export const blameNames: Readonly<Record<Blame, string>> = {
  target: "the site",
  network: "the network",
  crawler: "the crawler",
  us: "our software",
};

function failureSection({ crawler, operation: { failures } }: CrawlerView, { actor }: PageViewer): Html {
  if (failures === null) return nothing;
  const lines = Object.entries(failures.failures).filter(([, count]) => count > 0);
  return html`<section><h2>What failed in the last 24 hours, and whose fault it was</h2>${
    lines.length === 0
      ? empty("Nothing failed.", `All of ${countText(failures.fetches)} fetches were answered.`)
      : html`<ul class="shares">${lines.map(
          ([blame, count]) =>
            html`<li>${mayDo(actor, "read") ? html`<a href="${pathWith("/fleet/failures", { crawler: crawler.name, blame })}">${blameNames[blame as Blame]}</a>` : blameNames[blame as Blame]} <strong>${countText(count)}</strong> ${percentText(count / failures.fetches)}</li>`,
        )}</ul>`
  }</section>`;
}

function fetchSection({ operation: { activity }, outcomes }: CrawlerView, viewer: PageViewer): Html {
  if (activity.fetches.length === 0) return nothing;
  return html`<section><h2>Latest fetches</h2>
<ul class="shares">${outcomes.map((line) => html`<li>${line.outcome} <strong>${countText(line.fetches)}</strong></li>`)}</ul>
<div class="scroll" tabindex="0" role="region" aria-label="Latest fetches"><table><thead><tr><th scope="col">When</th><th scope="col">URL</th><th scope="col">Outcome</th><th scope="col" class="number">Time</th><th scope="col" class="number">Page</th><th scope="col" class="number">Shipped</th></tr></thead>
<tbody>${activity.fetches.map((line) => fetchRow(line, viewer))}</tbody></table></div></section>`;
}

function fetchRow(line: FetchedOfLate, viewer: PageViewer): Html {
  return html`<tr><td>${instant(line.at.toISOString())}</td><td class="break">${line.url === null ? "no longer known" : askFor(viewer, line.url)}</td><td>${line.outcome} ${line.status}${line.blame === null ? nothing : html`<span class="small">the fault of ${blameNames[line.blame]}</span>`}</td><td class="number">${msText(line.totalMs)}</td><td class="number">${bytesText(line.bodyBytes)}</td><td class="number">${bytesText(line.shippedBytes)}</td></tr>`;
}

function peers({ peers: others }: CrawlerView, viewer: PageViewer): Html {
  if (others.length === 0) return nothing;
  return html`<section><h2>How far the others are</h2><div class="scroll" tabindex="0" role="region" aria-label="Distances"><table><thead><tr><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">By</th></tr></thead><tbody>${others.map(
    (peer) =>
      html`<tr><th scope="row">${crawlerFor(viewer, peer.name)}</th><td class="number">${msText(peer.rttMs)}</td><td>${peer.method}</td></tr>`,
  )}</tbody></table></div></section>`;
}
