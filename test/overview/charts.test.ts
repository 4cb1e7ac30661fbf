/** Charts: samples and sums of the past, read by steps, with marks of what changed. */
import { beforeEach, describe, expect, it, test } from "vitest";
import { historyText } from "#coordinator/ask/text-rendering";
import { createChartReads, marksBetween } from "#coordinator/tell/overview/chart-reads";
import {
  addGauges,
  addStandings,
  figureWriter,
  forgetFigures,
  forgetGauges,
} from "#coordinator/tell/overview/figure-store";
import { type ChartHistory, chartValueText } from "#coordinator/web/chart-history";
import { sampledShare } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { timeRange } from "#core/time-range";
import { newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";

const world = await forThisFile(newFlowWorld());
let athens: CrawlerId;
beforeEach(async () => {
  await world.reset();
  await world.pool.query(
    "truncate minute_figures, crawler_figures, crawler_day_figures, day_figures, gauge_sample, accuracy_sample, policy_version, audit_entry",
  );
  athens = await world.crawler("athens");
});

const minutesAfter = (minutes: number) => secondsAfterNoon(60 * minutes);
const daysAfter = (days: number) => secondsAfterNoon(86_400 * days);
const range = (name: string, now = noon) => timeRange({ range: name }, now);
const lineOf = (history: ChartHistory, chart: string, name: string) => {
  const found = history.charts.find(({ key }) => key === chart)!;
  const { values } = found.series.find((series) => series.name === name)!;
  return values.flatMap((value, index) =>
    value === null ? [] : [[found.times[index]!.slice(5, 16), value] as const],
  );
};

describe("samples of the fleet", () => {
  it("two coordinators write one row per five minutes, which the queue's chart shows", async () => {
    const first = await Promise.all([
      addGauges(world.pool, minutesAfter(-9), { "queue.politeness": 4 }),
      addGauges(world.pool, minutesAfter(-8), { "queue.politeness": 4 }),
    ]);
    await addGauges(world.pool, minutesAfter(-4), { "queue.politeness": 8, "queue.in-line": 0 });

    const history = await createChartReads(world.pool).charts("queue", range("1h"));

    expect(first.filter((isFirst) => isFirst)).toHaveLength(1);
    expect(history.charts[0]!.series.map(({ name }) => name)).toEqual(["the site's pace"]);
    expect(lineOf(history, "waiting", "the site's pace")).toEqual([
      ["01-01T11:50", 4],
      ["01-01T11:55", 8],
    ]);
  });

  it("are reduced to one an hour after two weeks, and to none after 400 days", async () => {
    for (const at of [
      daysAfter(-15),
      new Date(daysAfter(-15).getTime() + 300_000),
      daysAfter(-401),
      minutesAfter(-5),
    ]) {
      await addGauges(world.pool, at, {});
    }

    expect(await forgetGauges(world.pool, noon)).toBe(2);
    expect((await world.pool.query("select at from gauge_sample order by at")).rows).toEqual([
      { at: daysAfter(-15) },
      { at: minutesAfter(-5) },
    ]);
  });
});

describe("one crawler", () => {
  const noFailures = { target_failures: 0, network_failures: 0, crawler_failures: 0, our_failures: 0 };
  const figures = (pages: number) =>
    ({ ...noFailures, fetches: 2 * pages, pages, wire_bytes: 1000 * pages, target_failures: pages }) as const;
  const minute = { fetches: 0, pages: 0, fetched_bytes: 0, shipped_bytes: 0, rounds: 0, probes: 0 };
  const write = async (at: Date, pages: number | null) =>
    await figureWriter(world.pool)(
      at,
      { ...minute, ...noFailures },
      new Map(pages === null ? [] : [[athens, figures(pages)]]),
    );
  const charts = async (name: string) =>
    await createChartReads(world.pool).crawlerCharts({ crawlerId: athens, name: "athens" }, range(name));

  it("is shown per minute that a coordinator ran, as zero while idle, and not at all while none ran", async () => {
    await write(minutesAfter(-30), 30);
    await write(minutesAfter(-29), null);
    await write(minutesAfter(-15), null);
    await addStandings(world.pool, minutesAfter(-25), [{ crawlerId: athens, subnets: 3, meanRttMs: 12.5 }]);
    await addStandings(world.pool, minutesAfter(-20), [{ crawlerId: athens, subnets: 9, meanRttMs: 99 }]);

    const history = await charts("1h");

    expect(lineOf(history, "pages", "with a page")).toEqual([
      ["01-01T11:30", 15],
      ["01-01T11:45", 0],
    ]);
    expect(lineOf(history, "failures", "the site")).toEqual([
      ["01-01T11:30", 15],
      ["01-01T11:45", 0],
    ]);
    expect(lineOf(history, "rtt", "RTT")).toEqual([["01-01T11:00", 12.5]]);
    expect(lineOf(history, "subnets", "subnets")).toEqual([["01-01T11:00", 3]]);
  });

  it("keeps its days when its quarters are deleted", async () => {
    await write(daysAfter(-6), 10);
    await forgetFigures(world.pool, daysAfter(-6));
    await write(daysAfter(-5), 20);
    await addStandings(world.pool, daysAfter(-5), [{ crawlerId: athens, subnets: 3, meanRttMs: 20 }]);
    await forgetFigures(world.pool, daysAfter(3));

    const { rows } = await world.pool.query(
      "select day::text, pages::int, subnets, rtt_ms from crawler_day_figures order by day",
    );

    expect((await world.pool.query("select from crawler_figures")).rowCount).toBe(0);
    expect(rows).toEqual([
      { day: "2029-12-26", pages: 10, subnets: null, rtt_ms: null },
      { day: "2029-12-27", pages: 20, subnets: 3, rtt_ms: 20 },
    ]);
    expect(lineOf(await charts("30d"), "rtt", "RTT")).toEqual([["12-27T00:00", 20]]);
  });
});

describe("what changed", () => {
  it("is listed in order with words and links, and for one crawler without other crawlers", async () => {
    await world.pool.query(
      `insert into policy_version (version, changed_at, changed_by, changes)
       values (1, $1, 'anna', '[{"name": "probe.pace", "before": null, "after": 2}, {"name": "x", "before": null, "after": 1}]')`,
      [minutesAfter(-30)],
    );
    await world.pool.query(
      `insert into audit_entry (at, actor, via, action, target, words)
       values ($1, 'anna', 'page', 'crawler-drained', 'athens', 'x'), ($1, 'anna', 'page', 'crawler-drained', '<i>', 'x'),
         ($1, 'anna', 'page', 'token-created', 'athens', 'a secret'), ($2, 'anna', 'page', 'crawler-resumed', 'athens', 'x')`,
      [minutesAfter(-20), minutesAfter(-70)],
    );
    await world.pool.query("update crawler set created_at = $1", [minutesAfter(-90)]);

    const all = await marksBetween(world.pool, range("1h"));
    const own = await marksBetween(world.pool, range("1h"), "athens");

    expect(all.marks.map(({ words, link }) => [words, link])).toEqual([
      ["policy probe.pace changed, with 1 other", "/policies"],
      ["<i> drained", "/crawlers/%3Ci%3E"],
      ["athens drained", "/crawlers/athens"],
      ["registry generation 1 in force", "/registry"],
    ]);
    expect(own.marks.map(({ words }) => words)).toEqual([
      "policy probe.pace changed, with 1 other",
      "athens drained",
      "registry generation 1 in force",
    ]);
    expect(all.more).toBe(0);
  });

  it("is limited to fifty marks and a count", async () => {
    await world.pool.query(
      `insert into crawler (name, created_at)
       select 'c' || n, $1::timestamptz - make_interval(secs => n) from generate_series(1, 10000) n`,
      [noon],
    );
    await world.pool.query("update crawler set created_at = $1 where name = 'athens'", [daysAfter(-300)]);

    const { marks, more } = await marksBetween(world.pool, range("24h"));

    expect([marks.length, more]).toEqual([50, 9951]);
    expect(marks.at(-2)!.words).toBe("c1 registered");
  });
});

describe("a share of samples", () => {
  it("is not shown for fewer than thirty", () => {
    expect([sampledShare(1, 1), sampledShare(29, 29), sampledShare(30, 30), sampledShare(0, 0)]).toEqual([
      "1 of 30 samples",
      "29 of 30 samples",
      "100.0 %",
      "–",
    ]);
  });

  it("has no point in the chart of failures below thirty fetches", async () => {
    await world.pool.query(
      `insert into minute_figures (minute, fetches, target_failures)
       values ($1::timestamptz - interval '3 min', 29, 29), ($1::timestamptz - interval '2 min', 30, 3)`,
      [noon],
    );

    const history = await createChartReads(world.pool).charts("failures", range("1h"));

    expect(lineOf(history, "share", "the site")).toEqual([["01-01T11:58", 0.1]]);
    expect(lineOf(history, "failures", "the site")).toEqual([
      ["01-01T11:57", 29],
      ["01-01T11:58", 3],
    ]);
  });
});

test("a terminal shows a line per figure, and what changed", () => {
  const text = historyText(
    {
      ...{
        at: noon.toISOString(),
        since: minutesAfter(-60).toISOString(),
        until: noon.toISOString(),
        range: "1h",
        said: null,
      },
      charts: [
        {
          ...{ key: "rtt", title: "Mean RTT", unit: "ms", whenEmpty: "" },
          times: [minutesAfter(-60), minutesAfter(-30), noon].map((at) => at.toISOString()),
          series: [{ name: "RTT", values: [10, null, 20] }],
        },
        {
          ...{ key: "x", title: "Samples", unit: "count", whenEmpty: "None was taken." },
          times: [],
          series: [],
        },
      ],
      marks: [{ at: minutesAfter(-30).toISOString(), words: "athens \u001b[31mdrained", link: null }],
      moreMarks: 2,
    },
    { width: null, colours: false },
  );

  expect(text).toContain("RTT  ▅·█  last 20.0 ms, highest 20.0 ms");
  expect(text).toContain("Samples: None was taken.");
  expect(text).toContain("2030-01-01 11:30  athens");
  expect(text).not.toContain("\u001b[31md");
  expect(text).toContain("  2 more");
});

test.each([
  ["count", 0.25, "0.25"],
  ["count", 12_345.6, "12,346"],
  ["share", 0.9999, "99.99 %"],
  ["share", 0.125, "12.5 %"],
  ["seconds", 7200, "2 hours"],
] as const)("%s %d is written %s", (unit, value, text) => {
  expect(chartValueText(unit, value)).toBe(text);
});
