/**
 * Turns words into lexemes as Postgres' text search configurations do: in lower case, without stop words, reduced to Snowball
 * stems. Languages without a configuration get `simple`, which only converts to lower case.
 */
import { newestVersion, stemmerOf, type TextSearchEdition, textSearchEdition } from "./stemmers/stemmers.ts";
import { stopWordsOf } from "./stop-words.ts";

export interface Dictionary {
  readonly name: string;
  readonly formatCharactersBreakWords: boolean;
  readonly lexemeOf: (kind: TokenKind, token: string) => string | null;
}

/** Maps ISO 639-1 codes to the Postgres configurations that can be reproduced here. */
const configs: Readonly<Record<string, string>> = {
  ar: "arabic",
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
  id: "indonesian",
  it: "italian",
  nb: "norwegian",
  nl: "dutch",
  nn: "norwegian",
  no: "norwegian",
  pt: "portuguese",
  ro: "romanian",
  ru: "russian",
  sv: "swedish",
  ta: "tamil",
  tr: "turkish",
};

export const supportedConfigs = [...new Set([...Object.values(configs), "simple"])];

export const textSearchConfigOf = (language: string | null): string => configs[language ?? ""] ?? "simple";

const dictionaries = new Map<string, Promise<Dictionary>>();

/** `majorVersion` is that of the Postgres server that receives the lexemes. */
export function dictionaryOf(config: string, majorVersion: number = newestVersion): Promise<Dictionary> {
  const edition = textSearchEdition(majorVersion);
  const name = `${config} ${edition.stems} ${edition.formatCharactersBreakWords}`;
  const known = dictionaries.get(name);
  if (known) return known;
  const loading = loadDictionary(name, config, edition);
  dictionaries.set(name, loading);
  return loading;
}

async function loadDictionary(name: string, config: string, edition: TextSearchEdition): Promise<Dictionary> {
  const { formatCharactersBreakWords } = edition;
  const simple = (_kind: TokenKind, token: string) => inLowerCase(token);
  if (config === "simple") return { name, formatCharactersBreakWords, lexemeOf: simple };
  const words = await stemmingOf(config, edition);
  // Postgres treats ASCII words in Russian texts as English.
  const ascii = config === "russian" ? await stemmingOf("english", edition) : words;
  const lexemeOf = (kind: TokenKind, token: string) => {
    const lower = inLowerCase(token);
    if (kind === asItIs) return lower;
    return kind === asciiWord ? ascii(lower) : words(lower);
  };
  return { name, formatCharactersBreakWords, lexemeOf };
}

/** Converts each character by itself, as Postgres does, so that no final sigma appears. */
function inLowerCase(token: string): string {
  const lower = /[Σİ]/.test(token) ? token.replaceAll("Σ", "σ").replaceAll("İ", "i") : token;
  return lower.toLowerCase();
}

async function stemmingOf(
  config: string,
  edition: TextSearchEdition,
): Promise<(lower: string) => string | null> {
  const stopWords = stopWordsOf(config);
  const stem = await stemmerOf(config, edition);
  return (lower) => {
    if (stopWords.has(lower)) return null;
    return isTooLong(lower) ? lower : stem(lower) || lower;
  };
}

/** Postgres does not stem longer words. */
const maxStemmedBytes = 1000;

function isTooLong(lower: string): boolean {
  return lower.length > maxStemmedBytes / 3 && Buffer.byteLength(lower) > maxStemmedBytes;
}

/** Which dictionary a token goes through: that for ASCII words, that for other words, or none. */
export const asciiWord = 0;

export const anyWord = 1;
export const asItIs = 2;
export type TokenKind = typeof asciiWord | typeof anyWord | typeof asItIs;
