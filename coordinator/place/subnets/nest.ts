/**
 * Turns flat ranges of one family into a hierarchy (paper section 4.1): the parent of a range is the most specific range that
 * contains it.
 *
 * Registries also hold crossing ranges, which overlap without one containing the other, such as 202.98.116.0 - 202.98.119.255
 * and 202.98.119.0 - 202.98.120.255. Both are kept. The smallest range wins, and of equal sizes the one that starts later. So
 * a parent is the smallest range that contains the child, and an address where two ranges cross belongs to the smaller.
 *
 * One walk over the sorted ranges keeps a stack of open ranges, the most specific last. Without crossings the walk is linear.
 * Where ranges cross, each one checks all open ones. In registry files these are few, but a staircase of 100,000 ranges takes
 * minutes, so callers that read untrusted files set a bound.
 */
import { formatRange, type IpRange } from "#core/ip/range";
import {
  columnsOf,
  compareSpecificity,
  compareWords,
  type RangeColumns,
  rangeAt,
  sortedOrder,
} from "./range-columns.ts";

/** Marks owners from the point where no ranges cross, so that following parents suffices. */
export const untangled = -2;

export interface Nesting {
  /** Index of the parent in the input, or -1 directly under the root. */
  readonly parents: Int32Array;
  /** Every index, parents before children: by first address, widest first. */
  readonly order: Int32Array;
  /** Ranges that appeared earlier in the input. They share its parent and never have children. */
  readonly duplicates: readonly { readonly index: number; readonly of: number }[];
  /**
   * Crossing ranges, of which `earlier` starts first. Every crossing range is in at least one pair. A tangle of n ranges may
   * have n² pairs, of which at most n are listed.
   */
  readonly crossings: readonly { readonly earlier: number; readonly later: number }[];
  /** Starts of the stretches where ranges cross and of every change of owner in them, in columns. */
  readonly tangledStarts: Uint32Array;
  /** The owner of each stretch: the most specific range, −1 for none, or `untangled` where no ranges cross. */
  readonly tangledOwners: Int32Array;
}

/** Thrown when more crossing ranges cover one address than in any real registry. */
export class TangledRanges extends Error {}

/** Builds the hierarchy of one family. Throws TangledRanges if more than `mostTangled` are open at once. */
export function nest(ranges: readonly IpRange[] | RangeColumns, mostTangled = Infinity): Nesting {
  const columns = "count" in ranges ? ranges : columnsOf(ranges);
  const order = sortedOrder(columns);
  const walk = new Walk(columns, mostTangled);
  for (const range of order) walk.take(range);
  return { order, ...walk.finish() };
}

class Walk {
  readonly #columns: RangeColumns;
  readonly #parents: Int32Array;
  readonly #duplicates: { index: number; of: number }[] = [];
  readonly #crossings: { earlier: number; later: number }[] = [];
  readonly #isListed: Uint8Array;
  /** Ranges that cover the latest range's first address, least specific first. */
  #open: number[] = [];
  /** Whether any open ranges cross. */
  #isTangled = false;
  #latest = -1;
  readonly #starts: number[] = [];
  readonly #owners: number[] = [];

  readonly #mostTangled: number;

  constructor(columns: RangeColumns, mostTangled: number) {
    this.#columns = columns;
    this.#mostTangled = mostTangled;
    this.#parents = new Int32Array(columns.count).fill(-1);
    this.#isListed = new Uint8Array(columns.count);
  }

