/** Table page: what the index has of each URL. */
import type { PoolClient } from "pg";
import { columnsOf } from "../database/transaction.ts";
import { type CountedResult, indexedPage } from "./arrived-result.ts";
import { nameOf, type PlacedTexts, placeTexts } from "./page-texts.ts";
import { type PageRow, pageRow, replacesPage } from "./result-rows.ts";
import type { Batch } from "./result-writes.ts";

/**
 * New pages in place of the old; and the old ones go where the URL has no page any more. Gives the URLs (by
 * `nameOf`) whose page has nearly the text of another.
 */
export async function writePages(client: PoolClient, batch: Batch): Promise<ReadonlySet<string>> {
  const replaced = batch.results.filter(({ result }) => replacesPage(result.outcome));
  const pages = replaced.flatMap((counted) => {
    const row = pageRow(counted, batch.now);
    return row === null ? [] : [{ counted, row }];
  });
  const texts = await placeTexts(client, { replaced, pages });
  await deletePages(
    client,
    replaced.filter(({ result }) => indexedPage(result) === null),
  );
  await upsertPages(
    client,
    batch,
    pages.map(({ row }) => ({ ...row, ...placeColumns(row, texts) })),
  );
  await texts.settle();
  return texts.nearDuplicates;
}

function placeColumns(row: PageRow, texts: PlacedTexts) {
  const place = texts.places.get(nameOf(row));
  return {
    textGroup: place?.group ?? null,
    duplicateHostHash: place?.duplicateOf?.hostHash ?? null,
    duplicateUrlHash: place?.duplicateOf?.urlHash ?? null,
  };
}

async function deletePages(client: PoolClient, withoutPage: readonly CountedResult[]): Promise<void> {
  if (withoutPage.length === 0) return;
  await client.query(
    `delete from page p
     using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash`,
    [withoutPage.map(({ key }) => key.hostHash), withoutPage.map(({ key }) => key.urlHash)],
  );
}

/** Name of the row's field, column and its type. */
const columns = [
  ["hostHash", "host_hash", "bigint"],
  ["urlHash", "url_hash", "bigint"],
  ["url", "url", "text"],
  ["host", "host", "text"],
  ["fetchedAt", "fetched_at", "timestamptz"],
  ["status", "status", "smallint"],
  ["contentType", "content_type", "text"],
  ["language", "language", "text"],
  ["declaredLanguage", "declared_language", "text"],
  ["detectedLanguage", "detected_language", "text"],
  ["textSearchConfig", "text_search_config", "text"],
  ["title", "title", "text"],
  ["description", "description", "text"],
  ["excerpt", "excerpt", "text"],
  ["headings", "headings", "jsonb"],
  ["structured", "structured", "jsonb"],
  ["publishedAt", "published_at", "timestamptz"],
  ["modifiedAt", "modified_at", "timestamptz"],
  ["canonicalUrl", "canonical_url", "text"],
  ["noindex", "noindex", "boolean"],
  ["digest", "digest", "text"],
  ["simhash", "simhash", "text"],
  ["textGroup", "text_group", "bigint"],
  ["duplicateHostHash", "duplicate_host_hash", "bigint"],
  ["duplicateUrlHash", "duplicate_url_hash", "bigint"],
  ["words", "words", "int"],
  ["bodyBytes", "body_bytes", "int"],
  ["wireBytes", "wire_bytes", "int"],
  ["shippedBytes", "shipped_bytes", "int"],
  ["lexemes", "lexemes", "tsvector"],
] as const;

const names = columns.map(([, column]) => column);
const upsertSql = `insert into page (crawler_id, ${names.join(", ")})
  select $1, given.*
  from unnest(${columns.map(([, , type], index) => `$${index + 2}::${type}[]`).join(", ")}) as given
  on conflict (host_hash, url_hash) do update
    set crawler_id = excluded.crawler_id,
        ${names
          .slice(4)
          .map((column) => `${column} = excluded.${column}`)
          .join(", ")}`;

async function upsertPages(
  client: PoolClient,
  { crawlerId }: Batch,
  rows: readonly (PageRow & ReturnType<typeof placeColumns>)[],
): Promise<void> {
  if (rows.length === 0) return;
  await client.query(upsertSql, [
    crawlerId,
    ...columnsOf(
      rows,
      columns.map(([field]) => field),
    ),
  ]);
}
