/**
 * A small chart of how something went: one line, an axis with its unit, gaps where nothing is known. What it shows is
 * also said in words beside it, for those who do not see it.
 */
import { type Html, html, nothing } from "./html.ts";

export interface LineChart {
  readonly title: string;
  /** Oldest first, evenly spaced; null: not known. */
  readonly values: readonly (number | null)[];
  /** A value with its unit. */
  readonly text: (value: number) => string;
  /** What stands below the left end, the middle and the right end. */
  readonly times: readonly [string, string, string];
  /** Over which span, in words: "the last hour". */
  readonly span: string;
}

const width = 360;
const height = 132;
const plot = { left: 50, right: width - 4, top: 8, bottom: height - 20 };

export function lineChart(chart: LineChart): Html {
  const known = chart.values.filter((value) => value !== null);
  const most = niceMost(Math.max(0, ...known));
  const words = wordsOf(chart, known);
  return html`<figure class="chart"><figcaption><strong>${chart.title}</strong> <span class="small">${words}</span></figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${`${chart.title} over ${chart.span}: ${words}`}">
<path class="chart-grid" d="M${plot.left} ${plot.top}H${plot.right}M${plot.left} ${middle}H${plot.right}M${plot.left} ${plot.bottom}H${plot.right}"/>
${known.length === 0 ? nothing : html`<path class="chart-area" d="${areaPath(chart.values, most)}"/><path class="chart-line" d="${linePath(chart.values, most)}"/><path class="chart-alone" d="${alonePath(chart.values, most)}"/>`}
<g class="chart-text">${axisText(plot.top, chart.text(most))}${axisText(middle, chart.text(most / 2))}${axisText(plot.bottom, "0")}
${timeTexts(chart.times)}</g></svg></figure>`;
}

const middle = (plot.top + plot.bottom) / 2;

function timeTexts([left, centre, right]: LineChart["times"]): Html {
  const y = height - 6;
  return html`<text x="${plot.left}" y="${y}">${left}</text><text x="${(plot.left + plot.right) / 2}" y="${y}" text-anchor="middle">${centre}</text><text x="${plot.right}" y="${y}" text-anchor="end">${right}</text>`;
}

function axisText(y: number, text: string): Html {
  return html`<text x="${plot.left - 6}" y="${round(y + 3.5)}" text-anchor="end">${text}</text>`;
}

function wordsOf({ values, text }: LineChart, known: readonly number[]): string {
  if (known.length === 0) return "nothing was written down yet";
  const last = values.findLast((value) => value !== null) ?? 0;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return `now ${text(last)}, mean ${text(mean)}, highest ${text(Math.max(...known))}`;
}

/** The next of 1, 2, 5, 10, 20 …, so that the axis has round figures. */
function niceMost(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 5, 10].find((one) => one * power >= most) ?? 10;
  return step * power;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Runs of known values. */
function runsOf(values: readonly (number | null)[], most: number): Point[][] {
  const step = values.length > 1 ? (plot.right - plot.left) / (values.length - 1) : 0;
  const runs: Point[][] = [[]];
  for (const [index, value] of values.entries()) {
    if (value === null) runs.push([]);
    else {
      const y = plot.bottom - (value / most) * (plot.bottom - plot.top);
      runs.at(-1)!.push({ x: round(plot.left + index * step), y: round(y) });
    }
  }
  return runs.filter((run) => run.length > 0);
}

function linePath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length > 1)
    .map((run) => `M${run.map(({ x, y }) => `${x} ${y}`).join("L")}`)
    .join("");
}

/** Values alone between gaps are dots (the round caps of strokes without length). */
function alonePath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length === 1)
    .map(([point]) => `M${point!.x} ${point!.y}h0`)
    .join("");
}

function areaPath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length > 1)
    .map((run) => {
      const points = run.map(({ x, y }) => `${x} ${y}`).join("L");
      return `M${run[0]!.x} ${plot.bottom}L${points}V${plot.bottom}Z`;
    })
    .join("");
}

const round = (value: number) => Math.round(value * 10) / 10;
