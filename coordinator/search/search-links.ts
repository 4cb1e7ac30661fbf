/** Addresses of searches: the same one with something changed. */

import { pathWith } from "../web/html.ts";
import { filterNames, type SearchAnswer } from "./reads.ts";

/** Null takes a filter away; whatever changes, results start from the first. */
export type Changes = Readonly<Record<string, string | number | null>>;

const usualLimit = 10;

export function searchLink(answer: SearchAnswer, changes: Changes): string {
  return pathWith("/search", {
    q: answer.words,
    ...Object.fromEntries(filterNames.map((name) => [name, answer[name]])),
    sort: answer.sort === "date" ? "date" : null,
    limit: answer.limit === usualLimit ? null : answer.limit,
    explain: isExplained(answer) ? 1 : null,
    ...changes,
  });
}

export function isExplained({ pages }: SearchAnswer): boolean {
  return pages.some(({ reasons }) => reasons !== null);
}

export function pageLink(url: string): string {
  return pathWith("/pages", { url });
}
