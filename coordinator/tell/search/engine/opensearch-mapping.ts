/**
 * The index that is made for pages if there is none. What is searched are terms, made before they are sent
 * (document-terms.ts), so the engine only splits them at blanks. Fields not named here are stored and not indexed.
 */
import { z } from "zod";
import { ExportError } from "#core/errors";
import { wordsIn } from "#core/words/words";
import type { FetchedPage, PageText } from "../../../crawl/changes/page-text-reads.ts";
import { exportStateSchema } from "../export/export-index.ts";
import { documentId, type ExportedDocument, textOfDocument } from "../export/export-operation.ts";
import { type DocumentTerms, documentTerms, termWeights } from "./document-terms.ts";
import { errorWords } from "./opensearch-http-client.ts";

/** The document with the state of the export that fills the index. */
export const cursorId = "nearcrawl-cursor";

export const keptSchema = z.object({
  nearcrawl_cursor: exportStateSchema,
  /** That of the terms of all its documents, once they have been sent. */
  terms_edition: z.number(),
  /** Whether it has once had all pages. */
  was_complete: z.boolean(),
});

const keyword = { type: "keyword" } as const;
const date = { type: "date" } as const;
/** Beyond the longest term that the engine allows. */
const longKeyword = { type: "keyword", ignore_above: 8000 } as const;
const terms = { type: "text", analyzer: "whitespace" } as const;
/** Kept as sent, and read by its name only. */
const stored = { type: "object", enabled: false } as const;

export const indexBody = {
  settings: {
    // One node is then green, and of several another one has a copy.
    auto_expand_replicas: "0-1",
    // What is sent is found some seconds later, and many documents share the work of it.
    refresh_interval: "5s",
  },
  mappings: {
    dynamic: false,
    // They are made of what is kept. A copy of them would be as large as that.
    _source: { excludes: ["key", "terms", "title_terms", "written", "sites", "date"] },
    properties: {
      ...{ key: keyword, url: longKeyword, host: keyword, sites: keyword },
      ...{ terms, title_terms: terms },
      written: { type: "text", analyzer: "whitespace", index_options: "docs", norms: false },
      ...{ text_search_config: keyword, language: keyword, country: keyword, content_type: keyword },
      canonical_url: longKeyword,
      ...{ date, published_at: date, modified_at: date, fetched_at: date },
      ...{ crawler: keyword, words: { type: "integer" }, linking_hosts: { type: "integer" } },
      ...{ page_rank: { type: "double" }, text_group: keyword, is_copy: { type: "boolean" }, uses: keyword },
      change: { type: "long" },
      nearcrawl_cursor: stored,
    },
  },
} as const;

const termFields = Object.keys(termWeights) as (keyof DocumentTerms)[];

/** A document as the index takes it: what is known of the page, and what it is found by. */
export async function indexedDocument(id: string, document: ExportedDocument): Promise<string> {
  const { host, title, headings, published_at, fetched_at } = document;
  const terms = await documentTerms(document);
  const written = new Set([title, ...headings].flatMap((text) => [...wordsIn(text)].map(({ word }) => word)));
  return JSON.stringify({
    ...document,
    key: id,
    sites: sitesOf(host),
    date: published_at ?? fetched_at,
    // All fields are one to the engine, with a gap between them, so that a word is as rare in each: a field repeats by its weight.
    terms: termFields.flatMap((field) => Array<string>(termWeights[field]).fill(terms[field])),
    title_terms: terms.title,
    written: [...written].join(" "),
  });
}

/** The host and the names that it is below. */
function sitesOf(host: string): string[] {
  const labels = host.split(".");
  return labels.map((_, at) => labels.slice(at).join("."));
}

const textSchema = z.object({
  ...{ description: z.string(), headings: z.array(z.string()), heading_levels: z.array(z.number()) },
  structured: z.object({ type: z.string(), name: z.string(), description: z.string() }).nullable(),
  ...{ text: z.string(), unquoted: z.string().nullable(), snippet_characters: z.number().nullable() },
  fetched_at: z.string(),
});

const textsSchema = z.object({
  docs: z.array(z.object({ _source: textSchema.optional().catch(undefined), error: z.unknown().optional() })),
});

/** So that the answer stays small enough however long the texts are. */
const textsAtOnce = 20;
const textFields = Object.keys(textSchema.shape).join();

/** Texts of the index, if they are of the same fetch: an index that went back has older ones. */
export async function storedTexts(
  pages: readonly FetchedPage[],
  ask: (path: string, body: string) => Promise<unknown>,
): Promise<(PageText | null)[]> {
  const texts: (PageText | null)[] = [];
  for (let at = 0; at < pages.length; at += textsAtOnce) {
    const some = pages.slice(at, at + textsAtOnce);
    const body = JSON.stringify({ ids: some.map(documentId) });
    const { docs } = textsSchema.parse(await ask(`/_mget?_source_includes=${textFields}`, body));
    for (const [place, { fetchedAt }] of some.entries()) {
      const { _source: document, error } = docs[place] ?? { error: "no answer" };
      if (error !== undefined) throw new ExportError(`texts cannot be read: ${errorWords(error)}`);
      const isSame = document !== undefined && Date.parse(document.fetched_at) === fetchedAt.getTime();
      texts.push(isSame ? textOfDocument(document) : null);
    }
  }
  return texts;
}
