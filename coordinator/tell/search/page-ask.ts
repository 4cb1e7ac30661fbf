/**
 * One page of the index (/pages): its contents, what the crawl knows about it, its fetches, its links, and pages with
 * nearly the same text.
 */
import { z } from "zod";
import { bytesText, earlierVisitsWords, howMany } from "#core/format";
import { canParseUrl } from "#core/ip/url-host";
import {
  actions,
  aside,
  empty,
  facts,
  folded,
  list,
  member,
  onward,
  picture,
  present,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Column, type Document, type Fact, type Node, operationsOf } from "../../ask/operation.ts";
import { shellWord } from "../../ask/words.ts";
import { differenceList, kindBadge } from "../../crawl/changes/changes-ask.ts";
import { statedSection } from "../../crawl/results/stated-uses-ask.ts";
import { fetchAgain } from "../../crawl/submissions/submissions-ask.ts";
import { answer as answered } from "../../web/api-operation.ts";
import { crawlerOr, small } from "../../web/components.ts";
import { askAbout, country, countText, instant } from "../../web/format.ts";
import { type Html, html, nothing, pathWith, safeHref } from "../../web/html.ts";
import {
  type AlikePage,
  type InLink,
  type Listed,
  type OutLink,
  type PageAnswer,
  type PageFacts,
  type PageFetch,
  type PageReads,
  pageFacts,
} from "./page-facts.ts";
import { pageAnswer } from "./search-api.ts";

/** Skipping costs as much as reading, and nobody reads further down a list. */
const maxListOffset = 5000;

const listOffset = (description: string) =>
  z.int().min(0).max(maxListOffset).default(0).meta({ description, example: 0 });

const page = operationsOf<PageReads>().get({
  ...{ path: "/api/pages", needs: "read" },
  summary: "What the index has of one page, with its fetches and links",
  description: `Pages that ask not to be indexed, those of sites that state that they are not to be searched, and those of sites that
have opted out, are not shown.`,
  input: z.object({
    url: z.string().optional().meta({
      description: "Its address; without a scheme, https is meant.",
      example: "https://www.example.org/harbour",
    }),
    host_hash: z.string().optional().meta({
      description: "In place of the address: its host's hash, together with url_hash.",
      example: "-3213478234823482348",
    }),
    url_hash: z
      .string()
      .optional()
      .meta({ description: "Its address's hash.", example: "8234823482348234823" }),
    fetches: listOffset("Latest fetches to leave out."),
    in: listOffset("Links to it to leave out."),
    out: listOffset("Links on it to leave out."),
  }),
  output: pageAnswer,
  answer: { description: "The page" },
  faults: { 400: "That is no address" },
  answers: { 404: answered(pageAnswer, "No page to show, and why") },
  command: {
    ...{ name: "page", takes: "url", help: "\n\nExample:\n  nearcrawl page https://www.example.org/" },
    says: "what the index has of a page: facts, fetches, links from and to it",
  },
  start: () => ({ title: "A page of the index", nodes: [picture(askForm(""))] }),
  run: async ({ input, ports }) => await pageFacts(ports, input),
  status: ({ found }) => (found ? 200 : 404),
  view: (answer) => (answer.page === null ? noPage(answer) : pageDocument(answer.page)),
});

export const pageOperations = { page };

const askForm = (url: string) =>
  html`<form class="ask" action="/pages" method="get"><label for="url">Address of a page</label><div class="field">
<input id="url" name="url" maxlength="2048" value="${url}" placeholder="https://www.example.org/" inputmode="url"
  autocomplete="off" spellcheck="false"><button>Show</button></div></form>`;

function noPage({ asked, words, stated }: PageAnswer): Document {
  const who = html`<a href="${pathWith("/who", { q: asked })}">Who crawls it, and what became of it</a>`;
  return {
    title: "No page to show",
    nodes: present([picture(askForm(asked)), empty(words ?? "", who), statedSection(stated)]),
  };
}

function pageDocument(page: PageFacts): Document {
  const { url, fetches, inLinks, outLinks, changes, alike, stated } = page;
  const [href, title] = [safeHref(url), page.title.trim()];
  const head = html`<p class="crumbs">${crumbs(url)}</p><h1>${title || "Without a title"}</h1>
<p class="page-url mono small">${href ? html`<a href="${href}" rel="noreferrer nofollow">${url}</a>` : url}</p>`;
  return {
    ...{ title: title || url, hasOwnHeading: true },
    nodes: present([
      picture(head, facts(["Title", title], ["Address", url])),
      figures(page),
      section("What it says", [facts(...pageSays(page)), textOf(page)]),
      section("What the crawl knows", [facts(...crawlKnows(page)), actions(fetchAgain(url))]),
      statedSection(stated),
      changes.length > 0 && section("What changed", [list(changes.map(changeItem), "site-changes")]),
      listSection("fetches", "Fetches", fetches, fetchColumns),
      alike.items.length > 0 &&
        section("Pages with nearly the same text", [
          list(alike.items.map(alikeItem)),
          alike.more && aside("There are more."),
        ]),
      listSection("in", "Links to this page", inLinks, inLinkColumns),
      listSection("out", "Links on this page", outLinks, outLinkColumns),
      folded("Validators and digests", [facts(...fingerprints(page))]),
    ]),
  };
}

