/**
 * Texts of pages: in table document, until a search engine that keeps texts has confirmed them (tell/search/export).
 * From then on they are only there. A page and a text belong together if they are of the same fetch.
 */
import type { Pool, PoolClient } from "pg";
import { nameOf, type UrlAddress } from "#core/url-key";
import { columnsOf } from "../../database/transaction.ts";

/** As in table document. */
export interface PageText {
  readonly description: string;
  readonly headings: readonly { readonly level: number; readonly text: string }[];
  readonly structured: { readonly type: string; readonly name: string; readonly description: string } | null;
  /** The main text that may be quoted. */
  readonly text: string;
  /** Main text that is searched and never shown; null if there is none. */
  readonly unquoted: string | null;
  /** How many characters of the text may be shown in one piece; null: no limit. */
  readonly snippetCharacters: number | null;
}

/** A page as of the fetch that brought its text. */
export interface FetchedPage extends UrlAddress {
  readonly fetchedAt: Date;
}

/**
 * Returns the texts in the order of the pages, with null for a page that has none there. Throws if that cannot be found out at
 * the moment, for example because the engine is away.
 */
export type TextsElsewhere = (pages: readonly FetchedPage[]) => Promise<readonly (PageText | null)[]>;

/** Of a page whose text is not there. */
export const noText: PageText = {
  ...{ description: "", headings: [], structured: null, text: "", unquoted: null, snippetCharacters: null },
};

/** For table document `d`. */
export const textColumns = `d.description, d.headings, d.structured, d.text, d.unquoted,
  d.snippet_characters as "snippetCharacters"`;

/** The texts of pages by `nameOf`, from here and from elsewhere. While nobody answers there, they are missing. */
export async function textsOf(
  on: Pool | PoolClient,
  keys: readonly UrlAddress[],
  elsewhere: TextsElsewhere | undefined,
): Promise<Map<string, PageText>> {
  const { rows } = await on.query<FetchedPage & { readonly isHere: boolean } & PageText>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.fetched_at as "fetchedAt",
       d.url_hash is not null as "isHere", ${textColumns}
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     join page p using (host_hash, url_hash)
     left join document d using (host_hash, url_hash)`,
    columnsOf(keys, ["hostHash", "urlHash"]),
  );
  const texts = new Map<string, PageText>(
    rows.filter(({ isHere }) => isHere).map((row) => [nameOf(row), row]),
  );
  const missing = rows.filter(({ isHere }) => !isHere);
  if (missing.length === 0 || elsewhere === undefined) return texts;
  for (const [at, text] of (await elsewhere(missing).catch(() => [])).entries())
    if (text !== null) texts.set(nameOf(missing[at]!), text);
  return texts;
}
