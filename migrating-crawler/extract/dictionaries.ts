/**
 * Words to lexemes as Postgres' text search configurations do it: lower case, stop words dropped, Snowball
 * stems. The stemmers are the same algorithms; where every supported Postgres runs a newer edition (French,
 * Russian) the difference is made up here. Postgres 18 has newer ones still: under 1 % of the German words
 * and 0.2 % of other languages' stem differently there. Languages that could not be checked against
 * Postgres, and Romanian, whose editions differ widely, get `simple`.
 */

import { stopWordsOf } from "./stop-words.ts";
import type { TokenKind } from "./tokens.ts";

/** The lexeme of a token, or null for a stop word. */
export type Dictionary = (kind: TokenKind, token: string) => string | null;

/** ISO 639-1 to the Postgres configuration whose lexemes we can make. */
const configs: Readonly<Record<string, string>> = {
  ca: "catalan",
  da: "danish",
  de: "german",
  en: "english",
  es: "spanish",
  eu: "basque",
  fi: "finnish",
  fr: "french",
  ga: "irish",
  hu: "hungarian",
  hy: "armenian",
  it: "italian",
  nb: "norwegian",
  nl: "dutch",
  nn: "norwegian",
  no: "norwegian",
  pt: "portuguese",
  ru: "russian",
  sv: "swedish",
  tr: "turkish",
};
/** Configurations that read ASCII words as English. */
const englishForAscii = new Set(["russian"]);

export const supportedConfigs = [...new Set([...Object.values(configs), "simple"])];

/** `simple` for a language that is not known or not supported. */
export function textSearchConfigOf(language: string | null): string {
  return configs[language ?? ""] ?? "simple";
}

/** Lexemes of words met lately are kept, so many of each dictionary: stemming costs some 20 µs a word. */
const maxKept = 20_000;
const dictionaries = new Map<string, Promise<Dictionary>>();

export function dictionaryOf(config: string): Promise<Dictionary> {
  const known = dictionaries.get(config);
  if (known) return known;
  const loading = loadDictionary(config);
  dictionaries.set(config, loading);
  return loading;
}

async function loadDictionary(config: string): Promise<Dictionary> {
  if (config === "simple") return (_kind, token) => token.toLowerCase();
  const words = await stemmerOf(config);
  const ascii = englishForAscii.has(config) ? await stemmerOf("english") : words;
  const kept = new Map<string, string | null>();
  return (kind, token) => {
    if (kind === "simple") return token.toLowerCase();
    const known = kept.get(token);
    if (known !== undefined) return known;
    const lexeme = lexemeOf(token, words, ascii);
    if (kept.size >= maxKept) kept.clear();
    kept.set(token, lexeme);
    return lexeme;
  };
}

type Stem = (lower: string) => string | null;

/** As Postgres sorts words: those with a digit are left alone, ASCII ones may have a dictionary of their own. */
function lexemeOf(token: string, words: Stem, ascii: Stem): string | null {
  const lower = token.toLowerCase();
  if (/[0-9]/.test(token)) return lower;
  return /^[A-Za-z-]+$/.test(token) ? ascii(lower) : words(lower);
}

async function stemmerOf(config: string): Promise<Stem> {
  const { newStemmer } = await import("snowball-stemmers");
  const stemmer = newStemmer(config);
  const stopWords = stopWordsOf(config);
  const stem = editions[config] ?? ((word: string, old: (word: string) => string) => old(word));
  const old = (word: string) => stemmer.stem(word);
  return (lower) => (stopWords.has(lower) ? null : stem(lower, old));
}

/** What Postgres' edition of an algorithm does beyond the one we have. */
const editions: Readonly<Record<string, (word: string, old: (word: string) => string) => string>> = {
  /** ё is read as е. */
  russian: (word, old) => old(word.replaceAll("ё", "е")),
  /** ë and ï begin a syllable of their own, and may be taken off with a suffix. */
  french: (word, old) => {
    if (!/[ëï]/.test(word)) return old(word);
    const marked = old(word.replaceAll("ë", "He").replaceAll("ï", "Hi"));
    return marked.replaceAll("He", "ë").replaceAll("Hi", "ï").replaceAll("H", "");
  },
};
