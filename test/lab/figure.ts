/**
 * The figures by which two commits are compared (runner/). A bench prints freely and states here the few figures that show whether it
 * became slower; they are dropped unless `NEARCRAWL_BENCH_FIGURES` names a file.
 */
import { appendFileSync } from "node:fs";

export interface Figure {
  /** Unique within its bench and stable: commits are matched by it. */
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Set for rates and recall; for times and bytes lower is better. */
  readonly higherIsBetter?: boolean;
}

/** The file for the figures, one JSON value per line. */
export const figuresVariable = "NEARCRAWL_BENCH_FIGURES";

export function figure(
  name: string,
  value: number,
  unit: string,
  { higherIsBetter = false }: Pick<Figure, "higherIsBetter"> = {},
): void {
  if (!Number.isFinite(value) || value < 0) throw new Error(`the figure "${name}" is ${value} ${unit}`);
  const file = process.env[figuresVariable];
  if (file) appendFileSync(file, `${JSON.stringify({ name, value, unit, higherIsBetter })}\n`);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** `2.41 (2.30 to 2.66)`: median, smallest and largest. */
export function spread(values: readonly number[], digits = 2): string {
  const shown = [median(values), Math.min(...values), Math.max(...values)].map((one) => one.toFixed(digits));
  return `${shown[0]} (${shown[1]} to ${shown[2]})`;
}

/** CPU time of this process so far, in µs. */
export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
