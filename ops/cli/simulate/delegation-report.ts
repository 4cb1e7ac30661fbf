/** What `simulate delegation` prints: one report per policy, as JSON and as a table. */
import type { PolicyName } from "#coordinator/delegation/policies/round";
import type { Figures } from "#coordinator/delegation/simulation/figures";
import type { ProbeNoise } from "../../simulate/probe-noise.ts";
import type { RepeatedResult } from "../../simulate/repeat-policies.ts";
import { type Spread, spreadText } from "../../simulate/spread.ts";
import { formatTable } from "../output.ts";

/** Figures are means over the seeds. */
export interface DelegationReport extends Figures {
  /** Present when several instances were asked for. */
  readonly instance?: string;
  readonly policy: PolicyName;
  readonly crawlers: number;
  readonly targets: number;
  /** Present when there was more than one run. */
  readonly seeds?: number;
  readonly spread?: Readonly<Record<keyof Figures, Spread>>;
  /** Present when probes were disturbed; `exhaustive` is the yardstick under the same noise. */
  readonly noise?: ProbeNoise;
  readonly exhaustive?: Pick<Figures, "optimalPct" | "within5msPct" | "meanExcessMs">;
}

export interface ReportContext {
  /** Null: the only one. */
  readonly instance: string | null;
  /** Null: no noise. */
  readonly noise: ProbeNoise | null;
  readonly yardstick: RepeatedResult | null;
}

export function reportOf({ variant, results, figures }: RepeatedResult, of: ReportContext): DelegationReport {
  const [first] = results;
  const { yardstick } = of;
  return {
    ...(of.instance === null ? {} : { instance: of.instance }),
    policy: variant.policy,
    crawlers: first!.crawlers,
    targets: first!.targets,
    ...meansOf(figures),
    ...(results.length > 1 ? { seeds: results.length, spread: figures } : {}),
    ...(of.noise === null ? {} : { noise: of.noise }),
    ...(yardstick === null ? {} : { exhaustive: yardstickOf(meansOf(yardstick.figures)) }),
  };
}

function meansOf(figures: RepeatedResult["figures"]): Figures {
  return {
    optimalPct: figures.optimalPct.mean,
    within5msPct: figures.within5msPct.mean,
    meanExcessMs: figures.meanExcessMs.mean,
    p95ExcessMs: figures.p95ExcessMs.mean,
    probesPerUrl: figures.probesPerUrl.mean,
    probesPerUrlLast50: figures.probesPerUrlLast50.mean,
  };
}

function yardstickOf({ optimalPct, within5msPct, meanExcessMs }: Figures) {
  return { optimalPct, within5msPct, meanExcessMs };
}

/** The results of one instance, under a line that says what it is. */
export function delegationTable(
  results: readonly RepeatedResult[],
  of: { readonly title: string; readonly seeds: string },
): string {
  const [first] = results;
  const columns = [
    { title: "policy" },
    ...["best %", "within 5 ms %", "mean excess ms", "p95 excess ms", "probes/URL", "last 50"].map(
      (title) => ({ title, align: "right" as const }),
    ),
  ];
  const rows = results.map(({ variant, figures }) => [
    variant.policy,
    spreadText(figures.optimalPct, 1),
    spreadText(figures.within5msPct, 1),
    spreadText(figures.meanExcessMs, 2),
    spreadText(figures.p95ExcessMs, 2),
    spreadText(figures.probesPerUrl, 2),
    spreadText(figures.probesPerUrlLast50, 2),
  ]);
  const size = first?.results[0];
  const head = `${of.title}${size?.crawlers} crawlers, ${size?.targets} targets${of.seeds}`;
  return `${head}\n\n${formatTable(columns, rows)}`;
}
