/**
 * Seeded randomness for the emulated Internet: draws from core's generator, and a hash for values of pairs that must
 * not depend on the order of requests.
 */

import { mix32, seededRandom } from "#core/random";

/** Draws a sequence that is the same for the same seed on every machine. */
export class SeededRandom {
  /** Uniform in [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(mix32(seed >>> 0));
  }

  /** Returns an integer from `from` to `to`, both included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError("cannot pick from an empty list");
    return list[Math.floor(this.next() * list.length)] as T;
  }

  /** Returns one element of the list with a probability proportional to its weight. */
  pickWeighted<T>(list: readonly T[], weightOf: (item: T) => number): T {
    const total = list.reduce((sum, item) => sum + weightOf(item), 0);
    let left = this.next() * total;
    for (const item of list) {
      left -= weightOf(item);
      if (left < 0) return item;
    }
    return this.pick(list);
  }

  /** Normally distributed, with mean 0 and standard deviation 1 (Box and Muller). */
  normal(): number {
    return normalOf(this.next(), this.next());
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }
}

/** Uniform in [0, 1), the same for the same three numbers. */
export function hashUnit(seed: number, a: number, b: number): number {
  const first = mix32(mix32(seed) ^ Math.imul(a + 1, 0x9e3779b1));
  return mix32(first ^ Math.imul(b + 1, 0x85ebca6b)) / 2 ** 32;
}

/** Normally distributed, the same for the same three numbers. */
export function hashNormal(seed: number, a: number, b: number): number {
  return normalOf(hashUnit(seed, a, b), hashUnit(seed ^ 0x5bd1e995, a, b));
}

/** Returns a 32-bit number for a text (FNV-1a, mixed). */
export function hashText(seed: number, text: string): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mix32(hash);
}

function normalOf(u: number, v: number): number {
  return Math.sqrt(-2 * Math.log(1 - u)) * Math.cos(2 * Math.PI * v);
}
