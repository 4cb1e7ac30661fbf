/**
 * A page as an operator's search engine gets it: one document per page, its id made of the page's hashes, its version
 * of the change feed's number, so that a target that gets the same document twice or late still ends with the latest.
 */
import type { HostHash, UrlHash } from "#core/ids";
import type { UrlAddress } from "#core/url-key";
import type { UseAnswers } from "#protocol/preferences";
import type { PageText } from "../../../crawl/changes/page-text-reads.ts";

/** The contents of one document. What a page does not state is null. */
export interface ExportedDocument {
  readonly url: string;
  readonly host: string;
  readonly title: string;
  readonly description: string;
  readonly headings: readonly string[];
  /** Of each heading: 1 to 6. */
  readonly heading_levels: readonly number[];
  /** What the page says that it describes, as schema.org names it. */
  readonly structured: PageText["structured"];
  /** The main text as written, blocks separated by line breaks. */
  readonly text: string;
  /** Main text that is searched, and that the site does not want to be shown; null if there is none. */
  readonly unquoted: string | null;
  /** How many characters of the text may be shown in one piece; null: no limit. */
  readonly snippet_characters: number | null;
  /** The text search configuration of the text, such as `english`, which names the stemmer of its words. */
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
  /** What links from other hosts call it, one of each host, the most frequent first: at most 20, of 200 characters. */
  readonly anchors: readonly string[];
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
  | {
      readonly op: "index";
      readonly id: string;
      readonly version: number;
      readonly document: ExportedDocument;
    }
  | { readonly op: "delete"; readonly id: string; readonly version: number };

type TextFields = "description" | "headings" | "heading_levels" | "structured" | "text" | "unquoted";

/** A page as the database has it now. */
export interface PageNow extends UrlAddress {
  /** Null if there is none, or if the index's own search does not show it. */
  readonly page:
    | (Omit<ExportedDocument, TextFields | "snippet_characters" | "uses" | "change"> & {
        readonly uses: UseAnswers | null;
      })
    | null;
  /** Null: the database does not have it. */
  readonly text: PageText | null;
}

/** 32 hexadecimal digits: the host's hash and the URL's, as `nearcrawl graph export` names them. */
export function documentId({ hostHash, urlHash }: UrlAddress): string {
  return [hostHash, urlHash]
    .map((hash) => BigInt.asUintN(64, BigInt(hash)).toString(16).padStart(16, "0"))
    .join("");
}

export function keyOfDocument(id: string): UrlAddress {
  const hash = (from: number) => BigInt.asIntN(64, BigInt(`0x${id.slice(from, from + 16)}`)).toString();
  return { hostHash: hash(0) as HostHash, urlHash: hash(16) as UrlHash };
}

/** As of that change. A later change of the page has a higher number and reads the page again. */
export function operationOf({ page, text, ...key }: PageNow, change: number): Operation {
  const id = documentId(key);
  if (page === null || text === null) return { op: "delete", id, version: versionOf(change) };
  const uses = Object.entries(page.uses ?? {}).map(([use, answer]) => `${use}=${answer}`);
  const { headings, snippetCharacters, description, structured, text: main, unquoted } = text;
  const texts = {
    ...{ description, structured, text: main, unquoted, snippet_characters: snippetCharacters },
    headings: headings.map((heading) => heading.text),
    heading_levels: headings.map(({ level }) => level),
  };
  return { op: "index", id, version: versionOf(change), document: { ...page, ...texts, uses, change } };
}

/** The text of a document that was fetched then. */
export function textOfDocument(
  document: Pick<ExportedDocument, TextFields | "snippet_characters">,
): PageText {
  const { description, structured, text, unquoted, snippet_characters: snippetCharacters } = document;
  const headings = document.headings.map((heading, at) => ({
    ...{ level: document.heading_levels[at]!, text: heading },
  }));
  return { description, structured, text, unquoted, snippetCharacters, headings };
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
