/**
 * The position of a subnet for delegation: the keys under which past delegations are counted. Keys are opaque (subnet
 * ids in the coordinator, path names in the simulator), so the same policies run on both.
 *
 *   root ─ /8 ─ ancestor ─ … ─ ancestor ─ the subnet        and beside them: its holder, its country
 *
 * The "/8" of an IPv4 address is its first octet; for IPv6 it is the first 16 bits, since registries hold IPv6 in
 * blocks of about that size (2001::/16, 2600::/12 …).
 */
import type { SubnetId } from "#core/ids";
import { formatRange } from "#core/ip/range";
import { nothingPublished, type PublishedRanges, type PublishedWord } from "../subnets/published-ranges.ts";
import { type RangeTable, rangeOfPlace, topBit } from "../subnets/range-table.ts";
import { countryOf } from "../subnets/subnet.ts";
import { noId, type TreeColumns } from "../subnets/tree-columns.ts";

export type PlaceKey = string | number;

/** Labels are less than this (`subnet.ts`). */
const labelCount = 2 ** 12;

export interface Placement {
  readonly subnetKey: PlaceKey;
  readonly holderKey: PlaceKey | null;
  /** Less specific subnets below the /8 level, nearest first. */
  readonly ancestorKeys: readonly PlaceKey[];
  /** Less specific subnets at or above the /8 level, nearest first. Only `ipmicra` climbs so far. */
  readonly widerKeys?: readonly PlaceKey[];
  readonly country: string | null;
  readonly slash8Key: PlaceKey;
  /** The published location of the range, one per source. */
  readonly published?: readonly PublishedPlace[];
  /** The entry in a cloud's or CDN's list. Its ranges may be announced from many places. */
  readonly listed?: ListedRange;
}

export interface ListedRange {
  readonly source: string;
  /** "aws eu-central-1", or without a place "cloudflare 104.16.0.0/13". Findings apply to all of it. */
  readonly place: string;
  /** True if the list names no place for the range. */
  readonly isEverywhere: boolean;
}

/** One source's location of a range (RFC 8805, or a cloud's list by region). Both texts are displayed. */
export interface PublishedPlace {
  /** For example "geofeed https://example.net/geofeed.csv" or "aws". */
  readonly source: string;
  /** For example "aws eu-central-1" or "GR-I Athens". Equal texts are one place, whichever source names it. */
  readonly place: string;
}

/** Returns null when the tree does not contain the subnet. */
export function placementOf(
  { columns }: { readonly columns: TreeColumns },
  subnetId: SubnetId,
  published: PublishedRanges = nothingPublished,
): Placement | null {
  const place = columns.byId.firstRow(subnetId);
  if (place < 0) return null;
  const holderId = columns.holderIds[place] as number;
  const isIpv4 = place < columns.ipv6Base;
  const words = published.count === 0 ? [] : published.of(rangeOf(columns, place));
  const places = publishedPlaces(words);
  const listed = listedRange(words);
  const table = isIpv4 ? columns.ipv4 : columns.ipv6;
  const at = isIpv4 ? place : place - columns.ipv6Base;
  const above = aboveOf(table, at, isIpv4 ? columns.ids : columns.ids.subarray(columns.ipv6Base));
  return {
    subnetKey: subnetId,
    holderKey: holderId === noId ? null : holderId,
    ancestorKeys: above.ancestorKeys,
    widerKeys: above.widerKeys,
    country: countries[columns.labels[place] as number] ?? null,
    slash8Key: slash8Of(table, at),
    ...(places.length > 0 && { published: places }),
    ...(listed !== null && { listed }),
  };
}

function publishedPlaces(words: readonly PublishedWord[]): readonly PublishedPlace[] {
  return words.flatMap(({ list, place }) => (place === null ? [] : { source: list.source, place }));
}

/** In a geofeed, a range without a place only means that its holder states none. */
function listedRange(words: readonly PublishedWord[]): ListedRange | null {
  const listed = words.filter(({ list }) => list.kind !== "geofeed");
  const word = listed.find(({ place }) => place === null) ?? listed[0];
  if (word === undefined) return null;
  const { source } = word.list;
  const isEverywhere = word.place === null;
  return { source, place: word.place ?? `${source} ${formatRange(word.range)}`, isEverywhere };
}

function rangeOf({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number) {
  return place < ipv6Base ? rangeOfPlace(ipv4, place) : rangeOfPlace(ipv6, place - ipv6Base);
}

/** Indexed by label and cached, because every decision needs a placement. */
const countries = Array.from({ length: labelCount }, (_, label) => countryOf(label));

/** The /8 of the range's first address, 0 to 255. For IPv6 its /16, 256 and up. */
function slash8Of({ firsts, words }: RangeTable, place: number): number {
  const word = (firsts[words * place] as number) ^ topBit;
  return words === 1 ? word >>> 24 : 256 + (word >>> 16);
}

function aboveOf(
  table: RangeTable,
  place: number,
  ids: Int32Array,
): Required<Pick<Placement, "ancestorKeys" | "widerKeys">> {
  const { parents } = table;
  const ancestorKeys: number[] = [];
  const widerKeys: number[] = [];
  for (let at = parents[place] as number; at >= 0; at = parents[at] as number)
    (isWide(table, at) ? widerKeys : ancestorKeys).push(ids[at] as number);
  return { ancestorKeys, widerKeys };
}

/** True for ranges about as wide as the /8 level or wider, judged by the first word. The /8 level and the root represent them. */
function isWide({ firsts, lasts, words }: RangeTable, place: number): boolean {
  const width = (lasts[words * place] as number) - (firsts[words * place] as number);
  return width >= (words === 1 ? 2 ** 24 : 2 ** 16) - 1;
}
