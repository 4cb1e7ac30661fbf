/** "Did you mean": each word that hardly any page has, in place of one like it that many have. */

import type { SearchReads } from "./reads.ts";
import { correctionOf, longestCorrected, lookedUpForms, shortestCorrected } from "./word-slips.ts";

/** Of a long text only the first words are looked at. */
const wordsCorrected = 8;

/** The same text with some words corrected, phrases and operators as they were; null: nothing to correct. */
export async function suggestWords(
  reads: Pick<SearchReads, "wordsLike">,
  text: string,
  language: string | null,
): Promise<string | null> {
  const typed = [...new Set(text.match(wordPattern) ?? [])].filter(isCorrectable).slice(0, wordsCorrected);
  const corrections = new Map<string, string>();
  for (const word of typed) {
    const lower = word.toLowerCase();
    const correction = correctionOf(lower, await reads.wordsLike(lookedUpForms(lower), language));
    if (correction !== null) corrections.set(word, correction);
  }
  if (corrections.size === 0) return null;
  return text.replace(wordPattern, (word) => corrections.get(word) ?? word);
}

const wordPattern = /[\p{L}\p{M}]+/gu;

function isCorrectable(word: string): boolean {
  const length = [...word].length;
  return length >= shortestCorrected && length <= longestCorrected;
}
