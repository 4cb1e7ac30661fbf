/** Pieces of asynchronous work that take turns: one at a time per key, in the order in which they came. */
export class KeyedTurns<Key> {
  readonly #last = new Map<Key, Promise<void>>();

  /** Resolves or rejects with the work; the next turn comes either way. */
  take(key: Key, work: () => Promise<void>): Promise<void> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const turn = before.then(work);
    const settled = turn
      .catch(() => {})
      .then(() => {
        if (this.#last.get(key) === settled) this.#last.delete(key);
      });
    this.#last.set(key, settled);
    return turn;
  }

  /** Resolves when nobody waits any more. */
  async allTaken(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
