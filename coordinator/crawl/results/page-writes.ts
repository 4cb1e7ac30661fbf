/** Table page: what the index has of each URL. */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlAddress, urlKeyOf } from "#core/url-key";
import { columnsOf, rowsGiven } from "../../database/transaction.ts";
import { type CountedResult, indexedPage } from "../batch/accepted-result.ts";
import { type Batch, type PageRow, pageRow, replacesPage } from "../batch/result-rows.ts";
import {
  enterHeirs,
  enterTexts,
  isComparable,
  placesOf,
  removeTexts,
  type TextPlace,
} from "./near-text-store.ts";
import { fallsSilent, writeStatements } from "./stated-uses-store.ts";

/** Replaces pages, and removes those of URLs without one. Returns URLs (by `nameOf`) whose page nearly equals another's. */
export async function writePages(client: PoolClient, batch: Batch): Promise<ReadonlySet<string>> {
  const replaced = batch.results.filter(({ result }) => replacesPage(result.outcome));
  const pages = replaced.flatMap((counted) => {
    const row = pageRow(counted, batch.now);
    return row === null ? [] : [{ counted, row }];
  });
  const silent = batch.results.filter(fallsSilent);
  const texts = await placeTexts(client, { replaced: [...replaced, ...silent], pages });
  await deletePages(
    client,
    replaced.filter(({ result }) => indexedPage(result) === null),
  );
  const rows = pages.map(({ row }) => ({ ...row, ...placeColumns(row, texts) }));
  if (rows.length > 0) await client.query(upsertSql, [batch.crawlerId, ...given.valuesOf(rows)]);
  await writeStatements(client, batch);
  await texts.settle();
  return texts.nearDuplicates;
}

const hashesOf = (results: readonly CountedResult[]) =>
  columnsOf(
    results.map(({ key }) => key),
    ["hostHash", "urlHash"],
  );

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
    hashesOf(withoutPage),
  );
}

const given = rowsGiven(
  `host_hash bigint, url_hash bigint, url text, host text, fetched_at timestamptz, status smallint, content_type text,
   language text, declared_language text, detected_language text, text_search_config text, title text, description text,
   excerpt text, headings jsonb, structured jsonb, published_at timestamptz, modified_at timestamptz, canonical_url text,
   noindex boolean, digest text, simhash text, text_group bigint, duplicate_host_hash bigint, duplicate_url_hash bigint,
   words int, body_bytes int, wire_bytes int, shipped_bytes int, lexemes tsvector, preference_set int,
   preferences_since timestamptz, needs_scripts boolean`,
);

const upsertSql = `insert into page (crawler_id, ${given.names.join(", ")})
  select $1, given.* from ${given.sql(2)}
  on conflict (host_hash, url_hash) do update
    set crawler_id = excluded.crawler_id,
        ${given.names
          .slice(4)
          .map((column) => `${column} = ${written(column)}`)
          .join(", ")}`;

/** An unchanged list of statements keeps its time. */
function written(column: string): string {
  if (column !== "preferences_since") return `excluded.${column}`;
  return `case when page.preference_set = excluded.preference_set then page.preferences_since
          else excluded.preferences_since end`;
}

interface PlacedTexts {
  /** By `nameOf`; texts too short to compare have none. */
  readonly places: ReadonlyMap<string, TextPlace>;
  /** Pages (by `nameOf`) that nearly equal another's. */
  readonly nearDuplicates: ReadonlySet<string>;
  /** Call after the pages are written. */
  settle(): Promise<void>;
}

interface Page {
  readonly counted: CountedResult;
  readonly row: PageRow;
}