function figures(page: PageFacts): Node {
  const { inLinks, linkingHosts, needsScripts } = page;
  const linking = `${inLinks.more ? "more than " : ""}${howMany(inLinks.total, "link")}`;
  const sent = `${bytesText(page.wireBytes)} over the wire, ${bytesText(page.shippedBytes)} shipped`;
  return tiles(
    [
      ["Fetched", instant(page.fetchedAt), html`by ${crawlerOr(page.crawler, "a crawler that is gone")}`],
      ["Size", bytesText(page.bodyBytes), sent],
      ["Text", howMany(page.words, "word"), needsScripts ? "empty without scripts" : ""],
      ["Links to it", howMany(linkingHosts, "other host"), linking],
    ],
    "in-words",
  );
}

function pageSays({ language, structured, ...page }: PageFacts): Fact[] {
  const { declaredLanguage: declared, detectedLanguage: detected, publishedAt, modifiedAt } = page;
  const others = [
    declared && declared !== language && `states ${declared}`,
    detected && detected !== language && `looks like ${detected}`,
  ].filter(Boolean);
  const isElsewhere = page.canonicalUrl && page.canonicalUrl !== page.url;
  const name = structured?.name ? `: ${structured.name}` : "";
  return [
    ["Language", language && `${language}${others.length > 0 ? ` (${others.join(", ")})` : ""}`],
    publishedAt !== null && ["Published", instant(publishedAt)],
    modifiedAt !== null && ["Changed", instant(modifiedAt)],
    isElsewhere ? ["Its own address", page.canonicalUrl] : null,
    structured && ["Describes", `${structured.type}${name}`],
    ["Content type", page.contentType],
  ];
}

function textOf({ description, headings, excerpt }: PageFacts): Node {
  if (description === "" && excerpt === "" && headings.length === 0)
    return aside("The page lets nothing of its text be shown, or the search engine that has it is away.");
  const outline = headings.map(({ level, text }) => html`<li class="level-${level}">${text}</li>`);
  const beginning = excerpt === "" ? "" : `${excerpt} …`;
  return picture(
    html`<div class="page-text">${description !== "" && html`<p><strong>${description}</strong></p>`}${
      headings.length > 0 && html`<ul class="outline" aria-label="Headings">${outline}</ul>`
    }${beginning !== "" && html`<p>${beginning}</p>`}</div>`,
    [description, beginning].filter((text) => text !== "").join("\n"),
  );
}

function crawlKnows(page: PageFacts): Fact[] {
  const { discoveredAt, depth, nextFetchAt, robots, visits, fetches } = page;
  const earlier = fetches.more ? "" : earlierVisitsWords(visits, fetches.total);
  return [
    nextFetchAt !== null && ["Next fetch", instant(nextFetchAt)],
    ["Host", html`${askAbout(page.host)} ${country(page.country)}`],
    ["Who crawls it", askAbout(page.url, `nearcrawl who ${shellWord(page.url)}`)],
    discoveredAt !== null && ["Found", instant(discoveredAt)],
    depth !== null && ["Links from a start", depth],
    ["Visits", html`${countText(visits)}${earlier !== "" && html` ${small(earlier)}`}`],
    robots && ["robots.txt", html`${robots.state}, ${instant(robots.at)}`],
  ];
}

/** Values that programs compare and few people read. */
function fingerprints({ validators, textSearchConfig, digest, simhash }: PageFacts): Fact[] {
  const mono = (text: string) => html`<span class="mono break">${text}</span>`;
  return [
    validators.etag !== null && ["ETag", mono(validators.etag)],
    validators.lastModified !== null && ["Last-Modified", mono(validators.lastModified)],
    ["Searched as", textSearchConfig],
    ["SHA-256 of the body", mono(digest)],
    ["Simhash of the text", mono(simhash)],
  ];
}

const changeItem = ({ seenAt, kind, words, difference }: PageFacts["changes"][number]) =>
  html`<p>${kindBadge(kind)} ${small(instant(seenAt))}</p>
<p class="small"><bdi>${words}</bdi></p>${difference && differenceList(difference)}`;

