/** What happens at which step. A thing is in the calendar once at most; of a step's things the latest comes first. */
export class Calendar<Thing> {
  readonly #steps: number;
  /** Where each thing is entered; entries elsewhere are left over, and passed by. */
  readonly #stepOf = new Map<Thing, number>();
  readonly #entries = new Map<number, Thing[]>();

  constructor(steps: number) {
    this.#steps = steps;
  }

  /** What lies beyond the last step never happens, and is not entered. */
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

  /** The things at this step, each out of the calendar as it comes; what is added to the step meanwhile comes too. */
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
