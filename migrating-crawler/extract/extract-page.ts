/** From a fetched body to what is shipped for it (design section 8). Every string and list fits the message. */
import { composed } from "#protocol/composed";
import { maySearch, type StatedPreference } from "#protocol/preferences";
import { maxPageLinks, type PageExtract } from "#protocol/result";
import { robotsWords } from "../preferences/robots-words.ts";
import { inlineLicense, namedLicense } from "../preferences/rsl.ts";
import { mergedStatements } from "../preferences/statements.ts";
import { tdmReservation } from "../preferences/tdm-reservation.ts";
import { shipLinks, withoutSession } from "../traps/ship-links.ts";
import { decodeSource } from "./charset.ts";
import { type Dictionary, dictionaryOf, textSearchConfigOf } from "./dictionaries.ts";
import { mediaType } from "./document-kind.ts";
import {
  bodyDigest,
  directiveNames,
  extractList,
  type RobotsDirectives,
  robotsDirectives,
} from "./extract-list.ts";
import { languageOf } from "./language.ts";
import { LexemeVector, type Weight } from "./lexemes.ts";
import { type LinkHeader, linkTargets } from "./link-header.ts";
import { linkResolver, type ResolveReference } from "./link-resolver.ts";
import { type Containers, mark } from "./open-elements.ts";
import { pageDates } from "./page-dates.ts";
import { declaredRefresh, PageNotes } from "./page-metadata.ts";
import { type ReadLink, tidy } from "./read-links.ts";
import { WorkTurns } from "./read-list.ts";
import { countWords, type ReadPage, readPage, withoutSoftHyphens } from "./read-page.ts";
import { resolveUrl } from "./resolve-url.ts";
import type { SourceText } from "./source-text.ts";
import { type StructuredData, structuredData } from "./structured-data.ts";
import type { TextBlock } from "./text-blocks.ts";

const maxExcerptCharacters = 600;

export interface FetchedBody {
  /** The URL that was fetched. */
  readonly url: string;
  readonly bytes: Buffer;
  /** SHA-256 of the bytes, hex; absent: it is reckoned. */
  readonly digest?: string | undefined;
  readonly contentType: string;
  readonly contentLanguage: string | null;
  readonly robotsTag: string | readonly string[] | undefined;
  /** The `Link` headers, which may state a canonical URL. */
  /** What the site states of the page's uses elsewhere: in robots.txt, in tdmrep.json, in the header. */
  readonly stated?: readonly StatedPreference[];
  /** The `Refresh` header, a meta refresh in other clothes. */
  readonly refreshHeader?: string | readonly string[] | undefined;
  readonly linkHeader?: LinkHeader;
  /** For `unavailable_after`; the machine's clock unless given. */
  readonly nowMs?: number;
  /** Major version of the Postgres that the lexemes are for; the newest unless given. */
  readonly postgresVersion?: number | undefined;
  /** Awaited before and between long computations: probes under way want the processor. */
  readonly quiet: () => Promise<void>;
}

export interface Extracted {
  readonly page: PageExtract;
  /** The page was too deeply nested to be read to its end. */
  readonly cut: boolean;
  /** What the site states of the page's uses, from all places. */
  readonly stated: readonly StatedPreference[];
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
  return { page, cut: read.cut, stated };
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

/** What the page says and where it leads. */
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
    description: descriptionOf(read),
    headings: read.headings.map((heading) => ({ ...heading, text: cutAt(heading.text, 300) })),
    ...(notes.language === null ? {} : { declaredLanguage: cutAt(notes.language.trim(), 40) }),
    ...datesOf(read, structured, body.url),
    ...structuredOf(structured),
    ...feedsOf(notes.feeds, resolve),
    ...(refresh !== null && links.some((link) => link.url === refresh.url) ? { refresh } : {}),
    links,
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    ...(leftOut === 0 ? {} : { leftOutLinks: leftOut }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
  };
}

/** Meta robots and X-Robots-Tag; a page whose use for search is denied, or licensed only, is not indexed either. */
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
  "language" | "detectedLanguage" | "textSearchConfig" | "lexemes" | "excerpt" | "words" | "simhash"
>;

/** What becomes of the page's text; nothing of it is shipped that the page forbids to index or to show. */
async function indexed(
  read: ReadPage,
  body: FetchedBody,
  { noindex, excerptCharacters }: RobotsDirectives,
  turns: WorkTurns,
): Promise<IndexedFacts> {
  const { notes } = read;
  const { pieces, prose } = pageText(read);
  const { language, detected } = await languageOf({
    declared: notes.language ?? notes.contentLanguage,
    contentLanguage: body.contentLanguage,
    text: prose,
  });
  const config = textSearchConfigOf(language);
  const said = { title: titleOf(read), description: descriptionOf(read), pieces };
  const vector = await vectorOf(said, await dictionaryOf(config, body.postgresVersion), turns);
  return {
    language,
    ...(detected === null ? {} : { detectedLanguage: detected }),
    textSearchConfig: config,
    lexemes: noindex ? "" : vector.toString(),
    excerpt: cutAt(prose, noindex ? 0 : Math.min(maxExcerptCharacters, excerptCharacters)),
    words: vector.words,
    simhash: vector.simhash(),
  };
}

