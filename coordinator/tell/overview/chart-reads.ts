/**
 * Reads the charts' figures over a range of time, by its steps (core/time-range). A table's retention bounds each read, and
 * the number of steps bounds each answer.
 */
import type { Pool } from "pg";
import { howMany, leastSamples, wilsonInterval } from "#core/format";
import type { TimeRange } from "#core/time-range";
import { blames } from "#protocol/result";
import { createAccuracyStore } from "../../place/delegation/accuracy-store.ts";
import { nearlyBestMs } from "../../place/delegation/delegation.ts";
import {
  type ChartHistory,
  chartHistory,
  type HistoryChart,
  type HistoryMark,
  type Marks,
  type SteppedRow,
  type Steps,
  seriesOf,
  stepsOf,
  withoutIdle,
} from "../../web/chart-history.ts";
import { blameNames } from "../fleet/fleet-api.ts";
import { gaugeSeconds, queueGauge } from "./figure-store.ts";
import { failureColumns, minuteDays, quarterDays } from "./minute-figures.ts";
import { waitReasons } from "./queue-api.ts";
import { waitReasonWords } from "./queue-words.ts";

export function createChartReads(pool: Pool) {
  const read = { overview, queue, failures, accuracy, trust, recrawl };
  const withMarks = async (
    range: TimeRange,
    reading: Promise<HistoryChart[]>,
    crawler: string | null = null,
  ): Promise<ChartHistory> => {
    const [charts, marks] = await Promise.all([reading, marksBetween(pool, range, crawler)]);
    return chartHistory(range, charts, marks);
  };
  return {
    charts: async (page: keyof typeof read, range: TimeRange) =>
      await withMarks(range, read[page](pool, range)),
    crawlerCharts: async (of: { readonly crawlerId: number; readonly name: string }, range: TimeRange) =>
      await withMarks(range, crawlerCharts(pool, of.crawlerId, range), of.name),
  };
}

const daySeconds = 86_400;
const dayMs = 1000 * daySeconds;

/** Returns SQL for the start of the instant's step, in seconds since the epoch. $3 is the step. */
const stepSql = (instant: string) => `(floor(extract(epoch from ${instant}) / $3) * $3)::float8 as step`;

/** The parameters $1 to $3 of each query. */
const queryOf = ({ since, until }: TimeRange, { seconds }: Steps): [Date, Date, number] => [
  since,
  until,
  seconds,
];

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
    queryOf(range, steps),
  );
  return rows;
}

/** Makes charts of the same rows. `usual` is shown if there are none. */
const chartsOver =
  (steps: Steps, rows: readonly SteppedRow[], usual: string) =>
  (
    key: string,
    title: string,
    unit: HistoryChart["unit"],
    lines: readonly (readonly [column: string, name: string])[],
    whenEmpty = usual,
  ): HistoryChart => ({
    ...{ key, title, unit, times: steps.times, whenEmpty },
    series: seriesOf(steps, rows, lines),
  });

const busyAlone = (chart: HistoryChart): HistoryChart => ({ ...chart, series: withoutIdle(chart.series) });

async function queue(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const steps = stepsOf(range, gaugeSeconds);
  const waiting = waitReasons.map((reason) => [queueGauge(reason), waitReasonWords[reason].name] as const);
  const names = [...waiting.map(([name]) => name), "queueMedianSeconds", "queueP95Seconds", "urlsInProgress"];
  const chart = chartsOver(steps, await gaugeRows(pool, range, names, steps), startsNow);
  return [
    busyAlone(chart("waiting", "Due hosts, by what they wait for", "count", waiting)),
    chart("wait", "How long they have waited", "seconds", [
      ["queueMedianSeconds", "median"],
      ["queueP95Seconds", "95 % under"],
    ]),
    chart("in-progress", "URLs in progress", "count", [["urlsInProgress", "URLs in progress"]]),
  ];
}

const isBeyond = (range: TimeRange, days: number) =>
  range.now.getTime() - range.since.getTime() > days * dayMs;

const inDays = `day >= ($1::timestamptz at time zone 'UTC')::date and day <= ($2::timestamptz at time zone 'UTC')::date`;