function alikeItem({ url, title, isFirst, sameBytes }: AlikePage): Html {
  const words = [url, isFirst && "had it first", sameBytes && "the same byte by byte"].filter(Boolean);
  return html`<a class="break" href="${pageLink(url)}">${title.trim() || url}</a> ${small(words.join(" · "))}`;
}

// The lists of links to it, links from it, and fetches, one part at a time.

function listSection<One>(
  name: "fetches" | "in" | "out",
  title: string,
  { items, offset, limit, total, more }: Listed<One>,
  columns: readonly Column<One>[],
): Node {
  const count = `${more ? "more than " : ""}${countText(total)}`;
  const [from, to] = [offset + 1, Math.max(offset + items.length, offset + 1)];
  const shown = total > items.length ? `${countText(from)} to ${countText(to)} of ${count}` : count;
  const hidden = total === 0 ? "None is known." : "None of these may be shown.";
  return section(
    html`${title} ${small(shown)}`,
    [
      table<One>({ label: title, columns, rows: items, empty: [hidden, ""] }),
      onward({
        ...{ name, words: "Next →", part: name },
        next: offset + limit < total ? offset + limit : null,
        before: offset > limit ? offset - limit : null,
      }),
    ],
    { id: name },
  );
}

const fetchColumns: readonly Column<PageFetch>[] = [
  member("fetchedAt", "When", { cell: ({ fetchedAt }) => instant(fetchedAt) }),
  member("crawler", "By", { cell: ({ crawler }) => crawlerOr(crawler, "gone") }),
  member("outcome", "Outcome", {
    cell: ({ outcome, status, blame, address }) =>
      html`${outcome} ${status}${blame && html` ${small(`blame: ${blame}`)}`}${
        address && html` <span class="small mono">${address}</span>`
      }`,
  }),
  ...(["status", "blame", "address"] as const).map((name) => member<PageFetch>(name)),
  member("dnsMs", "DNS", { unit: "ms" }),
  member("connectMs", "Connect", { unit: "ms" }),
  member("tlsMs", "TLS", { unit: "ms" }),
  member("firstByteMs", "First byte", { unit: "ms" }),
  member("totalMs", "All", { unit: "ms" }),
  member("bodyBytes", "Body", { unit: "bytes" }),
  member("wireBytes"),
  member("shippedBytes", "Shipped", { unit: "bytes" }),
];

/** Attributes of a link, whichever side this page is on. */
const linkColumns = <Link extends Pick<InLink, "anchor" | "nofollow">>(): readonly Column<Link>[] => [
  member<Link>("anchor", "Anchor text", { cell: ({ anchor }) => anchor.trim(), none: "none", kind: "break" }),
  member<Link>("nofollow", "Followed", { cell: ({ nofollow }) => (nofollow ? "no (nofollow)" : "yes") }),
];

const inLinkColumns: readonly Column<InLink>[] = [
  member("url", "From", {
    ...{ cell: ({ title, url }) => title.trim() || url, kind: "break" },
    link: ({ url }) => pageLink(url),
    more: ({ url }) => html`<span class="break">${url}</span>`,
  }),
  member("title"),
  ...linkColumns<InLink>(),
];

const stateWords: Readonly<Record<OutLink["state"], string>> = {
  unknown: "outside of what is crawled",
  "not-fetched": "known, not fetched yet",
  fetched: "fetched, not in the index",
  indexed: "in the index",
};

const outLinkColumns: readonly Column<OutLink>[] = [
  member("url", "To", {
    ...{ cell: ({ url }) => url ?? small("the address was not kept"), kind: "break" },
    link: ({ url, state }) => (url !== null && state === "indexed" ? pageLink(url) : null),
  }),
  ...linkColumns<OutLink>(),
  member("state", "State", { cell: ({ state }) => stateWords[state] }),
];

// Addresses of pages, also used by the results of a search.

export const pageLink = (url: string) => pathWith("/pages", { url });

/** The host and the parts of the path, as breadcrumbs. */
export function crumbs(url: string): Html {
  if (!canParseUrl(url)) return html`${url}`;
  const { protocol, host, pathname, search } = new URL(url);
  const parts = pathname.split("/").filter((part) => part !== "");
  const shown = parts.length > 4 ? [...parts.slice(0, 2), "…", ...parts.slice(-2)] : parts;
  const start = protocol === "https:" ? host : `${protocol}//${host}`;
  const crumb = (part: string) => html`<span class="crumb">${decoded(part)}</span>`;
  return html`<strong>${start}</strong>${shown.map(crumb)}${search === "" ? nothing : crumb(search)}`;
}

const longestCrumb = 60;

function decoded(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // As in the address.
  }
  return text.length > longestCrumb ? `${text.slice(0, longestCrumb - 1)}…` : text;
}