async function vectorOf(
  said: { readonly title: string; readonly description: string; readonly pieces: readonly TextPiece[] },
  dictionary: Dictionary,
  turns: WorkTurns,
): Promise<LexemeVector> {
  const vector = new LexemeVector(dictionary);
  vector.add(said.title, "A");
  vector.add(said.description, "B");
  for (const { weight, text } of said.pieces) {
    vector.add(text, weight);
    const turn = turns.next();
    if (turn !== null) await turn;
  }
  return vector;
}

/** Text beyond it is not indexed. */
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
    containers: { parents: [0], isParagraph: [false] },
    alts: "",
    cut: false,
  };
}

// The page's text for the index and for people: the main blocks, joined where the weight does not change.

interface TextPiece {
  readonly weight: Weight;
  readonly text: string;
}

interface PageText {
  /** In the page's order, then what its pictures show. */
  readonly pieces: readonly TextPiece[];
  /** The first words of the running text, as much as an excerpt and the language detector want. */
  readonly prose: string;
}

/** A piece is not joined further beyond this, so that other work has its turns between two. */
const longPieceCharacters = 16 * 1024;

const maxProseCharacters = 3000;

export function pageText(read: Pick<ReadPage, "blocks" | "alts" | "containers">): PageText {
  const pieces: { weight: Weight; text: string }[] = [];
  let prose = "";
  for (const { text, headingLevel } of mainBlocks(read.blocks, read.containers)) {
    const weight = headingLevel > 0 ? "B" : "D";
    const last = pieces.at(-1);
    if (last?.weight === weight && last.text.length < longPieceCharacters) last.text += `\n${text}`;
    else pieces.push({ weight, text });
    if (weight === "D" && prose.length < maxProseCharacters) prose += `${text.slice(0, maxProseCharacters)} `;
  }
  if (read.alts !== "") pieces.push({ weight: "D", text: read.alts });
  return { pieces, prose: tidy(prose) };
}

// Where a page leads: its links as absolute URLs, and the address that it states for itself.

/** The links in order, each URL once (the first anchor that says something); page-wide nofollow holds for all. */
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

/** Where the page sends its visitors, by a meta or by its header; null: nowhere, or to itself. */
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

// What a page says of itself, in the form and within the bounds of what is shipped.

/** The title element; without one what the page is called elsewhere. */
function titleOf({ title, notes, headings }: ReadPage): string {
  if (title !== "") return cutAt(title, 500);
  const stated = shown(notes.metas.get("og:title") ?? notes.metas.get("twitter:title") ?? "");
  const heading = headings.find(({ level }) => level === 1) ?? headings[0];
  return cutAt(stated === "" ? (heading?.text ?? "") : stated, 500);
}

function descriptionOf({ notes }: ReadPage): string {
  return cutAt(shown(notes.description ?? ""), 1000);
}

/** As a reader would see it. */
function shown(text: string): string {
  return tidy(withoutSoftHyphens(text));
}

function datesOf(
  { notes, blocks }: ReadPage,
  structured: StructuredData | null,
  url: string,
): Pick<PageExtract, "publishedAt" | "modifiedAt"> {
  const { publishedAt, modifiedAt } = pageDates({ notes, structured, blocks, language: notes.language, url });
  return {
    ...(publishedAt === null ? {} : { publishedAt }),
    ...(modifiedAt === null ? {} : { modifiedAt }),
  };
}

function structuredOf(data: StructuredData | null): Pick<PageExtract, "structured"> {
  if (data === null) return {};
  const { type, name, description } = data;
  return {
    structured: {
      type: cutAt(type, 80),
      name: cutAt(name, 300),
      description: cutAt(description, 1000),
    },
  };
}

function feedsOf(hrefs: readonly string[], resolve: ResolveReference): Pick<PageExtract, "feeds"> {
  const urls = hrefs.map(resolve).filter((url) => url !== null);
  return urls.length === 0 ? {} : { feeds: [...new Set(urls)].slice(0, 20) };
}

/** At most so many UTF-16 units, never half a character; NUL, which Postgres' text cannot hold, as a blank. */
function cutAt(text: string, most: number): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const whole = cut.includes("\0") ? cut.replaceAll("\0", " ") : cut;
  return /[\ud800-\udfff]/.test(whole) ? whole.replace(/\p{Surrogate}/gu, "\ufffd") : whole;
}

