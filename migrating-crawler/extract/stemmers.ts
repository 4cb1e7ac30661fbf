/**
 * The Snowball stemmers of Postgres' dictionaries (snowballstem.org). Most come from a package with the edition
 * that Postgres 13 to 17 have; what the edition of Postgres 18 does beyond it is made up here.
 */

/** A word in lower case to its stem. */
export type Stem = (lower: string) => string;

/** Postgres gives longer words (in bytes) to no stemmer. */
export const maxStemmedBytes = 1000;

export async function stemmerOf(algorithm: string): Promise<Stem> {
  const { newStemmer } = await import("snowball-stemmers");
  const stemmer = newStemmer(algorithm);
  const old = (word: string) => stemmer.stem(word);
  const edition = editions[algorithm];
  return edition === undefined ? old : (word) => edition(word, old);
}

/** What Postgres' edition of an algorithm does beyond the one we have. */
const editions: Readonly<Record<string, (word: string, old: Stem) => string>> = {
  /** ё is read as е. */
  russian: (word, old) => old(word.replaceAll("ё", "е")),
  /** ë and ï begin a syllable of their own, and may be taken off with a suffix. */
  french: (word, old) => {
    if (!/[ëï]/.test(word)) return old(word);
    const marked = old(word.replaceAll("ë", "He").replaceAll("ï", "Hi"));
    return marked.replaceAll("He", "ë").replaceAll("Hi", "ï").replaceAll("H", "");
  },
};
