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
