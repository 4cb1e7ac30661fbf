/** From a fetched body to what is shipped for it (design section 8). Every string and list fits the message. */
import { composed } from "#protocol/composed";
import type { PageExtract } from "#protocol/result";
import { shipLinks } from "../traps/ship-links.ts";
import { bodyDigest } from "./body-digest.ts";
import { decodeText } from "./charset.ts";
import { countWords } from "./count-words.ts";
import { cutAt } from "./cut-text.ts";
import { type Dictionary, dictionaryOf, textSearchConfigOf } from "./dictionaries.ts";
import { extractList } from "./extract-list.ts";
import { languageOf } from "./language.ts";
import { LexemeVector } from "./lexemes.ts";
import { linkResolver } from "./link-resolver.ts";
import { mediaType } from "./media-type.ts";
import { datesOf, descriptionOf, feedsOf, structuredOf, titleOf } from "./page-facts.ts";
import { absoluteLinks, canonicalOfHeader } from "./page-links.ts";
import { PageNotes } from "./page-notes.ts";
import { pageText, type TextPiece } from "./page-text.ts";
import { type ReadPage, readPage } from "./read-page.ts";
import { resolveUrl } from "./resolve-url.ts";
import { type RobotsDirectives, robotsDirectives } from "./robots-directives.ts";
import { withoutSoftHyphens } from "./soft-hyphens.ts";
import { structuredData } from "./structured-data.ts";
import { WorkTurns } from "./work-turns.ts";

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
  readonly linkHeader?: string | readonly string[] | undefined;
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
}

export async function extractPage(body: FetchedBody): Promise<Extracted> {
  await body.quiet();
  const turns = new WorkTurns(body.quiet);
  const list = await extractList(body, turns);
  if (list !== null) return list;
  const { text: source, charset } = decodeText(body.bytes, body.contentType);
  const type = mediaType(body.contentType);
  const read =
    type === "text/plain"
      ? plainPage(source)
      : await readPage(source, turns, type === "application/xhtml+xml");
  const page: PageExtract = {
    contentType: type.slice(0, 200),
    charset: charset.slice(0, 40),
    ...statedFacts(read, body),
    ...(await indexed(read, body, turns)),
    digest: body.digest ?? bodyDigest(body.bytes),
  };
  return { page, cut: read.cut };
}

type StatedFacts = Omit<PageExtract, "contentType" | "charset" | "digest" | keyof IndexedFacts>;

/** What the page says and where it leads. */
function statedFacts(read: ReadPage, body: FetchedBody): StatedFacts {
  const { notes } = read;
  const resolve = linkResolver(resolveUrl(notes.base ?? "", body.url) ?? body.url);
  const robots = robotsOf(read, body);
  const canonical = notes.canonical ?? canonicalOfHeader(body.linkHeader);
  const structured = structuredData(notes);
  const found = absoluteLinks(read.links, resolve, robots.nofollow);
  const { links, trapped } = shipLinks(found, body.url, new Date(body.nowMs ?? Date.now()));
  return {
    canonicalUrl: canonical === null ? null : resolve(canonical),
    title: titleOf(read),
    description: descriptionOf(read),
    headings: read.headings.map((heading) => ({ ...heading, text: cutAt(heading.text, 300) })),
    ...(notes.language === null ? {} : { declaredLanguage: cutAt(notes.language.trim(), 40) }),
    ...datesOf(read, structured, body.url),
    ...structuredOf(structured),
    ...feedsOf(notes.feeds, resolve),
    links,
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
  };
}

function robotsOf({ notes }: ReadPage, body: FetchedBody): RobotsDirectives {
  const nowMs = body.nowMs ?? Date.now();
  return robotsDirectives({ metas: notes.robots, header: body.robotsTag, nowMs });
}

type IndexedFacts = Pick<
  PageExtract,
  "language" | "detectedLanguage" | "textSearchConfig" | "lexemes" | "excerpt" | "words" | "simhash"
>;

/** What becomes of the page's text; nothing of it is shipped that the page forbids to index or to show. */
async function indexed(read: ReadPage, body: FetchedBody, turns: WorkTurns): Promise<IndexedFacts> {
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
  const { noindex, excerptCharacters } = robotsOf(read, body);
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

function plainPage(source: string): ReadPage {
  const text = composed(withoutSoftHyphens(source.slice(0, 1_000_000)));
  return {
    title: "",
    notes: new PageNotes(),
    headings: [],
    links: [],
    blocks: [{ text, words: countWords(text, 0, text.length), headingLevel: 0, linkCharacters: 0, marks: 0 }],
    alts: "",
    cut: false,
  };
}
