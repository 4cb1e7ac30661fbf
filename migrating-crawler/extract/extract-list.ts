/**
 * A sitemap or feed to what is shipped for it: the URLs that it names, and nothing to index. Robots
 * directives in its header hold as for a page.
 */
import type { PageExtract } from "#protocol/result";
import { shipLinks } from "../traps/ship-links.ts";
import { bodyDigest } from "./body-digest.ts";
import { documentKind, kindOf, type ListForm, listForm } from "./document-kind.ts";
import { listedLinks } from "./listed-links.ts";
import { mediaType } from "./media-type.ts";
import { readList } from "./read-list.ts";
import { resolveUrl } from "./resolve-url.ts";
import { robotsDirectives } from "./robots-directives.ts";
import { unpackGzip } from "./unpack-gzip.ts";
import type { WorkTurns } from "./work-turns.ts";
import { xmlRoot } from "./xml-root.ts";
import { xmlText } from "./xml-text.ts";

/** So much of a packed list is unpacked: as much as is kept of any body. */
const maxListBytes = 5 * 1024 * 1024;

export interface FetchedList {
  readonly url: string;
  /** As fetched, content codings undone; a gzip file is still one. */
  readonly bytes: Buffer;
  /** SHA-256 of the bytes, hex; absent: it is reckoned. */
  readonly digest?: string | undefined;
  readonly contentType: string;
  readonly robotsTag: string | readonly string[] | undefined;
}

export interface ExtractedList {
  readonly page: PageExtract;
  /** The list is longer than is read, or broken. */
  readonly cut: boolean;
}

/** Null when the document is no list. */
export async function extractList(list: FetchedList, turns: WorkTurns): Promise<ExtractedList | null> {
  const kind = documentKind(list);
  if (kind === "page" || kind === "other") return null;
  const unpacked = await unpackGzip(list.bytes, maxListBytes);
  const { text, charset } = xmlText(unpacked.bytes, list.contentType);
  const form = listForm(text);
  if (form === null) return null;
  const entries = await readList(text, form, turns);
  const base = baseOf(text, form, list.url);
  const { links: listed, leftOut } = await listedLinks(
    entries,
    { url: list.url, base, kind: kindOf(form) },
    turns,
  );
  const { links, trapped } = shipLinks(listed, list.url, new Date());
  const robots = robotsDirectives({ metas: [], header: list.robotsTag, nowMs: Date.now() });
  const page: PageExtract = {
    ...nothingToIndex,
    kind: kindOf(form),
    contentType: mediaType(list.contentType).slice(0, 200),
    charset: charset.slice(0, 40),
    links: robots.nofollow ? links.map((link) => ({ ...link, nofollow: true })) : links,
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    ...(leftOut === 0 ? {} : { leftOutLinks: leftOut }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
    digest: list.digest ?? bodyDigest(list.bytes),
  };
  return { page, cut: unpacked.truncated };
}

const nothingToIndex = {
  canonicalUrl: null,
  title: "",
  description: "",
  headings: [],
  language: null,
  textSearchConfig: "simple",
  lexemes: "",
  excerpt: "",
  words: 0,
  simhash: "0".repeat(16),
} satisfies Partial<PageExtract>;

/** Atom's links may be relative to the feed's xml:base (RFC 4287 section 2). */
function baseOf(text: string, form: ListForm, url: string): string {
  const stated =
    form === "atom" ? /\sxml:base\s*=\s*["']([^"'<&]{1,2048})["']/.exec(xmlRoot(text)!.tag)?.[1] : undefined;
  return (stated === undefined ? null : resolveUrl(stated, url)) ?? url;
}
