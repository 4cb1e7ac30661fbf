/** From a fetched body to what is shipped for it (design section 8). Every string and list fits the message. */
import { createHash } from "node:crypto";
import type { PageExtract } from "#protocol/result";
import { decodeText } from "./charset.ts";
import { dictionaryOf, textSearchConfigOf } from "./dictionaries.ts";
import { extractList } from "./extract-list.ts";
import { languageOf } from "./language.ts";
import { LexemeVector } from "./lexemes.ts";
import { type ReadLink, type ReadPage, readPage, tidy } from "./read-page.ts";
import { resolveUrl } from "./resolve-url.ts";
import { robotsDirectives } from "./robots-directives.ts";
import { simhash } from "./simhash.ts";
import { WorkTurns } from "./work-turns.ts";

const maxExcerptCharacters = 600;

export interface FetchedBody {
  /** The URL that was fetched. */
  readonly url: string;
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly contentLanguage: string | null;
  readonly robotsTag: string | readonly string[] | undefined;
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
  const isPlain = mediaType(body.contentType) === "text/plain";
  const read = isPlain ? plainPage(source) : await readPage(source, turns);
  const prose = proseOf(read);
  const language = await languageOf({
    declared: read.language,
    contentLanguage: body.contentLanguage,
    text: prose,
  });
  const robots = robotsDirectives(read.robots, body.robotsTag);
  const config = textSearchConfigOf(language);
  const vector = await vectorOf(read, config, turns);
  const base = resolveUrl(read.base ?? "", body.url) ?? body.url;
  const page: PageExtract = {
    contentType: mediaType(body.contentType).slice(0, 200),
    charset: charset.slice(0, 40),
    canonicalUrl: read.canonical === null ? null : resolveUrl(read.canonical, base),
    title: cutAt(read.title, 500),
    description: cutAt(read.description, 1000),
    headings: read.headings.map((heading) => ({ ...heading, text: cutAt(heading.text, 300) })),
    language,
    textSearchConfig: config,
    lexemes: robots.noindex ? "" : vector.toString(),
    excerpt: robots.noindex ? "" : cutAt(prose, maxExcerptCharacters),
    words: vector.words,
    links: absoluteLinks(read.links, base, robots.nofollow),
    robots,
    digest: createHash("sha256").update(body.bytes).digest("hex"),
    simhash: simhash(vector.counts()),
  };
  return { page, cut: read.cut };
}

export function mediaType(contentType: string): string {
  return contentType.split(";", 1)[0]!.trim().toLowerCase();
}

/** The links in order, each URL once (the first anchor that says something); page-wide nofollow holds for all. */
function absoluteLinks(
  links: readonly ReadLink[],
  base: string,
  nofollow: boolean,
): { url: string; anchor: string; nofollow: boolean }[] {
  const found = new Map<string, { url: string; anchor: string; nofollow: boolean }>();
  for (const link of links) {
    const url = resolveUrl(link.href, base);
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

async function vectorOf(read: ReadPage, config: string, turns: WorkTurns): Promise<LexemeVector> {
  const vector = new LexemeVector(await dictionaryOf(config));
  vector.add(read.title, "A");
  vector.add(read.description, "B");
  for (const { weight, text } of read.text) {
    vector.add(text, weight);
    await turns.next();
  }
  return vector;
}

/** The first words of the text, as much as an excerpt and the language detector want. */
function proseOf(read: ReadPage): string {
  let prose = "";
  for (const { weight, text } of read.text) {
    if (weight === "D") prose += `${text.slice(0, 6000)} `;
    if (prose.length > 6000) break;
  }
  return tidy(prose);
}

function plainPage(text: string): ReadPage {
  return {
    title: "",
    description: "",
    canonical: null,
    base: null,
    language: null,
    headings: [],
    robots: [],
    links: [],
    text: [{ weight: "D", text: text.slice(0, 1_000_000) }],
    cut: false,
  };
}

/** At most so many UTF-16 units, never half a character; NUL, which Postgres' text cannot hold, as a blank. */
function cutAt(text: string, most: number): string {
  return text
    .slice(0, most)
    .replaceAll("\0", " ")
    .replace(/\p{Surrogate}/gu, "\ufffd");
}
