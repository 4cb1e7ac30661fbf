/**
 * What is kept of a result for the time in which others fetch the same URL: enough to compare it, without the page.
 * About 3 KB at most; a page of 50 links takes 1 KB.
 */
import { createHash } from "node:crypto";
import { composed } from "#protocol/composed";
import { type FetchResult, type PageExtract, simhashDistance } from "#protocol/result";
import { challengeOf } from "../batch/visit.ts";

export interface PageSketch {
  /**
   * page      a document that was read
   * missing   404, 410, or a page that says so: of this one digest, simhash and title are kept, since whether a crawler
   *           knows it for what it is may depend on what it remembers of the site
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
  /** A bot gate answered in place of the site; absent: it did not. */
  readonly isGate?: true;
  /** Links that the crawler left out as traps, some of them by what it remembers of the site; absent: none. */
  readonly trappedLinks?: number;
}

export const saysNothing: PageSketch = {
  kind: "none",
  digest: null,
  simhash: null,
  titleHash: null,
  links: [],
  linkCount: 0,
};

/** A link's target, as its 64-bit hash in decimal. */
interface SketchedLink {
  readonly urlHash: string;
}

export const maxSketchLinks = 160;

/**
 * Of a result with its page; null where it only says that the page is one that the index holds already
 * (`unchanged`).
 */
export function sketchOfResult(result: FetchResult, links: readonly SketchedLink[]): PageSketch | null {
  const { outcome, page } = result;
  switch (outcome.type) {
    case "unchanged":
      return null;
    case "fetched":
      return page === null ? saysNothing : sketchOfExtract(page, links);
    case "redirected":
      return bare("redirect", outcome.location);
    case "unsupported":
      return bare("other", outcome.contentType);
    case "http-error":
      return outcome.status === 404 || outcome.status === 410
        ? { ...saysNothing, kind: "missing" }
        : saysNothing;
    default:
      return challengeOf(outcome) === null ? saysNothing : { ...saysNothing, isGate: true };
  }
}

