/** `2.41 (2.30 to 2.66)`: the median, the smallest and the largest of some measurements. */
export function spread(values: readonly number[], digits = 2): string {
  const sorted = values.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  return `${median.toFixed(digits)} (${sorted[0]!.toFixed(digits)} to ${sorted.at(-1)!.toFixed(digits)})`;
}
