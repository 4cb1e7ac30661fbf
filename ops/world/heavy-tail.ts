/**
 * Groups whose sizes are as uneven as those of real registries' holders: a Pitman-Yor process. Members come one
 * by one; each joins a group with a likelihood that grows with the group's size, or founds one of its own. With
 * concentration t and discount d, n members make about t/d · ((1 + n/t)^d − 1) groups.
 */
import type { SeededRandom } from "./seeded-random.ts";

export interface HeavyTailSettings {
  /** How many members come before most of them find a group that they could join. */
  readonly concentration: number;
  /** From 0 to 1: the higher, the more groups stay small. */
  readonly discount: number;
}

export class HeavyTail {
  readonly #random: SeededRandom;
  readonly #settings: HeavyTailSettings;
  /** The group of each member. */
  readonly #groupOf: number[] = [];
  /** The member that founded each group. */
  readonly #founderOf: number[] = [];

  constructor(random: SeededRandom, settings: HeavyTailSettings) {
    this.#random = random;
    this.#settings = settings;
  }

  /** The group that the next member joins; a new one has the next free number. */
  next(): number {
    const group = this.#drawGroup();
    const member = this.#groupOf.push(group) - 1;
    if (group === this.#founderOf.length) this.#founderOf.push(member);
    return group;
  }

  #drawGroup(): number {
    const { concentration, discount } = this.#settings;
    const founded = this.#founderOf.length;
    const draw = this.#random.next() * (this.#groupOf.length + concentration);
    const member = Math.floor(draw);
    const group = this.#groupOf[member];
    if (group === undefined) return founded;
    return this.#founderOf[group] === member && this.#random.chance(discount) ? founded : group;
  }
}
