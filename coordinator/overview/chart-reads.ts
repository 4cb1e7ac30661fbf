/**
 * What the charts of the pages show: how figures went over a range of time, by steps of it. Every read is bounded by the
 * rows that its table keeps of a time, and every answer by the steps of a range (core/time-range).
 */
import type { Pool } from "pg";
import {
  chartHistory,
  type HistoryChart,
  type SteppedRow,
  type Steps,
  seriesOf,
  stepsOf,
  withoutIdle,
} from "#core/chart-history";
import { leastSamples, wilsonInterval } from "#core/format";
import type { TimeRange } from "#core/time-range";
import { createAccuracyStore } from "../delegation/accuracy-store.ts";
import { gaugeSeconds, queueGauge } from "./gauge-store.ts";
import { marksBetween } from "./mark-reads.ts";
import { failureColumns, minuteDays, quarterDays } from "./minute-figures.ts";
import type { ChartReads } from "./overview-types.ts";
import { blames, blameWords, waitReasonNames } from "./overview-words.ts";
import { waitReasons } from "./queue-api.ts";

export function createChartReads(pool: Pool): ChartReads {
  const read = { overview, queue, failures, accuracy, trust, recrawl };
  return {
    charts: async (page, range) => {
      const [charts, marks] = await Promise.all([read[page](pool, range), marksBetween(pool, range)]);
      return chartHistory(range, charts, marks);
    },
    crawlerCharts: async ({ crawlerId, name }, range) => {
      const [charts, marks] = await Promise.all([
        crawlerCharts(pool, crawlerId, range),
        marksBetween(pool, range, name),
      ]);
      return chartHistory(range, charts, marks);
    },
  };
}

const daySeconds = 86_400;
const dayMs = 1000 * daySeconds;

/** SQL: seconds since the epoch at which the step of this instant begins; $3 is the step. */
const stepSql = (instant: string) => `(floor(extract(epoch from ${instant}) / $3) * $3)::float8 as step`;

export type StepQuery = readonly [since: Date, until: Date, stepSeconds: number];

const queryOf = ({ since, until }: TimeRange, { seconds }: Steps): StepQuery => [since, until, seconds];

// How things stood: samples of the fleet.

const startsNow =
  "Samples are taken every five minutes while a coordinator runs; the first lines appear within the hour.";

async function gaugeRows(
  pool: Pool,
  range: TimeRange,
  names: readonly string[],
  steps: Steps,
): Promise<SteppedRow[]> {
  const { rows } = await pool.query<SteppedRow>(
    `select ${stepSql("at")}, ${names.map((name) => `avg((gauges ->> '${name}')::float8) as "${name}"`)}
     from gauge_sample
     where at >= $1 and at <= $2
     group by 1`,
    [...queryOf(range, steps)],
  );
  return rows;
}

async function queue(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const steps = stepsOf(range, gaugeSeconds);
  const names = [
    ...waitReasons.map(queueGauge),
    "leases",
    "queueMedianSeconds",
    "queueP95Seconds",
    "urlsInProgress",
  ];
  const rows = await gaugeRows(pool, range, names, steps);
  const line = (key: string, name: string) => [key, name] as const;
  const { times } = steps;
  return [
    {
      ...{ key: "waiting", title: "Due hosts, by what they wait for", unit: "count", times },
      series: withoutIdle(
        seriesOf(
          steps,
          rows,
          waitReasons.map((reason) => line(queueGauge(reason), waitReasonNames[reason])),
        ),
      ),
      whenEmpty: startsNow,
    },
    {
      ...{ key: "wait", title: "How long they have waited", unit: "seconds", times },
      series: seriesOf(steps, rows, [
        line("queueMedianSeconds", "median"),
        line("queueP95Seconds", "95 % less than"),
      ]),
      whenEmpty: startsNow,
    },
    {
      ...{ key: "in-progress", title: "URLs in progress", unit: "count", times },
      series: seriesOf(steps, rows, [line("urlsInProgress", "URLs in progress")]),
      whenEmpty: startsNow,
    },
  ];
}

// What was fetched and what failed: figures of minutes, or of days where minutes are not kept for so long.

const isBeyond = (range: TimeRange, days: number) =>
  range.now.getTime() - range.since.getTime() > days * dayMs;

