/** A binary heap of indexes, the one with the smallest key on top; of equal keys the smallest index, so that the order is always the same. */
export class IndexHeap {
  readonly #heap: number[];
  readonly #keyOf: (index: number) => number;

  constructor(indexes: readonly number[], keyOf: (index: number) => number) {
    this.#heap = [...indexes];
    this.#keyOf = keyOf;
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at -= 1) this.#sink(at);
  }

  /** The index on top, or -1. */
  get top(): number {
    return this.#heap[0] ?? -1;
  }

  add(index: number): void {
    const heap = this.#heap;
    let at = heap.push(index) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(index, heap[above] as number)) break;
      heap[at] = heap[above] as number;
      at = above;
    }
    heap[at] = index;
  }

  removeTop(): void {
    const moved = this.#heap.pop();
    if (moved === undefined || this.#heap.length === 0) return;
    this.#heap[0] = moved;
    this.#sink(0);
  }

  #sink(start: number): void {
    const heap = this.#heap;
    const moved = heap[start] as number;
    let at = start;
    for (let below = 2 * at + 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && this.#isBefore(heap[below + 1] as number, heap[below] as number))
        below += 1;
      if (!this.#isBefore(heap[below] as number, moved)) break;
      heap[at] = heap[below] as number;
      at = below;
    }
    heap[at] = moved;
  }

  #isBefore(a: number, b: number): boolean {
    const [keyA, keyB] = [this.#keyOf(a), this.#keyOf(b)];
    return keyA === keyB ? a < b : keyA < keyB;
  }
}
