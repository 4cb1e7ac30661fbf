/**
 * Charts over time, drawn by the server as SVG, so that they work without scripts, with the same figures as an accessible
 * table and with marks of changes. `assets/charts.js` reads the table and adds zooming and values at the pointer. The drawing
 * is stretched to its box. Texts are not, because they are in an SVG without a view box, positioned in percent.
 */

import {
  minuteText,
  rangeNames,
  rangeNameWords,
  rangeStepSeconds,
  rangeWords,
  type TimeRange,
} from "#core/time-range";
import { pageScript } from "./assets.ts";
import { type ChartHistory, chartValueText, rangeOf } from "./chart-history.ts";
import { type Html, html, nothing, pathWith } from "./html.ts";

export { type TimeRange, timeRange } from "#core/time-range";

/** One line with its points in order; a null value is unknown. */
interface TimeSeries {
  readonly name: string;
  readonly points: readonly TimePoint[];
}

interface TimePoint {
  readonly at: Date;
  readonly value: number | null;
}

/** An event that may explain a change. */
interface TimeMark {
  readonly at: Date;
  readonly words: string;
  readonly href?: string;
}

interface TimeChart {
  readonly title: string;
  readonly range: TimeRange;
  /** At most six of these lines are drawn. */
  readonly series: readonly TimeSeries[];
  /** Formats a value with its unit. */
  readonly text: (value: number) => string;
  readonly marks?: readonly TimeMark[];
  /** How many further marks there are. */
  readonly moreMarks?: number;
  /** If false, the axis starts near the lowest value, for figures that hardly change. */
  readonly fromZero?: boolean;
  /** Whether values are durations in seconds, so that ticks are round minutes, hours and days. */
  readonly isDuration?: boolean;
  /** Shown if there is no data, with the next step. */
  readonly empty?: Html | string;
}

/** The drawing's own units. */
const width = 1000;
const height = 100;
const mostSeries = 6;
const mostMarks = 50;

export function timeChart(chart: TimeChart): Html {
  const given = chart.series.slice(0, mostSeries);
  const lines = given.map((series) => drawnLine(series, chart.range));
  const known = lines.flatMap(({ points }) => points.filter(isKnown));
  const words = lines.map((line) => lineWords(line, chart)).join("; ");
  const notes = notesOf(chart, lines);
  const head = html`<figcaption><strong>${chart.title}</strong>${
    lines.length === 1
      ? html` <span class="small">${lineFigures(lines[0]!, chart)}</span>`
      : legend(lines, chart)
  }${notes.map((note) => html` <span class="small warn">${note}</span>`)}</figcaption>`;
  if (known.length === 0) {
    return html`<figure class="chart">${head}<p class="chart-empty small">${chart.empty ?? `No data for ${rangeWords(chart.range)}.`}</p></figure>`;
  }
  const scale = scaleOf(known, chart);
  const marks = marksOf(chart);
  const label = `${chart.title} over ${rangeWords(chart.range)}: ${words}`;
  const yWidth = Math.ceil(Math.max(...scale.ticks.map(({ text }) => text.length)) * 6.4) + 8;
  return html`<figure class="chart" data-chart>${head}
<div class="chart-plot" data-since="${seconds(chart.range.since)}" data-until="${seconds(chart.range.until)}">
<svg class="chart-y chart-text" width="${yWidth}" height="${plotHeight + xHeight}" aria-hidden="true">${scale.ticks.map(
    ({ share, text }) => html`<text x="${yWidth - 6}" y="${yOf(share)}" text-anchor="end">${text}</text>`,
  )}</svg>
<svg class="chart-view chart-text" width="100%" height="${plotHeight + xHeight}" role="img" aria-label="${label}">
<svg x="0" y="${plotTop}" width="100%" height="${plotHeight - 2 * plotTop}" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none">
<path class="chart-grid" d="${scale.ticks.map(({ share }) => `M0 ${round(height * (1 - share))}H${width}`).join("")}"/>
${marks.shown.map(
  (mark) =>
    html`<path class="chart-mark" d="M${xOf(mark.at, chart.range)} 0V${height}"><title>${markText(mark)}</title></path>`,
)}
${lines.map((line, index) => drawing(line, { chart, scale, index, isAlone: lines.length === 1 }))}
</svg>
${timeTicks(chart.range).map((tick) => tickText(tick, chart.range))}</svg>
</div>
${markList(marks)}
${figureTable(lines, chart)}
</figure>`;
}

