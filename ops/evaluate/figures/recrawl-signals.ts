/** How fresh pages are kept with signals of their changes, by how many are signalled and how many signals are false. */

import type { SignalComparison, SignalStrategy } from "../../simulate/recrawl/signalled-pages.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type LinePanel } from "../pictures/line-picture.ts";

const roles: readonly Role[] = ["nearest", "get-first", "ipmicra", "ipmicra-strict"];

/** A panel for each of these, with what takes no notice of signals beside it. */
const panels = [
  { strategy: "ncis", title: "signals of known quality", beside: ["optimal", "fixed"] },
] as const satisfies readonly {
  strategy: SignalStrategy;
  title: string;
  beside: readonly SignalStrategy[];
}[];

export function drawSignals(comparisons: readonly SignalComparison[]): string {
  const falseShares = [...new Set(comparisons.map(({ quality }) => quality.falseShare))];
  const all = comparisons.flatMap(({ strategies }) => strategies.map(({ freshness }) => 100 * freshness));
  const least = 20 * Math.floor(Math.min(...all) / 20);
  const points = (strategy: SignalStrategy, falseShare: number) =>
    comparisons
      .filter(({ quality }) => quality.falseShare === falseShare)
      .flatMap((one) => {
        const found = one.strategies.find((run) => run.strategy === strategy);
        return found === undefined ? [] : [{ x: 100 * one.quality.recall, y: 100 * found.freshness }];
      })
      .sort((a, b) => a.x - b.x);
  const panel = ({ strategy, title, beside }: (typeof panels)[number]): LinePanel => {
    const own = falseShares.map((falseShare, at) => ({
      name: `${strategy}, ${Math.round(100 * falseShare)} % of the signals false`,
      role: roles[at % roles.length]!,
      style: "line-with-marks" as const,
      points: points(strategy, falseShare),
    }));
    const others = beside.map((name) => ({
      name,
      role: name === "fixed" ? ("random" as const) : ("exhaustive" as const),
      style: "dashed" as const,
      points: points(name, falseShares[0]!),
    }));
    const lines = [...own, ...others].filter((line) => line.points.length > 0);
    return {
      title,
      x: axisFor("% of changes signalled", [0, 100]),
      y: axisFor("% current, by importance", [], { from: least, to: 100 }),
      lines,
    };
  };
  return drawLines({
    title: "Freshness with noisy signals of changes",
    description:
      "Share of time in which stored copies are current, by importance, at one fetch for each change, over the share of changes that is signalled, by the share of signals that is false.",
    panels: panels.map(panel),
  });
}
