/** In plain words: what a host may have in the frontier, and why it is no more (frontier/host-budget.ts). */

import { howMany } from "#core/format";
import { goodPageUrls, type HostPages, hostBudget } from "../frontier/budgets.ts";
import type { HostReport, UrlReport } from "../frontier/frontier-reports.ts";

/** "the host's budget of 50 URLs is used up: 71 % of the 40 that were judged are near-duplicates of others". */
export function usedUpWords(host: HostReport, limit: number): string {
  const urls = hostBudget(host.budget.pages, limit);
  return `the host's budget of ${howMany(urls, "URL")} is used up: ${reasonWords(host.budget.pages)}`;
}

/** Whether its budget, and not the operator's limit, is what keeps more URLs out. */
export function isUsedUp(host: HostReport, limit: number): boolean {
  return host.urlCount < limit && host.urlCount >= hostBudget(host.budget.pages, limit);
}

/** What a URL counts for, in words. */
export const worthWords: Readonly<Record<NonNullable<UrlReport["worth"]>, string>> = {
  good: "a page with a text of its own",
  "near-duplicate": "nearly the same text as another page",
  "not-found": "says “not found” with status 200",
  empty: "no text to speak of",
  failed: "an error that will not pass",
};

const badWords: Readonly<Partial<Record<keyof HostPages, string>>> = {
  nearDuplicates: "near-duplicates of others",
  notFound: "pages that say “not found” with status 200",
  empty: "without text",
  failed: "errors that will not pass",
};

/** A share that is smaller is no reason. */
const leastShare = 0.05;

function reasonWords(pages: HostPages): string {
  const judged = pages.good + pages.nearDuplicates + pages.notFound + pages.empty + pages.failed;
  const bad = Object.entries(badWords)
    .map(([figure, words]) => ({ words, share: pages[figure as keyof HostPages] / Math.max(1, judged) }))
    .filter(({ share }) => share >= leastShare)
    .sort((a, b) => b.share - a.share)
    .map(({ words, share }) => `${Math.round(100 * share)} % are ${words}`);
  const traps =
    pages.trappedLinks > judged ? [`${howMany(pages.trappedLinks, "link")} of them look like a trap`] : [];
  if (judged === 0) return `it grows by ${goodPageUrls} with every good page, and none was fetched yet`;
  const of = `of ${howMany(judged, "URL")} that ${judged === 1 ? "was" : "were"} judged`;
  const reasons = [...bad, ...traps];
  if (reasons.length === 0)
    return `it grows by ${goodPageUrls} with every good page, ${of} ${pages.good} so far`;
  return `${of}, ${reasons.join(", ")}`;
}
