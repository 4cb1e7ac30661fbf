/** Tables page and document: what the index stores about each URL, and its text. */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlAddress, urlKeyOf } from "#core/url-key";
import { simhashDistance } from "#protocol/result";
import { columnsOf, rowsGiven } from "../../database/transaction.ts";
import { type CountedResult, indexedPage } from "../batch/accepted-result.ts";
import { type Batch, type PageRow, pageRow, replacesPage } from "../batch/result-rows.ts";
import { fallsSilent, writeStatements } from "./stated-uses-store.ts";

/** Replaces pages and removes those of URLs without one. Returns URLs (by `nameOf`) whose page nearly equals another page. */
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
  if (rows.length > 0) {
    await client.query(upsertSql, [batch.crawlerId, ...given.valuesOf(rows)]);
    await client.query(upsertTextSql, givenText.valuesOf(rows));
  }
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
   language text, declared_language text, detected_language text, text_search_config text, title text,
   published_at timestamptz, modified_at timestamptz, canonical_url text,
   noindex boolean, digest text, simhash text, text_group bigint, duplicate_host_hash bigint, duplicate_url_hash bigint,
   words int, body_bytes int, wire_bytes int, shipped_bytes int, preference_set int, preferences_since timestamptz, needs_scripts boolean`,
);

const upsertSql = `insert into page (crawler_id, ${given.names.join(", ")})
  select $1, given.* from ${given.sql(2)}
  on conflict (host_hash, url_hash) do update
    set crawler_id = excluded.crawler_id,
        ${given.names
          .slice(4)
          .map((column) => `${column} = ${written(column)}`)
          .join(", ")}`;

const givenText = rowsGiven(
  `host_hash bigint, url_hash bigint, description text, headings jsonb, structured jsonb, text text, unquoted text,
   snippet_characters int`,
);

const textColumns = (row: string) => givenText.names.map((column) => `${row}.${column}`).join(", ");

/** Most changes of a page leave its main text as it was, which is then not written again. */
const upsertTextSql = `insert into document (${givenText.names.join(", ")})
  select * from ${givenText.sql()}
  on conflict (host_hash, url_hash) do update
    set ${givenText.names
      .slice(2)
      .map((column) => `${column} = excluded.${column}`)
      .join(", ")}
    where (${textColumns("document")}) is distinct from (${textColumns("excluded")})`;

/** If the list of statements is unchanged, keeps its time. */
function written(column: string): string {
  if (column !== "preferences_since") return `excluded.${column}`;
  return `case when page.preference_set = excluded.preference_set then page.preferences_since
          else excluded.preferences_since end`;
}

interface PlacedTexts {
  /** Keyed by `nameOf`. Texts too short to compare have no entry. */
  readonly places: ReadonlyMap<string, TextPlace>;
  /** Pages, by `nameOf`, that nearly equal another page. */
  readonly nearDuplicates: ReadonlySet<string>;
  /** Call it after the pages are written. */
  settle(): Promise<void>;
}

interface Page {
  readonly counted: CountedResult;
  readonly row: PageRow;
}

/** Call it before pages are written. An unchanged text stays in its group without a look-up. */
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

/** Returns these URLs' texts in the index that can be compared. A URL without an earlier visit has none. */
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

/** Returns near-duplicates that crawlers reported, if that page is of the same host and in a group of the index. */
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

// Finds near-duplicates on any host. 64-bit simhashes that differ in at most three bits (Manku, Jain and Das Sarma
// 2007, section 3) share at least one of four 16-bit bands, so table text_band is searched for the four bands of a
// new page, among texts of similar length. It has one page per group, so a text that occurs a million times costs no
// more than one that occurs once. The entries checked per band and length are limited, so that floods do no harm.
// With evenly distributed simhashes nothing is missed below four million texts of similar length.

/** Minimum words of a text to compare; a simhash cannot distinguish shorter ones. */
const fewestWordsCompared = 50;
const mostBitsApart = 3;
const entriesPerBand = 64;
/** Near-duplicates have similar lengths: the shorter one has at least this share of the longer one's words. */
const leastShareOfWords = 0.8;

export interface Text extends UrlAddress {
  /** The simhash as 16 hex digits. */
  readonly simhash: string;
  readonly words: number;
}

/** A text's group and the page that had the text first; null if this page was the first. */
export interface TextPlace {
  readonly group: string;
  readonly duplicateOf: UrlAddress | null;
}

export function isComparable(text: Pick<Text, "simhash" | "words">): boolean {
  return text.words >= fewestWordsCompared && !/^0*$/.test(text.simhash);
}

/** Returns the groups of comparable texts. Within `texts`, an earlier text counts as first. */
export async function placesOf(client: PoolClient, texts: readonly Text[]): Promise<TextPlace[]> {
  const stored = await storedMatches(client, texts);
  const fresh = new Map<number, FreshText[]>();
  return texts.map((text, index) => {
    const found = stored.get(index) ?? freshMatch(text, fresh);
    if (found) return found;
    const place = { group: groupOf(text), duplicateOf: null };
    for (const band of bandsOf(text)) {
      const sameBand = fresh.get(band) ?? [];
      if (sameBand.length < entriesPerBand) fresh.set(band, [...sameBand, { text, group: place.group }]);
    }
    return place;
  });
}

interface FreshText {
  readonly text: Text;
  readonly group: string;
}

function freshMatch(text: Text, fresh: ReadonlyMap<number, readonly FreshText[]>): TextPlace | null {
  for (const band of nearBandsOf(text)) {
    const same = fresh.get(band)?.find((one) => isNear(one.text, text));
    if (same) {
      const { hostHash, urlHash } = same.text;
      return { group: same.group, duplicateOf: { hostHash, urlHash } };
    }
  }
  return null;
}

/** Returns the entry nearest to each text, and among equally near ones that with the smaller key. */
async function storedMatches(client: PoolClient, texts: readonly Text[]): Promise<Map<number, TextPlace>> {
  if (texts.length === 0) return new Map();
  const { rows } = await client.query<UrlAddress & { ordinal: number; group: string }>(
    `select distinct on (given.ordinal) given.ordinal, found.host_hash as "hostHash", found.url_hash as "urlHash",
       found.text_group as group
     from unnest($1::int[], $2::int[], $3::bigint[], $4::int[], $5::bigint[], $6::bigint[])
       as given (ordinal, band, simhash, words, host_hash, url_hash)
     cross join lateral (
       select b.host_hash, b.url_hash, b.text_group, b.words, bit_count((b.simhash # given.simhash)::bit(64)) as apart
       from text_band b
       where b.band = given.band
       limit ${entriesPerBand}
     ) found
     where found.apart <= ${mostBitsApart}
       and least(found.words, given.words) >= ${leastShareOfWords} * greatest(found.words, given.words)
       and (found.host_hash, found.url_hash) <> (given.host_hash, given.url_hash)
     order by given.ordinal, found.apart, found.host_hash, found.url_hash`,
    columnsOf(
      texts.flatMap((text, ordinal) => rowsOf(text, ordinal, nearBandsOf(text))),
      ["ordinal", "band", "simhash", "words", "hostHash", "urlHash"],
    ),
  );
  return new Map(rows.map(({ ordinal, group, ...duplicateOf }) => [ordinal, { group, duplicateOf }]));
}

/** Inserts each text that is the first of its group. */
async function enterTexts(
  client: PoolClient,
  texts: readonly (Text & { readonly group: string })[],
): Promise<void> {
  if (texts.length === 0) return;
  await client.query(
    `insert into text_band (band, host_hash, url_hash, simhash, words, text_group)
     select * from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[])
     on conflict (band, host_hash, url_hash) do update
       set simhash = excluded.simhash, words = excluded.words, text_group = excluded.text_group`,
    columnsOf(
      texts.flatMap((text, index) => bandRows(text, index).map((row) => ({ ...row, group: text.group }))),
      ["band", "hostHash", "urlHash", "simhash", "words", "group"],
    ),
  );
}

/** Removes texts that pages no longer have. Returns the groups left without an entry. */
export async function removeTexts(client: PoolClient, texts: readonly Text[]): Promise<string[]> {
  if (texts.length === 0) return [];
  const { rows } = await client.query<{ text_group: string }>(
    `delete from text_band b
     using unnest($1::int[], $2::bigint[], $3::bigint[]) as given (band, host_hash, url_hash)
     where b.band = given.band and b.host_hash = given.host_hash and b.url_hash = given.url_hash
     returning b.text_group`,
    columnsOf(texts.flatMap(bandRows), ["band", "hostHash", "urlHash"]),
  );
  return [...new Set(rows.map((row) => row.text_group))];
}

/** Chooses another page as the entry of each group. Call it after the pages are written. */
export async function enterHeirs(client: PoolClient, groups: readonly string[]): Promise<void> {
  if (groups.length === 0) return;
  const { rows } = await client.query<Text & { readonly group: string }>(
    `select heir.*, given.text_group as "group"
     from unnest($1::bigint[]) as given (text_group)
     cross join lateral (
       select p.host_hash as "hostHash", p.url_hash as "urlHash", p.simhash, p.words
       from page p
       where p.text_group = given.text_group and p.duplicate_url_hash is not null
       limit 1
     ) heir`,
    [groups],
  );
  await enterTexts(client, rows);
}

function bandRows(text: Text, ordinal: number) {
  return rowsOf(text, ordinal, bandsOf(text));
}

function rowsOf(text: Text, ordinal: number, bands: readonly number[]) {
  const { hostHash, urlHash, words } = text;
  const simhash = signed(BigInt(`0x${text.simhash}`));
  return bands.map((band) => ({ ordinal, band, simhash, words, hostHash, urlHash }));
}

/** Packs length, band number and the band's bits into an integer of 7, 2 and 16 bits. */
function bandsOf({ simhash, words }: Pick<Text, "simhash" | "words">, longer = 0): number[] {
  const length = lengthOf(words) + longer;
  return [0, 1, 2, 3].map((number) => {
    const bits = Number.parseInt(simhash.slice(4 * number, 4 * number + 4), 16);
    return (length * 4 + number) * 65_536 + bits;
  });
}

/** The bands for the text's own length class and the adjacent ones, which cover all similar lengths. */
function nearBandsOf(text: Text): number[] {
  return [-1, 0, 1].flatMap((longer) => bandsOf(text, longer));
}

/** The length class, 0 to 97. Lengths within `leastShareOfWords` of each other are in the same or adjacent classes. */
function lengthOf(words: number): number {
  return 1 + Math.floor(Math.log(words) / -Math.log(leastShareOfWords));
}

function isNear(a: Text, b: Text): boolean {
  const long = Math.max(a.words, b.words);
  if (Math.min(a.words, b.words) < leastShareOfWords * long) return false;
  return simhashDistance(a.simhash, b.simhash) <= mostBitsApart;
}

/** Computes a group number from the page and its text, unique for practical purposes (collisions 1 in 2^64). */
function groupOf(text: Text): string {
  return signed(BigInt(`0x${text.simhash}`) ^ BigInt.asUintN(64, BigInt(text.urlHash)));
}

/** Converts 64 bits to Postgres' signed bigint. */
function signed(bits: bigint): string {
  return BigInt.asIntN(64, bits).toString();
}
