/**
 * Flat ranges of one family become a hierarchy (paper section 4.1): each gets as parent the most specific
 * range that holds it whole.
 *
 * Registries also hold ranges that cross, overlapping without one holding the other, such as
 * 202.98.116.0 - 202.98.119.255 and 202.98.119.0 - 202.98.120.255. Both are kept. The rule for all of them:
 * the smallest range wins, and of equal sizes the one that starts later. So a parent is the smallest range
 * that holds the child wholly, and an address where two ranges cross belongs to the smaller.
 *
 * Iterative and without recursion, so depth does not matter; O(n log n), and linear but for the sort where
 * nothing crosses.
 */
import type { IpRange } from "#core/ip/range";
import {
  columnsOf,
  compareSpecificity,
  compareWords,
  type RangeColumns,
  sortedOrder,
} from "./range-columns.ts";

export interface Nesting {
  /** Index of the parent in the input, or -1 directly under the root. */
  readonly parents: Int32Array;
  /** Every index, parents before their children: by first address, the widest first. */
  readonly order: Int32Array;
  /** Ranges that stand in the input before; they have the same parent and never children. */
  readonly duplicates: readonly { readonly index: number; readonly of: number }[];
  /**
   * Ranges that cross, `earlier` being the one that starts earlier. Every range that crosses another is in at
   * least one pair; a tangle of n ranges may have n² pairs, of which at most 2n are listed.
   */
  readonly crossings: readonly Crossing[];
}

export interface Crossing {
  readonly earlier: number;
  readonly later: number;
}

/** The hierarchy of ranges of one family. */
export function nest(ranges: readonly IpRange[] | RangeColumns): Nesting {
  const columns = "count" in ranges ? ranges : columnsOf(ranges);
  const order = sortedOrder(columns);
  const { unique, duplicates } = setDuplicatesAside(columns, order);
  const { tangled, crossings } = findCrossings(columns, unique);
  const parents = findParents({ columns, unique, tangled, crossings });
  for (const { index, of } of duplicates) parents[index] = parents[of] as number;
  return { parents, order, duplicates, crossings };
}

function setDuplicatesAside(columns: RangeColumns, order: Int32Array) {
  const unique = new Int32Array(order.length);
  const duplicates: { index: number; of: number }[] = [];
  let count = 0;
  for (const index of order) {
    const previous = count === 0 ? -1 : (unique[count - 1] as number);
    if (previous >= 0 && isSameRange(columns, previous, index)) duplicates.push({ index, of: previous });
    else unique[count++] = index;
  }
  return { unique: unique.subarray(0, count), duplicates };
}

function isSameRange({ first, last, words }: RangeColumns, i: number, j: number): boolean {
  return compareWords(first, i, first, j, words) === 0 && compareWords(last, i, last, j, words) === 0;
}

/**
 * Walks the ranges with a stack whose last addresses fall from bottom to top. A newcomer that ends behind the
 * top takes its place; where the two overlap, they cross and both are tangled. Of two ranges that cross, the
 * earlier is always tangled, so the ranges that are not tangled hold each other or lie apart.
 */
function findCrossings(columns: RangeColumns, unique: Int32Array) {
  const { first, last, words } = columns;
  const tangled = new Uint8Array(columns.count);
  const crossings: Crossing[] = [];
  const stack = new Int32Array(unique.length);
  let depth = 0;
  for (const index of unique) {
    for (; depth > 0 && compareWords(last, stack[depth - 1] as number, last, index, words) < 0; depth -= 1) {
      const top = stack[depth - 1] as number;
      if (compareWords(last, top, first, index, words) < 0) continue;
      crossings.push({ earlier: top, later: index });
      tangled[top] = 1;
      tangled[index] = 1;
    }
    stack[depth++] = index;
  }
  return { tangled, crossings };
}

/**
 * The second walk: the smallest holder among the ranges that are not tangled is the top of a plain stack, among
 * the tangled it comes from an index over them. Adds the crossings of ranges that the first walk passed by.
 */
function findParents(work: {
  columns: RangeColumns;
  unique: Int32Array;
  tangled: Uint8Array;
  crossings: Crossing[];
}) {
  const { columns, unique, tangled, crossings } = work;
  const { first, last, words } = columns;
  const parents = new Int32Array(columns.count).fill(-1);
  const index = new TangledIndex(
    columns,
    unique.filter((range) => tangled[range] === 1),
  );
  const stack = new Int32Array(unique.length);
  let depth = 0;
  for (const range of unique) {
    while (depth > 0 && compareWords(last, stack[depth - 1] as number, first, range, words) < 0) depth -= 1;
    const plain = depth > 0 ? (stack[depth - 1] as number) : -1;
    parents[range] = moreSpecific(columns, plain, index.smallestHolderOf(range));
    if (tangled[range] === 1) {
      index.add(range);
      continue;
    }
    stack[depth++] = range;
    const crossed = index.crossedBy(range);
    if (crossed >= 0) crossings.push({ earlier: crossed, later: range });
  }
  return parents;
}

