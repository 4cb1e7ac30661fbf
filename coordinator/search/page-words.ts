/** The words of a page that a dictionary is made of: as they are written, in small letters, each once. */
import { composed } from "#protocol/composed";
import { longestCorrected, shortestCorrected } from "./word-slips.ts";

/** A page says what it is about in its first words; a list of names that goes on for ever is cut. */
const wordsPerPage = 80;

export function pageWords(texts: readonly string[]): string[] {
  const words = new Set<string>();
  for (const text of texts) {
    for (const [word] of composed(text).matchAll(/[\p{L}\p{M}]+/gu)) {
      const length = [...word].length;
      if (length < shortestCorrected || length > longestCorrected) continue;
      words.add(word.toLowerCase());
      if (words.size === wordsPerPage) return [...words];
    }
  }
  return [...words];
}
