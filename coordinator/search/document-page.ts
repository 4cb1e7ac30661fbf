/** One page of the index: its facts, its text's beginning, who fetched it, links, pages like it. */
import { bytesText, earlierVisitsWords, howMany } from "#core/format";
import { actions } from "../ask/document.ts";
import { nodesHtml } from "../ask/html-rendering.ts";
import { differenceList } from "../changes/difference-page.ts";
import { kindWords } from "../changes/page-change.ts";
import { statedSection } from "../results/stated-uses-ask.ts";
import { fetchAgain } from "../submissions/submissions-ask.ts";
import { column, crawlerOr, dataTable, numberColumn } from "../web/components.ts";
import { askAbout, country, countText, crawlerLink, instant, msOrDash } from "../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { crumbs, pageLink } from "./page.ts";
import type { AlikePage, InLink, Listed, OutLink, PageAnswer, PageFacts, PageFetch } from "./page-facts.ts";

/** Null: nothing was asked yet. */
export function pageBody(answer: PageAnswer | null, viewer: PageViewer): Html {
  if (answer === null) return html`<h1>A page of the index</h1>${askForm("")}`;
  if (answer.page === null) {
    const who = pathWith("/who", { q: answer.asked });
    return html`<h1>No page to show</h1>${askForm(answer.asked)}
<div class="empty"><p>${answer.words}</p><p><a href="${who}">Who crawls it, and what became of it</a></p></div>
${nodesHtml([statedSection(answer.stated)])}`;
  }
  return factsOf(answer.page, viewer);
}

function askForm(url: string): Html {
  return html`<form class="ask" action="/pages" method="get"><label for="url">Address of a page</label><div class="field">
<input id="url" name="url" maxlength="2048" value="${url}" placeholder="https://www.example.org/" inputmode="url"
  autocomplete="off" spellcheck="false"><button>Show</button></div></form>`;
}

function factsOf(page: PageFacts, viewer: PageViewer): Html {
  const href = safeHref(page.url);
  const { inLinks, changes, alike } = page;
  const linking = `${inLinks.more ? "more than " : ""}${howMany(inLinks.total, "link")}`;
  return html`<p class="crumbs">${crumbs(page.url)}</p>
<h1>${page.title.trim() || "Without a title"}</h1>
<p class="page-url mono small">${href ? html`<a href="${href}" rel="noreferrer nofollow">${page.url}</a>` : page.url}</p>
<dl class="tiles">
${tile("Fetched", instant(page.fetchedAt), html`by ${crawlerOr(page.crawler, "a crawler that is gone")}`)}
${tile("Size", bytesText(page.bodyBytes), `${bytesText(page.wireBytes)} over the wire, ${bytesText(page.shippedBytes)} shipped`)}
${tile("Text", howMany(page.words, "word"), page.needsScripts ? "empty without scripts" : `${countText(page.lexemes)} distinct terms`)}
${tile("Links to it", howMany(page.linkingHosts, "other host"), `${linking}${page.firstTier ? "; searched first" : ""}`)}
</dl>
<section aria-labelledby="says"><h2 id="says">What it says</h2>
<dl class="facts">${pageSays(page)}</dl>
${textOf(page)}</section>
<section aria-labelledby="knows"><h2 id="knows">What the crawl knows</h2>
<dl class="facts">${crawlKnows(page)}</dl>${nodesHtml([actions(fetchAgain(page.url))], viewer)}</section>
${nodesHtml([statedSection(page.stated)])}
${changes.length === 0 ? nothing : section("changed", "What changed", changeList(changes))}
${list("fetches", "Fetches", page, page.fetches, fetchTable)}
${alike.items.length === 0 ? nothing : section("alike", "Pages with nearly the same text", alikeList(alike))}
${list("in", "Links to this page", page, page.inLinks, inLinkTable)}
${list("out", "Links on this page", page, page.outLinks, outLinkTable)}`;
}

const section = (id: string, title: string | Html, body: Html): Html =>
  html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${body}</section>`;

function tile(name: string, figure: Html | string, more: Html | string): Html {
  return html`<div class="tile"><dt>${name}</dt>
