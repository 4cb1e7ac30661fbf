/**
 * What is expected of a page's changes before it was seen twice: from its sitemap (changefreq and lastmod,
 * sitemaps.org/protocol), from when the server or the page itself says that it changed last, or from other pages.
 */
import type { ChangeFrequency } from "#protocol/result";

export interface ChangeHints {
  /** Sitemap: a word of `changeFrequencies`; any other is no hint. */
  readonly changeFrequency?: string;
  /** From the last change that the server, the sitemap or the page states, to the visit. Negative: no hint. */
  readonly unchangedSeconds?: number;
  /** The mean of pages that are alike (its host's). */
  readonly othersPerDay?: number;
  /** Of a page of which nothing else is known; `usualChangesPerDay` when left out. */
  readonly usualPerDay?: number;
}

/** Changes a day by the sitemap's words; `always` is taken for every quarter of an hour, `never` for once in ten years. */
export const changeFrequencies: Readonly<Record<string, number>> = {
  always: 96,
  hourly: 24,
  daily: 1,
  weekly: 1 / 7,
  monthly: 1 / 30,
  yearly: 1 / 365,
  never: 1 / 3650,
};

/** What the lists of a page's host state of it. */
export interface StatedChanges {
  readonly changeFrequency?: ChangeFrequency;
  readonly modifiedAt?: Date;
}

/**
 * A sitemap's word is believed between once a year and once a day, whatever it says: a site that states `always` of all
 * its pages begins as a daily one, and what visits find does the rest.
 */
const leastStatedPerDay = 1 / 365;
const mostStatedPerDay = 1;

/**
 * Without any hint: once in ten days, the middle of the web as Cho and Garcia-Molina found it ("The evolution of the
 * web", VLDB 2000: a fifth of the pages change daily, and half within 50 days).
 */
export const usualChangesPerDay = 0.1;

const daySeconds = 86_400;

/**
 * The expected changes a day. A stated last change is an observation (the time back to it is exponential, with mean
 * 1/rate) and the hint of most weight; a sitemap's word is a promise, held against what other pages of the host were found
 * to do (the geometric mean of both); other pages alone are a guess.
 */
export function expectedChangesPerDay(hints: ChangeHints): number {
  const { unchangedSeconds, changeFrequency, othersPerDay, usualPerDay = usualChangesPerDay } = hints;
  const guess = guessOf(statedPerDay(changeFrequency), isRate(othersPerDay) ? othersPerDay : undefined);
  const expected = guess ?? usualPerDay;
  if (unchangedSeconds === undefined || !(unchangedSeconds >= 0)) return expected;
  // One observation on top of the guess: the geometric mean of both. A page made a moment ago counts as a minute old.
  return Math.sqrt(expected * (daySeconds / Math.max(60, unchangedSeconds)));
}

function guessOf(stated: number | undefined, others: number | undefined): number | undefined {
  return stated === undefined || others === undefined ? (stated ?? others) : Math.sqrt(stated * others);
}

function statedPerDay(word: string | undefined): number | undefined {
  if (word === undefined || !Object.hasOwn(changeFrequencies, word)) return undefined;
  return Math.min(mostStatedPerDay, Math.max(leastStatedPerDay, changeFrequencies[word]!));
}

const isRate = (perDay: number | undefined): perDay is number =>
  perDay !== undefined && perDay > 0 && Number.isFinite(perDay);
