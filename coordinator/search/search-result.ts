/** One result of a search: title, where it is, the words around the match, facts, and why it stands there. */
import { canParseUrl } from "#core/ip/url-host";
import { country, countText, crawlerLink } from "../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../web/html.ts";
import type { FoundPage, Reason } from "./reads.ts";
import { pageLink } from "./search-links.ts";

export function resultItem(page: FoundPage): Html {
  const href = safeHref(page.url);
  const title = page.title.trim() || page.url;
  return html`<li><p class="crumbs">${crumbs(page.url)}</p>
<h2>${href ? html`<a href="${href}" rel="noreferrer nofollow">${title}</a>` : title}</h2>
<p class="snippet">${page.snippet.map((part) => (part.matches ? html`<mark>${part.text}</mark>` : part.text))}</p>
<p class="result-facts small">${factsOf(page).map((fact) => html`<span>${fact}</span>`)}</p>
${page.reasons === null ? nothing : reasons(page.reasons, page.rank)}</li>`;
}

/** The host and the path's parts, as a way to the page. */
export function crumbs(url: string): Html {
  if (!canParseUrl(url)) return html`${url}`;
  const { protocol, host, pathname, search } = new URL(url);
  const parts = pathname.split("/").filter((part) => part !== "");
  const shown = parts.length > 4 ? [...parts.slice(0, 2), "…", ...parts.slice(-2)] : parts;
  const start = protocol === "https:" ? host : `${protocol}//${host}`;
  return html`<strong>${start}</strong>${shown.map((part) => html`<span class="crumb">${decoded(part)}</span>`)}${search === "" ? nothing : html`<span class="crumb">${decoded(search)}</span>`}`;
}

const longestCrumb = 60;

function decoded(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // As it stands in the address.
  }
  return text.length > longestCrumb ? `${text.slice(0, longestCrumb - 1)}…` : text;
}

function factsOf(page: FoundPage): Html[] {
  const day = (iso: string) => html`<time datetime="${iso}" data-day>${iso.slice(0, 10)}</time>`;
  return [
    page.publishedAt ? html`published ${day(page.publishedAt)}` : null,
    html`fetched ${day(page.fetchedAt)}${page.crawler ? html` by ${crawlerLink(page.crawler)}` : nothing}`,
    page.language ? html`${page.language}` : null,
    country(page.country),
    page.alike > 0 ? html`${countText(page.alike)} more with nearly the same text` : null,
    html`<a href="${pageLink(page.url)}">facts and links</a>`,
    html`<a href="${pathWith("/who", { q: page.url })}">who crawls it</a>`,
  ].flatMap((fact) => fact ?? []);
}

function reasons(parts: readonly Reason[], rank: number): Html {
  return html`<table class="reasons"><caption class="small">${rank.toFixed(1)} points of 100</caption><tbody>${parts.map(reasonRow)}</tbody></table>`;
}

function reasonRow({ points, most, words }: Reason): Html {
  const width = Math.round((100 * Math.abs(points)) / most);
  return html`<tr><td class="number">${points > 0 ? "+" : "−"}${Math.abs(points).toFixed(1)}</td>
<td class="track"><svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground" width="100" height="8"/><rect class="${points > 0 ? "bar-value" : "bar-taken"}" width="${width}" height="8"/></svg></td>
<td>${words} <span class="small">of ${most}</span></td></tr>`;
}
