/**
 * A page's language as ISO 639: what it declares, unless its text clearly says otherwise (templates declare English
 * whatever is written in them); without a declaration, what the text looks like. Function words decide
 * most pages; a model, which costs 53 MB of memory, is loaded only when the first page comes that neither declares
 * a language nor has one by its words.
 */
import { areAlike, type Detected, detectLanguage, isKnownLanguage } from "./detect-language.ts";

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