/** Call before pages are written. An unchanged text keeps its place without a look-up. */
async function placeTexts(
  client: PoolClient,
  batch: { readonly replaced: readonly CountedResult[]; readonly pages: readonly Page[] },
): Promise<PlacedTexts> {
  const { pages } = batch;
  const before = await textsBefore(client, batch.replaced);
  const places = new Map<string, TextPlace>();
  for (const { row } of pages) {
    const old = before.get(nameOf(row));
    if (old?.simhash !== row.simhash || old.words !== row.words) continue;
    places.set(nameOf(row), old.place);
    before.delete(nameOf(row));
  }
  const ownerless = await removeTexts(client, [...before.values()]);
  const changed = pages.filter(({ row }) => !places.has(nameOf(row)));
  const compared = changed.map(({ row }) => row).filter(isComparable);
  const found = await placesOf(client, compared);
  compared.forEach((row, index) => {
    places.set(nameOf(row), found[index]!);
  });
  const told = await toldPlaces(
    client,
    changed.filter(({ row }) => isFirst(places.get(nameOf(row)))),
  );
  for (const [name, place] of told) places.set(name, place);
  const isDuplicate = ({ row, counted }: Page) =>
    !isFirst(places.get(nameOf(row))) || counted.result.page?.nearDuplicateOf !== undefined;
  return {
    places,
    nearDuplicates: new Set(pages.filter(isDuplicate).map(({ row }) => nameOf(row))),
    async settle() {
      const firsts = compared.flatMap((row) => {
        const place = places.get(nameOf(row))!;
        return isFirst(place) ? [{ ...row, group: place.group }] : [];
      });
      await enterTexts(client, firsts);
      await enterHeirs(client, ownerless);
    },
  };
}

const isFirst = (place: TextPlace | undefined) => (place?.duplicateOf ?? null) === null;

interface TextBefore extends UrlAddress {
  readonly simhash: string;
  readonly words: number;
  readonly place: TextPlace;
}

/** The indexed, comparable texts of these URLs; none without a former visit. */
async function textsBefore(
  client: PoolClient,
  replaced: readonly CountedResult[],
): Promise<Map<string, TextBefore>> {
  const known = replaced.filter(({ before }) => before.visits > 0);
  if (known.length === 0) return new Map();
  const { rows } = await client.query<
    Omit<TextBefore, "place"> & { group: string; ofHost: HostHash | null; ofUrl: UrlHash | null }
  >(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.simhash, p.words, p.text_group as group,
       p.duplicate_host_hash as "ofHost", p.duplicate_url_hash as "ofUrl"
     from page p
     join unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash) using (host_hash, url_hash)
     where p.text_group is not null`,
    hashesOf(known),
  );
  return new Map(
    rows.map(({ group, ofHost, ofUrl, ...text }) => {
      const duplicateOf = ofHost === null || ofUrl === null ? null : { hostHash: ofHost, urlHash: ofUrl };
      return [nameOf(text), { ...text, place: { group, duplicateOf } }];
    }),
  );
}

/** Near-duplicates reported by the crawler, if the index has that page of the same host in a group. */
async function toldPlaces(client: PoolClient, pages: readonly Page[]): Promise<Map<string, TextPlace>> {
  const told = pages.flatMap(({ counted, row }) => {
    const key = urlKeyOf(counted.result.page?.nearDuplicateOf ?? "");
    const isOther = typeof key !== "string" && key.hostHash === row.hostHash && key.urlHash !== row.urlHash;
    return isOther ? [{ name: nameOf(row), key }] : [];
  });
  if (told.length === 0) return new Map();
  const { rows } = await client.query<UrlAddress & { group: string }>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.text_group as group
     from page p
     join unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash) using (host_hash, url_hash)
     where p.text_group is not null`,
    columnsOf(
      told.map(({ key }) => key),
      ["hostHash", "urlHash"],
    ),
  );
  const groups = new Map(rows.map((row) => [nameOf(row), row.group]));
  return new Map(
    told.flatMap(({ name, key }) => {
      const group = groups.get(nameOf(key));
      return group === undefined ? [] : [[name, { group, duplicateOf: key }] as const];
    }),
  );
}
