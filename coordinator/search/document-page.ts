/** One page of the index: its facts, its text's beginning, who fetched it, links, pages like it. */
import { bytesText, earlierVisitsWords, howMany } from "#core/format";
import { differenceList } from "../changes/difference-page.ts";
import { kindWords } from "../changes/page-change.ts";
import { statedSection } from "../results/stated-uses-page.ts";
import { fetchAgainForm } from "../submissions/page.ts";
import { askAbout, country, countText, crawlerLink, instant, msOrDash } from "../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { crumbs, pageLink } from "./page.ts";
import type { AlikePage, InLink, Listed, OutLink, PageAnswer, PageFacts, PageFetch } from "./page-facts.ts";

/** Null: nothing was asked yet. */
export function pageBody(answer: PageAnswer | null, viewer: PageViewer): Html {
  if (answer === null) return html`<h1>A page of the index</h1>${askForm("")}`;
  if (answer.page === null) {
    return html`<h1>No page to show</h1>${askForm(answer.asked)}
<div class="empty"><p>${answer.words}</p><p><a href="${pathWith("/who", { q: answer.asked })}">Who crawls it, and what became of it</a></p></div>${statedSection(answer.stated)}`;
  }
  return factsOf(answer.page, viewer);
}

function askForm(url: string): Html {
  return html`<form class="ask" action="/pages" method="get"><label for="url">Address of a page</label><div class="field"><input id="url" name="url" maxlength="2048" value="${url}" placeholder="https://www.example.org/" inputmode="url" autocomplete="off" spellcheck="false"><button>Show</button></div></form>`;
}

function factsOf(page: PageFacts, viewer: PageViewer): Html {
  const href = safeHref(page.url);
  return html`<p class="crumbs">${crumbs(page.url)}</p>
<h1>${page.title.trim() || "Without a title"}</h1>
<p class="page-url mono small">${href ? html`<a href="${href}" rel="noreferrer nofollow">${page.url}</a>` : page.url}</p>
<dl class="tiles">
${tile("Fetched", instant(page.fetchedAt), html`by ${page.crawler === null ? "a crawler that is gone" : crawlerLink(page.crawler)}`)}
${tile("Size", html`${bytesText(page.bodyBytes)}`, html`${bytesText(page.wireBytes)} over the wire, ${bytesText(page.shippedBytes)} shipped`)}
${tile("Text", html`${howMany(page.words, "word")}`, page.needsScripts ? html`empty without scripts` : html`${countText(page.lexemes)} distinct terms`)}
${tile("Links to it", html`${howMany(page.linkingHosts, "other host")}`, html`${page.inLinks.more ? "more than " : ""}${howMany(page.inLinks.total, "link")}${page.firstTier ? "; searched first" : ""}`)}
</dl>
<section aria-labelledby="says"><h2 id="says">What it says</h2>
<dl class="facts">${pageSays(page)}</dl>
${textOf(page)}</section>
<section aria-labelledby="knows"><h2 id="knows">What the crawl knows</h2><dl class="facts">${crawlKnows(page)}</dl>${fetchAgainForm(viewer, page.url)}</section>
${statedSection(page.stated)}
${page.changes.length === 0 ? nothing : html`<section aria-labelledby="changed"><h2 id="changed">What changed</h2>${changeList(page.changes)}</section>`}
${list("fetches", "Fetches", page, page.fetches, fetchTable)}
${page.alike.items.length === 0 ? nothing : html`<section aria-labelledby="alike"><h2 id="alike">Pages with nearly the same text</h2>${alikeList(page.alike)}</section>`}
${list("in", "Links to this page", page, page.inLinks, inLinkTable)}
${list("out", "Links on this page", page, page.outLinks, outLinkTable)}`;
}

