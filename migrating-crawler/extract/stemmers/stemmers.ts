/**
 * The Snowball stemmers of Postgres' dictionaries (snowballstem.org). Most come from a package with the edition
 * of Postgres 13 to 17; what that of Postgres 18 does otherwise is made up here, and what the package has not is in
 * the files beside this one.
 */
import type { TextSearchEdition } from "../text-search-edition.ts";
import { germanStem } from "./german.ts";
import { indonesianStem } from "./indonesian.ts";

/** A word in lower case to its stem. */
export type Stem = (lower: string) => string;

export async function stemmerOf(algorithm: string, { stems }: TextSearchEdition): Promise<Stem> {
  if (algorithm === "indonesian") return indonesianStem;
  const { newStemmer } = await import("snowball-stemmers");
  const stemmer = newStemmer(algorithm);
  const older = (word: string) => stemmer.stem(word);
  if (stems === "newer" && algorithm === "german") return germanStem;
  const edition = stems === "newer" ? (corrections[algorithm] ?? newer[algorithm]) : corrections[algorithm];
  return edition === undefined ? older : (word) => edition(word, older);
}

type Edition = (word: string, older: Stem) => string;

/** What all supported versions of Postgres do otherwise than the package. */
const corrections: Readonly<Record<string, Edition>> = {
  /** ë and ï begin a syllable of their own, and go with a suffix, but not with one of a verb in -ir. */
  french: (word, older) => {
    if (!/[ëï]/.test(word)) return older(word);
    const marked = word.replaceAll("ë", "He").replaceAll("ï", "Hi");
    const stem = older(marked);
    const isCutWithin = stem.endsWith("H") && verbInIr.test(marked);
    const kept = isCutWithin ? older(marked.replaceAll("Hi", "Hû")) : stem;
    return kept.replaceAll("He", "ë").replace(/H[iû]/g, "ï").replaceAll("H", "");
  },
  /** ё is read as е. */
  russian: (word, older) => older(word.replaceAll("ё", "е")),
};

/** What the newer edition of an algorithm does otherwise. */
const newer: Readonly<Record<string, Edition>> = {
  /** Short words keep their double consonant: `added`, `erring`. */
  english: (word, older) => {
    const stem = older(word);
    const isShortened = stem.length === 2 && /^[aeo]([bdfgmnprt])\1(?:ed|ing)(?:ly)?s?$/.test(word);
    return isShortened ? stem + stem[1] : stem;
  },
  /** Furniture is no goddess. */
  italian: (word, older) => (word === "divano" ? "divan" : older(word)),
  /** ş and ţ with a cedilla are ș and ț with a comma; the older edition knows only the former. */
  romanian: (word, older) => {
    if (!/[şţșț]/.test(word)) return older(word);
    return older(word.replaceAll("ș", "ş").replaceAll("ț", "ţ")).replaceAll("ş", "ș").replaceAll("ţ", "ț");
  },
  /** -öst loses its t after more consonants than l. */
  swedish: (word, older) => {
    const stem = older(word);
    if (!/[iklnprtuv]öst$/.test(stem)) return stem;
    const afterVowel = /^.*?[aeiouyäåö][^aeiouyäåö]/.exec(word)?.[0].length ?? word.length;
    return Math.max(3, afterVowel) <= stem.length - 3 ? stem.slice(0, -1) : stem;
  },
};

/** An i with diaeresis, as marked above, at the start of an ending of verbs like finir. */
const verbInIr =
  /Hi(?:es?|r(?:a(?:is?|it|ient|s)?|ent|ez|iez|ions|ons|ont)?|s(?:s(?:ai(?:ent|s|t)|ante?s?|e(?:s|nt|z)?|iez|ions|ons))?|t)?$/;
