/**
 * A page as an operator's search engine gets it: one document per page, its id made of the page's hashes, its version
 * of the change feed's number, so that a target that gets the same document twice or late still ends with the latest.
 */
import type { UrlAddress } from "#core/url-key";
import type { UseAnswers } from "#protocol/preferences";
import { readLexemes } from "../../../crawl/changes/text-difference.ts";

/** The contents of one document. What a page does not state is null. */
interface ExportedDocument {
  readonly url: string;
  readonly host: string;
  readonly title: string;
  readonly description: string;
  readonly headings: readonly string[];
  /** The first words of the text, as written. */
  readonly excerpt: string;
  /** The whole text as the crawler stemmed it: its lexemes in order, separated by spaces, without stop words. */
  readonly lexemes: string;
  /** The Postgres text search configuration that made them, such as `english`: queries need its stemmer. */
  readonly text_search_config: string;
  /** ISO 639-1. */
  readonly language: string | null;
  /** Where the registries place the host's address, ISO 3166-1. */
  readonly country: string | null;
  readonly content_type: string;
  readonly canonical_url: string | null;
  readonly published_at: string | null;
  readonly modified_at: string | null;
  /** The fetch that brought the text. */
  readonly fetched_at: string;
  /** Who fetched it. */
  readonly crawler: string | null;
  readonly words: number;
  /** Other hosts that link to it, at most 1000, and its PageRank, both as of when the document was written. */
  readonly linking_hosts: number;
  readonly page_rank: number | null;
  /** Pages with nearly the same text share a group; a copy is not its first page. */
  readonly text_group: string | null;
  readonly is_copy: boolean;
  /** The site's statements on the page's use: `ai-train=denied`. */
  readonly uses: readonly string[];
  /**
   * The number of the change feed as of which this was written. After a full export, documents with a lower one are
   * no longer in the index.
   */
  readonly change: number;
}

/** What the target is to do, in order. */
export type Operation =
  | { readonly op: "index"; readonly id: string; readonly version: number; readonly source: string }
  | { readonly op: "delete"; readonly id: string; readonly version: number };

/** A page as the database has it now. `page` is null if there is none, or if the index's own search does not show it. */
export interface PageNow extends UrlAddress {
  readonly page:
    | (Omit<ExportedDocument, "lexemes" | "uses" | "change"> & {
        readonly lexemes: string;
        readonly uses: UseAnswers | null;
      })
    | null;
}

/** Longer texts are cut: the lexemes of some hostile pages take a thousand times their bytes. */
const mostTextCharacters = 1_000_000;

/** 32 hexadecimal digits: the host's hash and the URL's, as `nearcrawl graph export` names them. */
export function documentId({ hostHash, urlHash }: UrlAddress): string {
  return [hostHash, urlHash]
    .map((hash) => BigInt.asUintN(64, BigInt(hash)).toString(16).padStart(16, "0"))
    .join("");
}

/** As of that change. A later change of the page has a higher number and reads the page again. */
export function operationOf({ page, ...key }: PageNow, change: number): Operation {
  const id = documentId(key);
  if (page === null) return { op: "delete", id, version: versionOf(change) };
  const { lexemes, uses, ...facts } = page;
  const document: ExportedDocument = {
    ...facts,
    lexemes: textOf(lexemes),
    uses: Object.entries(uses ?? {}).map(([use, answer]) => `${use}=${answer}`),
    change,
  };
  return { op: "index", id, version: versionOf(change), source: JSON.stringify(document) };
}

/**
 * For what is hidden without a change of its own, such as a site that opts out: sorts after everything written as of
 * `change`.
 */
export function hiding(key: UrlAddress, change: number): Operation {
  return { op: "delete", id: documentId(key), version: versionOf(change) + 1 };
}

/**
 * Two versions per change, starting at 1, because engines have no version 0. Numbers of changes stay below 4.5e15
 * until the year 2100 (journal/epoch), so JavaScript can represent every version, too.
 */
const versionOf = (change: number) => 2 * change + 1;

function textOf(lexemes: string): string {
  const places: (string | undefined)[] = [];
  let left = mostTextCharacters;
  readLexemes(lexemes, (lexeme, place) => {
    if (left < lexeme.length) return;
    left -= lexeme.length + 1;
    const before = places[place];
    places[place] = before === undefined ? lexeme : `${before} ${lexeme}`;
  });
  return places.filter((one) => one !== undefined).join(" ");
}
