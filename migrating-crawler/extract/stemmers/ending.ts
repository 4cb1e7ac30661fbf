/** Endings of words, for the stemmers. */

/** The given endings, the longest first, as `endingOf` wants them. */
export function endings(...words: readonly string[]): readonly string[] {
  return words.flatMap((each) => each.split(" ")).sort((a, b) => b.length - a.length);
}

/** The longest of the endings that the word has; empty for none. */
export function endingOf(word: string, ordered: readonly string[]): string {
  return ordered.find((ending) => word.endsWith(ending)) ?? "";
}

/** The word without its ending. */
export function without(word: string, ending: string): string {
  return word.slice(0, word.length - ending.length);
}
