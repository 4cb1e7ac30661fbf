/**
 * What language a text looks like, without a model: by its script, and where many languages share one, by function
 * words and by letters that only some of them have. It takes some 800 characters and tells how sure it is.
 */
import { functionWords, tellingLetters } from "./function-words.ts";
import { hasOwnScript, scriptOfText } from "./script-of-text.ts";

export interface Detected {
  /** ISO 639-1. */
  readonly language: string;
  /** So much speaks for it that there is no need to look further. */
  readonly isClear: boolean;
  /** What speaks for each language of this script that is known here, 0 for nothing, by ISO 639-1. */
  readonly scores: ReadonlyMap<string, number>;
}

const sampleCharacters = 800;
const fewestWords = 8;
const fewestDifferent = 4;
/** Of the words, so many are function words in any running text; and the next best language has so much less. */
const clearShare = 0.2;
const clearLead = 0.8;
/** A word with a telling letter counts so much; a function word counts 1. */
const letterScore = 0.5;

/** Null for a text without words enough, or in a script or language that is not known here. */
export function detectLanguage(text: string): Detected | null {
  const sample = sampleOf(text);
  const script = scriptOfText(sample);
  if (script === null) return null;
  if (/^[a-z]/.test(script)) return { language: script, isClear: true, scores: new Map([[script, 1]]) };
  return byWords(sample);
}

/** Whether a text in the language would be recognised. */
export function isKnownLanguage(language: string): boolean {
  return Object.hasOwn(functionWords, language) || hasOwnScript(language);
}

/** The beginning and the middle: a page often begins with what is not its text. */
function sampleOf(text: string): string {
  if (text.length <= sampleCharacters) return text;
  const half = sampleCharacters / 2;
  const middle = Math.max(half, text.length >> 1);
  return `${text.slice(0, half)} ${text.slice(middle, middle + half)}`;
}

function byWords(sample: string): Detected | null {
  const words = sample.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];
  if (words.length < fewestWords) return null;
  const scores = new Map<string, number>();
  for (const word of words) {
    for (const language of languagesOfWord.get(word) ?? []) add(scores, language, 1);
    for (const language of languagesOfLetters(word)) add(scores, language, letterScore);
  }
  if (scores.size === 0) return null;
  const [language, score] = bestOf(scores, () => true)!;
  const next = bestOf(scores, (other) => !areAlike(other, language))?.[1] ?? 0;
  const isClear =
    score >= clearShare * words.length && next <= clearLead * score && hasSeveral(words, language);
  return { language, isClear, scores };
}

function bestOf(
  scores: ReadonlyMap<string, number>,
  counts: (language: string) => boolean,
): readonly [string, number] | null {
  let best: readonly [string, number] | null = null;
  for (const entry of scores) if (entry[1] > (best?.[1] ?? 0) && counts(entry[0])) best = entry;
  return best;
}

/** Not the same words again and again, nor single letters, which every language has. */
function hasSeveral(words: readonly string[], language: string): boolean {
  const several = new Set<string>();
  for (const word of words) {
    if (word.length > 1 && languagesOfWord.get(word)?.includes(language)) several.add(word);
    if (several.size === fewestDifferent) return true;
  }
  return false;
}

function add(scores: Map<string, number>, language: string, score: number): void {
  scores.set(language, (scores.get(language) ?? 0) + score);
}

/** Languages that one declaration may stand for, or that are written so nearly the same that texts don't tell. */
const alike: readonly (readonly string[])[] = [
  ["nb", "nn", "no", "da"],
  ["hr", "sr", "bs", "sh"],
  ["id", "ms"],
  ["fa", "prs"],
];

export function areAlike(a: string, b: string): boolean {
  return a === b || alike.some((group) => group.includes(a) && group.includes(b));
}

const languagesOfWord = indexed(functionWords, (words) => words.split(" "));
const languagesByLetter = indexed(tellingLetters, (letters) => [...letters]);

function indexed(
  lists: Readonly<Record<string, string>>,
  split: (list: string) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const index = new Map<string, string[]>();
  for (const [language, list] of Object.entries(lists)) {
    for (const entry of new Set(split(list))) index.set(entry, [...(index.get(entry) ?? []), language]);
  }
  return index;
}

const asciiOnly = /^[a-z]*$/;

function languagesOfLetters(word: string): ReadonlySet<string> {
  const found = new Set<string>();
  if (asciiOnly.test(word)) return found;
  for (const letter of word) for (const language of languagesByLetter.get(letter) ?? []) found.add(language);
  return found;
}