/** A page's charts with their range picker. `query` holds the other parameters of the URL. */
export function historySection(
  path: string,
  query: Readonly<Record<string, string | null>>,
  history: ChartHistory,
): Html {
  return html`<section class="history" id="history"><h2>History</h2>
${rangePicker(path, query, rangeOf(history))}
${historyCharts(history)}</section>`;
}

export function historyCharts(history: ChartHistory): Html {
  const range = rangeOf(history);
  const marks = history.marks.map(({ at, words, link }) => ({
    ...{ at: new Date(at), words },
    ...(link === null ? {} : { href: link }),
  }));
  return html`<div class="charts">${history.charts.map(({ title, unit, times, series, whenEmpty }) =>
    timeChart({
      ...{ title, range, marks, moreMarks: history.moreMarks, empty: whenEmpty },
      series: series.map(({ name, values }) => ({
        name,
        points: values.map((value, index) => ({ at: new Date(times[index]!), value })),
      })),
      text: (value) => chartValueText(unit, value),
      fromZero: unit !== "share" || !isHigh(series),
      isDuration: unit === "seconds",
    }),
  )}</div>`;
}

/** Whether the series is a share near 100 %, which would hardly move on an axis from zero. */
function isHigh(series: ChartHistory["charts"][number]["series"]): boolean {
  return series.every(({ values }) => values.every((value) => value === null || value > 0.5));
}

/** Links, a form for a custom range, and the charts' script. `query` holds the other parameters of the URL. */
export function rangePicker(
  path: string,
  query: Readonly<Record<string, string | null>>,
  range: TimeRange,
): Html {
  const rest = { ...query, range: null, since: null, until: null };
  const hidden = Object.entries(rest).filter(([, value]) => value !== null && value !== "");
  const spanMs = range.until.getTime() - range.since.getTime();
  const moved = (sinceMs: number, untilMs: number) =>
    pathWith(path, {
      ...rest,
      ...{
        since: minuteText(new Date(sinceMs)),
        until: minuteText(new Date(Math.min(untilMs, range.now.getTime()))),
      },
    });
  const [sinceMs, untilMs] = [range.since.getTime(), range.until.getTime()];
  const isLatest = untilMs >= range.now.getTime();
  const named = rangeNames.map(
    (name) =>
      html`<a href="${pathWith(path, { ...rest, range: name })}"${
        name === range.name ? html` aria-current="true"` : nothing
      } title="${rangeNameWords(name)}">${name}</a>`,
  );
  return html`<div class="range-picker" id="range">
<nav class="ranges" aria-label="Range of time">${named}</nav>
<nav class="ranges" aria-label="Other times"><a href="${moved(sinceMs - spanMs, sinceMs)}">← Earlier</a>${
    isLatest ? nothing : html`<a href="${moved(untilMs, untilMs + spanMs)}">Later →</a>`
  }<a href="${moved(sinceMs - spanMs / 2, untilMs + spanMs / 2)}" data-zoom-out>Zoom out</a></nav>
<details${range.name === "" ? html` open` : nothing}><summary>From … to …</summary>
<form method="get" action="${path}">${hidden.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<label>From ${instantField("since", range.since)}</label> <label>to ${instantField("until", range.until)}</label>
<span class="small">UTC</span> <button class="slim">Show</button></form></details>
${range.said === null ? nothing : html`<p class="small warn" role="status">${range.said}. Shown: ${rangeWords(range)}.</p>`}
${pageScript("charts.js")}</div>`;
}

const instantField = (name: string, at: Date) =>
  html`<input type="datetime-local" name="${name}" value="${minuteText(at)}" required>`;

// Neighbouring points are averaged to keep pages small.

interface DrawnLine {
  readonly name: string;
  readonly points: readonly TimePoint[];
  /** How many points are in the future. */
  readonly future: number;
  /** Each point is a mean over this many seconds; null if the points are as given. */
  readonly meanSeconds: number | null;
  /** Larger distances are gaps. */
  readonly gapMs: number;
}

interface KnownPoint extends TimePoint {
  readonly value: number;
}

const isKnown = (point: TimePoint): point is KnownPoint =>
  point.value !== null && Number.isFinite(point.value);

