/**
 * Condenses a result into a sketch, to be compared later with other crawlers' results for the same URL without
 * keeping the page. A sketch takes at most about 3 KB, or about 1 KB with 50 links.
 */
import { createHash } from "node:crypto";
import { composed } from "#protocol/composed";
import { type FetchResult, type PageExtract, simhashDistance } from "#protocol/result";
import { challengeOf } from "../batch/visit.ts";

export interface PageSketch {
  /**
   * page      a document that was read
   * missing   404, 410, or a page that says so. A page keeps digest, simhash and title, because recognising it may
   *           depend on what the crawler remembers of the site
   * redirect  a redirect to another URL
   * other     a content type that is not read
   * none      no information about the page: no answer, a refusal, a temporary error
   */
  readonly kind: "page" | "missing" | "redirect" | "other" | "none";
  /** SHA-256 of the decoded body in hex. */
  readonly digest: string | null;
  /** Simhash of the text as 16 hex digits. */
  readonly simhash: string | null;
  /** 48-bit hash of a page's title, a redirect's target or another content's type. */
  readonly titleHash: number | null;
  /** The smallest 48-bit hashes of the links in ascending order, at most `maxSketchLinks`. */
  readonly links: readonly number[];
  readonly linkCount: number;
  /** Set if a bot gate answered instead of the site. */
  readonly isGate?: true;
  /** How many links were omitted as traps, which partly depends on what the crawler remembers of the site. */
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

/** The target of a link, as its 64-bit hash in decimal. */
interface SketchedLink {
  readonly urlHash: string;
}

export const maxSketchLinks = 160;

/** Returns null if the result only says that the indexed page is `unchanged`. */
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
  // Crawlers of version 0.2.0 omit a text that is known here.
  if (page.textKnown === true) return null;
  const { digest, simhash, title, softNotFound, trappedLinks } = page;
  const sketch = sketchOfPage({ digest, simhash, title, links });
  if (softNotFound === true) return { ...sketch, kind: "missing", links: [], linkCount: 0 };
  return trappedLinks === undefined ? sketch : { ...sketch, trappedLinks };
}

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

/** Hashes only composed letters and digits, so that databases, markup and older crawlers make no difference. */
function hashOfText(text: string): number {
  const bare = composed(text)
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  return createHash("sha256").update(bare).digest().readUIntBE(0, 6);
}

// Decides whether two fetches of a URL differ by more than the page varies by itself. Advertisements, clocks and
// counters change a few simhash bits and some links. Comparing honest fetches measures a page's own variation.

export interface PageDifference {
  /** Whether one of them is a page and the other is missing or a redirect. */
  readonly kind: boolean;
  /** How many of the simhash's 64 bits differ. */
  readonly bits: number;
  /** How many links only one of them has. */
  readonly links: number;
  readonly title: boolean;
}

/** How much a page varies by itself. */
export type Volatility = Omit<PageDifference, "kind">;

export const still: Volatility = { bits: 0, links: 0, title: false };

/** Differing bits tolerated on any page, for example because the text states the time of day. */
const freeBits = 3;

/** Factor on a page's variation, because the compared fetches show only a part of it. */
const allowance = 1.5;

/** Returns null if one of them says nothing about the page. */
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

/** Returns true if the page's own variation explains the difference. */
export function isWithin(difference: PageDifference, volatility: Volatility): boolean {
  const { kind, bits, links, title } = difference;
  return (
    !kind &&
    bits <= freeBits + allowance * volatility.bits &&
    links <= allowance * volatility.links &&
    (!title || volatility.title)
  );
}

/** Maximum differing bits between texts of one error page, as for crawlers (traps/host-memory). */
const errorPageBits = 5;
/** Texts with fewer words are short: a different number or URL changes more of their bits. */
const shortWords = 60;

/** Whether an indexed page has the text, apart from numbers, that a crawler took for the site's error page. */
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
 * If one crawler recognised the site's error page, and other pages of the host confirm it, crawlers that do not know
 * the site well enough count as having recognised it, too.
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

/** Returns true if the difference is only in links that one of them omitted as traps. */
export function trapsExplain(a: PageSketch, b: PageSketch, difference: PageDifference): boolean {
  const leftOut = Math.abs((a.trappedLinks ?? 0) - (b.trappedLinks ?? 0));
  return difference.links <= leftOut && isWithin({ ...difference, links: 0 }, still);
}

export function widest(a: Volatility, b: Volatility): Volatility {
  return {
    bits: Math.max(a.bits, b.bits),
    links: Math.max(a.links, b.links),
    title: a.title || b.title,
  };
}

export function differenceWords({ kind, bits, links, title }: PageDifference): string {
  if (kind) return "only one has a page, or the answers are of different kinds";
  const parts = [
    ...(title ? ["the titles differ"] : []),
    ...(links > 0 ? [`${links} links are in one of them only`] : []),
    ...(bits > 0 ? [`${bits} of the text's 64 bits differ`] : []),
  ];
  return parts.length === 0 ? "nothing that was compared differs" : parts.join(", ");
}

/** If links are truncated, compares only the range of hashes that both sketches have in full. */
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

// Chooses pages for comparison after their results have arrived, by an unpredictable number, so that crawlers cannot
// know which pages are compared.

export interface SamplingRule {
  /** Share for established crawlers, 0 to 1. */
  readonly share: number;
  /** Share for a crawler's first `newcomerPages` pages. */
  readonly newcomerShare: number;
  readonly newcomerPages: number;
  /** Share for the next `watchedPages` pages after one of its pages stood alone. */
  readonly watchedShare: number;
  readonly watchedPages: number;
}

/**
 * A share of 5 % finds, within 2000 pages, nine of ten crawlers that start to alter 5 % of their pages after long
 * honesty; 1 % finds half of them. A newcomer's first 2000 pages give 300 comparisons, in which such a liar stands
 * out about a dozen times, and four or five are enough. The 30 % after the first time find it sooner. A larger share
 * would keep honest crawlers watched, which stand alone about once in 200 comparisons (test/bench/results/trust.md).
 */
export const defaultSamplingRule: SamplingRule = {
  share: 0.05,
  newcomerShare: 0.15,
  newcomerPages: 2000,
  watchedShare: 0.3,
  watchedPages: 500,
};

/** How many pages it has fetched under leases, and up to which count it is watched. */
interface SampledCrawler {
  readonly pages: number;
  readonly watchedUntilPage: number;
}

export function samplingShare({ pages, watchedUntilPage }: SampledCrawler, rule: SamplingRule): number {
  const asNewcomer = pages < rule.newcomerPages ? rule.newcomerShare : 0;
  const asWatched = pages < watchedUntilPage ? rule.watchedShare : 0;
  return Math.max(rule.share, asNewcomer, asWatched);
}
