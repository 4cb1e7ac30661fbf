/** Reduces words to their stems by language, and knows the words of each language that say nothing by themselves. */
import { stemmerOf } from "./stemmers.ts";
import { stopWordsOf } from "./stop-words-resolver.ts";

export interface Stemming {
  readonly configuration: string;
  /** `lowerWord` is as `wordsIn` gives it. */
  stemOf(lowerWord: string): string;
  isStopWord(lowerWord: string): boolean;
}

/** ISO 639-1 codes. The names are those of Postgres' text search configurations, which results and pages hold. */
const configurations: Readonly<Record<string, string>> = {
  ar: "arabic",
  ca: "catalan",
  da: "danish",
  de: "german",
  el: "greek",
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

const stemmed = new Set(Object.values(configurations));

export const textSearchConfigOf = (language: string | null): string =>
  Object.hasOwn(configurations, language ?? "") ? configurations[language ?? ""]! : "simple";

const known = new Map<string, Promise<Stemming>>();

/** A configuration without a stemmer leaves words as they are, as `simple` does. */
export function stemmingOf(configuration: string): Promise<Stemming> {
  const name = stemmed.has(configuration) ? configuration : "simple";
  const stemming = known.get(name) ?? loaded(name);
  known.set(name, stemming);
  return stemming;
}

async function loaded(configuration: string): Promise<Stemming> {
  if (configuration === "simple") return { configuration, stemOf: (word) => word, isStopWord: () => false };
  const stem = await stemmerOf(configuration);
  // Latin words in a text of another script are most often English.
  const ascii = otherScripts.has(configuration) ? await stemmerOf("english") : stem;
  const stopWords = stopWordsOf(configuration);
  const stems = new Map<string, string>();
  return {
    configuration,
    isStopWord: (word) => stopWords.has(word),
    stemOf(word) {
      const kept = stems.get(word);
      if (kept !== undefined) return kept;
      const found = (/^[a-z\d]/.test(word) ? ascii(word) : stem(word)) || word;
      if (stems.size === mostKept) stems.clear();
      stems.set(flat(word), flat(found));
      return found;
    },
  };
}

const otherScripts = new Set(["arabic", "armenian", "greek", "russian", "tamil"]);

/** Takes about two megabytes. A page has several hundred words, few of which are in no other page. */
const mostKept = 20_000;

/** Copies the text, because a slice of 13 or more units keeps the whole page in memory. */
export function flat(text: string): string {
  return text.length < 13 ? text : Buffer.from(text, "utf16le").toString("utf16le");
}
