/** What the paper prints (Xu et al., NPC 2010, tables 1 to 4 and the text around figures 4 and 5), to be set beside ours. */
import { type CaseName, type StrategyName, weightOf } from "./scenario.ts";

export interface PaperFigures {
  /** Tables 1 and 3, ranks 4 to 0: recrawl tasks, in millions, of 16,000 channels. */
  readonly tasks: readonly number[];
  /** Steps between two recrawls. */
  readonly intervals: readonly number[];
  /** Tables 2 and 4: equation 5 with the weights 2^rank, and with 1. */
  readonly weightedQuality: number;
  readonly quality: number;
  /** Share of tasks that succeed, where the text says one. */
  readonly successRate: number | null;
  /** Tasks that wait, per crawler that is there. */
  readonly queued: number;
}

/**
 * The steps that its counts of tasks are of: channels are tasks times interval over steps, and with 90,000 steps, which
 * the text states, tables 1 and 3 add up to 17,778 channels in place of 16,000.
 */
export const paperTableSteps = 100_000;

const fixed = {
  tasks: [0.905, 3.295, 2.979, 0.795, 0.056],
  intervals: [60, 120, 240, 480, 960],
} as const;

export const paperFigures: Readonly<Record<CaseName, Partial<Record<StrategyName, PaperFigures>>>> = {
  REC: {
    fixed: { ...fixed, weightedQuality: 1.9987, quality: 0.5571, successRate: 0.15, queued: 17 },
    iir: {
      tasks: [0.251, 1.212, 1.512, 0.471, 0.038],
      intervals: [216, 326, 473, 811, 1412],
      weightedQuality: 2.0266,
      quality: 0.4936,
      successRate: 0.3,
      queued: 2.8,
    },
    icr: {
      tasks: [0.522, 1.719, 1.499, 0.393, 0.027],
      intervals: [104, 230, 477, 972, 1964],
      weightedQuality: 2.0176,
      quality: 0.4331,
      successRate: 0.3,
      queued: 1.4,
    },
  },
  RUC: {
    fixed: { ...fixed, weightedQuality: 4.7873, quality: 1.0013, successRate: null, queued: 0.36 },
    iir: {
      tasks: [0.738, 3.506, 3.388, 0.943, 0.075],
      intervals: [74, 110, 214, 399, 782],
      weightedQuality: 9.1474,
      quality: 1.9827,
      successRate: 0.3,
      queued: 2,
    },
    icr: {
      tasks: [0.975, 3.428, 3.805, 0.691, 0.052],
      intervals: [56, 112, 190, 544, 1119],
      weightedQuality: 8.2611,
      quality: 1.9701,
      successRate: 0.3,
      queued: 3,
    },
  },
};

/**
 * Equation 5 as it would be if every task succeeded, from the paper's own intervals and counts of channels: more
 * updates than recrawls there cannot be. With all weights 1, or with 2^rank.
 */
export function mostQuality({ intervals }: PaperFigures, weights: "ranks" | "equal"): number {
  const channels = fixed.tasks.map((count, group) => count * fixed.intervals[group]!);
  const all = channels.reduce((sum, count) => sum + count, 0);
  return channels.reduce((sum, count, group) => {
    const weight = weights === "ranks" ? weightOf(group, channels.length) : 1;
    return sum + (weight * count * fixed.intervals[group]!) / (intervals[group]! * all);
  }, 0);
}
