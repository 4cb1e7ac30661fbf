/**
 * The arrays behind the subnet tree, laid out from the rows as they arrived: both families one after the
 * other, each in the order of `tree-layout.ts`, with the look-up table of each.
 */
import { formatRange } from "../ip/range.ts";
import { cutSegments } from "./cut-segments.ts";
import { type IdIndex, indexIds, repeatedId } from "./id-index.ts";
import { compareWords, emptyColumns, type RangeColumns, rangeAt, sortedOrder } from "./range-columns.ts";
import type { Segments } from "./segments.ts";
import { noId, type SubnetRows } from "./subnet-rows.ts";
import { layOutTree } from "./tree-layout.ts";

/** One family's ranges in the order of places, and the look-up table over them. */
export interface FamilyPlaces {
  /** The tree's place of the family's first range. */
  readonly base: number;
  readonly columns: RangeColumns;
  /**
   * Its owners are twice the place within the family, plus one for a unary subnet: so that the look-up that
   * skips those need not read the ranges, which would cost it two more cache misses.
   */
  readonly segments: Segments;
}

/** The tree's arrays, each indexed by place. */
export interface TreeColumns {
  readonly ipv4: FamilyPlaces;
  readonly ipv6: FamilyPlaces;
  readonly ids: Int32Array;
  readonly byId: IdIndex;
  readonly parents: Int32Array;
  readonly ends: Int32Array;
  readonly holderIds: Int32Array;
  readonly byHolder: IdIndex;
  readonly countries: Uint16Array;
  readonly registries: Uint8Array;
  readonly names: readonly string[];
}

/** Throws a RangeError that names the subnet where rows do not make a tree. */
export function layOutColumns(rows: SubnetRows): TreeColumns {
  const rowIds = rows.ids.values();
  const byRowId = indexIds(rowIds);
  const repeated = repeatedId(rowIds, byRowId);
  if (repeated !== null) throw new RangeError(`the subnet id ${repeated} appears twice`);
  return assemble(rows, placeFamily(rows, byRowId, 4), placeFamily(rows, byRowId, 6));
}

interface PlacedFamily extends Omit<FamilyPlaces, "base"> {
  /** The row, and within the family the place of the parent and the end, of each place. */
  readonly rowAt: Int32Array;
  readonly parents: Int32Array;
  readonly ends: Int32Array;
}

function placeFamily(rows: SubnetRows, byRowId: IdIndex, family: 4 | 6): PlacedFamily {
  const familyRows = rows.rowsOf(family);
  const arrived = rows.columnsOf(family);
  const layout = layOutTree(arrived, parentRowsOf(rows, byRowId, familyRows));
  const columns = reordered(arrived, layout.rowAt);
  const order = sortedOrder(columns);
  refuseEqualRanges(columns, order);
  return {
    ...layout,
    rowAt: layout.rowAt.map((row) => familyRows[row] as number),
    columns,
    segments: withUnaryMark(cutSegments(columns, order), columns),
  };
}

/** For each row of the family its parent's row within the family, or -1. */
function parentRowsOf(rows: SubnetRows, byRowId: IdIndex, familyRows: Int32Array): Int32Array {
  const withinFamily = new Int32Array(rows.ids.length).fill(-1);
  familyRows.forEach((row, index) => {
    withinFamily[row] = index;
  });
  const ids = rows.ids.values();
  const parentIds = rows.parentIds.values();
  return familyRows.map((row) => {
    const parentId = parentIds[row] as number;
    if (parentId === noId) return -1;
    const parent = withinFamily[byRowId.firstRow(parentId)] ?? -1;
    if (parent < 0)
      throw new RangeError(
        `the parent ${parentId} of subnet ${ids[row]} is not among the subnets of its family`,
      );
    return parent;
  });
}

function reordered(columns: RangeColumns, rowAt: Int32Array): RangeColumns {
  const { family, words, count, first, last } = columns;
  const placed = emptyColumns(family, count);
  rowAt.forEach((row, place) => {
    for (let word = 0; word < words; word += 1) {
      placed.first[place * words + word] = first[row * words + word] as number;
      placed.last[place * words + word] = last[row * words + word] as number;
    }
  });
  return placed;
}

function withUnaryMark(segments: Segments, { first, last, words }: RangeColumns): Segments {
  const isUnary = (place: number) => compareWords(first, place, last, place, words) === 0;
  const owners = segments.owners.map((place) => (place < 0 ? -1 : 2 * place + (isUnary(place) ? 1 : 0)));
  return { ...segments, owners };
}

function refuseEqualRanges(columns: RangeColumns, order: Int32Array): void {
  const { first, last, words } = columns;
  for (let at = 1; at < order.length; at += 1) {
    const [before, index] = [order[at - 1] as number, order[at] as number];
    if (compareWords(first, before, first, index, words) !== 0) continue;
    if (compareWords(last, before, last, index, words) !== 0) continue;
    throw new RangeError(`the range ${formatRange(rangeAt(columns, index))} appears twice`);
  }
}

function assemble(rows: SubnetRows, ipv4: PlacedFamily, ipv6: PlacedFamily): TreeColumns {
  const base = ipv4.columns.count;
  const rowAt = joined(ipv4.rowAt, ipv6.rowAt, 0);
  const ids = picked(new Int32Array(rowAt.length), rows.ids.values(), rowAt);
  const holderIds = picked(new Int32Array(rowAt.length), rows.holderIds.values(), rowAt);
  return {
    ipv4: { base: 0, columns: ipv4.columns, segments: ipv4.segments },
    ipv6: { base, columns: ipv6.columns, segments: ipv6.segments },
    ids,
    byId: indexIds(ids),
    parents: joined(ipv4.parents, ipv6.parents, base),
    ends: joined(ipv4.ends, ipv6.ends, base),
    holderIds,
    byHolder: indexIds(holderIds),
    countries: picked(new Uint16Array(rowAt.length), rows.countries.values(), rowAt),
    registries: picked(new Uint8Array(rowAt.length), rows.registries.values(), rowAt),
    names: Array.from(rowAt, (row) => rows.names[row] as string),
  };
}

/** Both arrays in one; the second one's places move up by `base`. */
function joined(ipv4: Int32Array, ipv6: Int32Array, base: number): Int32Array {
  const all = new Int32Array(ipv4.length + ipv6.length);
  all.set(ipv4);
  ipv6.forEach((value, index) => {
    all[ipv4.length + index] = value < 0 ? value : value + base;
  });
  return all;
}

function picked<Values extends Int32Array | Uint16Array | Uint8Array>(
  into: Values,
  values: Values,
  rowAt: Int32Array,
): Values {
  rowAt.forEach((row, place) => {
    into[place] = values[row] as number;
  });
  return into;
}
