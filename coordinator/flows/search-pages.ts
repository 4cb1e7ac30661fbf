/** Search over the index: what was typed becomes a bounded query, what was found an answer that can be shown. */
import { hostHashOf } from "#core/frontier/url-key";
import type { HostHash } from "#core/ids";

export interface SearchReads {
  find(query: SearchQuery): Promise<{
    readonly pages: readonly FoundPage[];
    readonly total: number;
    readonly more: boolean;
    readonly searchable: boolean;
  }>;
}

export interface SearchOptions {
  readonly limit?: number;
  readonly offset?: number;
  readonly language?: string;
  readonly host?: string;
}

/** What the store is asked: cleaned, and every number within its bounds. */
export interface SearchQuery {
  readonly words: string;
  readonly limit: number;
  readonly offset: number;
  /** ISO 639-1. */
  readonly language: string | null;
  readonly host: { readonly name: string; readonly hostHash: HostHash } | null;
}

export interface SnippetPart {
  readonly text: string;
  readonly matches: boolean;
}

export interface FoundPage {
  readonly url: string;
  readonly host: string;
  readonly title: string;
  readonly language: string | null;
  readonly fetchedAt: string;
  readonly crawler: string | null;
  /** Words on the page. */
  readonly words: number;
  /** Other matching pages with nearly the same text, which are not shown. */
  readonly alike: number;
  readonly rank: number;
  readonly snippet: readonly SnippetPart[];
}

export interface SearchAnswer {
  readonly words: string;
  readonly language: string | null;
  readonly host: string | null;
  readonly limit: number;
  readonly offset: number;
  /** How many match; `more` says that it is at least so many. */
  readonly total: number;
  readonly more: boolean;
  readonly pages: readonly FoundPage[];
  /** In plain words, when there is nothing to show for a reason other than that no page matches. */
  readonly note: string | null;
}

/** Longer input is cut: nobody types it, and each word costs a look-up in the index. */
export const maxSearchLength = 300;
export const maxSearchWords = 24;
export const maxSearchLimit = 100;
/** Deeper pages of results are refused: ranking them costs more than anybody reads. */
export const maxSearchOffset = 1000;

/** Pages that hold the words: "quoted phrases", `or` and `-not` as people type them in search engines. */
export async function searchPages(
  reads: SearchReads,
  words: string,
  options: SearchOptions = {},
): Promise<SearchAnswer> {
  const query = readQuery(words, options);
  const asked = {
    words: query.words,
    language: query.language,
    host: query.host?.name ?? null,
    limit: query.limit,
    offset: query.offset,
  };
  const nothing = { ...asked, total: 0, more: false, pages: [] };
  if (!/[\p{L}\p{N}]/u.test(query.words))
    return { ...nothing, note: "Type one or more words to search for." };
  const found = await reads.find(query);
  if (!found.searchable)
    return { ...nothing, note: "These words are too common, or only exclude: add one to look for." };
  return { ...asked, total: found.total, more: found.more, pages: found.pages, note: null };
}

function readQuery(words: string, options: SearchOptions): SearchQuery {
  const host = options.host?.trim().toLowerCase().replace(/\.$/, "").slice(0, 253) ?? "";
  const language = options.language?.trim().toLowerCase() ?? "";
  return {
    words: cleanWords(words),
    limit: bounded(options.limit ?? 10, 1, maxSearchLimit),
    offset: bounded(options.offset ?? 0, 0, maxSearchOffset),
    language: /^[a-z]{2,3}$/.test(language) ? language : null,
    host: host === "" ? null : { name: withoutControls(host), hostHash: hostHashOf(withoutControls(host)) },
  };
}

function cleanWords(words: string): string {
  const text = withoutControls(words.slice(0, maxSearchLength)).trim();
  return text.split(/\s+/).slice(0, maxSearchWords).join(" ");
}

/** Postgres takes no NUL in a text, and no other control character is a word. */
function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, " ");
}

function bounded(value: number, least: number, most: number): number {
  return Number.isFinite(value) ? Math.min(most, Math.max(least, Math.trunc(value))) : least;
}
