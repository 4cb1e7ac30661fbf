/**
 * Orders what an engine found, by points: for how well the words fit, and for what others say about the page. Every
 * part is bounded, so that no single one, which somebody may control, decides alone, and every part can be explained
 * in words. Of pages with nearly the same text one is kept, the first that had it where it matches.
 */
import type { UrlAddress } from "#core/url-key";
import { answerTexts } from "../../crawl/batch/stated-uses.ts";
import type { EngineAnswer, EngineMatch } from "./engine/search-engine.ts";
import { type Facets, type FacetValue, facetNames, type Reason, type SearchSort } from "./search-answer.ts";
import { scoreParts } from "./search-api.ts";

type ScorePart = (typeof scoreParts)[number];

/** Maximum points of each part. A copy loses its points. */
export const mostPoints: Readonly<Record<ScorePart, number>> = {
  words: 70,
  links: 25,
  freshness: 5,
  copy: 10,
};

type Score = Readonly<Record<ScorePart, number>>;

/** The part of the points for links that comes from linking hosts; the rest needs a ranking of the whole graph. */
const mostForHosts = 15;
/** With this many linking hosts, a page has all points for them. The first ones count most. */
const fullLinkingHosts = 255;
/** A PageRank this many times the lowest of the matches has all points: it grows with the graph, so only the ratio counts. */
const fullRankRatio = 256;
/** The half-life of the points for freshness. */
const halfLifeDays = 180;

const dayMs = 86_400_000;

export interface RankedPage extends EngineMatch {
  readonly parts: Score;
  /** 0 to 100, except that a copy with nothing in its favour is below 0. */
  readonly points: number;
  /** Other matching pages with nearly the same text. */
  readonly alike: number;
  readonly ageDays: number;
  /** PageRank as a multiple of the lowest of the matches; null if there is none. */
  readonly rankRatio: number | null;
}

export interface Ranking {
  /** Each text once, in order. */
  readonly pages: readonly RankedPage[];
  /** How many there are of them; more may match. */
  readonly total: number;
  readonly more: boolean;
  readonly facets: Facets;
}

export function rankPages(answer: EngineAnswer, sort: SearchSort, now: Date): Ranking {
  const { matches, total, isExact } = answer;
  const best = Math.max(0, ...matches.map(({ score }) => score));
  const lowest = Math.min(...matches.flatMap(({ pageRank }) => (pageRank === null ? [] : [pageRank])));
  const scored = matches.map((match) => scoredPage(match, { best, lowest, now }));
  const pages = withoutCopies(scored).sort(sort === "date" ? byDate : byPoints);
  const more = !isExact || total > matches.length;
  return { pages, total: pages.length, more, facets: facetsOf(pages) };
}

interface Among {
  /** The best score and the lowest PageRank of all matches. */
  readonly best: number;
  readonly lowest: number;
  readonly now: Date;
}

function scoredPage(match: EngineMatch, { best, lowest, now }: Among): RankedPage {
  const ageDays = Math.max(0, (now.getTime() - dateOf(match).getTime()) / dayMs);
  const rankRatio = match.pageRank === null || lowest <= 0 ? null : match.pageRank / lowest;
  const parts: Score = {
    words: best <= 0 ? 0 : mostPoints.words * Math.max(0, match.score / best),
    links:
      mostForHosts * shareOfDoublings(1 + match.linkingHosts, 1 + fullLinkingHosts) +
      (mostPoints.links - mostForHosts) * shareOfDoublings(rankRatio ?? 1, fullRankRatio),
    // A fetch does not say how old a text is, so without a date there are no points, as for an old page.
    freshness: match.publishedAt === null ? 0 : mostPoints.freshness * 0.5 ** (ageDays / halfLifeDays),
    copy: match.isCopy ? -mostPoints.copy : 0,
  };
  const points = scoreParts.reduce((sum, part) => sum + parts[part], 0);
  return { ...match, parts, points, alike: 0, ageDays, rankRatio };
}

