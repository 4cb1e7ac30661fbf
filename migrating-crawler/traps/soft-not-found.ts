/**
 * Pages that say "not found" with status 200 (Bar-Yossef and others, "Sic transit gloria telae", WWW 2004):
 * by their own words where these leave no doubt, else by likeness to what the host answers for a page that
 * cannot exist. Long pages are never taken for one: they may be about it.
 */
import type { PageExtract } from "#protocol/result";
import { mentionsNotFound, saysNotFound } from "./not-found-words.ts";

/** Menus and footers included, an error page has fewer words. */
const mostWords = 400;

export type Suspicion = "certain" | "likely" | "none";

/** `isAlike`: another URL of the host has (nearly) the same page. The host's front page is always found. */
export function suspicionOf(
  page: PageExtract,
  at: { readonly url: string; readonly isAlike: boolean },
): Suspicion {
  if (page.words > mostWords || new URL(at.url).pathname === "/") return "none";
  const mainHeading = page.headings.find((heading) => heading.level <= 2)?.text ?? "";
  const said = [page.title, mainHeading].map(saysNotFound);
  if (said.includes("said")) return "certain";
  const hinted = said.includes("hinted") || mentionsNotFound(page.excerpt);
  return hinted || at.isAlike ? "likely" : "none";
}
