/**
 * How two fetches of one URL differ, and whether that is more than the page does by itself. Advertisements, clocks
 * and counters move a few bits of the simhash and some links; a page's own measure of it is what fetches that were
 * made for this have differed by.
 */
import { simhashDistance } from "#protocol/result";
import type { PageSketch } from "./page-sketch.ts";

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
  if (kind) return "one has a page and the other none, or another kind of answer";
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
