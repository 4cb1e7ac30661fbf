/** The output of `--range`: a line of characters for each figure's history, which pages draw as charts. */

import { type Paper, painted, printable } from "#core/terminal-text";
import { rangeWords } from "#core/time-range";
import {
  type ChartHistory,
  chartValueText,
  type HistoryChart,
  type HistorySeries,
  rangeOf,
} from "../web/chart-history.ts";

export function historyText(history: ChartHistory, paper: Paper): string {
  const lines = history.charts.flatMap((chart) => chartLines(chart, paper));
  const marks = history.marks.map(
    ({ at, words }) => `  ${at.slice(0, 16).replace("T", " ")}  ${printable(words, 120)}`,
  );
  const more = history.moreMarks > 0 ? [`  ${history.moreMarks} more`] : [];
  const changes =
    marks.length === 0 ? [] : ["", painted("strong", "What changed (UTC)", paper), ...marks, ...more];
  return [painted("strong", `History of ${rangeWords(rangeOf(history))}`, paper), ...lines, ...changes].join(
    "\n",
  );
}

function chartLines({ title, unit, series, whenEmpty }: HistoryChart, paper: Paper): string[] {
  const known = series.filter(({ values }) => values.some((value) => value !== null));
  if (known.length === 0) return [`${title}: ${painted("soft", whenEmpty, paper)}`];
  const names = Math.max(...known.map(({ name }) => name.length));
  return [
    title,
    ...known.map(
      (line) => `  ${line.name.padEnd(names)}  ${barLine(narrowed(line))}  ${figures(line, unit)}`,
    ),
  ];
}

function figures({ values }: HistorySeries, unit: HistoryChart["unit"]): string {
  const known = values.filter((value) => value !== null);
  const last = chartValueText(unit, known.at(-1)!);
  return `last ${last}, highest ${chartValueText(
    unit,
    known.reduce((one, other) => Math.max(one, other)),
  )}`;
}

/** Leaves room for name and figures on a terminal of 80 columns. */
const mostBars = 40;

/** Averages neighbours where there are too many values; null where none is known. */
function narrowed({ values }: HistorySeries): (number | null)[] {
  const each = Math.ceil(values.length / mostBars);
  return Array.from({ length: Math.ceil(values.length / each) }, (_, index) => {
    const known = values.slice(index * each, (index + 1) * each).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  });
}

const heights = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

const unknown = "·";

/** Draws eight heights, and a dot for an unknown value. */
export function barLine(values: readonly (number | null)[]): string {
  const most = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE);
  return values
    .map((value) => {
      if (value === null) return unknown;
      return heights[Math.max(0, Math.min(heights.length - 1, Math.floor((value / most) * heights.length)))];
    })
    .join("");
}
