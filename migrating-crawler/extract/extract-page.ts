/** Turns a fetched body into what is sent to the coordinator (design section 8). Every string and list fits the message. */
import { stemmingOf, textSearchConfigOf } from "#core/words/words";
import { composed } from "#protocol/composed";
import { maySearch, type StatedPreference } from "#protocol/preferences";
import { maxPageLinks, maxTextCharacters, type OtherReading, type PageExtract } from "#protocol/result";
import { robotsWords } from "../preferences/content-usage.ts";
import { inlineLicense, namedLicense } from "../preferences/rsl.ts";
import { mergedStatements } from "../preferences/statements.ts";
import { tdmReservation } from "../preferences/tdm-reservation.ts";
import { shipLinks, withoutSession } from "../traps/link-trap.ts";
import { decodeSource } from "./charset.ts";
import { mediaType } from "./document-kind.ts";
import {
  bodyDigest,
  directiveNames,
  extractList,
  type FetchedList,
  type RobotsDirectives,
  robotsDirectives,
} from "./extract-list.ts";
import { mark } from "./html-tags.ts";
import { languageOf } from "./language.ts";
import { isHeading, mainBlocks, mainPictures } from "./main-text.ts";
import { pageDates } from "./page-dates.ts";
import {
  declaredRefresh,
  isArticle,
  PageNotes,
  type StructuredData,
  structuredData,
} from "./page-metadata.ts";
import { type ReadLink, tidy } from "./read-links.ts";
import { WorkTurns } from "./read-list.ts";
import { countWords, type ReadPage, readPage, withoutSoftHyphens } from "./read-page.ts";
import {
  type LinkHeader,
  linkResolver,
  linkTargets,
  type ResolveReference,
  resolveUrl,
} from "./resolve-url.ts";
import { isSampled, type LinksOfTwo, linksOfTwo, oneOfPages, pageDifference } from "./second-opinion.ts";
import { Simhash } from "./simhash.ts";
import type { SourceText } from "./source-text.ts";

export interface FetchedBody extends FetchedList {
  readonly contentLanguage: string | null;
  /** What the site states in robots.txt, tdmrep.json and headers about uses of the page. */
  readonly stated?: readonly StatedPreference[];
  /** The `Refresh` header, which has the same meaning as a meta refresh. */
  readonly refreshHeader?: string | readonly string[] | undefined;
  /** The `Link` headers, which may declare a canonical URL. */
  readonly linkHeader?: LinkHeader;
  readonly nowMs?: number;
  /** Compare the links with a second parser's, even if the digest does not select the page. */
  readonly wantsSecondOpinion?: boolean;
  /** The extraction awaits this before and during long computations, because probes need the processor. */
  readonly quiet: () => Promise<void>;
}

export interface Extracted {
  readonly page: PageExtract;
  /** True if the page was nested too deeply to be read to its end. */
  readonly cut: boolean;
  readonly stated: readonly StatedPreference[];
  readonly difference?: OtherReading | undefined;
  readonly secondOpinion?: LinksOfTwo | undefined;
}

export async function extractPage(body: FetchedBody): Promise<Extracted> {
  await body.quiet();
  const turns = new WorkTurns(body.quiet);
  const list = await extractList(body, turns);
  if (list !== null) return { ...list, stated: body.stated ?? [] };
  const { source, charset } = decodeSource(body.bytes, body.contentType);
  const type = mediaType(body.contentType);
  const read =
    type === "text/plain"
      ? plainPage(source)
      : await readPage(source, turns, type === "application/xhtml+xml");
  const stated = mergedStatements([...(body.stated ?? []), ...statedInPage(read, body.url)]);
  const robots = directivesOf(read, body, stated);
  const page: PageExtract = {
    contentType: type.slice(0, 200),
    charset: charset.slice(0, 40),
    ...statedFacts(read, body, robots),
    ...(await indexed(read, body, robots, turns)),
    digest: body.digest ?? bodyDigest(body.bytes),
  };
  const extracted = { page, cut: read.cut, stated };
  const isAsked = body.wantsSecondOpinion === true || isSampled(page.digest, oneOfPages);
  if (!isAsked || type !== "text/html") return extracted;
  const html = source.slice(0, source.units.length);
  const secondOpinion = await linksOfTwo(html, read, body.url);
  return { ...extracted, secondOpinion, difference: pageDifference(body.url, html, secondOpinion) };
}

function statedInPage({ notes }: ReadPage, url: string): StatedPreference[] {
  return [
    ...robotsWords(directiveNames(notes.robots), "meta"),
    ...tdmReservation(notes.tdm, "meta"),
    ...notes.licenseLinks.flatMap((href) => namedLicense(href, "link")),
    ...(notes.license === "" ? [] : inlineLicense(notes.license, new URL(url))),
  ];
}

type StatedFacts = Omit<PageExtract, "contentType" | "charset" | "digest" | keyof IndexedFacts>;