function drawnLine({ name, points }: TimeSeries, range: TimeRange): DrawnLine {
  const [sinceMs, untilMs, nowMs] = [range.since.getTime(), range.until.getTime(), range.now.getTime()];
  const inRange = points
    .filter(({ at }) => at.getTime() >= sinceMs && at.getTime() <= untilMs)
    .sort((one, other) => one.at.getTime() - other.at.getTime());
  const future = points.filter(({ at }) => at.getTime() > nowMs).length;
  const stepMs = usualStepMs(inRange);
  if (inRange.length <= mostDrawn) {
    return { name, points: inRange, future, meanSeconds: null, gapMs: 2.5 * stepMs };
  }
  const meanSeconds = rangeStepSeconds(range, stepMs / 1000);
  return {
    name,
    points: merged(inRange, 1000 * meanSeconds),
    future,
    meanSeconds,
    gapMs: 2500 * meanSeconds,
  };
}

const mostDrawn = 300;

/** Returns the median step, which gaps do not affect. */
function usualStepMs(points: readonly TimePoint[]): number {
  const steps = points.slice(1).map(({ at }, index) => at.getTime() - points[index]!.at.getTime());
  steps.sort((one, other) => one - other);
  return steps[Math.floor(steps.length / 2)] ?? 0;
}

/** Averages over aligned steps. A step without values becomes a gap. */
function merged(points: readonly TimePoint[], stepMs: number): TimePoint[] {
  const sums = new Map<number, { sum: number; count: number }>();
  for (const point of points) {
    const step = Math.floor(point.at.getTime() / stepMs);
    const sum = sums.get(step) ?? { sum: 0, count: 0 };
    sums.set(step, sum);
    if (!isKnown(point)) continue;
    sum.sum += point.value;
    sum.count += 1;
  }
  return [...sums].map(([step, { sum, count }]) => ({
    at: new Date(step * stepMs),
    value: count === 0 ? null : sum / count,
  }));
}

function notesOf({ series, range }: TimeChart, lines: readonly DrawnLine[]): string[] {
  const future = lines.reduce((sum, line) => sum + line.future, 0);
  const left = series.length - lines.length;
  return [
    ...(future > 0 && range.until.getTime() >= range.now.getTime()
      ? [
          `${future} ${future === 1 ? "value claims" : "values claim"} to be of the future and ${future === 1 ? "is" : "are"} left out: check the clocks.`,
        ]
      : []),
    ...(left > 0 ? [`${left} more ${left === 1 ? "line is" : "lines are"} not drawn.`] : []),
  ];
}

function lineWords(line: DrawnLine, chart: TimeChart): string {
  const figures = lineFigures(line, chart);
  return line.name === "" || chart.series.length === 1 ? figures : `${line.name} ${figures}`;
}

function lineFigures({ points, gapMs }: DrawnLine, { text, range }: TimeChart): string {
  const known = points.filter(isKnown);
  const last = known.at(-1);
  if (last === undefined) return "no data";
  const values = known.map(({ value }) => value);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const most = values.reduce((one, other) => Math.max(one, other));
  const isNow = range.now.getTime() - last.at.getTime() <= Math.max(gapMs, 120_000);
  return `${isNow ? "now" : "last"} ${text(last.value)}, mean ${text(mean)}, highest ${text(most)}`;
}

/** With several lines, the legend has only their last values. The table has the rest. */
function legend(lines: readonly DrawnLine[], { text }: TimeChart): Html {
  return html`<ul class="chart-legend">${lines.map((line, index) => {
    const last = line.points.findLast(isKnown);
    const value = last === undefined ? "no data" : text(last.value);
    return html`<li title="${line.name}"><svg width="28" height="10" aria-hidden="true"><path
 class="chart-line chart-line-${index + 1}" d="M1 5H27"/></svg><bdi>${line.name}</bdi> <span class="small">${value}</span></li>`;
  })}</ul>`;
}

interface Scale {
  readonly least: number;
  readonly most: number;
  /** Ticks from the bottom (0) upwards. */
  readonly ticks: readonly { readonly share: number; readonly text: string }[];
}

