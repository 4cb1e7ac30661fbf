/** The tables of `npm run lab -- recrawl`: tables 1 to 4 of Xu et al. (NPC 2010), ours beside the paper's. */

import type { Column } from "#core/terminal-text";
import { formatTable } from "#ops/cli/output";
import { type CaseName, paperChannels, type RecrawlScenario, type StrategyName } from "./scenario.ts";
import type { RecrawlFigures } from "./simulate-recrawl.ts";

export interface CaseReport {
  readonly case: CaseName;
  readonly scenario: RecrawlScenario;
  readonly figures: readonly RecrawlFigures[];
}

export function recrawlTables(report: CaseReport): string {
  const { scenario, figures } = report;
  const [tasks, quality] = report.case === "REC" ? [1, 2] : [3, 4];
  const { channels, crawlers, steps, seed } = scenario;
  const size = `${count(channels)} channels, ${count(crawlers)} crawlers, ${count(steps)} steps, seed ${seed}`;
  return [
    `${report.case}: ${size}`,
    `Recrawl tasks, in thousands (table ${tasks}; the paper's in brackets, for so many channels and steps)`,
    formatTable(columnsOf("rank", figures), taskRows(report)),
    `Steps between two recrawls of a channel (table ${tasks})`,
    formatTable(columnsOf("rank", figures), intervalRows(report)),
    `Update quality (table ${quality}), freshness and load`,
    formatTable(columnsOf("", figures), qualityRows(report)),
  ].join("\n\n");
}

function columnsOf(first: string, figures: readonly RecrawlFigures[]): Column[] {
  return [{ title: first }, ...figures.map(({ strategy }) => ({ title: strategy, align: "right" as const }))];
}

function taskRows(report: CaseReport): string[][] {
  const { steps, channels } = report.scenario;
  const scale = 1000 * (steps / paperTableSteps) * (channels / paperChannels);
  const thousands = (value: number) => number(value, value < 100 ? 1 : 0);
  const ranks = report.figures[0]!.groups.map(({ rank }, group) =>
    row(report, `${rank}`, thousands, {
      ours: ({ groups }) => groups[group]!.submitted / 1000,
      paper: (paper) => scale * paper.tasks[group]!,
    }),
  );
  const total = row(report, "total", thousands, {
    ours: ({ counts }) => counts.submitted / 1000,
    paper: (paper) => scale * sum(paper.tasks),
  });
  return [...ranks, total, ...ofFixedRows(report)];
}

/** Only if FIXED ran too. */
function ofFixedRows(report: CaseReport): string[][] {
  const fixed = report.figures.find(({ strategy }) => strategy === "fixed");
  const paperFixed = paperFigures[report.case].fixed;
  if (!fixed || !paperFixed) return [];
  return [
    row(report, "of FIXED's", (value) => number(value, 3), {
      ours: ({ counts }) => counts.submitted / fixed.counts.submitted,
      paper: (paper) => sum(paper.tasks) / sum(paperFixed.tasks),
    }),
  ];
}

function intervalRows(report: CaseReport): string[][] {
  const whole = (value: number) => number(value, 0);
  const ranks = report.figures[0]!.groups.map(({ rank }, group) =>
    row(report, `${rank}`, whole, {
      ours: ({ groups }) => groups[group]!.intervalSteps,
      paper: (paper) => paper.intervals[group]!,
    }),
  );
  // The paper's means are not those of its columns under REC; these are the means over the channels of each group.
  const mean = (intervals: readonly (number | null)[], { groups }: RecrawlFigures) => {
    const known = groups.map(({ channels }, group) => (intervals[group] == null ? 0 : channels));
    return sum(known.map((channels, group) => channels * (intervals[group] ?? 0))) / sum(known);
  };
  const first = report.figures[0]!;
  return [
    ...ranks,
    row(report, "mean", whole, {
      ours: (figures) =>
        mean(
          figures.groups.map(({ intervalSteps }) => intervalSteps),
          figures,
        ),
      paper: (paper) => mean(paper.intervals, first),
    }),
  ];
}

