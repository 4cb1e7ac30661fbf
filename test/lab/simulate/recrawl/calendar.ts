/**
 * What happens at which step: a list of numbered things per step, in typed arrays, so that adding, taking and removing
 * one costs the same however many there are. A thing is in the calendar once at most.
 */
export class Calendar {
  readonly #first: Int32Array;
  #next: Int32Array;
  #previous: Int32Array;
  /** The step a thing is entered at; -1: not in the calendar. */
  #step: Int32Array;

  constructor(steps: number, things: number) {
    this.#first = new Int32Array(steps + 1).fill(-1);
    this.#next = new Int32Array(things).fill(-1);
    this.#previous = new Int32Array(things).fill(-1);
    this.#step = new Int32Array(things).fill(-1);
  }

  /** Makes room for so many things. */
  grow(things: number): void {
    this.#next = grown(this.#next, things);
    this.#previous = grown(this.#previous, things);
    this.#step = grown(this.#step, things);
  }

  /** What lies beyond the last step never happens, and is not entered. */
  add(thing: number, step: number): void {
    if (step >= this.#first.length) return;
    const next = this.#first[step]!;
    this.#first[step] = thing;
    this.#next[thing] = next;
    this.#previous[thing] = -1;
    if (next >= 0) this.#previous[next] = thing;
    this.#step[thing] = step;
  }

  remove(thing: number): void {
    const step = this.#step[thing]!;
    if (step < 0) return;
    const next = this.#next[thing]!;
    const previous = this.#previous[thing]!;
    if (previous >= 0) this.#next[previous] = next;
    else this.#first[step] = next;
    if (next >= 0) this.#previous[next] = previous;
    this.#step[thing] = -1;
  }

  /** One of the things at this step, out of the calendar; -1: none left. */
  take(step: number): number {
    const thing = this.#first[step]!;
    if (thing >= 0) this.remove(thing);
    return thing;
  }
}

/** A copy with more room, of which the rest is -1. */
export function grown(values: Int32Array, size: number): Int32Array {
  const larger = new Int32Array(size).fill(-1);
  larger.set(values);
  return larger;
}
