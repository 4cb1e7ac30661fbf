/**
 * The arrays behind the subnet tree, built from the rows: the sorted ranges of each family, and the other facts about a
 * subnet by its place in the tree, IPv4 before IPv6.
 */

import { formatRange, type IpRange } from "#core/ip/range";
import { GrowingColumn, TextPool } from "#core/text-pool";
import { type Nesting, nest } from "./nest.ts";
import {
  columnsOf,
  compareWords,
  GrowingRanges,
  type RangeColumns,
  rangeAt,
  reordered,
  sortedOrder,
} from "./range-columns.ts";
import { type RangeTable, rangeTable } from "./range-table.ts";
import { packLabel, type Registry } from "./subnet.ts";

export interface TreeColumns {
  readonly ipv4: RangeTable;
  readonly ipv6: RangeTable;
  /** Number of IPv4 places, which is the place of the first IPv6 subnet. */
  readonly ipv6Base: number;
  readonly ids: Int32Array;
  readonly byId: IdIndex;
  /** `noId` for none. */
  readonly holderIds: Int32Array;
  /** Country and registry, packed as in `subnet.ts`. */
  readonly labels: Uint16Array;
  readonly nameIds: Int32Array;
  readonly names: TextPool;
}

/** Throws a RangeError that names the subnet if the rows form no tree. */
export function layOutColumns(rows: SubnetRows): TreeColumns {
  const ipv4 = nestRanges(rows.ipv4.ranges());
  const ipv6 = nestRanges(rows.ipv6.ranges());
  const both = (pick: (family: FamilyRows) => Int32Array) =>
    joined({ ipv4: pick(rows.ipv4), ipv6: pick(rows.ipv6) }, { ipv4, ipv6 }, Int32Array);
  const ids = both((family) => family.ids.values());
  const byId = indexIds(ids);
  const { text, ends } = rows.names.parts();
  const labels = { ipv4: rows.ipv4.labels.values(), ipv6: rows.ipv6.labels.values() };
  return {
    ipv4: rangeTable(ipv4.columns, ipv4.nesting),
    ipv6: rangeTable(ipv6.columns, ipv6.nesting),
    ipv6Base: ipv4.columns.count,
    ids,
    byId,
    holderIds: both((family) => family.holderIds.values()),
    labels: joined(labels, { ipv4, ipv6 }, Uint16Array),
    nameIds: both((family) => family.nameIds.values()),
    // Drops the tables that the pool needs only while it grows.
    names: TextPool.from({ text: text.slice(), ends }),
  };
}

interface NestedRanges {
  readonly columns: RangeColumns;
  /** The arrival index of each place's range. */
  readonly arrivedAt: Int32Array;
  readonly nesting: Nesting;
}

/** Throws a RangeError that names a duplicate range. */
export function nestRanges(arrived: RangeColumns): NestedRanges {
  const arrivedAt = sortedOrder(arrived);
  const columns = reordered(arrived, arrivedAt);
  const nesting = nest(columns);
  const [twice] = nesting.duplicates;
  if (twice) throw new RangeError(`the range ${formatRange(rangeAt(columns, twice.index))} appears twice`);
  return { columns, arrivedAt, nesting };
}

/** Joins a column of both families and sorts it by place. */
function joined<Values extends Int32Array | Uint16Array>(
  values: { readonly ipv4: Values; readonly ipv6: Values },
  { ipv4, ipv6 }: { readonly ipv4: NestedRanges; readonly ipv6: NestedRanges },
  kind: new (length: number) => Values,
): Values {
  const base = ipv4.columns.count;
  const all = new kind(base + ipv6.columns.count);
  for (let place = 0; place < base; place += 1)
    all[place] = values.ipv4[ipv4.arrivedAt[place] as number] as number;
  for (let place = 0; place < ipv6.columns.count; place += 1)
    all[base + place] = values.ipv6[ipv6.arrivedAt[place] as number] as number;
  return all;
}

/**
 * Maps ids to rows (in the tree, to places). Ids come from a database sequence and are nearly dense, so it is an array by id.
 * If the ids are sparse, it is the rows sorted by id.
 */

interface IdIndex {
  firstRow(id: number): number;
}

/** Maximum array entries per id before sorted rows are used instead. */
const entriesPerId = 4;