/** Sums of these columns by step, with the minutes in which a coordinator ran. */
async function minuteRows(pool: Pool, range: TimeRange, columns: readonly string[]) {
  const isByDay = isBeyond(range, minuteDays);
  const steps = stepsOf(range, isByDay ? daySeconds : 60);
  const from = isByDay
    ? `from day_figures
       where minutes > 0 and day >= ($1::timestamptz at time zone 'UTC')::date
         and day <= ($2::timestamptz at time zone 'UTC')::date`
    : "from minute_figures where minute >= $1 and minute <= $2";
  // Of the minute under way only a part is written.
  const lastMs = Math.floor(range.now.getTime() / 60_000) * 60_000 - 1;
  const until = new Date(Math.min(range.until.getTime(), lastMs));
  const { rows } = await pool.query<SteppedRow>(
    `select ${stepSql(isByDay ? "day::timestamp at time zone 'UTC'" : "minute")},
       ${isByDay ? "sum(minutes)" : "count(*)"}::float8 as minutes, ${columns}
     ${from}
     group by 1`,
    [...queryOf({ ...range, until }, steps)],
  );
  return { steps, rows };
}

const noCoordinator = "No coordinator ran in this time.";

async function overview(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const { steps, rows } = await minuteRows(pool, range, [
    "sum(pages)::float8 as pages",
    "sum(fetched_bytes)::float8 as bytes",
    "sum(probes)::float8 as probes",
  ]);
  const chart = (key: string, title: string, unit: "count" | "bytes"): HistoryChart => ({
    ...{ key, title, unit, times: steps.times, whenEmpty: noCoordinator },
    series: seriesOf(
      steps,
      rows.map((row) => ({ step: row.step, [key]: row[key]! / row.minutes! })),
      [[key, title]],
    ),
  });
  return [
    chart("pages", "Pages per minute", "count"),
    chart("bytes", "Fetched per minute", "bytes"),
    chart("probes", "Probes per minute", "count"),
  ];
}

async function failures(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const { steps, rows } = await minuteRows(pool, range, [
    "sum(fetches)::float8 as fetches",
    ...blames.map((blame) => `sum(${failureColumns[blame]})::float8 as ${blame}`),
  ]);
  const { times } = steps;
  const each = blames.map((blame) => [blame, blameWords[blame]] as const);
  return [
    {
      ...{ key: "failures", title: "Failed fetches per minute", unit: "count", times },
      series: seriesOf(
        steps,
        rows.map((row) => eachOf(row, (failed) => failed / row.minutes!)),
        each,
      ),
      whenEmpty: noCoordinator,
    },
    {
      ...{ key: "share", title: "Share of fetches that failed", unit: "share", times },
      series: seriesOf(
        steps,
        rows.map((row) =>
          eachOf(row, (failed) => (row.fetches! < leastSamples ? null : failed / row.fetches!)),
        ),
        each,
      ),
      whenEmpty: `A share is told from ${leastSamples} fetches on; no point of this range has so many.`,
    },
  ];
}

function eachOf(row: SteppedRow, of: (failed: number) => number | null): SteppedRow {
  return { step: row.step, ...Object.fromEntries(blames.map((blame) => [blame, of(row[blame] ?? 0)])) };
}

// How near the delegations are: the share of the samples in a window before each point, as the page's own figure is.

async function accuracy(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const windowMs = isBeyond(range, 7) ? 7 * dayMs : dayMs;
  const steps = stepsOf(range, 3600);
  const hours = await createAccuracyStore(pool).hours(
    new Date(range.since.getTime() - windowMs),
    range.until,
  );
  const rows = steps.times.map((time, index): SteppedRow => {
    const untilMs = Date.parse(time);
    const counted = hours.filter(
      ({ hour }) => hour.getTime() > untilMs - windowMs && hour.getTime() <= untilMs,
    );
    const samples = counted.reduce((sum, one) => sum + one.samples, 0);
    const near = counted.reduce((sum, one) => sum + one.nearlyBest, 0);
    const step = steps.first + index * steps.seconds;
    if (samples < leastSamples) return { step, samples, share: null, low: null, high: null };
    return { step, samples, share: near / samples, ...wilsonInterval(near, samples) };
  });
  const window = windowMs === dayMs ? "24 hours" : "7 days";
  const { times } = steps;
  return [
    {
      ...{
        key: "share",
        title: `Nearly the nearest, of the samples of the ${window} before`,
        unit: "share",
        times,
      },
      series: seriesOf(steps, rows, [
        ["share", "share"],
        ["low", "at least (95 %)"],
        ["high", "at most (95 %)"],
      ]),
      whenEmpty: `A share is told from ${leastSamples} samples on; no ${window} of this range have so many.`,
    },
    {
      ...{ key: "samples", title: `Samples in the ${window} before`, unit: "count", times },
      series: seriesOf(steps, rows, [["samples", "samples"]]),
      whenEmpty: "Nothing was sampled.",
    },
  ];
}

