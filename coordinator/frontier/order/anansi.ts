/**
 * Anansi's two lists (section 4.3.3): new URLs by in-degree, P_new = I (4.3); old ones by P_old = C·T·(I + O) (4.4),
 * with C the share of links that changed and T = age / 6 months, the time the thesis takes for the whole web (4.1).
 *
 * Of C the thesis' text and its equation 4.2 say opposite things; results/change-ratio tells which is followed and
 * why. A page visited once has no C yet: it counts as 1, as two visits without links do, so that the page is not last
 * of all before anything is known of it.
 */
import { type OrderStrategy, told, type UrlFacts } from "./strategies.ts";

/** T_crawl: six months of 30 days (sections 4.3.3 and 5.3.2). */
export const crawlSeconds = 15_552_000;

export const unknownChangeRatio = 1;

interface Factors {
  readonly change: number;
  readonly age: number;
  readonly inDegree: number;
  readonly outDegree: number;
}

function factorsOf(url: UrlFacts): Factors {
  return {
    change: url.changeRatio ?? unknownChangeRatio,
    age: Math.max(0, url.ageSeconds ?? 0) / crawlSeconds,
    inDegree: url.backLinks,
    outDegree: url.outLinks ?? 0,
  };
}

function oldScore(url: UrlFacts): number {
  const { change, age, inDegree, outDegree } = factorsOf(url);
  return change * age * (inDegree + outDegree);
}

function reason(url: UrlFacts): string {
  const { change, age, inDegree, outDegree } = factorsOf(url);
  if (url.ageSeconds === null) return `${inDegree} = I, the links to it`;
  const unknown = url.changeRatio === null ? " (not known yet)" : "";
  return `${told(oldScore(url))} = C ${told(change)}${unknown} × T ${told(age)} × (I ${inDegree} + O ${outDegree})`;
}

export const anansi: OrderStrategy = {
  name: "anansi",
  words: "new URLs by the links to them, old ones by changed links × age × links both ways (Anansi)",
  mixesNewAndOld: true,
  newScore: (url) => url.backLinks,
  oldScore,
  reason,
};