const alwaysDense = 1024;

/** Index over the ids of rows 0, 1, 2 …, none negative. Throws a RangeError that names a duplicate id. */
export function indexIds(ids: Int32Array): IdIndex {
  let highest = -1;
  for (const id of ids) if (id > highest) highest = id;
  return highest < entriesPerId * ids.length + alwaysDense ? denseIndex(ids, highest) : sparseIndex(ids);
}

function denseIndex(ids: Int32Array, highest: number): IdIndex {
  const rows = new Int32Array(highest + 1).fill(-1);
  for (let row = 0; row < ids.length; row += 1) {
    const id = ids[row] as number;
    if (rows[id] !== -1) refuse(id);
    rows[id] = row;
  }
  return { firstRow: (id) => rows[id] ?? -1 };
}

function sparseIndex(ids: Int32Array): IdIndex {
  const byId = new Int32Array(ids.length).map((_, row) => row);
  byId.sort((a, b) => (ids[a] as number) - (ids[b] as number));
  for (let at = 1; at < byId.length; at += 1) {
    const id = ids[byId[at] as number] as number;
    if (id === ids[byId[at - 1] as number]) refuse(id);
  }
  return { firstRow: (id) => rowOf(ids, byId, id) };
}

function rowOf(ids: Int32Array, byId: Int32Array, id: number): number {
  let low = 0;
  for (let high = byId.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((ids[byId[middle] as number] as number) < id) low = middle + 1;
    else high = middle;
  }
  const row = byId[low];
  return row !== undefined && ids[row] === id ? row : -1;
}

function refuse(id: number): never {
  throw new RangeError(`the subnet id ${id} appears twice`);
}

// Subnets in the order in which they arrive, in typed arrays: 22 bytes each plus the name (IPv6: 46). The tree is
// built from these rows.

/** Stands for null in a column of ids. */
export const noId = -1;

interface SubnetFacts {
  readonly id: number;
  readonly holderId: number | null;
  readonly country: string | null;
  readonly registry: Registry;
  readonly name: string;
}

export class SubnetRows {
  readonly ipv4 = new FamilyRows(4);
  readonly ipv6 = new FamilyRows(6);
  readonly names = new TextPool();

  get count(): number {
    return this.ipv4.ids.length + this.ipv6.ids.length;
  }

  /** Addresses as unsigned 32-bit numbers. */
  addIpv4(first: number, last: number, facts: SubnetFacts): void {
    if (first > last) throw new RangeError(`subnet ${facts.id} ends before it starts`);
    this.ipv4.first.push(first);
    this.ipv4.last.push(last);
    this.#addFacts(this.ipv4, facts);
  }

  /** Addresses as four 32-bit words, the most significant first. */
  addIpv6(first: Uint32Array, last: Uint32Array, facts: SubnetFacts): void {
    if (compareWords(first, 0, last, 0, 4) > 0)
      throw new RangeError(`subnet ${facts.id} ends before it starts`);
    for (let word = 0; word < 4; word += 1) {
      this.ipv6.first.push(first[word] as number);
      this.ipv6.last.push(last[word] as number);
    }
    this.#addFacts(this.ipv6, facts);
  }

  addRange(range: IpRange, facts: SubnetFacts): void {
    if (range.family === 4) {
      this.addIpv4(range.first, range.last, facts);
      return;
    }
    const { first, last } = columnsOf([range]);
    this.addIpv6(first, last, facts);
  }

  #addFacts(rows: FamilyRows, { id, holderId, country, registry, name }: SubnetFacts): void {
    rows.ids.push(checkedId(id));
    rows.holderIds.push(holderId === null ? noId : checkedId(holderId));
    rows.labels.push(packLabel(country, registry));
    rows.nameIds.push(this.names.intern(name));
  }
}

/** One column per fact, for one family. */
export class FamilyRows extends GrowingRanges {
  readonly ids = new GrowingColumn((length) => new Int32Array(length));
  readonly holderIds = new GrowingColumn((length) => new Int32Array(length));
  readonly labels = new GrowingColumn((length) => new Uint16Array(length));
  readonly nameIds = new GrowingColumn((length) => new Int32Array(length));
}

function checkedId(id: number): number {
  if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff) throw new RangeError(`not an id: ${id}`);
  return id;
}