/** The ticks are round figures from end to end, with distinct labels. */
function scaleOf(known: readonly KnownPoint[], { text, fromZero = true, isDuration }: TimeChart): Scale {
  const values = known.map(({ value }) => value);
  const highest = values.reduce((one, other) => Math.max(one, other));
  const lowest = values.reduce((one, other) => Math.min(one, other));
  const from = fromZero ? Math.min(0, lowest) : lowest;
  const to = fromZero ? Math.max(0, highest) : highest;
  // If all values are zero, the axis ends at 1.
  const leastStep = Math.max((to - from) / 4, Math.abs(to) * 1e-6) || 1;
  const step = (isDuration ? tickSteps.find((one) => one >= leastStep) : undefined) ?? roundStep(leastStep);
  const least = Math.floor(from / step + 1e-9) * step;
  const most = Math.max(Math.ceil(to / step - 1e-9) * step, least + step);
  const count = Math.round((most - least) / step);
  const all = Array.from({ length: count + 1 }, (_, index) => ({
    share: index / count,
    text: axisText(text(tidy(least + index * step))),
  }));
  const isEvery = new Set(all.map((tick) => tick.text)).size === all.length;
  return { least, most, ticks: isEvery ? all : [all[0]!, all.at(-1)!].filter(isNew) };
}

const isNew = (tick: { text: string }, index: number, ticks: readonly { text: string }[]) =>
  ticks.findIndex(({ text }) => text === tick.text) === index;

/** Rounds up to 1, 2, 5, 10, 20 … */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((one) => one * power >= least * (1 - 1e-9)) ?? 10);
}

/** Drops trailing zeros: "1.50 MB" becomes 1.5 MB. */
const axisText = (text: string) => text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");

const tidy = (value: number) => Number(value.toPrecision(12));

const plotHeight = 150;
const plotTop = 8;
const xHeight = 20;

const yOf = (share: number) => round(plotTop + (1 - share) * (plotHeight - 2 * plotTop) + 3.5);

const round = (value: number) => Math.round(value * 10) / 10;

const seconds = (at: Date) => Math.round(at.getTime() / 1000);

function xOf(at: Date, { since, until }: TimeRange): number {
  return round((width * (at.getTime() - since.getTime())) / (until.getTime() - since.getTime()));
}

interface Tick {
  readonly at: Date;
  readonly text: string;
}

const hour = 3600;
const day = 24 * hour;
const tickSteps = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day],
];
const mostTicks = 6;

/** Returns at most six round times in UTC: minutes, hours, days, months or years. */
export function timeTicks({ since, until }: TimeRange): Tick[] {
  const spanSeconds = (until.getTime() - since.getTime()) / 1000;
  const step = tickSteps.find((one) => spanSeconds / one <= mostTicks);
  if (step === undefined) return monthTicks(since, until);
  // Weeks begin on Monday, but the epoch was a Thursday.
  const offset = step % (7 * day) === 0 ? 4 * day : 0;
  const first = Math.ceil((since.getTime() / 1000 - offset) / step) * step + offset;
  const ticks: Tick[] = [];
  for (let at = first; at * 1000 <= until.getTime(); at += step) {
    const instant = new Date(at * 1000);
    ticks.push({
      at: instant,
      text: at % day === 0 ? dayText(instant) : instant.toISOString().slice(11, 16),
    });
  }
  return ticks;
}

function monthTicks(since: Date, until: Date): Tick[] {
  const monthOf = (at: Date) => 12 * at.getUTCFullYear() + at.getUTCMonth();
  const months = monthOf(until) - monthOf(since) + 1;
  const step = [1, 2, 3, 6, 12, 24].find((one) => months / one <= mostTicks) ?? 48;
  const ticks: Tick[] = [];
  for (let month = Math.ceil(monthOf(since) / step) * step; month <= monthOf(until); month += step) {
    const at = new Date(Date.UTC(Math.floor(month / 12), month % 12));
    if (at < since) continue;
    ticks.push({ at, text: month % 12 === 0 ? String(month / 12) : monthNames[month % 12]! });
  }
  return ticks;
}

const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const dayText = (at: Date) => `${at.getUTCDate()} ${monthNames[at.getUTCMonth()]}`;

/** Keeps labels at the edges inside the picture. */
function tickText({ at, text }: Tick, range: TimeRange): Html {
  const share = xOf(at, range) / width;
  const anchor = share < 0.06 ? "start" : share > 0.94 ? "end" : "middle";
  return html`<text x="${round(100 * share)}%" y="${plotHeight + 12}" text-anchor="${anchor}">${text}</text>`;
}

interface Drawing {
  readonly chart: TimeChart;
  readonly scale: Scale;
  readonly index: number;
  readonly isAlone: boolean;
}

interface Spot {
  readonly x: number;
  readonly y: number;
}