function statedFacts(read: ReadPage, body: FetchedBody, robots: RobotsDirectives): StatedFacts {
  const { notes } = read;
  const resolve = linkResolver(resolveUrl(notes.base ?? "", body.url) ?? body.url);
  const canonical = notes.canonical ?? linkTargets(body.linkHeader, "canonical")[0] ?? null;
  const structured = structuredData(notes);
  const refresh = refreshOf(read, body, resolve);
  const refreshed = refresh === null ? [] : [{ href: refresh.url, anchor: "", nofollow: false }];
  const found = absoluteLinks([...refreshed, ...read.links], resolve, robots.nofollow);
  const shipped = shipLinks(found, body.url, new Date(body.nowMs ?? Date.now()));
  const { trapped } = shipped;
  const links = shipped.links.slice(0, maxPageLinks);
  const leftOut = shipped.links.length - links.length + read.leftOutLinks;
  return {
    canonicalUrl: canonical === null ? null : resolve(canonical),
    title: titleOf(read),
    description: cutAt(descriptionOf(read), robots.excerptCharacters),
    ...(notes.language === null ? {} : { declaredLanguage: cutAt(notes.language.trim(), 40) }),
    ...datesOf(read, structured, body.url),
    ...structuredOf(structured, robots.excerptCharacters),
    ...feedsOf(notes.feeds, resolve),
    ...(refresh !== null && links.some((link) => link.url === refresh.url) ? { refresh } : {}),
    links,
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    ...(leftOut === 0 ? {} : { leftOutLinks: leftOut }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
  };
}

/** A page whose use for search is denied or needs a license is not indexed either. */
function directivesOf(
  { notes }: ReadPage,
  body: FetchedBody,
  stated: readonly StatedPreference[],
): RobotsDirectives {
  const nowMs = body.nowMs ?? Date.now();
  const robots = robotsDirectives({ metas: notes.robots, header: body.robotsTag, nowMs });
  return maySearch(stated) ? robots : { ...robots, noindex: true };
}

type IndexedFacts = Pick<
  PageExtract,
  | "language"
  | "detectedLanguage"
  | "textSearchConfig"
  | "headings"
  | "text"
  | "unquoted"
  | "snippetCharacters"
  | "words"
  | "simhash"
>;

/** If the page forbids indexing, none of its text is sent. */
async function indexed(
  read: ReadPage,
  body: FetchedBody,
  { noindex, excerptCharacters }: RobotsDirectives,
  turns: WorkTurns,
): Promise<IndexedFacts> {
  const { notes } = read;
  const isPlain = mediaType(body.contentType) === "text/plain";
  const { text, headings, unquoted, prose } = pageText(read, isPlain ? tidyLines : tidy);
  const { language, detected } = await languageOf({
    declared: notes.language ?? notes.contentLanguage,
    contentLanguage: body.contentLanguage,
    text: prose,
  });
  const textSearchConfig = textSearchConfigOf(language);
  const simhash = new Simhash(await stemmingOf(textSearchConfig));
  const description = descriptionOf(read);
  for (const part of [titleOf(read), description, ...text.split("\n"), ...unquoted.split("\n")]) {
    simhash.add(part);
    const turn = turns.next();
    if (turn !== null) await turn;
  }
  // A description that may not be shown whole is searched all the same.
  const hidden = [description.length > excerptCharacters ? description : "", unquoted]
    .filter(Boolean)
    .join("\n");
  return {
    language,
    ...(detected === null ? {} : { detectedLanguage: detected }),
    textSearchConfig,
    headings,
    text: noindex ? "" : text,
    ...(noindex || hidden === ""
      ? {}
      : { unquoted: cutBetweenWords(hidden, maxTextCharacters - text.length) }),
    ...(excerptCharacters < maxTextCharacters ? { snippetCharacters: excerptCharacters } : {}),
    words: simhash.words,
    simhash: simhash.toString(),
  };
}

const maxPlainCharacters = 1_000_000;

function plainPage(source: SourceText): ReadPage {
  const written = source.slice(0, source.units.length).slice(0, maxPlainCharacters);
  const text = composed(withoutSoftHyphens(written));
  return {
    title: "",
    notes: new PageNotes(),
    headings: [],
    links: [],
    leftOutLinks: 0,
    blocks: [
      {
        text,
        words: countWords(text, 0, text.length),
        headingLevel: 0,
        linkWords: 0,
        marks: 0,
        container: 0,
      },
    ],
    containers: { parents: [0], isParagraph: [false], isItem: [false] },
    alts: [],
    cut: false,
  };
}

// Builds the page's text from the main blocks and pictures.

interface PageText {
  /** What may be quoted, one block per line. */
  readonly text: string;
  /** Of the text; those of menus and side bars say nothing about the page. */
  readonly headings: PageExtract["headings"];
  readonly unquoted: string;
  /** The start of the running text, long enough for language detection. */
  readonly prose: string;
}

const maxProseCharacters = 3000;

export function pageText(
  read: Pick<ReadPage, "blocks" | "headings" | "alts" | "containers" | "notes">,
  tidied: (text: string) => string = tidy,
): PageText {
  const blocks = mainBlocks(read.blocks, read.containers, () => isArticle(read.notes));
  const [quotable, others]: [string[], string[]] = [[], []];
  const begun: string[] = [];
  let prose = "";
  for (const block of blocks) {
    const text = tidied(block.text);
    const mayQuote = (block.marks & mark.unquoted) === 0;
    (mayQuote ? quotable : others).push(text);
    if (mayQuote && text !== "" && block.headingLevel > 0) begun.push(text);
    if (prose.length < maxProseCharacters && !isHeading(block))
      prose += `${text.slice(0, maxProseCharacters)} `;
  }
  for (const { text } of mainPictures(read, blocks)) others.push(tidy(text));
  const text = cutBetweenWords(quotable.join("\n"), maxTextCharacters);
  const unquoted = cutBetweenWords(others.join("\n"), maxTextCharacters - text.length);
  // A heading with a hidden part in it is several blocks.
  const headings = read.headings
    .filter(({ text: heading }) => begun.some((beginning) => heading.startsWith(beginning)))
    .map((heading) => ({ ...heading, text: cutAt(heading.text, 300) }));
  return { text, headings, unquoted, prose: tidy(prose) };
}

const tidyLines = (text: string): string => text.split("\n").map(tidy).filter(Boolean).join("\n");

/** A single word that is longer than this is cut, too. */
const longestWord = 1000;

function cutBetweenWords(text: string, most: number): string {
  if (text.length <= most) return cutAt(text, most);
  const end = Math.max(text.lastIndexOf(" ", most), text.lastIndexOf("\n", most));
  const cut = text.slice(0, end > most - longestWord ? Math.max(0, end) : most);
  return cutAt(cut.replace(/[\ud800-\udbff]$/, ""), most);
}

/** Keeps each URL once, with the first meaningful anchor. A page-wide nofollow applies to all links. */
function absoluteLinks(
  links: readonly ReadLink[],
  resolve: ResolveReference,
  nofollow: boolean,
): { url: string; anchor: string; nofollow: boolean }[] {
  const found = new Map<string, { url: string; anchor: string; nofollow: boolean }>();
  for (const link of links) {
    const url = resolve(link.href);
    if (url === null) continue;
    const known = found.get(url);
    const anchor = cutAt(link.anchor, 200);
    if (known === undefined) found.set(url, { url, anchor, nofollow: nofollow || link.nofollow });
    else {
      if (known.anchor === "") known.anchor = anchor;
      known.nofollow &&= nofollow || link.nofollow;
    }
  }
  return [...found.values()];
}

/** Returns the URL to which a meta or header redirects visitors, or null if there is none or it is the page itself. */
function refreshOf(
  { notes }: ReadPage,
  { url: from, refreshHeader }: FetchedBody,
  resolve: ResolveReference,
): { readonly url: string; readonly seconds: number } | null {
  const [header] = [refreshHeader ?? []].flat();
  const declared = notes.refresh ?? (header === undefined ? null : declaredRefresh(header));
  const target = declared === null ? null : resolve(declared.reference);
  if (declared === null || target === null || target === resolveUrl(from, from)) return null;
  return { url: withoutSession(target), seconds: declared.seconds };
}

/** Falls back to other names of the page when the title element is empty. */
function titleOf({ title, notes, headings }: ReadPage): string {
  if (title !== "") return cutAt(title, 500);
  const stated = shown(notes.metas.get("og:title") ?? notes.metas.get("twitter:title") ?? "");
  const heading = headings.find(({ level }) => level === 1) ?? headings[0];
  return cutAt(stated === "" ? (heading?.text ?? "") : stated, 500);
}

const descriptionOf = ({ notes }: ReadPage): string => cutAt(shown(notes.description ?? ""), 1000);

const shown = (text: string): string => tidy(withoutSoftHyphens(text));

function datesOf(
  { notes, blocks }: ReadPage,
  structured: StructuredData | null,
  url: string,
): Pick<PageExtract, "publishedAt" | "modifiedAt"> {
  const { publishedAt, modifiedAt } = pageDates({ notes, structured, blocks, language: notes.language, url });
  return { ...(publishedAt === null ? {} : { publishedAt }), ...(modifiedAt === null ? {} : { modifiedAt }) };
}

function structuredOf(
  data: StructuredData | null,
  excerptCharacters: number,
): Pick<PageExtract, "structured"> {
  if (data === null) return {};
  const { type, name, description } = data;
  return {
    structured: {
      type: cutAt(type, 80),
      name: cutAt(name, 300),
      description: cutAt(description, Math.min(1000, excerptCharacters)),
    },
  };
}

function feedsOf(hrefs: readonly string[], resolve: ResolveReference): Pick<PageExtract, "feeds"> {
  const urls = hrefs.map(resolve).filter((url) => url !== null);
  return urls.length === 0 ? {} : { feeds: [...new Set(urls)].slice(0, 20) };
}

/**
 * Cuts the text at a number of UTF-16 units without splitting a character. NUL becomes a blank, because Postgres' text cannot
 * contain it.
 */
function cutAt(text: string, most: number): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const whole = cut.includes("\0") ? cut.replaceAll("\0", " ") : cut;
  return /[\ud800-\udfff]/.test(whole) ? whole.replace(/\p{Surrogate}/gu, "\ufffd") : whole;
}