function tile(name: string, figure: Html, more: Html): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="page-figure">${figure}</span><span class="small">${more}</span></dd></div>`;
}

function fact(name: string, value: Html | string | number | null): Html {
  return value === null || value === "" ? nothing : html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

function pageSays(page: PageFacts): Html[] {
  const { structured } = page;
  const languages = [
    page.declaredLanguage && page.declaredLanguage !== page.language ? `states ${page.declaredLanguage}` : "",
    page.detectedLanguage && page.detectedLanguage !== page.language
      ? `looks like ${page.detectedLanguage}`
      : "",
  ].filter((words) => words !== "");
  return [
    fact(
      "Language",
      page.language === null
        ? "not known"
        : `${page.language}${languages.length > 0 ? ` (${languages.join(", ")})` : ""}`,
    ),
    fact("Published", page.publishedAt && instant(page.publishedAt)),
    fact("Changed", page.modifiedAt && instant(page.modifiedAt)),
    fact("Its own address", page.canonicalUrl && page.canonicalUrl !== page.url ? page.canonicalUrl : null),
    fact(
      "Describes",
      structured && html`${structured.type}${structured.name === "" ? nothing : html`: ${structured.name}`}`,
    ),
    fact("Content type", page.contentType),
  ];
}

function textOf(page: PageFacts): Html {
  const isEmpty = page.description === "" && page.excerpt === "" && page.headings.length === 0;
  if (isEmpty) return html`<p class="small">The page lets nothing of its text be shown.</p>`;
  return html`<div class="page-text">${page.description === "" ? nothing : html`<p><strong>${page.description}</strong></p>`}${
    page.headings.length === 0
      ? nothing
      : html`<ul class="outline" aria-label="Headings">${page.headings.map(({ level, text }) => html`<li class="level-${level}">${text}</li>`)}</ul>`
  }${page.excerpt === "" ? nothing : html`<p>${page.excerpt} …</p>`}</div>`;
}

function crawlKnows(page: PageFacts): Html[] {
  const { etag, lastModified } = page.validators;
  return [
    fact("Host", html`${askAbout(page.host)} ${country(page.country)}`),
    fact("Who crawls it", askAbout(page.url, "the answer")),
    fact("Found", page.discoveredAt && instant(page.discoveredAt)),
    fact("Links from a start", page.depth),
    fact("Visits", visitsText(page)),
    fact("Next fetch", page.nextFetchAt && instant(page.nextFetchAt)),
    fact("robots.txt", page.robots && html`${page.robots.state}, ${instant(page.robots.at)}`),
    fact("ETag", etag && html`<span class="mono">${etag}</span>`),
    fact("Last-Modified", lastModified && html`<span class="mono">${lastModified}</span>`),
    fact("Searched as", page.textSearchConfig),
    fact("SHA-256 of the body", html`<span class="mono break">${page.digest}</span>`),
    fact("Simhash of the text", html`<span class="mono">${page.simhash}</span>`),
  ];
}

function visitsText({ visits, fetches }: PageFacts): Html {
  const words = fetches.more ? "" : earlierVisitsWords(visits, fetches.total);
  return html`${countText(visits)}${words === "" ? nothing : html` <span class="small">${words}</span>`}`;
}

function list<T>(
  name: "fetches" | "in" | "out",
  title: string,
  page: PageFacts,
  listed: Listed<T>,
  table: (items: readonly T[]) => Html,
): Html {
  const to = listed.offset + listed.items.length;
  const count = `${listed.more ? "more than " : ""}${countText(listed.total)}`;
  const link = (offset: number) =>
    `${pathWith("/pages", { url: page.url, [name]: offset === 0 ? null : offset })}#${name}`;
  const body =
    listed.items.length === 0
      ? html`<div class="empty"><p>${listed.total === 0 ? "None is known." : "None of these may be shown."}</p></div>`
      : table(listed.items);
  const before =
    listed.offset > 0
      ? html`<a rel="prev" href="${link(Math.max(0, listed.offset - listed.limit))}">← Before</a>`
      : nothing;
  const after =
    listed.offset + listed.limit < listed.total
      ? html`<a rel="next" href="${link(listed.offset + listed.limit)}">Next →</a>`
      : nothing;
  return html`<section aria-labelledby="${name}"><h2 id="${name}">${title} <span class="small">${listed.total > listed.items.length ? `${countText(listed.offset + 1)} to ${countText(Math.max(to, listed.offset + 1))} of ${count}` : count}</span></h2>
${body}${before === nothing && after === nothing ? nothing : html`<nav class="pager" aria-label="${title}">${before}${after}</nav>`}</section>`;
}