function drawing(line: DrawnLine, { chart, scale, index, isAlone }: Drawing): Html {
  const runs = runsOf(line, chart.range, scale);
  const name = `chart-line-${index + 1}`;
  const lines = runs.filter((run) => run.length > 1);
  const path = lines.map((run) => `M${run.map(({ x, y }) => `${x} ${y}`).join("L")}`).join("");
  const dots = runs.filter((run) => run.length === 1).map(([spot]) => `M${spot!.x} ${spot!.y}h0`);
  const area = lines.map(
    (run) => `M${run[0]!.x} ${height}L${run.map(({ x, y }) => `${x} ${y}`).join("L")}V${height}Z`,
  );
  const isFilled = isAlone && scale.least === 0;
  return html`${isFilled && area.length > 0 ? html`<path class="chart-area" d="${area.join("")}"/>` : nothing}${
    path === "" ? nothing : html`<path class="chart-line ${name}" d="${path}"/>`
  }${dots.length === 0 ? nothing : html`<path class="chart-alone ${name}" d="${dots.join("")}"/>`}`;
}

/** Splits the line at gaps. */
function runsOf(line: DrawnLine, range: TimeRange, { least, most }: Scale): Spot[][] {
  const runs: Spot[][] = [[]];
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const point of line.points) {
    const atMs = point.at.getTime();
    if (!isKnown(point) || (line.gapMs > 0 && atMs - lastMs > line.gapMs)) runs.push([]);
    if (!isKnown(point)) continue;
    const share = (point.value - least) / (most - least);
    runs.at(-1)!.push({ x: Math.max(0, xOf(point.at, range)), y: round(height * (1 - share)) });
    lastMs = atMs;
  }
  return runs.filter((run) => run.length > 0);
}

// The chart as text: marks, and figures as a table.

function marksOf({ marks = [], moreMarks = 0, range }: TimeChart): DrawnMarks {
  const all = marks.filter(({ at }) => at >= range.since && at <= range.until);
  const shown = all.slice(0, mostMarks);
  return { shown, more: moreMarks + all.length - shown.length };
}

interface DrawnMarks {
  readonly shown: readonly TimeMark[];
  readonly more: number;
}

const markText = ({ at, words }: TimeMark) => `${minuteWords(at)} UTC: ${words}`;
const minuteWords = (at: Date) => minuteText(at).replace("T", " ");

function markList({ shown, more }: DrawnMarks): Html {
  if (shown.length === 0) return nothing;
  const all = shown.length + more;
  return html`<details class="chart-marks"><summary>${all === 1 ? "1 change" : `${all} changes`} in this time</summary><ol>${shown.map(
    ({ at, words, href }) => {
      const said = html`<bdi>${words}</bdi>`;
      const linked = href === undefined ? said : html`<a href="${href}">${said}</a>`;
      return html`<li data-at="${seconds(at)}">${minuteWords(at)} UTC: ${linked}</li>`;
    },
  )}${more > 0 ? html`<li>${more} more are not shown.</li>` : nothing}</ol></details>`;
}

function figureTable(lines: readonly DrawnLine[], { title, text }: TimeChart): Html {
  const values = lines.map(
    ({ points }) => new Map(points.filter(isKnown).map((point) => [point.at.getTime(), point.value])),
  );
  const times = [...new Set(values.flatMap((one) => [...one.keys()]))].sort((one, other) => one - other);
  const mean = lines.find(({ meanSeconds }) => meanSeconds !== null)?.meanSeconds ?? null;
  const heads = lines.map(
    ({ name }) =>
      html`<th scope="col" class="number">${lines.length === 1 ? "Value" : html`<bdi>${name}</bdi>`}</th>`,
  );
  const rows = times.map((at) => {
    const cells = values.map((one) => {
      const value = one.get(at);
      return value === undefined ? html`<td></td>` : html`<td>${text(value)}</td>`;
    });
    return html`<tr><th scope="row" data-at="${at / 1000}">${minuteWords(new Date(at))}</th>${cells}</tr>\n`;
  });
  return html`<details class="chart-figures"><summary>The figures as a table</summary>
${mean === null ? nothing : html`<p class="small">Each is the mean of ${stepWords(mean)}.</p>`}
<div class="scroll" tabindex="0" role="region" aria-label="${`${title}: figures`}"><table><thead><tr><th
 scope="col">From (UTC)</th>${heads}</tr></thead><tbody>${rows}</tbody></table></div></details>`;
}

function stepWords(step: number): string {
  if (step % day === 0) return step === day ? "a day" : `${step / day} days`;
  if (step % hour === 0) return step === hour ? "an hour" : `${step / hour} hours`;
  return step === 60 ? "a minute" : `${step / 60} minutes`;
}
