/** Figures 4 and 5 of the paper: tasks that wait, and what is downloaded, over time, a line per strategy. */

import type { CaseName, StrategyName } from "../../simulate/recrawl/scenario.ts";
import type { RecrawlFigures, Sample } from "../../simulate/recrawl/simulate-recrawl.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type LinePanel } from "../pictures/line-picture.ts";

const roles: Readonly<Record<StrategyName, Role>> = {
  fixed: "random",
  iir: "ipmicra",
  icr: "nearest",
  optimal: "get-first",
};

export function drawRecrawl(name: CaseName, figures: readonly RecrawlFigures[]): string {
  const panel = (title: string, label: string, of: (run: RecrawlFigures) => readonly Sample[]): LinePanel => {
    const lines = figures.map((run) => ({
      name: run.strategy,
      role: roles[run.strategy],
      points: of(run).map(({ step, value }) => ({ x: step / 1000, y: value })),
      style: "line" as const,
    }));
    const points = lines.flatMap((line) => line.points);
    return {
      title,
      x: axisFor(
        "thousand steps",
        points.map(({ x }) => x),
      ),
      y: axisFor(
        label,
        points.map(({ y }) => y),
      ),
      lines,
    };
  };
  return drawLines({
    title: `${name === "REC" ? "Figure 4" : "Figure 5"}: queued tasks and throughput under ${name}`,
    description: `Tasks waiting in crawlers' queues, and Mbit/s of downloads that succeeded, over the simulation, by strategy, under ${name}.`,
    panels: [
      panel("queued tasks", "thousand tasks", ({ queued }) => queued.map(inThousands)),
      panel("throughput", "Mbit/s", ({ throughputMbps }) => throughputMbps),
    ],
  });
}

function inThousands({ step, value }: Sample): Sample {
  return { step, value: value / 1000 };
}
