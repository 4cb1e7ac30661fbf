/** /find: what the box at the top of every page finds, as a page of its own, for browsers without scripts and for more room. */
import { empty } from "../web/components.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { type FindAnswer, type Found, type FoundKind, longestQuestion, mostOfKind } from "./find-api.ts";

const kindNames: Readonly<Record<FoundKind, string>> = {
  page: "Pages",
  crawler: "Crawlers",
  host: "Hosts",
  who: "Look up",
  setting: "Settings",
  action: "Actions",
};

export function findBody({ question, results, more, note }: FindAnswer): Html {
  const kinds = [...new Set(results.map(({ kind }) => kind))];
  return html`<h1>${question === "" ? "Find" : html`Find “<bdi>${question}</bdi>”`}</h1>
<form class="ask" action="/find" method="get" role="search"><label class="hidden" for="find-page">Page, crawler, host or setting</label>
<div class="field"><input id="find-page" name="q" type="search" maxlength="${longestQuestion}" value="${question}"
placeholder="Page, crawler, host or setting" autocomplete="off"><button>Find</button></div></form>
${note === null ? nothing : html`<p class="small" role="status">${note}</p>`}
${results.length === 0 ? nothingFound : kinds.map((kind) => group(kind, results, more.includes(kind)))}`;
}

const nothingFound = empty(
  "Nothing of this name can be opened.",
  html`Try a part of the name, a host such as <code>example.org</code>, or an address.`,
);

function group(kind: FoundKind, results: readonly Found[], more: boolean): Html {
  return html`<section class="found"><h2>${kindNames[kind]}</h2><ul>${results
    .filter((one) => one.kind === kind)
    .map(
      ({ title, words, href }) =>
        html`<li><a href="${href}"><bdi>${title}</bdi></a> <span class="small"><bdi>${words}</bdi></span></li>`,
    )}</ul>${more ? html`<p class="small">The first ${mostOfKind}; type more of the name to see others.</p>` : nothing}</section>`;
}
