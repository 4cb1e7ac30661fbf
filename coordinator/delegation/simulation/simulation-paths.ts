/** How a simulated run names places and orders targets. */
import type { Placement } from "../placement.ts";

/** Numbers the nodes of a hierarchy that is given as paths of names: equal names under different parents are different nodes. */
export class PathNumbers {
  readonly #numbers = new Map<string, number>();

  /** One number per node of the path, in its order. */
  numbersAlong(path: readonly string[]): number[] {
    const numbers: number[] = [];
    let parent = 0;
    for (const name of path) {
      const key = `${parent}/${name}`;
      const number = this.#numbers.get(key) ?? this.#numbers.size + 1;
      this.#numbers.set(key, number);
      numbers.push(number);
      parent = number;
    }
    return numbers;
  }
}

/** A host as an instance describes it. */
interface PathHost {
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
}

/**
 * Placements with keys that are the same for the same place. Below root and /8, what is left of the path are the
 * ancestors; a short path has none.
 */
export function placementNumbers(): (host: PathHost) => Placement {
  const paths = new PathNumbers();
  return ({ path, org, cc }) => {
    const numbers = paths.numbersAlong(path);
    return {
      subnetKey: numbers.at(-1)!,
      holderKey: org === "" ? null : org,
      ancestorKeys: numbers.slice(2, -1).reverse(),
      widerKeys: numbers.slice(1, -1).slice(0, 1),
      country: cc === "" ? null : cc,
      slash8Key: numbers[1]!,
    };
  };
}

/** Fisher and Yates. */
export function shuffledIndices(count: number, draw: () => number): number[] {
  const indices = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1));
    [indices[last], indices[other]] = [indices[other]!, indices[last]!];
  }
  return indices;
}