function qualityRows(report: CaseReport): string[][] {
  const fixed = report.figures.find(({ strategy }) => strategy === "fixed");
  const paperFixed = paperFigures[report.case].fixed;
  const digits = (places: number) => (value: number) => number(value, places);
  const percent = (value: number) => `${number(100 * value, 1)} %`;
  const against = (value: number) => `${value < 1 ? "" : "+"}${number(100 * (value - 1), 1)} %`;
  const rows = [
    row(report, "weighted quality", digits(4), {
      ours: ({ weightedQuality }) => weightedQuality,
      paper: ({ weightedQuality }) => weightedQuality,
    }),
    row(report, "quality", digits(4), { ours: ({ quality }) => quality, paper: ({ quality }) => quality }),
    row(report, "weighted freshness", digits(4), { ours: ({ weightedFreshness }) => weightedFreshness }),
    row(report, "freshness", digits(4), { ours: ({ freshness }) => freshness }),
    row(report, "tasks that succeed", percent, {
      ours: ({ successRate }) => successRate,
      paper: ({ successRate }) => successRate,
    }),
    row(report, "lost with crawlers", percent, {
      ours: ({ counts }) => counts.lost / Math.max(1, counts.submitted),
    }),
    row(report, "waited too long", percent, {
      ours: ({ counts }) => counts.cancelled / Math.max(1, counts.submitted),
    }),
    row(report, "queued per crawler", digits(2), {
      ours: ({ queuedPerCrawler }) => queuedPerCrawler,
      paper: ({ queued }) => queued,
    }),
    row(report, "threads busy", percent, { ours: ({ busyShare }) => busyShare }),
    row(report, "reassignments", digits(0), { ours: ({ reassignments }) => reassignments }),
  ];
  if (!fixed || !paperFixed) return rows;
  const compared = row(report, "weighted, to FIXED's", against, {
    ours: ({ weightedQuality }) => weightedQuality / fixed.weightedQuality,
    paper: ({ weightedQuality }) => weightedQuality / paperFixed.weightedQuality,
  });
  return [rows[0]!, compared, ...rows.slice(1)];
}

interface Cell {
  readonly ours: (figures: RecrawlFigures) => number | null;
  readonly paper?: (paper: PaperFigures) => number | null;
}

function row(report: CaseReport, name: string, text: (value: number) => string, cell: Cell): string[] {
  const cells = report.figures.map((figures) => {
    const paper = paperFigures[report.case][figures.strategy];
    const theirs = paper && cell.paper ? cell.paper(paper) : null;
    const ours = cell.ours(figures);
    return `${ours === null ? "–" : text(ours)}${theirs === null ? "" : ` (${text(theirs)})`}`;
  });
  return [name, ...cells];
}

function number(value: number, digits: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function count(value: number): string {
  return value.toLocaleString("en");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

// The paper's values (Xu et al., NPC 2010, tables 1 to 4 and the text around figures 4 and 5), printed beside ours.

interface PaperFigures {
  /** Tables 1 and 3, ranks 4 to 0: recrawl tasks, in millions, of 16,000 channels. */
  readonly tasks: readonly number[];
  /** Steps between two recrawls. */
  readonly intervals: readonly number[];
  /** Tables 2 and 4: equation 5 with the weights 2^rank, and with 1. */
  readonly weightedQuality: number;
  readonly quality: number;
  /** Share of tasks that succeed, if the text states one. */
  readonly successRate: number | null;
  /** Waiting tasks per online crawler. */
  readonly queued: number;
}

/**
 * The number of steps behind its counts of tasks: channels are tasks times interval over steps, and with the stated 90,000 steps
 * tables 1 and 3 would add up to 17,778 channels in place of 16,000.
 */
const paperTableSteps = 100_000;

const fixed = {
  tasks: [0.905, 3.295, 2.979, 0.795, 0.056],
  intervals: [60, 120, 240, 480, 960],
} as const;

const paperFigures: Readonly<Record<CaseName, Partial<Record<StrategyName, PaperFigures>>>> = {
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
