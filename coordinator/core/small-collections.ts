/** Returns the positions of the smallest values in order, without sorting all values. NaN is skipped. */
export function smallestOf(values: ArrayLike<number>, most: number): Int32Array {
  const found = new Int32Array(Math.min(most, values.length));
  let count = 0;
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    if (Number.isNaN(value)) continue;
    if (count === found.length && value >= values[found[count - 1]!]!) continue;
    let at = count < found.length ? count++ : count - 1;
    while (at > 0 && values[found[at - 1]!]! > value) {
      found[at] = found[at - 1]!;
      at -= 1;
    }
    found[at] = index;
  }
  return found.subarray(0, count);
}

/** Options of an LRUCache that grows up to its bound, because allocating all entries at once (`max`) takes milliseconds. */
export const growingTo = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 }) as const;
