/**
 * What a figure of the evaluation is: it measures by simulation and gives a section of the page, pictures, and
 * the numbers behind both. Each has a file of its own; `figures` in all-figures.ts lists them.
 */
import type { PolicyVariant } from "#coordinator/delegation/simulation/run";
import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import type { LatencyMatrix } from "../simulate/instances/drawn-fleet.ts";
import type { MatrixSlice } from "../simulate/instances/named-instance.ts";
import type { Tuning } from "../simulate/repeat-policies.ts";
import type { World } from "../world/model.ts";

export interface Figure {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  measure(context: EvaluationContext): Section;
  /** True: it draws fleets from the measured matrices where they are at hand. */
  readonly usesMatrices?: boolean;
}

export interface EvaluationContext {
  readonly plan: EvaluationPlan;
  readonly measured: readonly MeasuredInstance[];
  /** Measured matrices from which larger fleets are drawn, those that are at hand. */
  readonly matrices: ReadonlyMap<MatrixSlice, LatencyMatrix>;
  /** What is being computed, and how far it is. */
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/** An instance from measured round-trip times. */
export interface MeasuredInstance {
  readonly name: string;
  /** Whether constants of the policies were chosen on it. */
  readonly tuning: Tuning;
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

/** How much an evaluation computes: everything, in about 20 minutes on one core, or a taste of it for a test. */
interface EvaluationPlan {
  /** Worlds (or orders of a measured instance) over which the smaller figures take their means. */
  readonly seeds: readonly number[];
  /** Sites of those worlds; the paper's 1,000. */
  readonly sites: number;
  readonly crawlers: {
    /** Figure 3: the paper's 4, and 12. */
    readonly download: readonly number[];
    /** Figure 4: the paper's 12. */
    readonly thresholds: number;
    /** Figure 5: the paper's 6 and 12. */
    readonly learning: readonly number[];
    readonly frontier: readonly number[];
    readonly noise: number;
    readonly risk: readonly number[];
    /** TinyG's, or as many as a taste needs. */
    readonly large: number;
  };
  /** Seeds of the figures that are larger than the rest. */
  readonly fewSeeds: readonly number[];
  readonly untuned: readonly UntunedStep[];
  readonly scale: readonly ScaleStep[];
}

/** One size of fleet in the worlds that nothing was tuned on. */
interface UntunedStep {
  readonly crawlers: number;
  readonly seeds: readonly number[];
}

/** One world size of the large table. */
export interface ScaleStep {
  readonly crawlers: number;
  readonly sites: number;
  readonly seeds: readonly number[];
  /** False: too many probes to compute. */
  readonly exhaustive: boolean;
}

/** A round in which every crawler probes costs the simulator so many steps squared; beyond this it is left out. */
const mostExhaustiveSteps = 5e8;

function scaleStep(crawlers: number, sites: number, seeds: readonly number[]): ScaleStep {
  return { crawlers, sites, seeds, exhaustive: crawlers ** 2 * sites <= mostExhaustiveSteps };
}

export const fullPlan: EvaluationPlan = {
  seeds: [1, 2, 3, 4, 5],
  sites: 1000,
  crawlers: {
    download: [4, 12],
    thresholds: 12,
    learning: [6, 12],
    frontier: [12, 50],
    noise: 12,
    risk: [12, 50],
    large: 1300,
  },
  fewSeeds: [1, 2],
  untuned: [
    { crawlers: 12, seeds: [1, 2, 3, 4, 5] },
    { crawlers: 50, seeds: [1, 2, 3, 4, 5] },
    { crawlers: 200, seeds: [1, 2, 3] },
    { crawlers: 1300, seeds: [1, 2] },
  ],
  // 1,000 crawlers with more sites, and the other fleets with 100,000, would take longer than all the rest together.
  scale: [
    ...[6, 12, 50, 200, 1000].map((crawlers) => scaleStep(crawlers, 1000, crawlers <= 12 ? [1, 2, 3] : [1])),
    ...[6, 12, 50, 200].map((crawlers) => scaleStep(crawlers, 10_000, [1])),
    scaleStep(12, 100_000, [1]),
  ],
};

export const quickPlan: EvaluationPlan = {
  seeds: [1, 2],
  sites: 120,
  crawlers: {
    download: [4, 6],
    thresholds: 12,
    learning: [4, 6],
    frontier: [6],
    noise: 6,
    risk: [6],
    large: 40,
  },
  fewSeeds: [1, 2],
  untuned: [
    { crawlers: 6, seeds: [1, 2] },
    { crawlers: 20, seeds: [1] },
  ],
  scale: [scaleStep(6, 120, [1, 2]), scaleStep(12, 120, [1]), scaleStep(12, 400, [1])],
};

/** A table in Markdown; cells are text already. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(titles), `|${"---|".repeat(titles.length)}`, ...rows.map(line)].join("\n");
}

export function image(file: string, words: string): string {
  return `![${words}](${file})`;
}

/** `1,000`. */
export const count = (value: number): string => value.toLocaleString("en");

/** What its authors state of TinyG (CNSM 2023, doi 10.23919/CNSM59352.2023.10327884), in its abstract. */
export const tinyG = {
  /** "More than" so many. */
  probers: 1300,
  probesPerTarget: 6.7,
  /** Fewer targets with a prober within `withinMs` than asking everybody finds. */
  lostPct: 6,
  withinMs: 2,
} as const;

/** The numbers that the paper states in its text (section 4.5); its figures 3 to 5 have no others that can be read. */
export const paper = {
  /** In the experiment with thresholds. */
  crawlers: 12,
  /** Accuracy: the best crawler, exactly. */
  thresholds: [
    { thresholdMs: 25, optimalPct: 90, probesPerUrl: 6.5 },
    { thresholdMs: 50, optimalPct: 75, probesPerUrl: 3 },
  ],
  /** Twelve crawlers, 50 ms. */
  probesPerUrlLast50: 2.66,
  /** Random by location-aware: "one order of magnitude less time", 4 crawlers, 1,000 sites. */
  downloadRatio: 10,
} as const;