/** Sums columns by step, with the minutes in which a coordinator ran. Reads days where minutes are not kept that long. */
async function minuteRows(
  pool: Pool,
  range: TimeRange,
  columns: readonly (readonly [name: string, column: string])[],
  isByDay = isBeyond(range, minuteDays),
  steps = stepsOf(range, isByDay ? daySeconds : 60),
) {
  const from = isByDay
    ? `day_figures where minutes > 0 and ${inDays}`
    : "minute_figures where minute >= $1 and minute <= $2";
  // The current minute is incomplete, so it is left out.
  const minuteStart = Math.floor(range.now.getTime() / 60_000) * 60_000;
  const until = steps.seconds === 60 ? new Date(Math.min(+range.until, minuteStart - 1)) : range.until;
  const sums = columns.map(([name, column]) => `, sum(${column})::float8 as ${name}`);
  const { rows } = await pool.query<SteppedRow>(
    `select ${stepSql(isByDay ? "day::timestamp at time zone 'UTC'" : "minute")},
       ${isByDay ? "sum(minutes)" : "count(*)"}::float8 as minutes ${sums.join("")}
     from ${from}
     group by 1`,
    queryOf({ ...range, until }, steps),
  );
  return { steps, rows };
}

const ofBlames = blames.map((blame) => [blame, failureColumns[blame]] as const);
const blameLines = blames.map((blame) => [blame, blameNames[blame]] as const);

function eachOf(row: SteppedRow, names: readonly string[], of: (value: number) => number | null): SteppedRow {
  return { step: row.step, ...Object.fromEntries(names.map((name) => [name, of(row[name] ?? 0)])) };
}

const noCoordinator = "No coordinator ran in this time.";

async function overview(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const names = ["pages", "fetched_bytes", "probes"];
  const { steps, rows } = await minuteRows(
    pool,
    range,
    names.map((name) => [name, name]),
  );
  const means = rows.map((row) => eachOf(row, names, (sum) => sum / row.minutes!));
  const chart = chartsOver(steps, means, noCoordinator);
  return [
    chart("pages", "Pages per minute", "count", [["pages", "pages"]]),
    chart("bytes", "Fetched per minute", "bytes", [["fetched_bytes", "bytes"]]),
    chart("probes", "Probes per minute", "count", [["probes", "probes"]]),
  ];
}

async function failures(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const { steps, rows } = await minuteRows(pool, range, [["fetches", "fetches"], ...ofBlames]);
  const means = rows.map((row) => eachOf(row, blames, (failed) => failed / row.minutes!));
  const shares = rows.map((row) =>
    eachOf(row, blames, (failed) => (row.fetches! < leastSamples ? null : failed / row.fetches!)),
  );
  const tooFew = `Shown from ${leastSamples} fetches; no point of this range has as many.`;
  return [
    chartsOver(steps, means, noCoordinator)("failures", "Failed fetches per minute", "count", blameLines),
    chartsOver(steps, shares, tooFew)("share", "Share of fetches that failed", "share", blameLines),
  ];
}

/** Reads the share of samples in a window before each point, as on the accuracy page. */
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
  const tooFew = `Shown from ${leastSamples} samples; no ${window} of this range have as many.`;
  const inWindow = `Samples (${window})`;
  const chart = chartsOver(steps, rows, tooFew);
  return [
    chart("share", `Within ${nearlyBestMs} ms of nearest (${window})`, "share", [
      ["share", "share"],
      ["low", "at least (95 %)"],
      ["high", "at most (95 %)"],
    ]),
    chart("samples", inWindow, "count", [["samples", "samples"]], "Nothing was sampled."),
  ];
}

async function trust(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const steps = stepsOf(range, 3600);
  const fine = stepsOf(range, gaugeSeconds);
  const [gauges, compared, incidents] = await Promise.all([
    gaugeRows(pool, range, ["crawlersOnline", "crawlersDraining", "crawlersOffline"], fine),
    pool.query<SteppedRow>(
      `select ${stepSql("decided_at")}, count(*) filter (where verdict = 'agree')::float8 as agree,
         count(*) filter (where verdict = 'alone')::float8 as alone,
         count(*) filter (where verdict = 'once')::float8 as once
       from double_check
       where verdict is not null and decided_at >= $1 and decided_at <= $2
       group by 1`,
      queryOf(range, steps),
    ),
    pool.query<SteppedRow>(
      `select ${stepSql("hour")}, sum(incidents)::float8 as incidents
       from incident
       where last_at >= $1 and hour >= $1 and hour <= $2
       group by 1`,
      queryOf(range, steps),
    ),
  ]);
  const hours = steps.seconds / 3600;
  // A step without a row counts as zero.
  const perHour = (rows: readonly SteppedRow[], names: readonly string[]) => {
    const known = new Map(rows.map((row) => [Number(row.step), row]));
    return steps.times.map((_, index) => {
      const step = steps.first + index * steps.seconds;
      return eachOf(known.get(step) ?? { step }, names, (count) => count / hours);
    });
  };
  const verdicts = perHour(compared.rows, ["agree", "alone", "once"]);
  const refused = perHour(incidents.rows, ["incidents"]);
  return [
    chartsOver(steps, verdicts, "Nothing was compared.")("comparisons", "Pages compared per hour", "count", [
      ["agree", "agree"],
      ["alone", "differ each time"],
      ["once", "differed once"],
    ]),
    chartsOver(steps, refused, "Nothing was refused.")("incidents", "Incidents per hour", "count", [
      ["incidents", "incidents"],
    ]),
    busyAlone(
      chartsOver(fine, gauges, startsNow)("crawlers", "Crawlers", "count", [
        ["crawlersOnline", "online"],
        ["crawlersDraining", "draining"],
        ["crawlersOffline", "offline"],
      ]),
    ),
  ];
}

