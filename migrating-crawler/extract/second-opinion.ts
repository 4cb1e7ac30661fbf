/**
 * Compares this parser's reading of a page's links with that of an independent parser (node-html-parser), on one page in
 * 10,000, chosen by digest. This parser decides. Operators learn of a difference, because one of the two must be wrong.
 */
import type { OtherReading } from "#protocol/result";
import type { ReadPage } from "./read-page.ts";
import { linkResolver, resolveUrl } from "./resolve-url.ts";

export const oneOfPages = 10_000;

/** The other parser takes ten times as long: 40 ms for a page of this length. */
const maxCharacters = 256 * 1024;

/** Samples by digest (hex), so that the same body is chosen everywhere or nowhere. */
export const isSampled = (digest: string, oneOf: number): boolean =>
  Number.parseInt(digest.slice(0, 8), 16) % oneOf === 0;

export interface LinksOfTwo {
  readonly onlyOurs: readonly string[];
  readonly onlyTheirs: readonly string[];
}

/** Returns undefined if the page is too long for the other parser or was not read to its end. */
export async function linksOfTwo(html: string, read: ReadPage, url: string): Promise<LinksOfTwo | undefined> {
  if (html.length > maxCharacters || read.cut || read.leftOutLinks > 0) return undefined;
  const { parse } = await import("node-html-parser");
  // Without these options, the other parser drops links in unclosed tags and beside scripts.
  const root = parse(html, { parseNoneClosedTags: true, blockTextElements: { script: false, style: false } });
  const urlsOf = (base: string | undefined | null, hrefs: readonly string[]) => {
    const resolve = linkResolver(resolveUrl(base ?? "", url) ?? url);
    return new Set(hrefs.flatMap((href) => resolve(href) ?? []));
  };
  const anchors = root.querySelectorAll("a[href], area[href]");
  const theirs = urlsOf(
    root.querySelector("base[href]")?.getAttribute("href"),
    anchors.map((anchor) => anchor.getAttribute("href") ?? ""),
  );
  const ours = urlsOf(
    read.notes.base,
    read.links.map(({ href }) => href),
  );
  return {
    onlyOurs: [...ours].filter((link) => !theirs.has(link)),
    onlyTheirs: [...theirs].filter((link) => !ours.has(link)),
  };
}

export function pageDifference(
  url: string,
  html: string,
  links: LinksOfTwo | undefined,
): OtherReading | undefined {
  const { onlyOurs, onlyTheirs } = links ?? { onlyOurs: [], onlyTheirs: [] };
  if (onlyOurs.length + onlyTheirs.length === 0) return undefined;
  const words =
    `${url.slice(0, 150)}: ${onlyOurs.length} links are found by our parser alone and ${onlyTheirs.length} by ` +
    `node-html-parser alone, such as ${(onlyOurs[0] ?? onlyTheirs[0])!.slice(0, 150)}`;
  return { words, file: html.slice(0, 16_384) };
}
