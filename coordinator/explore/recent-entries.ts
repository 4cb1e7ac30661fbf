/** What was made lately and may be asked for again: as many as there is room for, those longest unused make way. */
export class RecentEntries<Value> {
  readonly #room: number;
  readonly #entries = new Map<string, Value>();

  constructor(room: number) {
    this.#room = room;
  }

  /** The one of this key; made when there is none. A promise that rejects is not kept. */
  get(key: string, make: () => Value): Value {
    const known = this.#entries.get(key);
    const value = known ?? make();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (value instanceof Promise) value.catch(() => this.#entries.delete(key));
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#room && !oldest.done) this.#entries.delete(oldest.value);
    return value;
  }
}
