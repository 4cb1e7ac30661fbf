/**
 * What is expected of a page's changes before it was seen twice: from its sitemap (changefreq and lastmod,
 * sitemaps.org/protocol), from when the server or the page itself says that it changed last, or from other pages.
 */
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

/**
 * Without any hint: once in ten days, the middle of the web as Cho and Garcia-Molina found it ("The evolution of the
 * web", VLDB 2000: a fifth of the pages change daily, and half within 50 days).
 */
export const usualChangesPerDay = 0.1;

const daySeconds = 86_400;

/**
 * The expected changes a day. A stated last change is an observation (the time back to it is exponential, with mean
 * 1/rate) and the hint of most weight; a sitemap's word is a promise; other pages are a guess.
 */
export function expectedChangesPerDay(hints: ChangeHints): number {
  const { unchangedSeconds, changeFrequency, othersPerDay, usualPerDay = usualChangesPerDay } = hints;
  const stated = changeFrequency === undefined ? undefined : changeFrequencies[changeFrequency];
  const guess = stated ?? (isRate(othersPerDay) ? othersPerDay : usualPerDay);
  if (unchangedSeconds === undefined || !(unchangedSeconds >= 0)) return guess;
  // One observation on top of the guess: the geometric mean of both. A page made a moment ago counts as a minute old.
  return Math.sqrt(guess * (daySeconds / Math.max(60, unchangedSeconds)));
}

const isRate = (perDay: number | undefined): perDay is number =>
  perDay !== undefined && perDay > 0 && Number.isFinite(perDay);
