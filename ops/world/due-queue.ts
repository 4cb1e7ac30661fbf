/**
 * Runs things when they are due, to about half a millisecond. Due times are absolute (performance.now), so
 * that the lateness of one step never adds to the next one's; a single timer waits for the earliest. Node's
 * timers count whole milliseconds: an item is run when at most half of one is missing.
 */
export class DueQueue {
  /** A binary heap, earliest first; of equal times the one that was added first. */
  readonly #heap: Item[] = [];
  #added = 0;
  #timer: NodeJS.Timeout | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** Whatever is due at a time in the past runs at the next turn of the loop. */
  at(dueMs: number, run: () => void): void {
    this.#push({ dueMs, order: this.#added++, run });
    if (dueMs < this.#timerDueMs) this.#arm();
  }

  /** Forgets everything that waits. */
  close(): void {
    this.#heap.length = 0;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    if (this.#timer) clearTimeout(this.#timer);
    const [first] = this.#heap;
    this.#timer = null;
    this.#timerDueMs = first?.dueMs ?? Number.POSITIVE_INFINITY;
    if (!first) return;
    const waitMs = Math.min(60_000, Math.round(first.dueMs - performance.now()));
    this.#timer = setTimeout(() => this.#fire(), Math.max(1, waitMs));
  }

  #fire(): void {
    const limitMs = performance.now() + earlyMs;
    for (let first = this.#heap[0]; first && first.dueMs <= limitMs; first = this.#heap[0]) {
      this.#pop();
      first.run();
    }
    this.#arm();
  }

  #push(item: Item): void {
    const heap = this.#heap;
    let at = heap.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(item, heap[above] as Item)) break;
      heap[at] = heap[above] as Item;
      at = above;
    }
    heap[at] = item;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      const right = heap[below + 1];
      if (right && isBefore(right, heap[below] as Item)) below++;
      if (!isBefore(heap[below] as Item, last)) break;
      heap[at] = heap[below] as Item;
      at = below;
    }
    heap[at] = last;
  }
}

const earlyMs = 0.5;

interface Item {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

function isBefore(a: Item, b: Item): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}