  take(range: number): void {
    const { first, last, words } = this.#columns;
    const before = this.#latest;
    if (
      before >= 0 &&
      compareWords(first, before, first, range, words) === 0 &&
      compareWords(last, before, last, range, words) === 0
    ) {
      this.#duplicates.push({ index: range, of: before });
      this.#parents[range] = this.#parents[before] as number;
      return;
    }
    const wasTangled = this.#isTangled;
    if (wasTangled) this.#cut(range);
    this.#closeBefore(range);
    this.#place(range);
    this.#latest = range;
    if (wasTangled && !this.#isTangled) this.#put(this.#firstOf(range), untangled);
  }

  finish(): Omit<Nesting, "order"> {
    if (this.#isTangled) this.#cut(null);
    return {
      parents: this.#parents,
      duplicates: this.#duplicates,
      crossings: this.#crossings,
      tangledStarts: Uint32Array.from(this.#starts),
      tangledOwners: Int32Array.from(this.#owners),
    };
  }

  #closeBefore(range: number): void {
    const { first, last, words } = this.#columns;
    const open = this.#open;
    const hasEnded = (one: number) => compareWords(last, one, first, range, words) < 0;
    if (!this.#isTangled) {
      while (open.length > 0 && hasEnded(open[open.length - 1] as number)) open.pop();
      return;
    }
    this.#open = open.filter((one) => !hasEnded(one));
    this.#isTangled = this.#open.some(
      (one, at) =>
        at > 0 &&
        (compareWords(first, this.#open[at - 1] as number, first, one, words) > 0 ||
          compareWords(last, this.#open[at - 1] as number, last, one, words) < 0),
    );
  }

  /** Finds the range's parent and crossings among the open ranges. */
  #place(range: number): void {
    const { last, words } = this.#columns;
    const open = this.#open;
    const wasTangled = this.#isTangled;
    if (wasTangled && open.length > this.#mostTangled) {
      const place = formatRange(rangeAt(this.#columns, range));
      throw new TangledRanges(`more than ${this.#mostTangled} ranges cross one another over ${place}`);
    }
    let parent = -1;
    for (let at = open.length - 1; at >= 0 && (parent < 0 || wasTangled); at -= 1) {
      const one = open[at] as number;
      if (compareWords(last, one, last, range, words) < 0) this.#cross(one, range);
      else if (parent < 0) parent = one;
    }
    this.#parents[range] = parent;
    let at = open.length;
    while (at > 0 && compareSpecificity(this.#columns, open[at - 1] as number, range) < 0) at -= 1;
    if (at === open.length) open.push(range);
    else open.splice(at, 0, range);
  }

  #cross(earlier: number, later: number): void {
    this.#isTangled = true;
    if (this.#isListed[earlier] === 1 && this.#isListed[later] === 1) return;
    this.#isListed[earlier] = 1;
    this.#isListed[later] = 1;
    this.#crossings.push({ earlier, later });
  }

  /** Records the most specific range from the latest start up to the next one. Null means to the end of the last range. */
  #cut(next: number | null): void {
    const { first, last, words } = this.#columns;
    const at = this.#firstOf(this.#latest);
    const isOver = () => next !== null && compareWords(at, 0, first, next, words) >= 0;
    for (let index = this.#open.length - 1; index >= 0 && !isOver(); index -= 1) {
      const one = this.#open[index] as number;
      if (compareWords(last, one, at, 0, words) < 0) continue;
      this.#put(at, one);
      at.set(last.subarray(one * words, (one + 1) * words));
      if (!increase(at)) return;
    }
    if (!isOver()) this.#put(at, -1);
  }

  #firstOf(range: number): Uint32Array {
    const { first, words } = this.#columns;
    return first.slice(range * words, (range + 1) * words);
  }

  #put(start: Uint32Array, owner: number): void {
    if (this.#owners.at(-1) === owner) return;
    this.#starts.push(...start);
    this.#owners.push(owner);
  }
}

/** Adds one to the address. Returns false at the end of the address space. */
function increase(address: Uint32Array): boolean {
  for (let word = address.length - 1; word >= 0; word -= 1) {
    address[word] = (address[word] as number) + 1;
    if (address[word] !== 0) return true;
  }
  return false;
}

// Reduces all subnets that cover an address or range to the chain from the most specific one upwards (nest.ts defines
// specificity for crossing ranges).

interface HoldingSubnet {
  readonly subnetId: number;
  readonly parentId: number | null;
  readonly range: IpRange;
}

/** Ordered from the least to the most specific. Leaves out subnets that cross the chain. */
export function holdingChain<Subnet extends HoldingSubnet>(holding: readonly Subnet[]): readonly Subnet[] {
  const columns = columnsOf(holding.map(({ range }) => range));
  const byId = new Map(holding.map((subnet) => [subnet.subnetId, subnet]));
  const [nearest] = holding.map((_, index) => index).sort((a, b) => compareSpecificity(columns, a, b));
  const chain: Subnet[] = [];
  let next = nearest === undefined ? undefined : holding[nearest];
  while (next !== undefined) {
    chain.unshift(next);
    // Visited entries are deleted, so that the loop ends even if a fault made parents circular.
    byId.delete(next.subnetId);
    next = next.parentId === null ? undefined : byId.get(next.parentId);
  }
  return chain;
}
