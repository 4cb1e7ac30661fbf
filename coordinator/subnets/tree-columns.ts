/**
 * The arrays behind the subnet tree, laid out from the rows as they arrived: the ranges of each family in
 * places of their own, and what else is known of a subnet by the tree's place, IPv4 before IPv6.
 */

import { TextPool } from "#core/columns";
import { formatRange } from "#core/ip/range";
import { type IdIndex, indexIds } from "./id-index.ts";
import { type Ipv4Places, placeIpv4 } from "./ipv4-places.ts";
import { type Ipv6Places, placeIpv6 } from "./ipv6-places.ts";
import { type NestedRanges, nestRanges } from "./nested-ranges.ts";
import { compareWords, type RangeColumns, rangeAt } from "./range-columns.ts";
import type { FamilyRows, StatedParent, SubnetRows } from "./subnet-rows.ts";

export interface TreeColumns {
  readonly ipv4: Ipv4Places;
  readonly ipv6: Ipv6Places;
  /** Places of IPv4: the tree's place of the first IPv6 subnet. */
  readonly ipv6Base: number;
  readonly ids: Int32Array;
  readonly byId: IdIndex;
  /** `noId` for none. */
  readonly holderIds: Int32Array;
  /** Country and registry: `subnet-label.ts`. */
  readonly labels: Uint16Array;
  /** Into `names`. */
  readonly nameIds: Int32Array;
  readonly names: TextPool;
}

/** Throws a RangeError that names the subnet where rows do not make a tree. */
export function layOutColumns(rows: SubnetRows): TreeColumns {
  const ipv4 = nestRanges(rows.ipv4.ranges());
  const ipv6 = nestRanges(rows.ipv6.ranges());
  const both = (pick: (family: FamilyRows) => Int32Array) =>
    joined({ ipv4: pick(rows.ipv4), ipv6: pick(rows.ipv6) }, { ipv4, ipv6 }, Int32Array);
  const ids = both((family) => family.ids.values());
  const byId = indexIds(ids);
  checkStatedParents(rows.statedParents, { byId, ipv4: ipv4.columns, ipv6: ipv6.columns });
  const { text, ends } = rows.names.parts();
  const labels = { ipv4: rows.ipv4.labels.values(), ipv6: rows.ipv6.labels.values() };
  return {
    ipv4: placeIpv4(ipv4),
    ipv6: placeIpv6(ipv6),
    ipv6Base: ipv4.columns.count,
    ids,
    byId,
    holderIds: both((family) => family.holderIds.values()),
    labels: joined(labels, { ipv4, ipv6 }, Uint16Array),
    nameIds: both((family) => family.nameIds.values()),
    // Without what the pool needs only while it takes in more.
    names: TextPool.from({ text: text.slice(), ends }),
  };
}

/** A column of both families, as the rows arrived, in the order of places. */
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

interface PlacedRanges {
  readonly byId: IdIndex;
  readonly ipv4: RangeColumns;
  readonly ipv6: RangeColumns;
}

function checkStatedParents(stated: readonly StatedParent[], placed: PlacedRanges): void {
  for (const { id, parentId } of stated) {
    const child = rangeOfId(placed, id);
    const parent = rangeOfId(placed, parentId);
    if (!child || parent?.columns !== child.columns)
      throw new RangeError(`the parent ${parentId} of subnet ${id} is not among the subnets of its family`);
    checkHolds(child.columns, parent.index, child.index);
  }
}

function rangeOfId({ byId, ipv4, ipv6 }: PlacedRanges, id: number) {
  const place = byId.firstRow(id);
  if (place < 0) return null;
  return place < ipv4.count ? { columns: ipv4, index: place } : { columns: ipv6, index: place - ipv4.count };
}

function checkHolds(columns: RangeColumns, parent: number, child: number): void {
  const { first, last, words } = columns;
  const before = compareWords(first, parent, first, child, words);
  const behind = compareWords(last, parent, last, child, words);
  if (before <= 0 && behind >= 0 && (before !== 0 || behind !== 0)) return;
  throw new RangeError(
    `${formatRange(rangeAt(columns, child))} does not lie within its parent ${formatRange(rangeAt(columns, parent))}`,
  );
}
