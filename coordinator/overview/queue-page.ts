/** What is due and not being fetched: how long it has waited, for what, and the hosts that wait longest. */

import { howMany, whenWords } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import type { ToldOf } from "../web/api-operation.ts";
import { empty, small, tableOf, titleRow } from "../web/components.ts";
import { ago, askAbout, countText, crawlerLink } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import { queueTable } from "./overview-page.ts";
import { waitReasonWords, waitWords } from "./overview-words.ts";
import {
  type GatedHosts,
  type LeftOutUrls,
  type QueueAges,
  queueFront,
  type queueView,
} from "./queue-api.ts";

export type QueueView = ToldOf<typeof queueView>;

export function queueBody(view: QueueView): Html {
  const { ages, reason } = view;
  return html`${titleRow("Queue")}
<p class="lead">${leadWords(ages)} ${verdictWords(ages)}<a href="/fleet/in-hand">Hosts in progress</a></p>
<p class="small">A host waits from the moment when its longest due URL could have been fetched until a crawler has it. It is counted
under the first thing in its way.</p>
${ages.hosts === 0 ? nothing : html`<section>${queueTable(ages)}</section>`}
<section><h2>Longest waiting${
    reason !== null && html` ${small(html`for ${waitReasonWords[reason]} · <a href="/fleet/queue">all</a>`)}`
  }</h2>
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
  const heads = ["Host .break", "Gate", "Since", "Tries .number", "Next try"];
  return html`<section aria-labelledby="bot-gates"><h2 id="bot-gates">Behind bot gates</h2>
<p>${howMany(hosts, "host")} ${hosts === 1 ? "rests" : "rest"}, since a gate answers in ${hosts === 1 ? "its" : "their"} place: ${by}.
Pages stay as they were last read. Each host is tried again with one URL, after a day at first and every two weeks at last.</p>
${tableOf("Hosts behind bot gates", heads, longest, ({ host, provider, since, tries, nextTryAt }) => [
  askAbout(host),
  gateName(provider),
  ago(since, at),
  countText(tries),
  nextTryAt === null ? "–" : whenWords(nextTryAt, new Date(at)),
])}${
  longest.length < hosts &&
  html`<p class="small">Those that have been for longest; <a href="/sites?state=blocked">the list of sites</a> has all.</p>`
}</section>`;
}

function leftOutSection({ urls, hosts, more, most }: LeftOutUrls): Html {
  if (urls === 0) return nothing;
  const have = more ? "hosts or more have" : hosts === 1 ? "host has" : "hosts have";
  return html`<section><h2>Skipped at a host's bound</h2>
<p>${countText(hosts)} ${have} all the URLs that they may have and hold back; URLs of theirs were skipped ${howMany(urls, "time")}, and
are not kept. A host that names URLs without end is most often a trap.</p>
${tableOf("Hosts at their bounds", ["Host .break", "Left out .number"], most, (one) => [askAbout(one.host), countText(one.urls)])}</section>`;
}

function domainSection({ domains }: LeftOutUrls): Html {
  if (domains.length === 0) return nothing;
  const heads = ["Domain .break", "URLs that wait .number", "Skipped .number"];
  return html`<section><h2>More new hosts than are let in a day</h2>
<p>Links brought more new hosts of these domains, or their pages link to more, than are let in a day. What waits comes in on a later
day; what is skipped when a page that names it is fetched again. Whoever crawled the pages has no part in it.</p>
${tableOf(
  "Domains with more new hosts than are let in a day",
  heads,
  domains,
  ({ domain, waiting, leftOut }) => [domain, countText(waiting), countText(leftOut)],
)}</section>`;
}

function verdictWords({ verdict }: QueueAges): Html {
  return verdict.limitedBy === "nothing-due"
    ? nothing
    : html`The crawl is <strong>${verdict.words}</strong>. `;
}

function leadWords({ hosts, isEstimate }: QueueAges): Html {
  if (hosts === 0) return html`<strong>Nothing that is due waits.</strong>`;
  const due = html`<strong>${isEstimate && "About "}${howMany(hosts, "host")}</strong> ${hosts === 1 ? "is" : "are"} due`;
  return html`${due} and not in a crawler's hands.${isEstimate && " There are many, so a part of them was looked at."}`;
}

function hostTable({ hosts, at, reason, ages }: QueueView): Html {
  if (hosts.length === 0) {
    const hint =
      reason !== null && ages.hosts > queueFront
        ? `Of the ${countText(queueFront)} hosts that wait longest, none waits for this.`
        : "URLs are added with nearcrawl urls add, and found by the crawl itself.";
    return empty(`No host waits${reason === null ? "" : " for this"}.`, hint);
  }
  const heads = ["Host .break", "Due since", "Why it waits .wide", "Crawler", "Subnet"];
  return html`${tableOf("Hosts waiting longest", heads, hosts, (host) => [
    askAbout(host.host),
    ago(host.dueAt, at),
    waitWords(host, new Date(at)),
    host.crawler === null ? "–" : crawlerLink(host.crawler),
    host.range === null ? "–" : askAbout(host.range),
  ])}${hosts.length < ages.hosts && html`<p class="small">The ${countText(hosts.length)} that wait longest; the CSV has more.</p>`}`;
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
