/**
 * Summarises a result while others fetch the same URL, so that it can be compared without the page. A sketch takes at
 * most about 3 KB, with 50 links 1 KB.
 */
import { createHash } from "node:crypto";
import { composed } from "#protocol/composed";
import { type FetchResult, type PageExtract, simhashDistance } from "#protocol/result";
import { challengeOf } from "../batch/visit.ts";

export interface PageSketch {
  /**
   * page      a document that was read
   * missing   404, 410, or a page that says so; the latter keeps digest, simhash and title, because recognising it may
   *           depend on what the crawler remembers of the site
   * redirect  somewhere else
   * other     a content type that is not read
   * none      no information about the page: no answer, a refusal, a temporary error
   */
  readonly kind: "page" | "missing" | "redirect" | "other" | "none";
  /** SHA-256 of the decoded body, hex. */
  readonly digest: string | null;
  /** Simhash of the text, 16 hex digits. */
  readonly simhash: string | null;
  /** 48-bit hash of a page's title, a redirect's target or another content's type. */
  readonly titleHash: number | null;
  /** The smallest 48-bit hashes of the links, ascending: all of them up to `maxSketchLinks`. */
  readonly links: readonly number[];
  readonly linkCount: number;
  /** Set when a bot gate answered instead of the site. */
  readonly isGate?: true;
  /** Number of links omitted as traps, partly by what the crawler remembers of the site. */
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

/** Null for a result that only says that the indexed page is `unchanged`. */
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
  // A crawler of version 0.2.0 omitted the known text.
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

/** Uses composed letters and digits only, so that databases, markup and older crawlers make no difference. */
function hashOfText(text: string): number {
  const bare = composed(text)
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  return createHash("sha256").update(bare).digest().readUIntBE(0, 6);
}

// Whether two fetches of a URL differ by more than the page does by itself. Advertisements, clocks and counters change
// a few simhash bits and some links; a page's own variation is measured by the fetches compared.

export interface PageDifference {
  /** One is a page and the other is none or a redirect. */
  readonly kind: boolean;
  /** Of 64 bits of the simhash. */
  readonly bits: number;
  /** Links that only one of them has. */
  readonly links: number;
  readonly title: boolean;
}

/** How much a page varies by itself. */
export type Volatility = Omit<PageDifference, "kind">;

export const still: Volatility = { bits: 0, links: 0, title: false };

/** Tolerated on any page, such as a time of day in the text. */
const freeBits = 3;

/** Compared fetches show only a part of a page's variation. */
const allowance = 1.5;

/** Null when one of them says nothing of the page. */
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

/** True when the page's own variation explains the difference. */
export function isWithin(difference: PageDifference, volatility: Volatility): boolean {
  const { kind, bits, links, title } = difference;
  return (
    !kind &&
    bits <= freeBits + allowance * volatility.bits &&
    links <= allowance * volatility.links &&
    (!title || volatility.title)
  );
}

/** Bits in which texts of one error page may differ, as for crawlers (traps/host-memory). */
const errorPageBits = 5;
/** In shorter texts, a different number or URL changes more bits. */
const shortWords = 60;

/** Whether an indexed page has, apart from numbers, the text that a crawler took for the site's error page. */
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
 * When one crawler recognised the site's error page and other pages of the host confirm it, those that do not know the
 * site well enough count as having recognised it too.
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

/** True when links that only one of them omitted as traps explain the difference. */
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

/** When links are truncated, only the hash range that both have in full is compared. */
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

// Pages are chosen for comparison after their results arrived, by an unpredictable number, so that a crawler cannot know
// which ones are compared.

export interface SamplingRule {
  /** For established crawlers, 0 to 1. */
  readonly share: number;
  /** For a crawler's first `newcomerPages`. */
  readonly newcomerShare: number;
  readonly newcomerPages: number;
  /** For the `watchedPages` after a page of it stood alone. */
  readonly watchedShare: number;
  readonly watchedPages: number;
}

/**
 * A share of 5 % finds nine of ten crawlers that start to alter 5 % of their pages after long honesty within 2000 pages;
 * 1 % finds half of them. A newcomer's first 2000 pages give 300 comparisons, in which such a liar stands out about a
 * dozen times, and four or five suffice. The 30 % after the first time find it sooner. A larger share would keep honest
 * crawlers watched, which stand alone about once in 200 comparisons (test/bench/results/trust.md).
 */
export const defaultSamplingRule: SamplingRule = {
  share: 0.05,
  newcomerShare: 0.15,
  newcomerPages: 2000,
  watchedShare: 0.3,
  watchedPages: 500,
};

/** Pages fetched under leases so far, and the page count until which it is watched. */
interface SampledCrawler {
  readonly pages: number;
  readonly watchedUntilPage: number;
}

export function samplingShare({ pages, watchedUntilPage }: SampledCrawler, rule: SamplingRule): number {
  const asNewcomer = pages < rule.newcomerPages ? rule.newcomerShare : 0;
  const asWatched = pages < watchedUntilPage ? rule.watchedShare : 0;
  return Math.max(rule.share, asNewcomer, asWatched);
}
