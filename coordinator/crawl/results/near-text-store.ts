/**
 * Texts that are nearly the same, on any host: 64-bit simhashes that differ in at most three bits (Manku, Jain and
 * Das Sarma 2007, section 3). Two such have at least one of four bands of 16 bits in common, so the table text_band
 * is looked up by the four bands of a new page, among texts of about its length. It holds one page of each group
 * of near-duplicates: a text that is on the web a million times costs as much as one that is there once.
 *
 * Of one band and length so many entries are looked at and no more, whatever the web (or somebody who floods it)
 * puts there; where simhashes are spread evenly, that misses nothing below four million texts of about one length.
 */

import type { PoolClient } from "pg";
import type { UrlAddress } from "#core/url-key";
import { simhashDistance } from "#protocol/result";
import { columnsOf } from "../../database/transaction.ts";

/** A simhash cannot distinguish shorter texts. */
const fewestWordsCompared = 50;
const mostBitsApart = 3;
const entriesPerBand = 64;
/** Near-duplicates have similar lengths: the shorter has at least this share of the longer one's words. */
const leastShareOfWords = 0.8;

export interface Text extends UrlAddress {
  /** 16 hex digits. */
  readonly simhash: string;
  readonly words: number;
}

/** A text's group and the page that had it first; null for the first. */
export interface TextPlace {
  readonly group: string;
  readonly duplicateOf: UrlAddress | null;
}

export function isComparable(text: Pick<Text, "simhash" | "words">): boolean {
  return text.words >= fewestWordsCompared && !/^0*$/.test(text.simhash);
}

/** Places of comparable texts in order; among them, the earlier counts as first. */
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

/** The nearest entry for each text, on ties the one with the smaller key. */
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

/** Inserts the first texts of their groups. */
export async function enterTexts(
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

/** Removes texts that pages no longer have; returns groups left without an entry. */
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

/** Chooses another page to represent each group. Call after the pages are written. */
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

/** Length, band number and its 16 bits in one integer: 7, 2 and 16 bits. */
function bandsOf({ simhash, words }: Pick<Text, "simhash" | "words">, longer = 0): number[] {
  const length = lengthOf(words) + longer;
  return [0, 1, 2, 3].map((number) => {
    const bits = Number.parseInt(simhash.slice(4 * number, 4 * number + 4), 16);
    return (length * 4 + number) * 65_536 + bits;
  });
}

/** The bands of its own and the adjacent lengths, which cover all similar lengths. */
function nearBandsOf(text: Text): number[] {
  return [-1, 0, 1].flatMap((longer) => bandsOf(text, longer));
}

/** Lengths within `leastShareOfWords` fall into the same or adjacent classes, 0 to 97. */
function lengthOf(words: number): number {
  return 1 + Math.floor(Math.log(words) / -Math.log(leastShareOfWords));
}

function isNear(a: Text, b: Text): boolean {
  const long = Math.max(a.words, b.words);
  if (Math.min(a.words, b.words) < leastShareOfWords * long) return false;
  return simhashDistance(a.simhash, b.simhash) <= mostBitsApart;
}

/** A practically unique number (collisions 1 in 2^64) from the page and its text. */
function groupOf(text: Text): string {
  return signed(BigInt(`0x${text.simhash}`) ^ BigInt.asUintN(64, BigInt(text.urlHash)));
}

/** As Postgres' bigint. */
function signed(bits: bigint): string {
  return BigInt.asIntN(64, bits).toString();
}
