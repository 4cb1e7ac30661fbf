/** Named policies over one source of instances, with progress: what most figures start from. */
import type { AsksFurther } from "#coordinator/delegation/simulation/run";
import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import {
  type InstanceSource,
  noNoise,
  type ProbeNoise,
  type RepeatedResult,
  repeatPolicies,
} from "../simulate/repeat-policies.ts";
import type { EvaluationContext, NamedVariant } from "./figure.ts";

export interface NamedResult extends RepeatedResult {
  /** The policy's, as tables and legends call it. */
  readonly name: string;
}

export interface VariantRun {
  /** For the progress line. */
  readonly what: string;
  readonly source: InstanceSource;
  readonly compared: readonly NamedVariant[];
  /** The plan's when absent. */
  readonly seeds?: readonly number[];
  readonly noise?: ProbeNoise;
  readonly asksFurther?: AsksFurther;
}

/** One result per policy, in their order. */
export function runVariants(run: VariantRun, { plan, onProgress }: EvaluationContext): NamedResult[] {
  const results = repeatPolicies({
    source: run.source,
    variants: run.compared.map(({ variant }) => variant),
    seeds: run.seeds ?? plan.seeds,
    noise: run.noise ?? noNoise,
    ...(run.asksFurther ? { asksFurther: run.asksFurther } : {}),
    onProgress: (progress) =>
      onProgress(
        run.what,
        (progress.run - 1) * progress.targets + progress.doneTargets,
        progress.runs * progress.targets,
      ),
  });
  return results.map((result, index) => ({ ...result, name: run.compared[index]!.name }));
}

/** The same source, with each instance made once and its rows of RTTs kept: for several runs over few targets. */
export function keptSource(source: InstanceSource): InstanceSource {
  const kept = new Map<number, SimulationInstance>();
  return {
    ...source,
    instance: (seed) => {
      const instance = kept.get(seed) ?? withRows(source.instance(seed));
      kept.set(seed, instance);
      return instance;
    },
  };
}

function withRows(instance: SimulationInstance): SimulationInstance {
  const targets = instance.targets.map(({ path, org, cc, rtt }) => ({ path, org, cc, rtt }));
  return { ...instance, targets };
}

/** The figures of each policy, for programs. */
export function dataOf(results: readonly NamedResult[]): object[] {
  return results.map(({ name, tuning, figures }) => ({ policy: name, tuning, ...figures }));
}