function changeList(changes: PageFacts["changes"]): Html {
  return html`<ol class="site-changes">${changes.map(
    ({ seenAt, kind, words, difference }) =>
      html`<li><p><span class="kind kind-${kind}">${kindWords[kind]}</span> <span class="small">${instant(seenAt)}</span></p><p class="small"><bdi>${words}</bdi></p>${difference === null ? nothing : differenceList(difference)}</li>`,
  )}</ol>`;
}

// The tables of a page: fetches, links to it, links on it, pages like it.

function fetchTable(fetches: readonly PageFetch[]): Html {
  return html`<div class="scroll" role="region" aria-label="Fetches" tabindex="0"><table><thead><tr><th scope="col">When</th><th scope="col">By</th><th scope="col">Outcome</th><th scope="col" class="number">DNS</th><th scope="col" class="number">Connect</th><th scope="col" class="number">TLS</th><th scope="col" class="number">First byte</th><th scope="col" class="number">All</th><th scope="col" class="number">Body</th><th scope="col" class="number">Shipped</th></tr></thead>
<tbody>${fetches.map(fetchRow)}</tbody></table></div>`;
}

function fetchRow(fetch: PageFetch): Html {
  const outcome = `${fetch.outcome}${fetch.status === null ? "" : ` ${fetch.status}`}`;
  return html`<tr><td>${instant(fetch.fetchedAt)}</td><td>${fetch.crawler === null ? "gone" : crawlerLink(fetch.crawler)}</td><td>${outcome}${fetch.blame === null ? nothing : html`<span class="small">blame: ${fetch.blame}</span>`}${fetch.address === null ? nothing : html`<span class="small mono">${fetch.address}</span>`}</td>
<td class="number">${msOrDash(fetch.dnsMs)}</td><td class="number">${msOrDash(fetch.connectMs)}</td><td class="number">${msOrDash(fetch.tlsMs)}</td><td class="number">${msOrDash(fetch.firstByteMs)}</td><td class="number">${msOrDash(fetch.totalMs)}</td><td class="number">${bytesText(fetch.bodyBytes)}</td><td class="number">${bytesText(fetch.shippedBytes)}</td></tr>`;
}

function inLinkTable(links: readonly InLink[]): Html {
  return html`<div class="scroll" role="region" aria-label="Links to this page" tabindex="0"><table><thead><tr><th scope="col">From</th><th scope="col">Anchor text</th><th scope="col">Follows</th></tr></thead>
<tbody>${links.map((link) => html`<tr><td class="break"><a href="${pageLink(link.url)}">${link.title.trim() || link.url}</a><span class="small">${link.url}</span></td><td class="break">${anchor(link)}</td><td>${follows(link)}</td></tr>`)}</tbody></table></div>`;
}

const stateWords: Readonly<Record<OutLink["state"], string>> = {
  unknown: "outside of what is crawled",
  "not-fetched": "known, not fetched yet",
  fetched: "fetched, not in the index",
  indexed: "in the index",
};

function outLinkTable(links: readonly OutLink[]): Html {
  return html`<div class="scroll" role="region" aria-label="Links on this page" tabindex="0"><table><thead><tr><th scope="col">To</th><th scope="col">Anchor text</th><th scope="col">Follows</th><th scope="col">State</th></tr></thead>
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

function alikeList({ items, more }: Listed<AlikePage>): Html {
  const words = ({ isFirst, sameBytes }: AlikePage) =>
    [isFirst ? "had it first" : "", sameBytes ? "the same byte by byte" : ""]
      .filter((one) => one !== "")
      .join(", ");
  return html`<ul class="plain">${items.map((page) => html`<li><a href="${pageLink(page.url)}">${page.title.trim() || page.url}</a> <span class="small">${page.url}${words(page) === "" ? "" : ` · ${words(page)}`}</span></li>`)}</ul>${more ? html`<p class="small">And more.</p>` : nothing}`;
}
