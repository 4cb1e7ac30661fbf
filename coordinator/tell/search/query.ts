/** Cleans and bounds the search words and filters. */
import { urlKeyOf } from "#core/url-key";
import { composed } from "#protocol/composed";
import { contentUses, preferenceAnswers } from "#protocol/preferences";
import { correctionOf, longestCorrected, shortestCorrected } from "./edit-distance.ts";
import type { SearchEngine } from "./engine/search-engine.ts";
import {
  type FilterName,
  filterNames,
  type SearchFilters,
  type SearchQuery,
  type SearchSort,
} from "./search-answer.ts";

/** As a request or a command gives it. */
export interface SearchOptions extends Readonly<Partial<Record<FilterName, string | undefined>>> {
  readonly limit?: number;
  readonly offset?: number;
  readonly sort?: string;
  readonly explain?: boolean;
}

/**
 * Longer input is refused, or cut where it comes from the program itself: nobody types it, and each word costs a
 * look-up.
 */
export const maxSearchLength = 300;

export const maxSearchWords = 24;
export const maxSearchLimit = 100;

/** Deeper pages of results are refused: only this many pages are ranked, and nobody reads further. */
export const maxSearchOffset = 500;

export function readSearch(words: string, options: SearchOptions): SearchQuery {
  return {
    words: cleanWords(words),
    filters: readFilters(options),
    sort: options.sort === "date" ? "date" : ("relevance" satisfies SearchSort),
    limit: bounded(options.limit ?? 10, 1, maxSearchLimit),
    offset: bounded(options.offset ?? 0, 0, maxSearchOffset),
  };
}

/** Stands for the answer of a site that makes no statement on that use. */
export const unstated = "unstated";

/** Media types of pages by the name of their filter. */
export const contentTypes: Readonly<Record<string, readonly string[]>> = {
  html: ["text/html", "application/xhtml+xml"],
  text: ["text/plain"],
};

/** The form that a filter must have; anything else is refused. */
const shapes: Readonly<Record<string, { readonly shape: RegExp; readonly words: string }>> = {
  language: { shape: /^[a-z]{2,3}$/i, words: "must be a code of two or three letters, such as en" },
  country: { shape: /^[a-z]{2}$/i, words: "must be a code of two letters, such as DE" },
  crawler: { shape: /^[\w.-]{1,100}$/, words: "must be the name of a crawler" },
  host: { shape: /^[^\s/:]{1,253}$/, words: "must be a host name, such as www.example.org" },
  from: { shape: /^\d{4}-\d{2}-\d{2}$/, words: "must be a day, such as 2026-03-01" },
  to: { shape: /^\d{4}-\d{2}-\d{2}$/, words: "must be a day, such as 2026-03-01" },
  preference: {
    shape: new RegExp(`^(${contentUses.join("|")})=(${[...preferenceAnswers, unstated].join("|")})$`),
    words: `must be one of ${contentUses.join(", ")}, =, and one of ${[...preferenceAnswers, unstated].join(", ")}, such as ai-train=denied`,
  },
  excludeHost: {
    shape: /^[^\s/:,]{1,253}(,[^\s/:,]{1,253}){0,7}$/,
    words: "must be host names, eight at most with commas between them, such as ads.example.org",
  },
  title: { shape: /^(?=.*[\p{L}\p{N}]).{1,100}$/u, words: "must be words, of 100 characters at most" },
  type: { shape: new RegExp(`^(${Object.keys(contentTypes).join("|")})$`), words: "must be html or text" },
  sort: { shape: /^(relevance|date)$/, words: "must be relevance or date" },
};

/** There are more words than are searched for. */
export function hasWordsCut(words: string): boolean {
  return clean(words).split(/\s+/).length > maxSearchWords;
}

/** Names the first invalid filter, or returns null if all are valid. */
export function filterFault(options: SearchOptions): string | null {
  for (const [name, { shape, words }] of Object.entries(shapes)) {
    const value = clean(String(options[name as keyof SearchOptions] ?? ""));
    if (value === "") continue;
    if (!shape.test(value) || ((name === "from" || name === "to") && !isDay(value)))
      return `${name} ${value.slice(0, 60)}: ${words}`;
  }
  return null;
}

/** A day that exists, as Postgres counts years: JavaScript takes 31 February for 3 March, and has a year 0. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) && !text.startsWith("0000");
}

/** Returns the first day of a year, a month or a day (the value of `after:`), or null if the text is none. */
export function dayStart(text: string): string | null {
  const [, year = "", month = "01", day = "01"] = /^(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?$/.exec(text) ?? [];
  const full = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  return year !== "" && isDay(full) ? full : null;
}

/** The day before it, as `before:` takes it. */
export function dayEnd(text: string): string | null {
  const start = dayStart(text);
  if (start === null) return null;
  const end = new Date(Date.parse(`${start}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
  return isDay(end) ? end : null;
}

function readFilters(options: SearchOptions): SearchFilters {
  const fitting = (name: FilterName) => {
    const value = clean(options[name] ?? "");
    return value !== "" && filterFault({ [name]: value }) === null ? value : null;
  };
  const asked = Object.fromEntries(
    filterNames.map((name) => [name, fitting(name)]),
  ) as unknown as SearchFilters;
  return {
    ...asked,
    host: hostOf(asked.host),
    language: asked.language?.toLowerCase() ?? null,
    country: asked.country?.toUpperCase() ?? null,
    excludeHost: asked.excludeHost?.split(",").map(hostOf).join(",") ?? null,
  };
}

/** As hosts are stored: in lower case without a final dot, names beyond ASCII as xn--. */
function hostOf(text: string | null): string | null {
  if (text === null) return null;
  const key = /[^\x21-\x7e]/.test(text) ? urlKeyOf(`http://${text}/`) : text;
  return (typeof key === "string" ? text : key.host).toLowerCase().replace(/\.$/, "");
}

function cleanWords(words: string): string {
  // A letter may consist of several characters.
  const text = clean(composed(words.slice(0, 4 * maxSearchLength)).slice(0, maxSearchLength));
  return text.split(/\s+/).slice(0, maxSearchWords).join(" ");
}

/** Postgres refuses NUL in texts, and no other control character belongs to a word. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, " ").trim();
}

function bounded(value: number, least: number, most: number): number {
  return Number.isFinite(value) ? Math.min(most, Math.max(least, Math.trunc(value))) : least;
}

// "Did you mean": replaces each word that hardly any page has by a similar one that many have.

/** Only the first words of a long text are corrected. */
const wordsCorrected = 8;

/** Returns the text with some words corrected, phrases and operators unchanged, or null if there is nothing to correct. */
export async function suggestWords(
  engine: Pick<SearchEngine, "wordsLike">,
  text: string,
): Promise<string | null> {
  const typed = [...new Set(text.match(wordPattern) ?? [])].filter(isCorrectable).slice(0, wordsCorrected);
  const corrections = new Map<string, string>();
  for (const word of typed) {
    const lower = word.toLowerCase();
    const correction = correctionOf(lower, await engine.wordsLike(lower));
    if (correction !== null) corrections.set(word, correction);
  }
  if (corrections.size === 0) return null;
  return text.replace(wordPattern, (word) => corrections.get(word) ?? word);
}

const wordPattern = /[\p{L}\p{M}]+/gu;

function isCorrectable(word: string): boolean {
  const length = [...word].length;
  return length >= shortestCorrected && length <= longestCorrected;
}