// The part of a page's text that is its own: navigation, footers, notices and lists of links left out. Blocks
// are told apart by link density and length, each with its neighbours (Kohlschütter, Fankhauser and Nejdl 2010,
// "Boilerplate detection using shallow text features", the tree on number of words), after what their
// elements say of them.
//
// The rest is left out of the index, not kept at a low weight: every page of a site repeats it, so that it says
// nothing of this page, fills the vectors and hides near-duplicates. A page that has hardly anything else (a list of
// links, a form) is taken with all its text.

/** With fewer words, the page's text is not one that the rules were made for. */
const minMainWords = 40;

const minMainShare = 0.1;

interface Measured {
  readonly block: TextBlock;
  readonly words: number;
  readonly linkDensity: number;
}

/** The blocks of the main text, in order, headings included. */
function mainBlocks(blocks: readonly TextBlock[], containers: Containers): readonly TextBlock[] {
  const seen = blocks.filter((block) => (block.marks & mark.hidden) === 0);
  const measured = seen.map(measure);
  const unnamed = measured.filter(({ block }) => (block.marks & mark.furniture) === 0);
  const unlikely = unnamed.filter(({ block }) => (block.marks & mark.likelyFurniture) === 0);
  const [all, some] = [proseWords(unnamed), proseWords(unlikely)];
  const candidates = 2 * some < all ? unnamed : unlikely;
  const region = kept(
    mainRegion(candidates, containers),
    ({ linkDensity }) => linkDensity <= maxRegionDensity,
  );
  const prose = chosen(candidates);
  const isText = wordsOf(region) >= Math.max(minRegionWords, minRegionShare * wordsOf(prose));
  const choices = [...(isText ? [region] : []), prose, candidates, unnamed];
  const isEnough = (choice: readonly Measured[]) =>
    wordsOf(choice) >= Math.max(minMainWords, minMainShare * wordsOf(measured));
  const taken = choices.find(isEnough) ?? measured;
  return taken.length > 0 ? taken.map(({ block }) => block) : blocks;
}

function measure(block: TextBlock): Measured {
  const linkDensity = block.linkWords / Math.max(1, block.words);
  return { block, words: block.words, linkDensity };
}

const wordsOf = (measured: readonly Measured[]) => measured.reduce((sum, { words }) => sum + words, 0);

/** Words in blocks that look like prose: long, and hardly linked. */
function proseWords(measured: readonly Measured[]): number {
  return wordsOf(measured.filter(({ words, linkDensity }) => words > 16 && linkDensity <= 1 / 3));
}

/** Block by block, wherever they stand. */
function chosen(candidates: readonly Measured[]): Measured[] {
  return kept(candidates, (now, before, after) => isMain(now, before ?? none, after ?? none));
}

/** Those that are to be kept, with the headings over them. Neighbours are those that are no headings. */
function kept(
  candidates: readonly Measured[],
  isKept: (now: Measured, before: Measured | undefined, after: Measured | undefined) => boolean,
): Measured[] {
  const isTaken = new Uint8Array(candidates.length);
  let [before, now, nowAt]: [Measured | undefined, Measured | undefined, number] = [undefined, undefined, -1];
  for (let at = 0; at <= candidates.length; at++) {
    const after = candidates[at];
    if (after !== undefined && after.block.headingLevel > 0) continue;
    if (now !== undefined && isKept(now, before, after)) isTaken[nowAt] = 1;
    [before, now, nowAt] = [now, after, at];
  }
  takeHeadings(candidates, isTaken);
  return candidates.filter((_, at) => isTaken[at] === 1);
}

const none: Pick<Measured, "words" | "linkDensity"> = { words: 0, linkDensity: 0 };

/** What the page marks as its main part may be short. */
const minMarkedWords = 5;

/** The tree of the paper's figure 2, and a shorter way for what stands in the page's `main` or `article`. */
function isMain(now: Measured, before: typeof none, after: typeof none): boolean {
  if (now.linkDensity > 0.333333) return false;
  if ((now.block.marks & mark.main) !== 0 && now.words >= minMarkedWords) return true;
  if (before.linkDensity > 0.555556) return now.words > 40 || after.words > 17;
  return now.words > 16 || after.words > 15 || before.words > 4;
}

/** A heading belongs to what follows it; a first-level one is the page's own. */
function takeHeadings(candidates: readonly Measured[], isTaken: Uint8Array): void {
  let follows = false;
  for (let at = candidates.length - 1; at >= 0; at--) {
    const { headingLevel } = candidates[at]!.block;
    if (headingLevel === 0) follows = isTaken[at] === 1;
    else if (follows || headingLevel === 1) isTaken[at] = 1;
  }
}

