/**
 * What a bench measured, for the comparison of two commits (runner/). A bench prints for people as it likes, and states
 * the few figures that tell whether it got slower here; without `NEARCRAWL_BENCH_FIGURES` nothing becomes of them.
 */
import { appendFileSync } from "node:fs";

export interface Figure {
  /** Unique within its bench, and kept over its life: it is what two commits are compared by. */
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Of rates and recall; times, bytes and the like are better when less. */
  readonly higherIsBetter?: boolean;
}

/** The file that takes the figures, one JSON value per line. */
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
