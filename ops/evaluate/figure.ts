/**
 * What a figure of the evaluation is: it measures by simulation and gives a section of the page, pictures, and
 * the numbers behind both. Each has a file of its own; `figures` in all-figures.ts lists them.
 */

import type { PolicyVariant } from "#coordinator/delegation/simulation/run";
import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import type { World } from "../world/model.ts";
import type { EvaluationPlan } from "./plan.ts";

export interface Figure {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  measure(context: EvaluationContext): Section;
}

export interface EvaluationContext {
  readonly plan: EvaluationPlan;
  readonly measured: readonly MeasuredInstance[];
  /** What is being computed, and how far it is. */
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/** An instance from measured round-trip times. */
export interface MeasuredInstance {
  readonly name: string;
  readonly instance: SimulationInstance;
  /** The same with what a download needs besides: bandwidth and the server's own time, drawn by a seed. */
  readonly world: World;
}

export interface Section {
  /** Markdown below the section's heading. */
  readonly text: string;
  readonly pictures: readonly Picture[];
  /** The numbers, for programs. */
  readonly data: unknown;
}

export interface Picture {
  /** File name, with `.svg`. */
  readonly file: string;
  readonly svg: string;
}

export interface NamedVariant {
  readonly name: string;
  readonly variant: PolicyVariant;
}

const ipmicra = (thresholdMs: number): NamedVariant => ({
  name: `ipmicra ${thresholdMs} ms`,
  variant: { policy: "ipmicra", parameters: { thresholdMs } },
});

/** The policies that figures compare. */
export const variants = {
  random: { name: "random", variant: { policy: "random" } },
  ipmicra,
  nearest: { name: "nearest", variant: { policy: "nearest" } },
  getFirst: {
    name: "nearest, get-first",
    variant: { policy: "nearest", parameters: { getFirst: true } },
  },
  exhaustive: { name: "exhaustive", variant: { policy: "exhaustive" } },
} as const satisfies Record<string, NamedVariant | ((value: number) => NamedVariant)>;
