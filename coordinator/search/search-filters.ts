/** What narrows a search: the filters' form, the values that the results have, and those in force. */

import { countryName, countText } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { type FacetName, type FilterName, facetNames, filterNames, type SearchAnswer } from "./reads.ts";
import { isExplained, searchLink } from "./search-links.ts";

const filterLabels: Readonly<Record<FilterName, string>> = {
  host: "Host",
  language: "Language",
  country: "Country",
  crawler: "Crawler",
  from: "From",
  to: "To",
};

/** Everything beside the results. */
export function filterAside(answer: SearchAnswer): Html {
  return html`<aside class="narrow" aria-label="Filters">
<details${activeFilters(answer).length > 0 ? html` open` : nothing}><summary>Filters</summary>${filterForm(answer)}</details>
${facetNames.map((name) => facet(answer, name))}
${answer.facets.pages > 0 ? html`<p class="small">Counted over the ${countText(answer.facets.pages)} ${answer.more ? "best matches that were looked at" : answer.facets.pages === 1 ? "match" : "matches"}.</p>` : nothing}
</aside>`;
}

/** Filters in force, each with the way to search without it. */
export function filterChips(answer: SearchAnswer): Html {
  const active = activeFilters(answer);
  if (active.length === 0) return nothing;
  return html`<ul class="chips" aria-label="Filters in force">${active.map(
    (name) =>
      html`<li><a href="${searchLink(answer, { [name]: null })}"><span>${filterLabels[name]}: <strong>${answer[name]}</strong></span> <span aria-hidden="true">×</span><span class="hidden"> (remove this filter)</span></a></li>`,
  )}</ul>`;
}

export function activeFilters(answer: SearchAnswer): FilterName[] {
  return filterNames.filter((name) => answer[name] !== null);
}

function filterForm(answer: SearchAnswer): Html {
  const field = (name: FilterName, rest: Html) =>
    html`<p><label for="filter-${name}">${filterLabels[name]}</label><input id="filter-${name}" name="${name}" value="${answer[name] ?? ""}" ${rest}></p>`;
  return html`<form class="filter-form" action="/search" method="get"><input type="hidden" name="q" value="${answer.words}">${answer.sort === "date" ? html`<input type="hidden" name="sort" value="date">` : nothing}${isExplained(answer) ? html`<input type="hidden" name="explain" value="1">` : nothing}
${field("host", html`maxlength="253" placeholder="example.org" autocomplete="off"`)}
<div class="pair">${field("language", html`maxlength="3" placeholder="en" autocomplete="off"`)}${field("country", html`maxlength="2" placeholder="DE" autocomplete="off"`)}</div>
${field("crawler", html`maxlength="100" autocomplete="off"`)}
${field("from", html`type="date"`)}${field("to", html`type="date"`)}
<p class="small">A host is taken with all below it. Days are those of publication, or of the fetch where a page does not say (UTC).</p>
<button class="quiet slim">Apply</button></form>`;
}

function facet(answer: SearchAnswer, name: FacetName): Html {
  const values = answer.facets[name];
  if (values.length === 0 || (values.length === 1 && answer[name] === values[0]!.value)) return nothing;
  return html`<section class="facet"><h3>${filterLabels[name]}</h3><ul>${values.map(({ value, pages }) => {
    const isOn = answer[name] === value;
    return html`<li><a href="${searchLink(answer, { [name]: isOn ? null : value })}"${isOn ? html` aria-current="true"` : nothing}>${name === "country" ? countryName(value) : value}</a> <span class="small">${countText(pages)}</span></li>`;
  })}</ul></section>`;
}
