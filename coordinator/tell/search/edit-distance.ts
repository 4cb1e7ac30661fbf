/** Which word was most likely meant: few slips away (a missing, extra or wrong letter, or two swapped), and much more frequent. */
import type { WrittenWord } from "./engine/search-engine.ts";

/** Shorter words are never corrected: too many others are one slip away. */
export const shortestCorrected = 4;
/** Longer strings are not words that people type. */
export const longestCorrected = 32;
/** From this length on, two slips are tried. */
const twoSlipsFrom = 7;

/** The number of slips between two words (optimal string alignment); more than `most` counts as `most + 1`. */
export function slipsBetween(from: string, to: string, most = 2): number {
  const [a, b] = [[...from], [...to]];
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let [before, last] = [[] as number[], b.map((_, at) => at).concat(b.length)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const best = Math.min(row[j - 1]! + 1, last[j]! + 1, last[j - 1]! + same);
      row.push(swapped ? Math.min(best, before[j - 2]! + 1) : best);
    }
    [before, last] = [last, row];
  }
  return Math.min(most + 1, last[b.length]!);
}

/** A correction must be this many times as frequent as what was typed. */
const muchMoreFrequent = 8;
/** Words on fewer pages are just as likely to be slips themselves. */
const fewestPages = 2;

/** Returns the word that was most likely meant, or null if that is the typed one, or no word is known. */
export function correctionOf(typed: string, candidates: readonly WrittenWord[]): string | null {
  const most = [...typed].length < twoSlipsFrom ? 1 : 2;
  const own = candidates.find(({ word }) => word === typed)?.pages ?? 0;
  const near = candidates
    .map((candidate) => ({ ...candidate, slips: slipsBetween(typed, candidate.word, most) }))
    .filter(
      ({ slips, pages }) =>
        slips >= 1 && slips <= most && pages >= fewestPages && pages >= own * muchMoreFrequent,
    )
    .sort(
      (x, y) =>
        x.slips - y.slips ||
        firstSame(y.word) - firstSame(x.word) ||
        y.pages - x.pages ||
        (x.word < y.word ? -1 : 1),
    );
  return near[0]?.word ?? null;

  /** People seldom mistype the first letter. */
  function firstSame(word: string): number {
    return word[0] === typed[0] ? 1 : 0;
  }
}