// Trust: who is online, what came of comparisons, and what was refused.

async function trust(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const steps = stepsOf(range, 3600);
  const fine = stepsOf(range, gaugeSeconds);
  const [gauges, compared, incidents] = await Promise.all([
    gaugeRows(pool, range, ["crawlersOnline", "crawlersDraining", "crawlersOffline"], fine),
    comparisons(pool, queryOf(range, steps)),
    pool.query<SteppedRow>(
      `select ${stepSql("hour")}, sum(incidents)::float8 as incidents
       from incident
       where last_at >= $1 and hour >= $1 and hour <= $2
       group by 1`,
      [...queryOf(range, steps)],
    ),
  ]);
  const { times } = steps;
  const hours = steps.seconds / 3600;
  const perHour = (rows: readonly SteppedRow[], names: readonly string[]) => {
    const known = new Map(rows.map((row) => [Number(row.step), row]));
    // What nobody wrote down in a step did not happen in it.
    return times.map((_, index): SteppedRow => {
      const step = steps.first + index * steps.seconds;
      return {
        step,
        ...Object.fromEntries(names.map((name) => [name, (known.get(step)?.[name] ?? 0) / hours])),
      };
    });
  };
  return [
    {
      ...{ key: "comparisons", title: "Pages compared per hour", unit: "count", times },
      series: seriesOf(steps, perHour(compared, ["agree", "alone", "once"]), [
        ["agree", "agree"],
        ["alone", "differ each time"],
        ["once", "differed once"],
      ]),
      whenEmpty: "Nothing was compared.",
    },
    {
      ...{ key: "incidents", title: "Incidents per hour", unit: "count", times },
      series: seriesOf(steps, perHour(incidents.rows, ["incidents"]), [["incidents", "incidents"]]),
      whenEmpty: "Nothing was refused.",
    },
    {
      ...{ key: "crawlers", title: "Crawlers", unit: "count", times: fine.times },
      series: withoutIdle(
        seriesOf(fine, gauges, [
          ["crawlersOnline", "online"],
          ["crawlersDraining", "draining"],
          ["crawlersOffline", "offline"],
        ]),
      ),
      whenEmpty: startsNow,
    },
  ];
}

async function comparisons(pool: Pool, query: StepQuery): Promise<SteppedRow[]> {
  const { rows } = await pool.query<SteppedRow>(
    `select ${stepSql("decided_at")}, count(*) filter (where verdict = 'agree')::float8 as agree,
       count(*) filter (where verdict = 'alone')::float8 as alone,
       count(*) filter (where verdict = 'once')::float8 as once
     from double_check
     where verdict is not null and decided_at >= $1 and decided_at <= $2
     group by 1`,
    [...query],
  );
  return rows;
}

// Recrawl: every plan that was made.

const mostPlans = 1000;

export interface ChartedPlan {
  readonly at: Date;
  readonly planned: number | null;
  readonly achieved: number | null;
  readonly freshness: number | null;
}

async function plansMade(pool: Pool, range: TimeRange): Promise<ChartedPlan[]> {
  const { rows } = await pool.query<ChartedPlan>(
    `select made_at as at, nullif((plan ->> 'totalPerDay')::float8, 0) as planned,
       (plan ->> 'achievedPerDay')::float8 as achieved, (plan ->> 'freshness')::float8 as freshness
     from recrawl_plan
     where made_at >= $1 and made_at <= $2
     order by plan_id desc
     limit ${mostPlans}`,
    [range.since, range.until],
  );
  return rows.reverse();
}

async function recrawl(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const plans = await plansMade(pool, range);
  const times = plans.map(({ at }) => at.toISOString());
  const line = (name: string, of: (plan: (typeof plans)[number]) => number | null) => ({
    name,
    values: plans.map(of),
  });
  const whenEmpty = "No plan was made in this time: every page is fetched again after the same interval.";
  return [
    {
      ...{ key: "rates", title: "Fetches again per day", unit: "count", times, whenEmpty },
      series: [line("planned", ({ planned }) => planned), line("measured", ({ achieved }) => achieved)],
    },
    {
      ...{
        key: "freshness",
        title: "Expected to be current, by importance",
        unit: "share",
        times,
        whenEmpty,
      },
      series: [line("current", ({ freshness }) => freshness)],
    },
  ];
}

// One crawler: figures of quarters of an hour for a week, of days beyond.

