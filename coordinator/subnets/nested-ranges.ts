/**
 * The ranges of one family on their way into the tree: sorted into places, nested, and with the stretches
 * found that look-ups answer from a table.
 */
import { formatRange } from "#core/ip/range";
import { nest } from "./nest.ts";
import { emptyColumns, type RangeColumns, rangeAt, sortedOrder } from "./range-columns.ts";
import { cutHardSegments, findHardStretches, type Segments } from "./segments.ts";

export interface NestedRanges {
  /** By first address, the widest first of those that start together: the order of places. */
  readonly columns: RangeColumns;
  /** For each place the index of its range as it arrived. */
  readonly arrivedAt: Int32Array;
  /** For each place that of its parent, or −1. */
  readonly parents: Int32Array;
  readonly hard: Uint8Array;
  readonly segments: Segments;
}

/** Throws a RangeError that names a range which appears twice. */
export function nestRanges(arrived: RangeColumns): NestedRanges {
  const arrivedAt = sortedOrder(arrived);
  const columns = reordered(arrived, arrivedAt);
  const { parents, duplicates, crossings } = nest(columns);
  const [twice] = duplicates;
  if (twice) throw new RangeError(`the range ${formatRange(rangeAt(columns, twice.index))} appears twice`);
  const hard = findHardStretches({ columns, parents, crossings });
  return { columns, arrivedAt, parents, hard, segments: cutHardSegments(columns, hard) };
}

function reordered({ family, words, count, first, last }: RangeColumns, order: Int32Array): RangeColumns {
  const sorted = emptyColumns(family, count);
  for (let place = 0; place < count; place += 1) {
    const from = words * (order[place] as number);
    for (let word = 0; word < words; word += 1) {
      sorted.first[place * words + word] = first[from + word] as number;
      sorted.last[place * words + word] = last[from + word] as number;
    }
  }
  return sorted;
}
