/**
 * Figures over a range of time: one value for a page's charts, its JSON and the command, with its API schema and the
 * parameters that select the range.
 */
import { z } from "zod";
import { bytesText, msText, spanWords } from "#core/format";
import { rangeNames, rangeStepSeconds, type TimeRange } from "#core/time-range";
import { dateTime, type ToldOf } from "./api-operation.ts";

const chartUnits = ["count", "bytes", "ms", "seconds", "share"] as const;
type ChartUnit = (typeof chartUnits)[number];

const historyChart = z
  .strictObject({
    key: z.string(),
    title: z.string(),
    unit: z.enum(chartUnits).describe("share: 0 to 1."),
    times: z
      .array(dateTime())
      .describe("When what a value stands for begins, oldest first; 240 at most but for plans."),
    series: z.array(
      z.strictObject({
        name: z.string(),
        values: z.array(z.number().nullable()).describe("One for each of the times; null: not known."),
      }),
    ),
    whenEmpty: z.string().describe("Why nothing may be known."),
  })
  .meta({ id: "HistoryChart" });

export const chartHistorySchema = z
  .strictObject({
    at: dateTime(),
    since: dateTime(),
    until: dateTime(),
    range: z.string().nullable().describe("Null: chosen by since and until."),
    said: z
      .string()
      .nullable()
      .describe("Why another range is shown than was asked for; null: it is that one."),
    charts: z.array(historyChart),
    marks: z
      .array(
        z.strictObject({
          at: dateTime(),
          words: z.string(),
          link: z.string().nullable().describe("The page that tells more."),
        }),
      )
      .describe("Policies, releases, registry generations and crawlers that changed: the latest 50."),
    moreMarks: z.int().describe("Others of this time."),
  })
  .meta({ id: "ChartHistory" });

/** An invalid range is replaced by the default one, and `said` says so. */
export const rangeParameters = {
  range: z
    .string()
    .optional()
    .meta({
      ...{ enum: [...rangeNames], example: "7d" },
      description: "Of the history: so far back from now; 24h where nothing is said.",
    }),
  since: z.string().max(40).optional().meta({
    description: "Of the history, in place of range: from then (ISO 8601; UTC where no zone is given).",
    example: "2026-03-01T10:00Z",
  }),
  until: z.string().max(40).optional().meta({ description: "And until then.", example: "2026-03-01T12:00Z" }),
};

export type ChartHistory = ToldOf<typeof chartHistorySchema>;
export type HistoryChart = ChartHistory["charts"][number];
export type HistorySeries = HistoryChart["series"][number];
/** An event that may explain a change in a line. */
export type HistoryMark = ChartHistory["marks"][number];

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
  /** The start of each step. */
  readonly times: readonly string[];
  /** The start of the first step in seconds since the epoch. */
  readonly first: number;
}

/**
 * Divides a range into whole steps. An incomplete first step is dropped. `leastSeconds` is the interval at which values are
 * written.
 */
export function stepsOf(range: TimeRange, leastSeconds: number): Steps {
  const seconds = rangeStepSeconds(range, leastSeconds);
  const first = Math.ceil(range.since.getTime() / 1000 / seconds) * seconds;
  const count = Math.max(0, Math.floor((range.until.getTime() / 1000 - first) / seconds) + 1);
  const times = Array.from({ length: count }, (_, index) =>
    new Date((first + index * seconds) * 1000).toISOString(),
  );
  return { seconds, times, first };
}

/** A row with the start of its step, in seconds since the epoch. */
export type SteppedRow = { readonly step: number } & Readonly<Record<string, number | null>>;

/** Returns one series per name. The value of a step without a row is unknown. */
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

/** Drops lines that are zero or unknown throughout, but keeps one. */
export function withoutIdle(series: readonly HistorySeries[]): readonly HistorySeries[] {
  const busy = series.filter(({ values }) => values.some((value) => value !== null && value !== 0));
  return busy.length > 0 ? busy : series.slice(0, 1);
}
