/**
 * A page's language as ISO 639: what it declares, unless its text clearly says otherwise (templates declare English
 * whatever is written in them); without a declaration, what the text looks like. Function words decide
 * most pages; a model, which costs 53 MB of memory, is loaded only when the first page comes that neither declares
 * a language nor has one by its words.
 */
import { functionWords, tellingLetters } from "./function-words.ts";

export interface PageLanguage {
  /** The one decided on; null when undecided. */
  readonly language: string | null;
  /** What the text looks like; null when it does not say. */
  readonly detected: string | null;
}

/** The model is asked about texts from this length on, and reads no more than that. */
const minModelCharacters = 100;

const maxModelCharacters = 1000;

/** A declaration is wrong when its language has less than this share of what speaks for another. */
const contradictedShare = 0.5;

export async function languageOf(page: {
  readonly declared: string | null;
  readonly contentLanguage: string | null;
  readonly text: string;
}): Promise<PageLanguage> {
  const declared = codeOf(page.declared) ?? codeOf(page.contentLanguage);
  const seen = detectLanguage(page.text);
  if (declared !== null) {
    const language = seen !== null && contradicts(seen, declared) ? seen.language : declared;
    return { language, detected: seen?.isClear ? seen.language : null };
  }
  const detected = seen?.isClear ? seen.language : await languageByModel(page.text);
  return { language: detected, detected };
}

/** A declared language that would not be recognised is believed: its text may well look like a relative's. */
function contradicts(seen: Detected, declared: string): boolean {
  if (!seen.isClear || areAlike(seen.language, declared) || !isKnownLanguage(declared)) return false;
  return (seen.scores.get(declared) ?? 0) < contradictedShare * seen.scores.get(seen.language)!;
}

async function languageByModel(text: string): Promise<string | null> {
  if (text.length < minModelCharacters) return null;
  const { eld } = await import("eld/extrasmall");
  const found = eld.detect(text.slice(0, maxModelCharacters));
  return found.isReliable() ? codeOf(found.language) : null;
}

/** `de` of `de-AT`, `en_US`, `pt, en`; null of what is no language tag (BCP 47). */
function codeOf(tag: string | null): string | null {
  const code = /^\s*([a-z]{2,3})(?=$|[-_,;\s])/i.exec(tag ?? "")?.[1]?.toLowerCase();
  return code === undefined || code === "und" || code === "mul" || code === "zxx" ? null : code;
}

// What language a text looks like, without a model: by its script, and where many languages share one, by function
// words and by letters that only some of them have. It takes some 800 characters and tells how sure it is.

interface Detected {
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
function isKnownLanguage(language: string): boolean {
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

// The script of a text, and the language that it says where nearly nothing else is written in it.

/** Scripts of many languages, by name; of the others the language (ISO 639-1). First and last code point, the block's. */
const blocks: readonly (readonly [first: number, last: number, script: string])[] = [
  [0x41, 0x24f, "Latin"],
  [0x370, 0x3ff, "el"],
  [0x400, 0x52f, "Cyrillic"],
  [0x530, 0x58f, "hy"],
  [0x590, 0x5ff, "he"],
  [0x600, 0x77f, "Arabic"],
  [0x900, 0x97f, "Devanagari"],
  [0x980, 0x9ff, "bn"],
  [0xa00, 0xa7f, "pa"],
  [0xa80, 0xaff, "gu"],
  [0xb80, 0xbff, "ta"],
  [0xc00, 0xc7f, "te"],
  [0xc80, 0xcff, "kn"],
  [0xd00, 0xd7f, "ml"],
  [0xd80, 0xdff, "si"],
  [0xe00, 0xe7f, "th"],
  [0xe80, 0xeff, "lo"],
  [0xf00, 0xfff, "bo"],
  [0x1000, 0x109f, "my"],
  [0x10a0, 0x10ff, "ka"],
  [0x1100, 0x11ff, "ko"],
  [0x1200, 0x139f, "am"],
  [0x1780, 0x17ff, "km"],
  [0x1e00, 0x1eff, "Latin"],
  [0x1f00, 0x1fff, "el"],
  [0x3040, 0x30ff, "ja"],
  [0x3400, 0x4dbf, "zh"],
  [0x4e00, 0x9fff, "zh"],
  [0xac00, 0xd7af, "ko"],
  [0xfb50, 0xfdff, "Arabic"],
  [0xfe70, 0xfeff, "Arabic"],
];

/** Whether the language has a script of its own. */
function hasOwnScript(language: string): boolean {
  return blocks.some(([, , script]) => script === language);
}

/** So many letters have to be seen. */
const fewestLetters = 30;

const isLetter = /\p{L}/u;

/** By UTF-16 unit: 0 not looked at yet, 1 no letter of these scripts, else two more than the block's place. */
const blockOf = new Uint8Array(0x10000);

const none = 1;
const firstBlock = 2;

/** The script of most letters (`Latin`, `Cyrillic`, `Arabic`, `Devanagari`) or the language of its script; null: too few. */
function scriptOfText(text: string): string | null {
  const counts = new Int32Array(firstBlock + blocks.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    counts[blockOf[code] || findBlock(code)]!++;
  }
  return mostOf(counts);
}

function findBlock(code: number): number {
  const place = isLetter.test(String.fromCharCode(code))
    ? blocks.findIndex(([first, last]) => code >= first && code <= last)
    : -1;
  const block = place < 0 ? none : firstBlock + place;
  blockOf[code] = block;
  return block;
}

function mostOf(counts: Int32Array): string | null {
  const byScript = new Map<string, number>();
  let letters = 0;
  for (const [place, [, , script]] of blocks.entries()) {
    const count = counts[firstBlock + place]!;
    letters += count;
    if (count > 0) byScript.set(script, (byScript.get(script) ?? 0) + count);
  }
  if (letters < fewestLetters) return null;
  // Japanese is written with Chinese characters, too.
  if ((byScript.get("ja") ?? 0) * 5 > letters) return "ja";
  const [script, count] = [...byScript].reduce((most, each) => (each[1] > most[1] ? each : most));
  return 2 * count > letters ? script : null;
}
