/**
 * The fetch load of subnets with hosts, by place. They are few, so a sorted list with running sums answers for one subnet and
 * for stretches of places.
 */
import type { Span } from "./places.ts";

/** Parallel columns in any order, each place once. */
interface LoadColumns {
  readonly places: readonly number[];
  readonly pagesPerDay: readonly number[];
  /** Hosts with due pages. */
  readonly dueHosts: readonly number[];
}

/** Place and index share one number, which sorts fastest: 2^26 loads of 2^27 places are exact. */
const mostLoads = 2 ** 26;

export class PlaceLoads {
  /** In tree order. */
  readonly places: Int32Array;
  /** Running sums, one element longer than `places`. */
  readonly #pagesPerDay: Float64Array;
  readonly #dueHosts: Float64Array;

  constructor({ places, pagesPerDay, dueHosts }: LoadColumns) {
    const keys = Float64Array.from(places, (place, at) => place * mostLoads + at).sort();
    this.places = new Int32Array(keys.length);
    this.#pagesPerDay = new Float64Array(keys.length + 1);
    this.#dueHosts = new Float64Array(keys.length + 1);
    for (const [index, key] of keys.entries()) {
      const at = key % mostLoads;
      this.places[index] = places[at] as number;
      this.#pagesPerDay[index + 1] = (this.#pagesPerDay[index] as number) + (pagesPerDay[at] as number);
      this.#dueHosts[index + 1] = (this.#dueHosts[index] as number) + (dueHosts[at] as number);
    }
  }

  pagesPerDay(span: Span): number {
    return this.#sum(this.#pagesPerDay, span);
  }

  dueHosts(span: Span): number {
    return this.#sum(this.#dueHosts, span);
  }

  pagesPerDayAt(place: number): number {
    return this.pagesPerDay({ from: place, to: place + 1 });
  }

  dueHostsAt(place: number): number {
    return this.dueHosts({ from: place, to: place + 1 });
  }

  #sum(sums: Float64Array, { from, to }: Span): number {
    return (sums[this.#indexFrom(to)] as number) - (sums[this.#indexFrom(from)] as number);
  }

  /** How many loads precede the place. */
  #indexFrom(place: number): number {
    let [low, high] = [0, this.places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.places[middle] as number) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
