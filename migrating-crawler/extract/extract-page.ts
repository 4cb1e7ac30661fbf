/** From a fetched body to what is shipped for it (design section 8). Every string and list fits the message. */
import { createHash } from "node:crypto";
import type { PageExtract } from "#protocol/result";
import { shipLinks } from "../traps/ship-links.ts";
import { decodeText } from "./charset.ts";
import { countWords } from "./count-words.ts";
import { dictionaryOf, textSearchConfigOf } from "./dictionaries.ts";
import { extractList } from "./extract-list.ts";
import { languageOf } from "./language.ts";
import { LexemeVector } from "./lexemes.ts";
import { linkResolver, type ResolveReference } from "./link-resolver.ts";
import { pageDates } from "./page-dates.ts";
import { PageNotes } from "./page-notes.ts";
import { pageText, type TextPiece } from "./page-text.ts";
import type { ReadLink } from "./read-links.ts";
import { type ReadPage, readPage } from "./read-page.ts";
import { resolveUrl } from "./resolve-url.ts";
import { robotsDirectives } from "./robots-directives.ts";
import { type StructuredData, structuredData } from "./structured-data.ts";
import { tidy } from "./tidy.ts";
import { WorkTurns } from "./work-turns.ts";

const maxExcerptCharacters = 600;

export interface FetchedBody {
  /** The URL that was fetched. */
  readonly url: string;
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly contentLanguage: string | null;
  readonly robotsTag: string | readonly string[] | undefined;
  /** The `Link` headers, which may state a canonical URL. */
  readonly linkHeader?: string | readonly string[] | undefined;
  /** For `unavailable_after`; the machine's clock unless given. */
  readonly nowMs?: number;
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
  const { notes } = read;
  const { pieces, prose } = pageText(read);
  const { language, detected } = await languageOf({
    declared: notes.language ?? notes.contentLanguage,
    contentLanguage: body.contentLanguage,
    text: prose,
  });
  const robots = robotsDirectives({
    metas: notes.robots,
    header: body.robotsTag,
    nowMs: body.nowMs ?? Date.now(),
  });
  const config = textSearchConfigOf(language);
  const structured = structuredData(notes);
  const title = cutAt(titleOf(read), 500);
  const description = cutAt(tidy(notes.description ?? ""), 1000);
  const vector = await vectorOf({ title, description, pieces }, config, turns);
  const base = resolveUrl(notes.base ?? "", body.url) ?? body.url;
  const resolve = linkResolver(base);
  const canonical = notes.canonical ?? canonicalOfHeader(body.linkHeader);
  const excerptCharacters = robots.noindex ? 0 : Math.min(maxExcerptCharacters, robots.excerptCharacters);
  const { links, trapped } = shipLinks(
    absoluteLinks(read.links, resolve, robots.nofollow),
    body.url,
    new Date(body.nowMs ?? Date.now()),
  );
  const page: PageExtract = {
    contentType: type.slice(0, 200),
    charset: charset.slice(0, 40),
    canonicalUrl: canonical === null ? null : resolve(canonical),
    title,
    description,
    headings: read.headings.map((heading) => ({ ...heading, text: cutAt(heading.text, 300) })),
    language,
    ...(notes.language === null ? {} : { declaredLanguage: cutAt(notes.language.trim(), 40) }),
    ...(detected === null ? {} : { detectedLanguage: detected }),
    ...datesOf(read, structured, body.url),
    ...structuredOf(structured),
    ...feedsOf(notes.feeds, resolve),
    textSearchConfig: config,
    lexemes: robots.noindex ? "" : vector.toString(),
    excerpt: cutAt(prose, excerptCharacters),
    words: vector.words,
    links,
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
    digest: createHash("sha256").update(body.bytes).digest("hex"),
    simhash: vector.simhash(),
  };
  return { page, cut: read.cut };
}

export function mediaType(contentType: string): string {
  return contentType.split(";", 1)[0]!.trim().toLowerCase();
}

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

async function vectorOf(
  said: { readonly title: string; readonly description: string; readonly pieces: readonly TextPiece[] },
  config: string,
  turns: WorkTurns,
): Promise<LexemeVector> {
  const vector = new LexemeVector(await dictionaryOf(config));
  vector.add(said.title, "A");
  vector.add(said.description, "B");
  for (const { weight, text } of said.pieces) {
    vector.add(text, weight);
    const turn = turns.next();
    if (turn !== null) await turn;
  }
  return vector;
}

/** The title element; without one what the page is called elsewhere. */
function titleOf({ title, notes, headings }: ReadPage): string {
  if (title !== "") return title;
  const stated = tidy(notes.metas.get("og:title") ?? notes.metas.get("twitter:title") ?? "");
  return stated !== "" ? stated : ((headings.find(({ level }) => level === 1) ?? headings[0])?.text ?? "");
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

/** The target of the first `Link` with the relation `canonical` (RFC 8288, RFC 6596), as written. */
function canonicalOfHeader(header: string | readonly string[] | undefined): string | null {
  for (const value of [header ?? []].flat().slice(0, 20)) {
    for (const [, target, parameters] of value.slice(0, 8192).matchAll(/<([^<>]*)>([^<]*)/g)) {
      if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?canonical(?:\s[^"]*)?"|canonical(?=\s|[;,]|$))/i.test(parameters!))
        return target!;
    }
  }
  return null;
}

function plainPage(source: string): ReadPage {
  const text = source.slice(0, 1_000_000);
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

/** At most so many UTF-16 units, never half a character; NUL, which Postgres' text cannot hold, as a blank. */
function cutAt(text: string, most: number): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const whole = cut.includes("\0") ? cut.replaceAll("\0", " ") : cut;
  return /[\ud800-\udfff]/.test(whole) ? whole.replace(/\p{Surrogate}/gu, "\ufffd") : whole;
}