const shareOfDoublings = (value: number, full: number) => Math.log2(Math.min(full, value)) / Math.log2(full);

/** When it was published or, if it does not say, fetched. */
function dateOf({ publishedAt, fetchedAt }: Pick<EngineMatch, "publishedAt" | "fetchedAt">): Date {
  return publishedAt ?? fetchedAt;
}

function withoutCopies(pages: readonly RankedPage[]): RankedPage[] {
  const groups = new Map<string, RankedPage>();
  for (const page of pages) {
    const group = page.textGroup ?? keyOf(page);
    const other = groups.get(group);
    const kept = other === undefined || standsFor(page, other) ? page : other;
    groups.set(group, { ...kept, alike: other === undefined ? 0 : other.alike + 1 });
  }
  return [...groups.values()];
}

function standsFor(page: RankedPage, other: RankedPage): boolean {
  return page.isCopy === other.isCopy ? byPoints(page, other) < 0 : other.isCopy;
}

/** The key makes the order total, so that pages of results never overlap. */
function byPoints(a: RankedPage, b: RankedPage): number {
  return b.points - a.points || (keyOf(a) < keyOf(b) ? -1 : 1);
}

function byDate(a: RankedPage, b: RankedPage): number {
  return dateOf(b).getTime() - dateOf(a).getTime() || byPoints(a, b);
}

const keyOf = ({ hostHash, urlHash }: UrlAddress) => `${hostHash}/${urlHash}`;

// The most frequent values among what was ranked.

const facetValues = 6;

export const noFacets: Facets = {
  ...{ language: [], country: [], crawler: [], host: [], preference: [], pages: 0 },
};

function facetsOf(pages: readonly RankedPage[]): Facets {
  const valuesOf = (name: (typeof facetNames)[number]): FacetValue[] => {
    const counts = new Map<string, number>();
    for (const page of pages)
      for (const value of valuesIn(page, name)) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts]
      .map(([value, count]) => ({ value, pages: count }))
      .sort((a, b) => b.pages - a.pages || (a.value < b.value ? -1 : 1))
      .slice(0, facetValues);
  };
  const facets = Object.fromEntries(facetNames.map((name) => [name, valuesOf(name)] as const));
  return { ...noFacets, ...facets, pages: pages.length };
}

/** A page has one language, and may have statements for several uses. */
function valuesIn(page: RankedPage, name: (typeof facetNames)[number]): readonly string[] {
  if (name === "preference") return answerTexts(page.uses);
  const value = page[name];
  return value === null ? [] : [value];
}

// Explains a result's points.

/** Every part that added or removed points, largest first. */
export function reasonsOf(page: RankedPage): Reason[] {
  return scoreParts
    .map((part) => ({
      part,
      points: Math.round(10 * page.parts[part]) / 10,
      most: mostPoints[part],
      words: wordsOf[part](page),
    }))
    .filter(({ points }) => points !== 0)
    .sort((a, b) => Math.abs(b.points) - Math.abs(a.points));
}

const wordsOf: Readonly<Record<ScorePart, (page: RankedPage) => string>> = {
  words: ({ parts }) => {
    const percent = Math.round((100 * parts.words) / mostPoints.words);
    return percent >= 100
      ? "its title, headings, address and text fit the words best"
      : `its title, headings, address and text fit the words ${percent} % as well as the best`;
  },
  links: ({ linkingHosts, rankRatio }) => {
    const hosts = linkingHosts === 1 ? "1 other host links to it" : `${linkingHosts} other hosts link to it`;
    return rankRatio === null ? hosts : `${hosts}; its PageRank is ${times(rankRatio)} the lowest here`;
  },
  freshness: (page) => {
    const days = Math.floor(page.ageDays);
    const day = dateOf(page).toISOString().slice(0, 10);
    return `published ${day}, ${days === 0 ? "today" : days === 1 ? "1 day ago" : `${days} days ago`}`;
  },
  copy: () => "another page had nearly this text before",
};

const times = (ratio: number) => `${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)} times`;
