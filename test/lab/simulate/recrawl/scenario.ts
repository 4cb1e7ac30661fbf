/**
 * The assumptions of a recrawl simulation: section 4 of Xu et al., "Scale-adaptable Recrawl Strategies for DHT-based Distributed
 * Web Crawling System" (NPC 2010), and, where the paper states nothing, the values that come nearest to its tables
 * (test/bench/results/sarss.md). A step is one minute.
 */
export const strategyNames = ["fixed", "iir", "icr", "optimal"] as const;
export type StrategyName = (typeof strategyNames)[number];

/** REC: the requirement exceeds the capacity; RUC: it underestimates it. The paper's crawlers for 16,000 channels. */
export const cases = { REC: 1400, RUC: 2800 } as const;
export type CaseName = keyof typeof cases;

export interface Normal {
  readonly mean: number;
  readonly deviation: number;
}

export interface RecrawlScenario {
  readonly seed: number;
  readonly channels: number;
  readonly crawlers: number;
  readonly steps: number;
  /** θ of each priority group, most urgent first: mean minutes between changes of its pages. */
  readonly changeMinutes: readonly number[];
  /** Channels of each group, as weights. */
  readonly groupWeights: readonly number[];
  /** Steps until a crawler leaves, and until it is back. */
  readonly living: Normal;
  readonly away: Normal;
  /** Share of crawlers that forward their tasks before they leave; the others' are lost. */
  readonly notifiedShare: number;
  readonly threads: number;
  /** Queue length from which other crawlers are preferred. */
  readonly queueLength: number;
  /** Number of nearest crawlers among which a task is forwarded. */
  readonly neighbours: number;
  /** Pages of a channel: log-normal with this mean and deviation of the logarithm, at most `mostPages`. */
  readonly meanPages: number;
  readonly pagesSpread: number;
  readonly mostPages: number;
  /** Size of a page on the wire. */
  readonly pageBytes: number;
  /** Pause between two pages. */
  readonly waitMs: number;
  /** δ, σ and μ. */
  readonly encourageRate: number;
  readonly smallestMultiple: number;
  readonly biggestMultiple: number;
}

/** The paper's scale, whose ratio of crawlers `--channels` keeps. */
export const paperChannels = 16_000;

export const defaultScenario: Omit<RecrawlScenario, "crawlers"> = {
  seed: 1,
  channels: paperChannels,
  steps: 90_000,
  changeMinutes: [60, 120, 240, 480, 960],
  // Table 1's tasks by its intervals, over 100,000 steps: 16,000 in all (over the stated 90,000, 17,778).
  groupWeights: [543, 3954, 7150, 3816, 537],
  living: { mean: 1000, deviation: 200 },
  away: { mean: 600, deviation: 200 },
  notifiedShare: 1 / 3,
  threads: 5,
  queueLength: 5,
  neighbours: 100,
  // 15,187,511 URLs of 1,738 hosts.
  meanPages: 15_187_511 / 1738,
  pagesSpread: 1,
  mostPages: 20_000,
  pageBytes: 16_000,
  waitMs: 200,
  encourageRate: 0.73,
  smallestMultiple: 1.35,
  biggestMultiple: 2.5,
};

/** 2^rank; the most urgent group has the highest rank (section 4.1). */
export function weightOf(group: number, groups: number): number {
  return 2 ** (groups - 1 - group);
}
