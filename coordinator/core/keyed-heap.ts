/** A binary heap of indexes with a fixed key each, the smallest key on top; of equal keys the smallest index. */
export class KeyedHeap {
  readonly #keys: number[] = [];
  readonly #items: number[] = [];

  /** The index on top, or -1. */
  get top(): number {
    return this.#items[0] ?? -1;
  }

  /** The key on top; infinite when there is none. */
  get topKey(): number {
    return this.#keys[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Adds without order, for many at once; `order` comes after the last. */
  append(item: number, key: number): void {
    this.#items.push(item);
    this.#keys.push(key);
  }

  order(): void {
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at--)
      this.#sink(at, this.#items[at]!, this.#keys[at]!);
  }

  add(item: number, key: number): void {
    const items = this.#items;
    const keys = this.#keys;
    let at = items.push(item) - 1;
    keys.push(key);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(key, item, keys[above]!, items[above]!)) break;
      items[at] = items[above]!;
      keys[at] = keys[above]!;
      at = above;
    }
    items[at] = item;
    keys[at] = key;
  }

  removeTop(): void {
    const item = this.#items.pop();
    const key = this.#keys.pop();
    if (item === undefined || key === undefined || this.#items.length === 0) return;
    this.#sink(0, item, key);
  }

  #sink(start: number, item: number, key: number): void {
    const items = this.#items;
    const keys = this.#keys;
    let at = start;
    for (let below = 2 * at + 1; below < items.length; below = 2 * at + 1) {
      if (
        below + 1 < items.length &&
        isBefore(keys[below + 1]!, items[below + 1]!, keys[below]!, items[below]!)
      )
        below++;
      if (!isBefore(keys[below]!, items[below]!, key, item)) break;
      items[at] = items[below]!;
      keys[at] = keys[below]!;
      at = below;
    }
    items[at] = item;
    keys[at] = key;
  }
}

const isBefore = (keyA: number, a: number, keyB: number, b: number) =>
  keyA < keyB || (keyA === keyB && a < b);
