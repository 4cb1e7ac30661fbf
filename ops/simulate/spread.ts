/** Several values of one figure, from runs with other seeds, as a person reads them. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

/** Rounded to four decimals, as the figures themselves. Zeros for no value. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { mean: 0, least: 0, most: 0 };
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean: rounded(mean), least: Math.min(...values), most: Math.max(...values) };
}

/** `96.1` for one value, `96.1 (95.2 to 97.0)` for several that differ. */
export function spreadText({ mean, least, most }: Spread, digits: number): string {
  const text = mean.toFixed(digits);
  const [low, high] = [least.toFixed(digits), most.toFixed(digits)];
  return low === high ? text : `${text} (${low} to ${high})`;
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