async function crawlerCharts(pool: Pool, crawlerId: number, range: TimeRange): Promise<HistoryChart[]> {
  const isByDay = isBeyond(range, quarterDays);
  const steps = stepsOf(range, isByDay ? daySeconds : 900);
  const standing = stepsOf(range, isByDay ? daySeconds : 3600);
  const at = isByDay ? "day::timestamp at time zone 'UTC'" : "quarter";
  const from = isByDay
    ? `from crawler_day_figures
       where crawler_id = $4 and day >= ($1::timestamptz at time zone 'UTC')::date
         and day <= ($2::timestamptz at time zone 'UTC')::date`
    : "from crawler_figures where crawler_id = $4 and quarter >= $1 and quarter <= $2";
  const columns = blames.map((blame) => `sum(${failureColumns[blame]})::float8 as ${blame}`);
  const [figures, stood, written] = await Promise.all([
    pool.query<SteppedRow>(
      `select ${stepSql(at)}, sum(fetches)::float8 as fetches, sum(pages)::float8 as pages,
         sum(wire_bytes)::float8 as bytes, ${columns}
       ${from}
       group by 1
       having sum(fetches) > 0`,
      [...queryOf(range, steps), crawlerId],
    ),
    pool.query<SteppedRow>(
      `select ${stepSql(at)}, avg(rtt_ms)::float8 as rtt, avg(subnets)::float8 as subnets
       ${from} and subnets is not null
       group by 1`,
      [...queryOf(range, standing), crawlerId],
    ),
    writtenSteps(pool, range, { steps, isByDay }),
  ]);
  const rows = perMinute(steps, figures.rows, written);
  const { times } = steps;
  const whenEmpty = "It fetched nothing in this time.";
  return [
    {
      ...{ key: "pages", title: "Fetches per minute", unit: "count", times, whenEmpty },
      series: seriesOf(steps, rows, [
        ["fetches", "all"],
        ["pages", "with a page"],
      ]),
    },
    {
      ...{ key: "bytes", title: "Bytes per minute, at the partner's line", unit: "bytes", times, whenEmpty },
      series: seriesOf(steps, rows, [["bytes", "bytes"]]),
    },
    {
      ...{
        key: "failures",
        title: "Failed fetches per minute, and whose fault",
        unit: "count",
        times,
        whenEmpty,
      },
      series: seriesOf(
        steps,
        rows,
        blames.map((blame) => [blame, blameWords[blame]] as const),
      ),
    },
    {
      ...{ key: "rtt", title: "Mean RTT to its subnets", unit: "ms", times: standing.times },
      series: seriesOf(standing, stood.rows, [["rtt", "RTT"]]),
      whenEmpty: "It is noted once an hour, while the crawler has subnets.",
    },
    {
      ...{ key: "subnets", title: "Subnets", unit: "count", times: standing.times },
      series: seriesOf(standing, stood.rows, [["subnets", "subnets"]]),
      whenEmpty: "They are counted once an hour.",
    },
  ];
}

/** Steps in which somebody wrote figures: a crawler without any fetched nothing then. */
async function writtenSteps(
  pool: Pool,
  range: TimeRange,
  { steps, isByDay }: { readonly steps: Steps; readonly isByDay: boolean },
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await pool.query<{ step: number; minutes: number }>(
    isByDay
      ? `select ${stepSql("day::timestamp at time zone 'UTC'")}, sum(minutes)::float8 as minutes
         from day_figures
         where minutes > 0 and day >= ($1::timestamptz at time zone 'UTC')::date
           and day <= ($2::timestamptz at time zone 'UTC')::date
         group by 1`
      : `select ${stepSql("minute")}, count(*)::float8 as minutes
         from minute_figures
         where minute >= $1 and minute <= $2
         group by 1`,
    [...queryOf(range, steps)],
  );
  return new Map(rows.map(({ step, minutes }) => [Number(step), minutes]));
}

/** Means over the minutes in which a coordinator ran; without any of those, over the whole step. */
function perMinute(
  steps: Steps,
  rows: readonly SteppedRow[],
  written: ReadonlyMap<number, number>,
): SteppedRow[] {
  const known = new Map(rows.map((row) => [Number(row.step), row]));
  return steps.times.flatMap((_, index): SteppedRow[] => {
    const step = steps.first + index * steps.seconds;
    const row = known.get(step);
    const minutes = written.get(step);
    if (row === undefined && minutes === undefined) return [];
    const figures = ["fetches", "pages", "bytes", ...blames].map((name) => [
      name,
      (row?.[name] ?? 0) / (minutes ?? steps.seconds / 60),
    ]);
    return [{ step, ...Object.fromEntries(figures) }];
  });
}
