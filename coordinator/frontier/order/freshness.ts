/**
 * By how stale our copy is expected to be, times how much the page counts: 1 − e^(−λ·age), the chance that a page with
 * λ changes a day (a Poisson process) is no longer what we have, by 1 + I. A page that we do not have is stale for sure.
 */
import { type OrderStrategy, told, type UrlFacts } from "./strategies.ts";

/** Of a page of which nothing is known yet: our judgement, between a news page and one that never changes. */
export const unknownChangesPerDay = 0.1;

const daySeconds = 86_400;

function staleness(url: UrlFacts): number {
  if (url.ageSeconds === null) return 1;
  const days = Math.max(0, url.ageSeconds) / daySeconds;
  return 1 - Math.exp(-(url.changesPerDay ?? unknownChangesPerDay) * days);
}

const score = (url: UrlFacts) => staleness(url) * (1 + url.backLinks);

function reason(url: UrlFacts): string {
  const counts = `(1 + I ${url.backLinks})`;
  if (url.ageSeconds === null) return `${told(score(url))} = ${counts}, as we have no copy of it`;
  const rate = `${told(url.changesPerDay ?? unknownChangesPerDay)} changes a day${url.changesPerDay === null ? " (assumed)" : ""}`;
  const days = told(Math.max(0, url.ageSeconds) / daySeconds);
  return `${told(score(url))} = expected staleness ${told(staleness(url))} (${rate}, ${days} days old) × ${counts}`;
}

export const freshness: OrderStrategy = {
  name: "freshness",
  words: "what we expect to be most out of date, by how much links to it",
  mixesNewAndOld: true,
  newScore: score,
  oldScore: score,
  reason,
};
