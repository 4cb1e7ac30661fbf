/**
 * Where each subnet stands in the tree's arrays: in the order of a walk that visits a subnet before its
 * children, so that what lies within a subnet is one stretch behind it.
 *
 *   10/8                  place 0, ends 4
 *     10.1/16             place 1, ends 3
 *       10.1.2/24         place 2, ends 3
 *     10.9/16             place 3, ends 4
 */
import { formatRange } from "../ip/range.ts";
import { compareWords, type RangeColumns, rangeAt, sortedOrder } from "./range-columns.ts";

export interface TreeLayout {
  /** The family row at each place. */
  readonly rowAt: Int32Array;
  /** The place of each place's parent, or -1. */
  readonly parents: Int32Array;
  /** Behind the last place that lies within each place. */
  readonly ends: Int32Array;
}

/** Lays out one family; `parentRows` holds the row of each row's parent, or -1. Throws when a parent does not hold its child. */
export function layOutTree(columns: RangeColumns, parentRows: Int32Array): TreeLayout {
  const { count } = columns;
  checkParents(columns, parentRows);
  const { firstChild, nextSibling, firstRoot } = linkChildren(sortedOrder(columns), parentRows);
  const layout = {
    rowAt: new Int32Array(count),
    parents: new Int32Array(count),
    ends: new Int32Array(count),
  };
  let place = 0;
  let parent = -1;
  for (let row = firstRoot; row >= 0; ) {
    layout.rowAt[place] = row;
    layout.parents[place] = parent;
    parent = place++;
    row = firstChild[row] as number;
    while (row < 0 && parent >= 0) {
      layout.ends[parent] = place;
      row = nextSibling[layout.rowAt[parent] as number] as number;
      parent = layout.parents[parent] as number;
    }
  }
  return layout;
}

/** Children in the order of their addresses, as linked lists: one walk backwards puts each before those already linked. */
function linkChildren(order: Int32Array, parentRows: Int32Array) {
  const firstChild = new Int32Array(order.length).fill(-1);
  const nextSibling = new Int32Array(order.length).fill(-1);
  let firstRoot = -1;
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const row = order[at] as number;
    const parent = parentRows[row] as number;
    nextSibling[row] = parent < 0 ? firstRoot : (firstChild[parent] as number);
    if (parent < 0) firstRoot = row;
    else firstChild[parent] = row;
  }
  return { firstChild, nextSibling, firstRoot };
}

/** A parent that is wider than its child also rules out circles. */
function checkParents(columns: RangeColumns, parentRows: Int32Array): void {
  const { first, last, words } = columns;
  parentRows.forEach((parent, row) => {
    if (parent < 0) return;
    const before = compareWords(first, parent, first, row, words);
    const behind = compareWords(last, parent, last, row, words);
    if (before <= 0 && behind >= 0 && (before !== 0 || behind !== 0)) return;
    throw new RangeError(
      `${formatRange(rangeAt(columns, row))} does not lie within its parent ${formatRange(rangeAt(columns, parent))}`,
    );
  });
}