<dd><span class="page-figure">${figure}</span><span class="small">${more}</span></dd></div>`;
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
  const from = listed.offset + 1;
  const stretch =
    listed.total > listed.items.length
      ? `${countText(from)} to ${countText(Math.max(to, from))} of ${count}`
      : count;
  const pager =
    before === nothing && after === nothing
      ? nothing
      : html`<nav class="pager" aria-label="${title}">${before}${after}</nav>`;
  return section(name, html`${title} <span class="small">${stretch}</span>`, html`${body}${pager}`);
}

function changeList(changes: PageFacts["changes"]): Html {
  return html`<ol class="site-changes">${changes.map(
    ({ seenAt, kind, words, difference }) =>
      html`<li><p><span class="kind kind-${kind}">${kindWords[kind]}</span> <span class="small">${instant(seenAt)}</span></p>
<p class="small"><bdi>${words}</bdi></p>${difference === null ? nothing : differenceList(difference)}</li>`,
  )}</ol>`;
}

// The tables of a page: fetches, links to it, links on it, pages like it.

const fetchTable = (fetches: readonly PageFetch[]): Html =>
  dataTable<PageFetch>(
    "Fetches",
    [
      column("When", ({ fetchedAt }) => instant(fetchedAt)),
      column("By", ({ crawler }) => (crawler === null ? "gone" : crawlerLink(crawler))),
      column("Outcome", outcome),
      ...timesShown.map(([title, name]) => numberColumn<PageFetch>(title, (fetch) => msOrDash(fetch[name]))),
      numberColumn("Body", ({ bodyBytes }) => bytesText(bodyBytes)),
      numberColumn("Shipped", ({ shippedBytes }) => bytesText(shippedBytes)),
    ],
    fetches,
  );

const timesShown = [
  ["DNS", "dnsMs"],
  ["Connect", "connectMs"],
  ["TLS", "tlsMs"],
  ["First byte", "firstByteMs"],
  ["All", "totalMs"],
] as const;

function outcome({ outcome: words, status, blame, address }: PageFetch): Html {
  return html`${words}${status === null ? nothing : ` ${status}`}${
    blame === null ? nothing : html`<span class="small">blame: ${blame}</span>`
  }${address === null ? nothing : html`<span class="small mono">${address}</span>`}`;
}

const inLinkTable = (links: readonly InLink[]): Html =>
  dataTable<InLink>(
    "Links to this page",
    [
      column(
        "From",
        ({ url, title }) => html`${pageTitle({ url, title })}<span class="small break">${url}</span>`,
      ),
      column("Anchor text", anchor),
      column("Follows", follows),
    ],
    links,
  );

const stateWords: Readonly<Record<OutLink["state"], string>> = {
  unknown: "outside of what is crawled",
  "not-fetched": "known, not fetched yet",
  fetched: "fetched, not in the index",
  indexed: "in the index",
};

const outLinkTable = (links: readonly OutLink[]): Html =>
  dataTable<OutLink>(
    "Links on this page",
    [
      column("To", target),
      column("Anchor text", anchor),
      column("Follows", follows),
      column("State", ({ state }) => stateWords[state]),
    ],
    links,
  );

function target({ url, state }: OutLink): Html {
  if (url === null) return html`<span class="small">the address was not kept</span>`;
  return state === "indexed"
    ? html`<a class="break" href="${pageLink(url)}">${url}</a>`
    : html`<span class="break">${url}</span>`;
}

function anchor({ anchor: words }: { readonly anchor: string }): Html {
  return words.trim() === ""
    ? html`<span class="small">none</span>`
    : html`<span class="break">${words}</span>`;
}

const pageTitle = ({ url, title }: { readonly url: string; readonly title: string }): Html =>
  html`<a class="break" href="${pageLink(url)}">${title.trim() || url}</a>`;

function follows({ nofollow }: { readonly nofollow: boolean }): string {
  return nofollow ? "no (nofollow)" : "yes";
}

function alikeList({ items, more }: Listed<AlikePage>): Html {
  const words = ({ isFirst, sameBytes }: AlikePage) =>
    [isFirst ? "had it first" : "", sameBytes ? "the same byte by byte" : ""]
      .filter((one) => one !== "")
      .join(", ");
  return html`<ul class="plain">${items.map(
    (page) =>
      html`<li>${pageTitle(page)} <span class="small">${page.url}${words(page) === "" ? "" : ` · ${words(page)}`}</span></li>`,
  )}</ul>${more ? html`<p class="small">And more.</p>` : nothing}`;
}
