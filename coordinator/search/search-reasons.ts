/** Why a result stands where it does, in words and points. */
import { mostPoints, scoreParts } from "./page-score.ts";
import type { RankedPage } from "./rank-pages.ts";
import { dateOf } from "./rank-pages.ts";
import type { Reason } from "./reads.ts";

/** Every part that gave or took points, the weightiest first. */
export function reasonsOf(page: RankedPage): Reason[] {
  return scoreParts
    .map((part) => ({
      part,
      points: Math.round(10 * page.score[part]) / 10,
      most: mostPoints[part],
      words: wordsOf[part](page),
    }))
    .filter(({ points }) => points !== 0)
    .sort((a, b) => Math.abs(b.points) - Math.abs(a.points));
}

const wordsOf: Readonly<Record<Reason["part"], (page: RankedPage) => string>> = {
  text: () => "how often the words are in the text, and how close to each other",
  head: ({ signals }) =>
    signals.headRank >= 0.6
      ? "the title has all of the words"
      : "words in title, headings, description or address",
  address: ({ signals }) =>
    signals.addressShare >= 1 ? "the address has all of the words" : "the address has some of the words",
  links: ({ signals }) =>
    signals.linkingHosts === 1
      ? "1 other host links to it"
      : `${signals.linkingHosts} other hosts link to it`,
  freshness: ({ candidate, signals }) => {
    const days = Math.max(0, Math.floor(signals.ageDays));
    const how = candidate.publishedAt === null ? "fetched" : "published";
    const day = dateOf(candidate).toISOString().slice(0, 10);
    return `${how} ${day}, ${days === 0 ? "today" : days === 1 ? "1 day ago" : `${days} days ago`}`;
  },
  copy: () => "another page had nearly this text before",
};
