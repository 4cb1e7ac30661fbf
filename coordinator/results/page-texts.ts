/** Which of a batch's pages have nearly the text of another, and what that changes for the pages they replace. */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { UrlAddress } from "../frontier/admission-writes.ts";
import type { CountedResult } from "./arrived-result.ts";
import {
  enterHeirs,
  enterTexts,
  isComparable,
  placesOf,
  removeTexts,
  type TextPlace,
} from "./near-text-store.ts";
import type { PageRow } from "./result-rows.ts";

export interface PlacedTexts {
  /** By `nameOf`; pages whose text is too short to be compared have none. */
  readonly places: ReadonlyMap<string, TextPlace>;
  /** Pages (by `nameOf`) with nearly the text of another. */
  readonly nearDuplicates: ReadonlySet<string>;
  /** To be called when the pages are written. */
  settle(): Promise<void>;
}

export function nameOf({ hostHash, urlHash }: UrlAddress): string {
  return `${hostHash}/${urlHash}`;
}

interface Page {
  readonly counted: CountedResult;
  readonly row: PageRow;
}

/** Before the pages are written. A page whose text is as it was stays where it is, without a look-up. */
export async function placeTexts(
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

/** The compared texts that the index has of these URLs. A URL without a visit has none. */
async function textsBefore(
  client: PoolClient,
  replaced: readonly CountedResult[],
): Promise<Map<string, TextBefore>> {
  const known = replaced.filter(({ before }) => before.visits > 0).map(({ key }) => key);
  if (known.length === 0) return new Map();
  const { rows } = await client.query<{
    host_hash: HostHash;
    url_hash: UrlHash;
    simhash: string;
    words: number;
    text_group: string;
    duplicate_host_hash: HostHash | null;
    duplicate_url_hash: UrlHash | null;
  }>(
    `select p.host_hash, p.url_hash, p.simhash, p.words, p.text_group, p.duplicate_host_hash, p.duplicate_url_hash
     from page p
     join unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash) using (host_hash, url_hash)
     where p.text_group is not null`,
    [known.map((key) => key.hostHash), known.map((key) => key.urlHash)],
  );
  return new Map(
    rows.map(({ host_hash: hostHash, url_hash: urlHash, ...row }) => {
      const { duplicate_host_hash: ofHost, duplicate_url_hash: ofUrl } = row;
      const duplicateOf = ofHost === null || ofUrl === null ? null : { hostHash: ofHost, urlHash: ofUrl };
      const place = { group: row.text_group, duplicateOf };
      const text = { hostHash, urlHash, simhash: row.simhash, words: row.words, place };
      return [nameOf(text), text];
    }),
  );
}

/** What their crawler says they nearly equal: a page of the same host, where the index has it in a group. */
async function toldPlaces(client: PoolClient, pages: readonly Page[]): Promise<Map<string, TextPlace>> {
  const told = pages.flatMap(({ counted, row }) => {
    const key = urlKeyOf(counted.result.page?.nearDuplicateOf ?? "");
    const isOther = typeof key !== "string" && key.hostHash === row.hostHash && key.urlHash !== row.urlHash;
    return isOther ? [{ name: nameOf(row), key }] : [];
  });
  if (told.length === 0) return new Map();
  const { rows } = await client.query<{ host_hash: HostHash; url_hash: UrlHash; text_group: string }>(
    `select p.host_hash, p.url_hash, p.text_group
     from page p
     join unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash) using (host_hash, url_hash)
     where p.text_group is not null`,
    [told.map(({ key }) => key.hostHash), told.map(({ key }) => key.urlHash)],
  );
  const groups = new Map(
    rows.map((row) => [nameOf({ hostHash: row.host_hash, urlHash: row.url_hash }), row.text_group]),
  );
  return new Map(
    told.flatMap(({ name, key }) => {
      const group = groups.get(nameOf(key));
      return group === undefined ? [] : [[name, { group, duplicateOf: key }] as const];
    }),
  );
}
