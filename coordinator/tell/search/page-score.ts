/**
 * Ranks matching pages: points for what the page says, where it says it, and what others say about it. Every part is
 * bounded, so that no single one, which somebody may control, decides alone, and every part can be explained in
 * words.\n\nText and head come from Postgres' cover density and frequency ranking (Clarke, Cormack and Tudhope 2000).
 * Each has its own scale, which `x / (x + half)` turns into a share of the part's points.
 */

export interface PageSignals {
  /** ts_rank_cd of all the text, divided by the logarithm of its length; 0: not ranked. */
  readonly textRank: number;
  /** ts_rank of title, headings and address for any of the words: 0.61 when the title has all of them. */
  readonly headRank: number;
  /** Share of the words that occur in the page's address; 0 to 1. */
  readonly addressShare: number;
  /** Other hosts that link to the page. */
  readonly linkingHosts: number;
  /** Days since it was published or changed or, if that is unknown, fetched. */
  readonly ageDays: number;
  /** Another page had nearly this text before. */
  readonly isLaterCopy: boolean;
}

export const scoreParts = ["text", "head", "address", "links", "freshness", "copy"] as const;
type ScorePart = (typeof scoreParts)[number];

/** Maximum points of each part. A copy loses its points. */
export const mostPoints: Readonly<Record<ScorePart, number>> = {
  text: 40,
  head: 30,
  address: 10,
  links: 15,
  freshness: 5,
  copy: 10,
};

export type Score = Readonly<Record<ScorePart, number>>;

/** The text rank that earns half the points: a word in the page's heading and once or twice in its text. */
export const halfTextRank = 0.1;
/** ts_rank of a title with all of the words. */
export const fullHeadRank = 0.6079;
/** With this many linking hosts, a page has all points for links. The first ones count most. */
export const fullLinkingHosts = 255;
/** The half-life of the points for freshness. */
const halfLifeDays = 180;

export function scoreOf(signals: PageSignals): Score {
  return {
    text: textPoints(signals.textRank),
    head: mostPoints.head * Math.min(1, signals.headRank / fullHeadRank),
    address: mostPoints.address * signals.addressShare,
    links: linkPoints(signals.linkingHosts),
    freshness: freshnessPoints(signals.ageDays),
    copy: signals.isLaterCopy ? -mostPoints.copy : 0,
  };
}

export function textPoints(textRank: number): number {
  return mostPoints.text * (textRank / (textRank + halfTextRank));
}

export function linkPoints(linkingHosts: number): number {
  const counted = Math.min(fullLinkingHosts, linkingHosts);
  return mostPoints.links * (Math.log2(1 + counted) / Math.log2(1 + fullLinkingHosts));
}

export function freshnessPoints(ageDays: number): number {
  return mostPoints.freshness * 0.5 ** (Math.max(0, ageDays) / halfLifeDays);
}

/** 0 to 100, except that a copy with nothing in its favour is below 0. */
export function totalOf(score: Score): number {
  return scoreParts.reduce((sum, part) => sum + score[part], 0);
}

/** Share of the words that occur in the address as separate words. */
export function addressShare(url: string, words: readonly string[]): number {
  if (words.length === 0) return 0;
  const parts = new Set(url.toLowerCase().split(/[^\p{L}\p{N}]+/u));
  return words.filter((word) => parts.has(word)).length / words.length;
}
