/** What happens at which step. An item is in the calendar at most once; of a step's items the latest comes first. */
export class Calendar<Thing> {
  readonly #steps: number;
  /** The step of each item; entries at other steps are outdated and skipped. */
  readonly #stepOf = new Map<Thing, number>();
  readonly #entries = new Map<number, Thing[]>();

  constructor(steps: number) {
    this.#steps = steps;
  }

  /** Entries beyond the last step are dropped. */
  add(thing: Thing, step: number): void {
    if (step > this.#steps) return;
    this.#stepOf.set(thing, step);
    const entries = this.#entries.get(step);
    if (entries === undefined) this.#entries.set(step, [thing]);
    else entries.push(thing);
  }

  remove(thing: Thing): void {
    this.#stepOf.delete(thing);
  }

  /** Removes and yields the items at this step, also those added meanwhile. */
  *take(step: number): Generator<Thing> {
    const entries = this.#entries.get(step) ?? [];
    for (let thing = entries.pop(); thing !== undefined; thing = entries.pop()) {
      if (this.#stepOf.get(thing) !== step) continue;
      this.#stepOf.delete(thing);
      yield thing;
    }
    this.#entries.delete(step);
  }
}