function moreSpecific(columns: RangeColumns, i: number, j: number): number {
  if (i < 0 || j < 0) return Math.max(i, j);
  return compareSpecificity(columns, i, j) < 0 ? i : j;
}

/**
 * The tangled ranges by last address: two Fenwick trees, one that answers which of those that end at an
 * address or behind it is the smallest, one which of those that end before it ends last.
 */
class TangledIndex {
  readonly #columns: RangeColumns;
  /** Tangled ranges, the one that ends last first; `#rankOf` is its inverse. */
  readonly #byLast: Int32Array;
  readonly #rankOf = new Map<number, number>();
  readonly #smallest: Int32Array;
  readonly #nearest: Int32Array;

  constructor(columns: RangeColumns, ranges: Int32Array) {
    const { last, words } = columns;
    this.#columns = columns;
    this.#byLast = ranges.slice().sort((i, j) => compareWords(last, j, last, i, words));
    this.#byLast.forEach((range, rank) => {
      this.#rankOf.set(range, rank);
    });
    this.#smallest = new Int32Array(ranges.length + 1).fill(-1);
    this.#nearest = new Int32Array(ranges.length + 1).fill(-1);
  }

  add(range: number): void {
    const size = this.#byLast.length;
    const rank = this.#rankOf.get(range) as number;
    for (let at = rank + 1; at <= size; at += at & -at) {
      this.#smallest[at] = moreSpecific(this.#columns, this.#smallest[at] as number, range);
    }
    for (let at = size - rank; at <= size; at += at & -at) {
      this.#nearest[at] = this.#laterEnd(this.#nearest[at] as number, range);
    }
  }

  /** The smallest of the ranges added so far that ends where `range` does or behind, or -1. As all started before, it holds it. */
  smallestHolderOf(range: number): number {
    let best = -1;
    for (let at = this.#countBehind(range); at > 0; at -= at & -at) {
      best = moreSpecific(this.#columns, best, this.#smallest[at] as number);
    }
    return best;
  }

  /** A range added so far that ends within `range`, which starts later: they cross. -1 when there is none. */
  crossedBy(range: number): number {
    const { first, last, words } = this.#columns;
    let best = -1;
    for (let at = this.#byLast.length - this.#countBehind(range); at > 0; at -= at & -at) {
      best = this.#laterEnd(best, this.#nearest[at] as number);
    }
    return best >= 0 && compareWords(last, best, first, range, words) >= 0 ? best : -1;
  }

  #laterEnd(i: number, j: number): number {
    if (i < 0 || j < 0) return Math.max(i, j);
    return compareWords(this.#columns.last, i, this.#columns.last, j, this.#columns.words) > 0 ? i : j;
  }

  /** How many tangled ranges, added or not, end where `range` does or behind. */
  #countBehind(range: number): number {
    const { last, words } = this.#columns;
    let low = 0;
    for (let high = this.#byLast.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if (compareWords(last, this.#byLast[middle] as number, last, range, words) >= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// From every subnet that holds an address or a range to the chain of them: the most specific one (nest.ts
// says which that is where ranges cross) and those above it.

interface HoldingSubnet {
  readonly subnetId: number;
  readonly parentId: number | null;
  readonly range: IpRange;
}

/** From the least to the most specific; what holds it too, but crosses one of these, is not among them. */
export function holdingChain<Subnet extends HoldingSubnet>(holding: readonly Subnet[]): readonly Subnet[] {
  const columns = columnsOf(holding.map(({ range }) => range));
  const byId = new Map(holding.map((subnet) => [subnet.subnetId, subnet]));
  const [nearest] = holding.map((_, index) => index).sort((a, b) => compareSpecificity(columns, a, b));
  const chain: Subnet[] = [];
  let next = nearest === undefined ? undefined : holding[nearest];
  while (next !== undefined) {
    chain.unshift(next);
    // Taken out, so that parents that a fault made circular end too.
    byId.delete(next.subnetId);
    next = next.parentId === null ? undefined : byId.get(next.parentId);
  }
  return chain;
}
