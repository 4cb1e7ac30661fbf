/** The terms of a page by field, as both engines index them. */
import { type Stemming, stemmingOf, termText } from "#core/words/words";
import type { ExportedDocument } from "../export/export-operation.ts";

/** The fields of a page that are searched. Each holds terms with a blank between them. */
export interface DocumentTerms {
  readonly title: string;
  /** Also the description. */
  readonly headings: string;
  readonly anchors: string;
  readonly address: string;
  /** Also what may be found and not shown. */
  readonly text: string;
}

/** How many times a term counts in the score for each that it is in a field: whole numbers, at least 1. */
export const termWeights: Readonly<Record<keyof DocumentTerms, number>> = {
  ...{ title: 4, headings: 2, anchors: 2, address: 1, text: 1 },
};

/** Increases when the terms of the same page change, so that engines index all pages again. */
export const termsEdition = 1;

export async function documentTerms(document: ExportedDocument): Promise<DocumentTerms> {
  const { title, description, headings, anchors, url, text, unquoted } = document;
  const stemming = await stemmingOf(document.text_search_config);
  return {
    title: termText(title, stemming),
    headings: terms([...headings, description], stemming),
    anchors: terms(anchors, stemming),
    address: termText(addressWords(url), stemming),
    text: terms([text, unquoted ?? ""], stemming),
  };
}

const terms = (texts: readonly string[], stemming: Stemming) => termText(texts.join("\n"), stemming);

const addressCharacters = 500;

/** The host, the path and the query as people read them. */
function addressWords(url: string): string {
  const address = url.replace(/^\w+:\/\//, "").slice(0, addressCharacters);
  try {
    return decodeURIComponent(address);
  } catch {
    return address;
  }
}