const mostPlans = 1000;

async function recrawl(pool: Pool, range: TimeRange): Promise<HistoryChart[]> {
  const { rows } = await pool.query<
    { readonly at: Date } & Readonly<Record<"planned" | "achieved" | "freshness", number | null>>
  >(
    `select made_at as at, nullif((plan ->> 'totalPerDay')::float8, 0) as planned,
       (plan ->> 'achievedPerDay')::float8 as achieved, (plan ->> 'freshness')::float8 as freshness
     from recrawl_plan
     where made_at >= $1 and made_at <= $2
     order by plan_id desc
     limit ${mostPlans}`,
    [range.since, range.until],
  );
  const plans = rows.reverse();
  const times = plans.map(({ at }) => at.toISOString());
  const line = (name: string, of: "planned" | "achieved" | "freshness") => {
    return { name, values: plans.map((plan) => plan[of]) };
  };
  const whenEmpty = "No plan was made in this time: every page is fetched again after the same interval.";
  const [rates, freshness] = ["Fetches again per day", "Expected to be current, by importance"];
  return [
    {
      ...{ key: "rates", title: rates, unit: "count", times, whenEmpty },
      series: [line("planned", "planned"), line("measured", "achieved")],
    },
    {
      ...{ key: "freshness", title: freshness, unit: "share", times, whenEmpty },
      series: [line("current", "freshness")],
    },
  ];
}

/** Reads quarters of an hour for up to a week, otherwise days. */
async function crawlerCharts(pool: Pool, crawlerId: number, range: TimeRange): Promise<HistoryChart[]> {
  const isByDay = isBeyond(range, quarterDays);
  const steps = stepsOf(range, isByDay ? daySeconds : 900);
  const standing = stepsOf(range, isByDay ? daySeconds : 3600);
  const at = isByDay ? "day::timestamp at time zone 'UTC'" : "quarter";
  const from = isByDay
    ? `from crawler_day_figures where crawler_id = $4 and ${inDays}`
    : "from crawler_figures where crawler_id = $4 and quarter >= $1 and quarter <= $2";
  const columns = ofBlames.map(([blame, column]) => `sum(${column})::float8 as ${blame}`);
  const [figures, stood, ran] = await Promise.all([
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
    minuteRows(pool, range, [], isByDay, steps),
  ]);
  const written = new Map(ran.rows.map(({ step, minutes }) => [Number(step), minutes!]));
  const chart = chartsOver(
    steps,
    perMinute(steps, figures.rows, written),
    "It fetched nothing in this time.",
  );
  const standings = chartsOver(standing, stood.rows, "They are counted once an hour.");
  const whoseFault = "Failed fetches per minute, and whose fault";
  const noSubnets = "It is noted once an hour, while the crawler has subnets.";
  return [
    chart("pages", "Fetches per minute", "count", [
      ["fetches", "all"],
      ["pages", "with a page"],
    ]),
    chart("bytes", "Bytes per minute, at the partner's line", "bytes", [["bytes", "bytes"]]),
    chart("failures", whoseFault, "count", blameLines),
    standings("rtt", "Mean RTT to its subnets", "ms", [["rtt", "RTT"]], noSubnets),
    standings("subnets", "Subnets", "count", [["subnets", "subnets"]]),
  ];
}