function sketchOfExtract(page: PageExtract, links: readonly SketchedLink[]): PageSketch | null {
  // Of a crawler of 0.2.0, which left it out.
  if (page.textKnown === true) return null;
  const { digest, simhash, title, softNotFound, trappedLinks } = page;
  const sketch = sketchOfPage({ digest, simhash, title, links });
  if (softNotFound === true) return { ...sketch, kind: "missing", links: [], linkCount: 0 };
  return trappedLinks === undefined ? sketch : { ...sketch, trappedLinks };
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

const bare = (kind: "redirect" | "other", text: string): PageSketch => ({
  ...saysNothing,
  kind,
  titleHash: hashOfText(text),
});

const shortHash = (hash: string): number => Number(BigInt.asUintN(48, BigInt(hash)));

/** Composed letters and digits alone: what a database, a markup or an older crawler does to the rest is no difference. */
function hashOfText(text: string): number {
  const bare = composed(text)
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  return createHash("sha256").update(bare).digest().readUIntBE(0, 6);
}

// How two fetches of one URL differ, and whether that is more than the page does by itself. Advertisements, clocks
// and counters move a few bits of the simhash and some links; a page's own measure of it is what fetches that were
// made for this have differed by.

export interface PageDifference {
  /** A page against none, or against a redirect. */
  readonly kind: boolean;
  /** Of 64 bits of the simhash. */
  readonly bits: number;
  /** Links that only one of them has. */
  readonly links: number;
  readonly title: boolean;
}

/** By how much a page differs from itself. */
export type Volatility = Omit<PageDifference, "kind">;

export const still: Volatility = { bits: 0, links: 0, title: false };

/** What no page has to account for: a time of day in the text. */
const freeBits = 3;

/** Fetches that were compared show a part of what the page can do. */
const allowance = 1.5;

/** Null: it cannot be told, since one of them says nothing of the page. */
export function differenceOf(a: PageSketch, b: PageSketch): PageDifference | null {
  if (a.kind === "none" || b.kind === "none") return null;
  if (a.kind !== b.kind)
    return { kind: true, bits: 64, links: Math.max(a.linkCount, b.linkCount), title: true };
  if (a.kind === "missing") return { kind: false, ...still };
  return {
    kind: false,
    bits: a.simhash === null || b.simhash === null ? 0 : simhashDistance(a.simhash, b.simhash),
    links: linkDifference(a, b),
    title: a.titleHash !== b.titleHash,
  };
}

/** True: the page's own changes explain the difference. */
export function isWithin(difference: PageDifference, volatility: Volatility): boolean {
  const { kind, bits, links, title } = difference;
  return (
    !kind &&
    bits <= freeBits + allowance * volatility.bits &&
    links <= allowance * volatility.links &&
    (!title || volatility.title)
  );
}

/** Bits in which the texts of one error page may differ; crawlers take so many for one, too (traps/host-memory). */
const errorPageBits = 5;
/** A shorter text that differs in a number or in the URL that it repeats has a simhash that differs in more. */
const shortWords = 60;

/** Whether a page of the index is, but for numbers, the text that a crawler took for its site's error page. */
export function readsAs(
  errorPage: PageSketch,
  page: Pick<PageExtract, "digest" | "simhash" | "title" | "words">,
): boolean {
  const { digest, simhash, titleHash } = errorPage;
  if (simhash === null) return false;
  return (
    page.digest === digest ||
    simhashDistance(page.simhash, simhash) <= errorPageBits ||
    (page.words < shortWords && hashOfText(page.title) === titleHash)
  );
}

/**
 * What all were given, where one of them took it for the site's error page and other pages of the host show that it is one:
 * those who did not know the site well enough to see that are taken to have said so, too.
 */
export function asErrorPage<Of extends { readonly sketch: PageSketch }>(
  opinions: readonly Of[],
): readonly Of[] {
  const claims = opinions.filter(({ sketch }) => sketch.kind === "missing" && sketch.simhash !== null);
  return opinions.map((opinion) => {
    const { sketch } = opinion;
    const isSame = claims.some(
      ({ sketch: { digest, simhash } }) =>
        sketch.digest === digest ||
        (sketch.simhash !== null && simhashDistance(sketch.simhash, simhash!) <= errorPageBits),
    );
    return sketch.kind === "page" && isSame
      ? { ...opinion, sketch: { ...sketch, kind: "missing" } }
      : opinion;
  });
}

/** True: that one of them left out links as traps, more than the other, explains the difference. */
export function trapsExplain(a: PageSketch, b: PageSketch, difference: PageDifference): boolean {
  const leftOut = Math.abs((a.trappedLinks ?? 0) - (b.trappedLinks ?? 0));
  return difference.links <= leftOut && isWithin({ ...difference, links: 0 }, still);
}

/** The larger of each. */
export function widest(a: Volatility, b: Volatility): Volatility {
  return {
    bits: Math.max(a.bits, b.bits),
    links: Math.max(a.links, b.links),
    title: a.title || b.title,
  };
}

/** In words for people: what differs, the most telling first. */
export function differenceWords({ kind, bits, links, title }: PageDifference): string {
  if (kind) return "only one has a page, or the answers are of different kinds";
  const parts = [
    ...(title ? ["the titles differ"] : []),
    ...(links > 0 ? [`${links} links are in one of them only`] : []),
    ...(bits > 0 ? [`${bits} of the text's 64 bits differ`] : []),
  ];
  return parts.length === 0 ? "nothing that was compared differs" : parts.join(", ");
}

/** Where not all links are kept, only the part of the hashes is compared that both have in full. */
function linkDifference(a: PageSketch, b: PageSketch): number {
  const end = Math.min(endOf(a), endOf(b));
  const [inA, inB] = [a.links.filter((hash) => hash <= end), b.links.filter((hash) => hash <= end)];
  const known = new Set(inA);
  const common = inB.filter((hash) => known.has(hash)).length;
  return Math.max(inA.length + inB.length - 2 * common, Math.abs(a.linkCount - b.linkCount));
}

function endOf({ links, linkCount }: PageSketch): number {
  return links.length < linkCount ? (links.at(-1) ?? 0) : Number.POSITIVE_INFINITY;
}

/**
 * Which fetched pages another crawler fetches again. Decided after the result has arrived, by a number that nobody
 * outside can foresee, so that a crawler cannot know which of its pages will be compared.
 */

export interface SamplingRule {
  /** Of an established crawler's pages, 0 to 1. */
  readonly share: number;
  /** Of a crawler's first `newcomerPages`. */
  readonly newcomerShare: number;
  readonly newcomerPages: number;
  /** Of the `watchedPages` after a page of it stood alone. */
  readonly watchedShare: number;
  readonly watchedPages: number;
}

/**
 * 5 % is what it takes to find nine of ten crawlers that begin to alter 5 % of their pages after long honesty within 2000
 * of them; 1 % finds half. A newcomer's first 2000 pages make 300 comparisons, in
 * which one that alters 5 % of its pages stands out some dozen times, where it takes four or five; 30 % for a while after
 * the first time makes sure of it sooner. No more than that: an honest crawler stands alone about once in 200
 * comparisons, and being watched must not lead to being watched again (test/bench/results/trust.md).
 */
export const defaultSamplingRule: SamplingRule = {
  share: 0.05,
  newcomerShare: 0.15,
  newcomerPages: 2000,
  watchedShare: 0.3,
  watchedPages: 500,
};

/** What a crawler has fetched under leases so far, and the last page until which it is watched more closely. */
export interface SampledCrawler {
  readonly pages: number;
  readonly watchedUntilPage: number;
}

/** The share of its pages that is fetched again now. */
export function samplingShare({ pages, watchedUntilPage }: SampledCrawler, rule: SamplingRule): number {
  const asNewcomer = pages < rule.newcomerPages ? rule.newcomerShare : 0;
  const asWatched = pages < watchedUntilPage ? rule.watchedShare : 0;
  return Math.max(rule.share, asNewcomer, asWatched);
}
