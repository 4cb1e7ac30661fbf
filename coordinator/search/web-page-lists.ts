/** The tables of a page: fetches, links to it, links on it, pages like it. */

import { crawlerLink, instant, msOrDash } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { bytesText } from "../who/words.ts";
import type { AlikePage, InLink, Listed, OutLink, PageFetch } from "./page-facts.ts";
import { pageLink } from "./search-links.ts";

export function fetchTable(fetches: readonly PageFetch[]): Html {
  return html`<div class="scroll" role="region" aria-label="Fetches" tabindex="0"><table><thead><tr><th scope="col">When</th><th scope="col">By</th><th scope="col">Outcome</th><th scope="col" class="number">DNS</th><th scope="col" class="number">Connect</th><th scope="col" class="number">TLS</th><th scope="col" class="number">First byte</th><th scope="col" class="number">All</th><th scope="col" class="number">Body</th><th scope="col" class="number">Shipped</th></tr></thead>
<tbody>${fetches.map(fetchRow)}</tbody></table></div>`;
}

function fetchRow(fetch: PageFetch): Html {
  const outcome = `${fetch.outcome}${fetch.status === null ? "" : ` ${fetch.status}`}`;
  return html`<tr><td>${instant(fetch.fetchedAt)}</td><td>${fetch.crawler === null ? "gone" : crawlerLink(fetch.crawler)}</td><td>${outcome}${fetch.blame === null ? nothing : html`<span class="small">blame: ${fetch.blame}</span>`}${fetch.address === null ? nothing : html`<span class="small mono">${fetch.address}</span>`}</td>
<td class="number">${msOrDash(fetch.dnsMs)}</td><td class="number">${msOrDash(fetch.connectMs)}</td><td class="number">${msOrDash(fetch.tlsMs)}</td><td class="number">${msOrDash(fetch.firstByteMs)}</td><td class="number">${msOrDash(fetch.totalMs)}</td><td class="number">${bytesText(fetch.bodyBytes)}</td><td class="number">${bytesText(fetch.shippedBytes)}</td></tr>`;
}

export function inLinkTable(links: readonly InLink[]): Html {
  return html`<div class="scroll" role="region" aria-label="Links to this page" tabindex="0"><table><thead><tr><th scope="col">From</th><th scope="col">Words of the link</th><th scope="col">Follows</th></tr></thead>
<tbody>${links.map((link) => html`<tr><td class="break"><a href="${pageLink(link.url)}">${link.title.trim() || link.url}</a><span class="small">${link.url}</span></td><td class="break">${anchor(link)}</td><td>${follows(link)}</td></tr>`)}</tbody></table></div>`;
}

const stateWords: Readonly<Record<OutLink["state"], string>> = {
  unknown: "outside of what is crawled",
  "not-fetched": "known, not fetched yet",
  fetched: "fetched, not in the index",
  indexed: "in the index",
};

export function outLinkTable(links: readonly OutLink[]): Html {
  return html`<div class="scroll" role="region" aria-label="Links on this page" tabindex="0"><table><thead><tr><th scope="col">To</th><th scope="col">Words of the link</th><th scope="col">Follows</th><th scope="col">State</th></tr></thead>
<tbody>${links.map((link) => html`<tr><td class="break">${target(link)}</td><td class="break">${anchor(link)}</td><td>${follows(link)}</td><td>${stateWords[link.state]}</td></tr>`)}</tbody></table></div>`;
}

function target({ url, state }: OutLink): Html {
  if (url === null) return html`<span class="small">the address was not kept</span>`;
  return state === "indexed" ? html`<a href="${pageLink(url)}">${url}</a>` : html`${url}`;
}

function anchor({ anchor: words }: { readonly anchor: string }): Html {
  return words.trim() === "" ? html`<span class="small">none</span>` : html`${words}`;
}

function follows({ nofollow }: { readonly nofollow: boolean }): string {
  return nofollow ? "no (nofollow)" : "yes";
}

export function alikeList({ items, more }: Listed<AlikePage>): Html {
  const words = ({ isFirst, sameBytes }: AlikePage) =>
    [isFirst ? "had it first" : "", sameBytes ? "the same byte by byte" : ""]
      .filter((one) => one !== "")
      .join(", ");
  return html`<ul class="plain">${items.map((page) => html`<li><a href="${pageLink(page.url)}">${page.title.trim() || page.url}</a> <span class="small">${page.url}${words(page) === "" ? "" : ` · ${words(page)}`}</span></li>`)}</ul>${more ? html`<p class="small">And more.</p>` : nothing}`;
}
