/**
 * What is kept of a result for the time in which others fetch the same URL: enough to compare it, without the page.
 * About 3 KB at most; a page of 50 links takes 1 KB.
 */
import { createHash } from "node:crypto";
import { composed } from "#protocol/composed";
import type { FetchResult } from "#protocol/result";

export interface PageSketch {
  /**
   * page      a document that was read
   * missing   404, 410, or a page that says so
   * redirect  somewhere else
   * other     a content type that is not read
   * none      says nothing of the page: no answer, refused, "not now", "not for you"
   */
  readonly kind: "page" | "missing" | "redirect" | "other" | "none";
  /** SHA-256 of the decoded body, hex. */
  readonly digest: string | null;
  /** Of the text, 16 hex digits. */
  readonly simhash: string | null;
  /** Of a page its title, of a redirect where it leads to, of another content its type; 48 bits. */
  readonly titleHash: number | null;
  /** The smallest of the hashes (48 bits) of what the page links to, ascending: all of them up to `maxSketchLinks`. */
  readonly links: readonly number[];
  readonly linkCount: number;
}

/** A link's target, as its 64-bit hash in decimal. */
export interface SketchedLink {
  readonly urlHash: string;
}

export const maxSketchLinks = 160;

/** Of a result with its page; null for `unchanged`, which only says that the page is as it was before. */
export function sketchOfResult(result: FetchResult, links: readonly SketchedLink[]): PageSketch | null {
  const { outcome, page } = result;
  switch (outcome.type) {
    case "unchanged":
      return null;
    case "fetched":
      if (page === null) return bare("none", null);
      if (page.softNotFound === true) return bare("missing", null);
      return sketchOfPage({ digest: page.digest, simhash: page.simhash, title: page.title, links });
    case "redirected":
      return bare("redirect", outcome.location);
    case "unsupported":
      return bare("other", outcome.contentType);
    case "http-error":
      return bare(outcome.status === 404 || outcome.status === 410 ? "missing" : "none", null);
    default:
      return bare("none", null);
  }
}

/** Of a page as the index holds it. */
export function sketchOfPage(page: {
  readonly digest: string;
  readonly simhash: string;
  readonly title: string;
  readonly links: readonly SketchedLink[];
}): PageSketch {
  const hashes = [...new Set(page.links.map(({ urlHash }) => shortHash(urlHash)))].sort((a, b) => a - b);
  return {
    kind: "page",
    digest: page.digest,
    simhash: page.simhash,
    titleHash: hashOfText(page.title),
    links: hashes.slice(0, maxSketchLinks),
    linkCount: hashes.length,
  };
}

function bare(kind: PageSketch["kind"], text: string | null): PageSketch {
  const titleHash = text === null ? null : hashOfText(text);
  return { kind, digest: null, simhash: null, titleHash, links: [], linkCount: 0 };
}

const shortHash = (hash: string): number => Number(BigInt.asUintN(48, BigInt(hash)));

/** Composed letters and digits alone: what a database, a markup or an older crawler does to the rest is no difference. */
function hashOfText(text: string): number {
  const bare = composed(text)
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  return createHash("sha256").update(bare).digest().readUIntBE(0, 6);
}