// The part of the page's tree that holds its text, found as the browsers' reader views do (the steps of Readability 0.6, in
// numbers of blocks): paragraphs count for the elements that they stand in, the nearer the more, less what is links there;
// the best of these, with those beside it that are text as well. Numbers that are not Readability's were found on the
// first halves of two public gold sets (test/bench/results/extraction.md).

const fewestScoredCharacters = 25;
const mostScoredAncestors = 5;
const alternativeShare = 0.75;
const fewestAlternatives = 3;
const mostAlternatives = 4;
const leastSiblingScore = 10;
const siblingShare = 0.2;
const maxSiblingDensity = 0.25;

/** An element that holds hardly more than the best one is taken for it, and looked beside. */
const aloneShare = 0.02;

/** A region with fewer words, or less of what looks like prose wherever it stands, is a chance find. */
const minRegionWords = 100;
const minRegionShare = 0.45;

/** In the region, lists and short lines are text, too, unless they are mostly links. */
const maxRegionDensity = 0.6;

function mainRegion(
  candidates: readonly Measured[],
  { parents, isParagraph }: Containers,
): readonly Measured[] {
  const count = parents.length;
  const [scores, words, linkWords] = [
    new Float64Array(count),
    new Float64Array(count),
    new Float64Array(count),
  ];
  for (const { block } of candidates) {
    words[block.container]! += block.words;
    linkWords[block.container]! += block.linkWords;
    if (block.headingLevel === 0 && block.text.length >= fewestScoredCharacters)
      addScore(
        scores,
        parents,
        isParagraph[block.container] ? parents[block.container]! : block.container,
        scoreOf(block),
      );
  }
  for (let at = count - 1; at > 0; at--) {
    words[parents[at]!]! += words[at]!;
    linkWords[parents[at]!]! += linkWords[at]!;
  }
  for (let at = 0; at < count; at++) scores[at]! *= 1 - linkWords[at]! / Math.max(1, words[at]!);
  let top = commonOf(scores, parents, climbed(scores, parents, bestOf(scores)));
  while (parents[top]! > 0 && words[parents[top]!]! <= (1 + aloneShare) * words[top]!) top = parents[top]!;
  const least = Math.max(leastSiblingScore, siblingShare * scores[top]!);
  const isIn = new Uint8Array(count);
  for (let at = 1; at < count; at++) {
    const isSibling = parents[at] === parents[top] && top !== 0;
    const isText =
      words[at]! > (isParagraph[at] ? 15 : 50) && linkWords[at]! < maxSiblingDensity * words[at]!;
    if (at === top || isIn[parents[at]!] === 1 || (isSibling && (scores[at]! >= least || isText)))
      isIn[at] = 1;
  }
  if (top === 0) isIn.fill(1);
  return candidates.filter(({ block }) => isIn[block.container] === 1 || block.headingLevel === 1);
}

function scoreOf({ text }: TextBlock): number {
  let commas = 0;
  for (let at = text.indexOf(","); at >= 0 && commas < 50; at = text.indexOf(",", at + 1)) commas++;
  return 1 + commas + Math.min(3, text.length / 100);
}

function addScore(scores: Float64Array, parents: readonly number[], from: number, score: number): void {
  for (let at = from, level = 0; level < mostScoredAncestors && at > 0; at = parents[at]!, level++)
    scores[at]! += level === 0 ? score : level === 1 ? score / 2 : score / (3 * level);
}

function bestOf(scores: Float64Array): number {
  let best = 0;
  for (let at = 1; at < scores.length; at++) if (scores[at]! > scores[best]!) best = at;
  return best;
}

/** A parent that has more is taken. */
function climbed(scores: Float64Array, parents: readonly number[], top: number): number {
  const least = scores[top]! / 3;
  let last = scores[top]!;
  for (let at = parents[top]!; at > 0; at = parents[at]!) {
    if (scores[at]! < least) return top;
    if (scores[at]! > last) return at;
    last = scores[at]!;
  }
  return top;
}

/** An element that holds three others which are nearly as good is the text. */
function commonOf(scores: Float64Array, parents: readonly number[], top: number): number {
  let others: number[] = [];
  for (let at = 1; at < scores.length; at++)
    if (at !== top && scores[at]! >= alternativeShare * scores[top]!) others.push(at);
  others = others.sort((a, b) => scores[b]! - scores[a]!).slice(0, mostAlternatives);
  if (others.length < fewestAlternatives) return top;
  for (let at = parents[top]!; at > 0; at = parents[at]!)
    if (others.filter((other) => isWithin(parents, other, at)).length >= fewestAlternatives) return at;
  return top;
}

function isWithin(parents: readonly number[], inner: number, outer: number): boolean {
  let at = inner;
  while (at > outer) at = parents[at]!;
  return at === outer;
}
