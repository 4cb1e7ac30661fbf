/** Hosts that are being crawled now: by whom, how fast, and what keeps them from going faster. */

import { mayDo } from "#core/actor";
import { titleRow } from "../web/components.ts";
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
<p class="lead">${hosts === 0 ? html`<strong>No host is being crawled.</strong> What is due and waits: <a href="/fleet/queue">queue</a>.` : html`<strong>${countText(hosts)} ${hosts === 1 ? "host is" : "hosts are"} being crawled now</strong>, each by one crawler. What waits: <a href="/fleet/queue">queue</a>.${mayDo(viewer.actor, "policy-write") ? html` To slow a site down: <a href="/fleet/site-caps">caps</a>.` : nothing}`}</p>
${hosts === 0 ? nothing : table(view, sort)}${shown.length < hosts ? html`<p class="small">${countText(shown.length)} of them; the CSV has more.</p>` : nothing}`;
}

function table({ shown, at }: HostsInHand, sort: InHandSort): Html {
  const links = inHandSorts.map((one) =>
    one === sort
      ? html` <strong>${sortWords[one]}</strong>`
      : html` <a href="${pathWith("/fleet/in-hand", { sort: one })}">${sortWords[one]}</a>`,
  );
  return html`<p class="small">First:${links}</p>
<div class="scroll" tabindex="0" role="region" aria-label="Hosts in progress"><table>
<thead><tr><th scope="col">Host</th><th scope="col">Crawler</th><th scope="col" class="number">URLs per minute</th><th scope="col" class="number">Done</th><th scope="col" class="number">To do</th><th scope="col">Held back by</th><th scope="col">Since</th></tr></thead>
<tbody>${shown.map((host) => row(host, at))}</tbody></table></div>`;
}

function row(host: HostInHand, at: string): Html {
  const { urls, openUrls, urlsPerMinute, delayMs, limit } = host;
  const seconds =
    delayMs !== null && (limit === "crawl-delay" || limit === "site-cap")
      ? html` of ${delayMs / 1000} s`
      : nothing;
  return html`<tr><th scope="row" class="break">${askAbout(host.host)}</th><td>${crawlerLink(host.crawler)}</td><td class="number">${urlsPerMinute.toFixed(1)}</td><td class="number">${countText(urls - openUrls)}</td><td class="number">${countText(openUrls)}</td><td class="wide">${paceLimitWords[limit]}${seconds}</td><td>${ago(host.since, at)}</td></tr>`;
}

export function inHandCsv({ shown }: HostsInHand): CsvTable {
  return {
    columns: [
      ...[
        "host",
        "crawler",
        "since",
        "expires_at",
        "urls",
        "open_urls",
        "urls_per_minute",
        "limit",
        "delay_ms",
      ],
      "back_off_until",
    ],
    rows: shown.map((one) => [
      ...[one.host, one.crawler, one.since, one.expiresAt, one.urls, one.openUrls, one.urlsPerMinute],
      ...[one.limit, one.delayMs, one.backOffUntil],
    ]),
  };
}
