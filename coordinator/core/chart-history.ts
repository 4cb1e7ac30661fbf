/** How figures of a page went over a range of time: one value for the page's charts, its JSON, and the command. */
import { bytesText, msText, spanWords } from "./format.ts";
import { rangeStepSeconds, type TimeRange } from "./time-range.ts";

export const chartUnits = ["count", "bytes", "ms", "seconds", "share"] as const;
type ChartUnit = (typeof chartUnits)[number];

export interface HistoryChart {
  readonly key: string;
  readonly title: string;
  readonly unit: ChartUnit;
  /** When what a value stands for begins, oldest first. */
  readonly times: readonly string[];
  readonly series: readonly HistorySeries[];
  /** What to do about it, or why, while nothing is known. */
  readonly whenEmpty: string;
}

export interface HistorySeries {
  readonly name: string;
  /** One for each of the times; null: not known. */
  readonly values: readonly (number | null)[];
}

/** What may be why a line bends. */
export interface HistoryMark {
  readonly at: string;
  readonly words: string;
  /** The page that tells more; null: none. */
  readonly link: string | null;
}

export interface ChartHistory {
  readonly at: string;
  readonly since: string;
  readonly until: string;
  /** Null: chosen by two instants. */
  readonly range: string | null;
  /** What was asked for and is not shown; null: it is. */
  readonly said: string | null;
  readonly charts: readonly HistoryChart[];
  readonly marks: readonly HistoryMark[];
  /** Marks of this time that are not listed. */
  readonly moreMarks: number;
}

export interface Marks {
  readonly marks: readonly HistoryMark[];
  readonly more: number;
}

export function chartHistory(range: TimeRange, charts: readonly HistoryChart[], marks: Marks): ChartHistory {
  return {
    at: range.now.toISOString(),
    since: range.since.toISOString(),
    until: range.until.toISOString(),
    range: range.name === "" ? null : range.name,
    said: range.said,
    charts,
    marks: marks.marks,
    moreMarks: marks.more,
  };
}

export function rangeOf({ since, until, range, at, said }: ChartHistory): TimeRange {
  return { since: new Date(since), until: new Date(until), name: range ?? "", now: new Date(at), said };
}

const counts = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const fewCounts = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });

export function chartValueText(unit: ChartUnit, value: number): string {
  switch (unit) {
    case "count":
      return (Math.abs(value) < 10 ? fewCounts : counts).format(value);
    case "bytes":
      return bytesText(Math.round(value));
    case "ms":
      return msText(value);
    case "seconds":
      return spanWords(value);
    case "share":
      return `${Number((100 * value).toFixed(value > 0.999 && value < 1 ? 2 : 1))} %`;
  }
}

export interface Steps {
  readonly seconds: number;
  /** Where each begins. */
  readonly times: readonly string[];
  /** Seconds since the epoch, of the first. */
  readonly first: number;
}

/** Whole steps of a range: one that began before it is left out. `leastSeconds`: how often something is written. */
export function stepsOf(range: TimeRange, leastSeconds: number): Steps {
  const seconds = rangeStepSeconds(range, leastSeconds);
  const first = Math.ceil(range.since.getTime() / 1000 / seconds) * seconds;
  const count = Math.max(0, Math.floor((range.until.getTime() / 1000 - first) / seconds) + 1);
  const times = Array.from({ length: count }, (_, index) =>
    new Date((first + index * seconds) * 1000).toISOString(),
  );
  return { seconds, times, first };
}

/** `step`: seconds since the epoch at which it begins. */
export type SteppedRow = { readonly step: number } & Readonly<Record<string, number | null>>;

/** One series for each name that any row knows something of; a step without a row is not known. */
export function seriesOf(
  steps: Steps,
  rows: readonly SteppedRow[],
  names: readonly (readonly [key: string, name: string])[],
): HistorySeries[] {
  const byStep = new Map(rows.map((row) => [Number(row.step), row]));
  return names.map(([key, name]) => ({
    name,
    values: steps.times.map((_, index) => byStep.get(steps.first + index * steps.seconds)?.[key] ?? null),
  }));
}

/** Without the lines that were zero, or unknown, all the time; one is left, where there is any. */
export function withoutIdle(series: readonly HistorySeries[]): readonly HistorySeries[] {
  const busy = series.filter(({ values }) => values.some((value) => value !== null && value !== 0));
  return busy.length > 0 ? busy : series.slice(0, 1);
}
