/** Hosts that are being crawled now: by whom, how fast, and what keeps them from going faster. */

import { mayDo } from "#core/actor";
import { tableOf, titleRow } from "../web/components.ts";
import { ago, askAbout, countText, crawlerLink } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { type HostInHand, type HostsInHand, type InHandSort, inHandSorts } from "./queue-api.ts";
import { paceLimitWords } from "./verdict.ts";

const sortWords: Readonly<Record<InHandSort, string>> = {
  rate: "fastest",
  open: "most to do",
  since: "longest held",
  host: "name",
};

export function inHandBody(view: HostsInHand, sort: InHandSort, viewer: PageViewer): Html {
  const { hosts, shown } = view;
  return html`${titleRow("Hosts in progress")}
<p class="lead">${
    hosts === 0
      ? html`<strong>No host is being crawled.</strong> What is due and waits: <a href="/fleet/queue">queue</a>.`
      : html`<strong>${countText(hosts)} ${hosts === 1 ? "host is" : "hosts are"} being crawled now</strong>, each by one crawler.
What waits: <a href="/fleet/queue">queue</a>.${
          mayDo(viewer.actor, "policy-write") &&
          html` To slow a site down: <a href="/fleet/site-caps">caps</a>.`
        }`
  }</p>
${hosts === 0 ? nothing : table(view, sort)}${
  shown.length < hosts
    ? html`<p class="small">${countText(shown.length)} of them;
the CSV has more.</p>`
    : nothing
}`;
}

function table({ shown, at }: HostsInHand, sort: InHandSort): Html {
  const links = inHandSorts.map((one) =>
    one === sort
      ? html` <strong>${sortWords[one]}</strong>`
      : html` <a href="${pathWith("/fleet/in-hand", { sort: one })}">${sortWords[one]}</a>`,
  );
  const heads = [
    "Host .break",
    "Crawler",
    "URLs per minute .number",
    "Done .number",
    "To do .number",
    "Held back by .wide",
    "Since",
  ];
  return html`<p class="small">First:${links}</p>
${tableOf("Hosts in progress", heads, shown, (one) => [
  askAbout(one.host),
  crawlerLink(one.crawler),
  one.urlsPerMinute.toFixed(1),
  countText(one.urls - one.openUrls),
  countText(one.openUrls),
  html`${paceLimitWords[one.limit]}${isDelayed(one) && ` of ${(one.delayMs ?? 0) / 1000} s`}`,
  ago(one.since, at),
])}`;
}

const isDelayed = ({ delayMs, limit }: HostInHand) =>
  delayMs !== null && (limit === "crawl-delay" || limit === "site-cap");

export function inHandCsv({ shown }: HostsInHand): CsvTable {
  return {
    columns:
      "host crawler since expires_at urls open_urls urls_per_minute limit delay_ms back_off_until".split(" "),
    rows: shown.map((one) => [
      ...[one.host, one.crawler, one.since, one.expiresAt, one.urls, one.openUrls, one.urlsPerMinute],
      ...[one.limit, one.delayMs, one.backOffUntil],
    ]),
  };
}