/** Means over the minutes in which a coordinator ran, or the whole step. A crawler without figures has fetched nothing. */
function perMinute(
  steps: Steps,
  rows: readonly SteppedRow[],
  written: ReadonlyMap<number, number>,
): SteppedRow[] {
  const known = new Map(rows.map((row) => [Number(row.step), row]));
  return steps.times.flatMap((_, index): SteppedRow[] => {
    const step = steps.first + index * steps.seconds;
    const [row, minutes] = [known.get(step), written.get(step)];
    if (row === undefined && minutes === undefined) return [];
    const names = ["fetches", "pages", "bytes", ...blames];
    return [eachOf(row ?? { step }, names, (count) => count / (minutes ?? steps.seconds / 60))];
  });
}

// Marks show what changed meanwhile and may explain a bend of a line: policies, releases, registries, crawlers.

/** Maximum number of marks shown. Earlier ones are counted. */
const mostMarks = 50;

interface MarkRow {
  readonly at: Date;
  readonly kind: string;
  readonly subject: string;
  readonly more: number;
  readonly count: number;
}

/** With `crawler`, marks that concern only other crawlers are left out. */
export async function marksBetween(
  pool: Pool,
  { since, until }: TimeRange,
  crawler: string | null = null,
): Promise<Marks> {
  const { rows } = await pool.query<MarkRow>(
    `select at, kind, subject, more, count(*) over ()::int as count
     from (
       select changed_at as at, 'policy' as kind, coalesce(changes -> 0 ->> 'name', '') as subject,
         jsonb_array_length(changes) - 1 as more
       from policy_version
       where changed_at between $1 and $2
       union all
       select published_at, 'release-published', version, 0
       from release
       where published_at between $1 and $2
       union all
       select stage_since, 'release-' || stage, version, 0
       from release
       where stage_since between $1 and $2 and stage_since > published_at
       union all
       select applied_at, 'registry', generation::text, 0
       from registry_generation
       where applied_at between $1 and $2
       union all
       select rolled_back_at, 'registry-rolled-back', generation::text, 0
       from registry_generation
       where rolled_back_at between $1 and $2
       union all
       select created_at, 'crawler-registered', name, 0
       from crawler
       where created_at between $1 and $2 and ($3::text is null or name = $3)
       union all
       select at, action, target, 0
       from audit_entry
       where at between $1 and $2 and action = any($4) and target is not null and ($3::text is null or target = $3)
     ) change
     order by at desc, kind desc, subject collate "C" desc
     limit ${mostMarks}`,
    [since, until, crawler, Object.keys(crawlerWords)],
  );
  const marks = rows.reverse().map(({ at, ...row }) => ({ at: at.toISOString(), ...wordsOf(row) }));
  return { marks, more: Math.max(0, (rows[0]?.count ?? 0) - rows.length) };
}

/** The words for each action in the audit log. */
const crawlerWords: Readonly<Record<string, string>> = {
  "crawler-registered": "registered",
  "crawler-drained": "drained",
  "crawler-resumed": "resumed",
  "crawler-revoked": "removed",
  "crawler-killed": "removed",
  "crawler-distrusted": "not trusted any more",
  "crawler-probes-doubted": "probes not trusted any more",
  "crawler-trust-restored": "trusted again",
  "crawler-budget-granted": "budget changed",
  "crawler-domain-sets-given": "domain sets changed",
  "crawler-moved": "moved to another host",
};

const otherWords: Readonly<Record<string, readonly [what: string, became: string, link: string]>> = {
  policy: ["policy", "changed", "/policies"],
  "release-published": ["release", "published", "/fleet/versions"],
  "release-none": ["release", "offered to nobody any more", "/fleet/versions"],
  "release-one": ["release", "offered to one crawler", "/fleet/versions"],
  "release-percent": ["release", "offered to a part of the fleet", "/fleet/versions"],
  "release-all": ["release", "offered to all", "/fleet/versions"],
  registry: ["registry generation", "in force", "/registry"],
  "registry-rolled-back": ["registry generation", "rolled back", "/registry"],
};

function wordsOf({ kind, subject, more }: Omit<MarkRow, "at">): Pick<HistoryMark, "words" | "link"> {
  const [what, became, link] = otherWords[kind] ?? [];
  if (what === undefined)
    return {
      words: `${subject} ${crawlerWords[kind] ?? kind}`,
      link: `/crawlers/${encodeURIComponent(subject)}`,
    };
  const words = `${what} ${subject} ${became}${more > 0 ? `, with ${howMany(more, "other")}` : ""}`;
  return { words, link: link! };
}
