/** What is due and not being fetched: how long it has waited, for what, and the hosts that wait longest. */

import { howMany, whenWords } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import type { ToldOf } from "../web/api-operation.ts";
import { titleRow } from "../web/components.ts";
import { ago, askAbout, countText, crawlerLink } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import { queueTable } from "./overview-page.ts";
import { queueFront } from "./overview-types.ts";
import { waitReasonWords, waitWords } from "./overview-words.ts";
import type { GatedHosts, LeftOutUrls, QueueAges, queueView, WaitingHost } from "./queue-api.ts";

export type QueueView = ToldOf<typeof queueView>;

export function queueBody(view: QueueView): Html {
  const { ages, reason } = view;
  return html`${titleRow("Queue")}
<p class="lead">${leadWords(ages)} ${verdictWords(ages)}<a href="/fleet/in-hand">Hosts in progress</a></p>
<p class="small">A host waits from the moment when its longest due URL could have been fetched until a crawler has it. It is counted under the first thing in its way.</p>
${ages.hosts === 0 ? nothing : html`<section>${queueTable(ages)}</section>`}
<section><h2>Longest waiting${reason === null ? nothing : html` <span class="small">for ${waitReasonWords[reason]} · <a href="/fleet/queue">all</a></span>`}</h2>
${hostTable(view)}</section>
${gatedSection(view.gated, view.at)}
${leftOutSection(view.leftOut)}
${domainSection(view.leftOut)}
${historySection("/fleet/queue", { reason }, view.history)}`;
}

function gatedSection({ hosts, providers, longest }: GatedHosts, at: string): Html {
  if (hosts === 0) return nothing;
  const by = providers
    .map(({ provider, hosts: own }) => `${gateName(provider)} ${countText(own)}`)
    .join(", ");
  return html`<section aria-labelledby="bot-gates"><h2 id="bot-gates">Behind bot gates</h2>
<p>${howMany(hosts, "host")} ${hosts === 1 ? "rests" : "rest"}, since a gate answers in ${hosts === 1 ? "its" : "their"} place: ${by}. Pages stay as they were last read. Each host is tried again with one URL, after a day at first and every two weeks at last.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Hosts behind bot gates"><table>
<thead><tr><th scope="col">Host</th><th scope="col">Gate</th><th scope="col">Since</th><th scope="col" class="number">Tries</th><th scope="col">Next try</th></tr></thead>
<tbody>${longest.map((one) => html`<tr><th scope="row" class="break">${askAbout(one.host)}</th><td>${gateName(one.provider)}</td><td>${ago(one.since, at)}</td><td class="number">${countText(one.tries)}</td><td>${one.nextTryAt === null ? "–" : whenWords(one.nextTryAt, new Date(at))}</td></tr>`)}</tbody>
</table></div>${longest.length < hosts ? html`<p class="small">Those that have been for longest; <a href="/sites?state=blocked">the list of sites</a> has all.</p>` : nothing}</section>`;
}

function leftOutSection({ urls, hosts, more, most }: LeftOutUrls): Html {
  if (urls === 0) return nothing;
  return html`<section><h2>Skipped at a host's bound</h2>
<p>${countText(hosts)} ${more ? "hosts or more have" : hosts === 1 ? "host has" : "hosts have"} all the URLs that they may have and hold back; URLs of theirs were skipped ${countText(urls)} ${urls === 1 ? "time" : "times"}, and are not kept. A host that names URLs without end is most often a trap.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Hosts at their bounds"><table>
<thead><tr><th scope="col">Host</th><th scope="col" class="number">Left out</th></tr></thead>
<tbody>${most.map((one) => html`<tr><th scope="row" class="break">${askAbout(one.host)}</th><td class="number">${countText(one.urls)}</td></tr>`)}</tbody>
</table></div></section>`;
}

function domainSection({ domains }: LeftOutUrls): Html {
  if (domains.length === 0) return nothing;
  return html`<section><h2>More new hosts than are let in a day</h2>
<p>Links brought more new hosts of these domains, or their pages link to more, than are let in a day. What waits comes in on a later day; what is skipped when a page that names it is fetched again. Whoever crawled the pages has no part in it.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Domains with more new hosts than are let in a day"><table>
<thead><tr><th scope="col">Domain</th><th scope="col" class="number">URLs that wait</th><th scope="col" class="number">Skipped</th></tr></thead>
<tbody>${domains.map((one) => html`<tr><th scope="row" class="break">${one.domain}</th><td class="number">${countText(one.waiting)}</td><td class="number">${countText(one.leftOut)}</td></tr>`)}</tbody>
</table></div></section>`;
}

function verdictWords({ verdict }: QueueAges): Html {
  return verdict.limitedBy === "nothing-due"
    ? nothing
    : html`The crawl is <strong>${verdict.words}</strong>. `;
}

function leadWords({ hosts, isEstimate }: QueueAges): Html {
  if (hosts === 0) return html`<strong>Nothing that is due waits.</strong>`;
  return html`<strong>${isEstimate ? "About " : ""}${countText(hosts)} ${hosts === 1 ? "host" : "hosts"}</strong> ${hosts === 1 ? "is" : "are"} due and not in a crawler's hands.${isEstimate ? " There are many, so a part of them was looked at." : ""}`;
}

function hostTable({ hosts, at, reason, ages }: QueueView): Html {
  if (hosts.length === 0) {
    const hint =
      reason !== null && ages.hosts > queueFront
        ? `Of the ${countText(queueFront)} hosts that wait longest, none waits for this.`
        : "URLs are added with nearcrawl urls add, and found by the crawl itself.";
    return html`<div class="empty"><p><strong>No host waits${reason === null ? "" : " for this"}.</strong> ${hint}</p></div>`;
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hosts waiting longest"><table>
<thead><tr><th scope="col">Host</th><th scope="col">Due since</th><th scope="col">Why it waits</th><th scope="col">Crawler</th><th scope="col">Subnet</th></tr></thead>
<tbody>${hosts.map((host) => hostRow(host, at))}</tbody>
</table></div>${hosts.length < ages.hosts ? html`<p class="small">The ${countText(hosts.length)} that wait longest; the CSV has more.</p>` : nothing}`;
}

function hostRow(host: WaitingHost, at: string): Html {
  return html`<tr><th scope="row" class="break">${askAbout(host.host)}</th><td>${ago(host.dueAt, at)}</td><td class="wide">${waitWords(host, new Date(at))}</td><td>${host.crawler === null ? "–" : crawlerLink(host.crawler)}</td><td>${host.range === null ? "–" : askAbout(host.range)}</td></tr>`;
}

export function queueCsv({ hosts, at }: QueueView): CsvTable {
  return {
    columns: ["host", "due_at", "waits_seconds", "reason", "why", "crawler", "subnet", "not_before"],
    rows: hosts.map((host) => [
      ...[host.host, host.dueAt, Math.round((Date.parse(at) - Date.parse(host.dueAt)) / 1000), host.reason],
      ...[waitWords(host, new Date(at)), host.crawler, host.range, host.notBefore],
    ]),
  };
}
