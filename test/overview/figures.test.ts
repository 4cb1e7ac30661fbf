/** Figures by the minute, as written and read. */
import { beforeEach, expect, it } from "vitest";
import type { WireResult } from "#coordinator/place/crawlers/crawler";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { figureWriter, forgetFigures, spanFigures } from "#coordinator/tell/overview/figure-store";
import { MinuteFigures } from "#coordinator/tell/overview/minute-figures";
import type { CrawlerId } from "#core/ids";
import { timeRange } from "#core/time-range";
import type { FetchOutcome } from "#protocol/result";
import { newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { arrivedResult, noon, secondsAfterNoon, spoolId } from "../support/store-world.ts";

const world = await forThisFile(newFlowWorld());
let athens: CrawlerId;
beforeEach(async () => {
  await world.reset();
  await world.pool.query("truncate minute_figures, crawler_figures, day_figures");
  athens = await world.crawler("athens");
});

const store = () => figureWriter(world.pool);
const failed = (blame: "target" | "network" | "us"): FetchOutcome => ({
  ...{ type: "failed", code: "x", reason: "x" },
  blame,
});

/** Pages of 3000 bytes, and failures; 100 bytes each on the wire to here. */
function batch(...outcomes: readonly (FetchOutcome | "page")[]) {
  const results = outcomes.map((outcome, index): WireResult => {
    const given = { sequence: index + 1, leaseId: "1", url: `http://a.example/${index}` };
    const { leaseId, sequence, result } = arrivedResult(outcome === "page" ? given : { ...given, outcome });
    return { sequence, leaseId, result, wireBytes: 100 };
  });
  return { crawlerId: athens, spoolId, results };
}

async function quarters() {
  const { rows } = await world.pool.query(
    `select quarter, fetches::int, wire_bytes::int, network_failures::int, our_failures::int
     from crawler_figures order by quarter`,
  );
  return rows;
}

it("counts are written to their minute at the next turn, and each crawler's to its quarter", async () => {
  const figures = new MinuteFigures();
  await figures.turn(store(), noon);

  figures.results(batch("page", "page", failed("network"), failed("us")), 4);
  figures.round(3);
  await figures.turn(store(), secondsAfterNoon(1));

  expect(await spanFigures(world.pool, 60, secondsAfterNoon(1))).toEqual({
    ...{ minutes: 60, fetches: 4, pages: 2, fetchedBytes: 6000, shippedBytes: 400, rounds: 1, probes: 3 },
    failures: { target: 0, network: 1, crawler: 0, us: 1 },
  });
  expect(await quarters()).toEqual([
    { quarter: noon, fetches: 4, wire_bytes: 4000, network_failures: 1, our_failures: 1 },
  ]);
});

it("an idle minute is one row, written at its end", async () => {
  const figures = new MinuteFigures();
  const written: Date[] = [];
  const rows = async (minute: Date) => void written.push(minute);
  for (const seconds of [0, 1, 30, 59, 60, 61]) await figures.turn(rows, secondsAfterNoon(seconds));

  expect(written).toEqual([noon]);
});

it("two coordinators, or one restarted within the minute, add to the same rows", async () => {
  const both = [new MinuteFigures(), new MinuteFigures()];
  for (const figures of both) {
    await figures.turn(store(), noon);
    figures.results(batch("page"), 1);
  }

  await Promise.all(both.map((figures) => figures.flush(store())));

  expect(await spanFigures(world.pool, 1, noon)).toMatchObject({ fetches: 2, pages: 2, shippedBytes: 200 });
  expect(await quarters()).toMatchObject([{ fetches: 2, wire_bytes: 2000 }]);
});

it("counts that could not be written are written with the next minute", async () => {
  const figures = new MinuteFigures();
  await figures.turn(store(), noon);
  figures.results(batch("page"), 1);
  const away = async () => Promise.reject(new Error("the database is away"));

  await expect(figures.turn(away, secondsAfterNoon(60))).rejects.toThrow("away");
  figures.results(batch("page"), 1);
  await figures.turn(store(), secondsAfterNoon(120));

  expect(await spanFigures(world.pool, 5, secondsAfterNoon(120))).toMatchObject({ fetches: 2, pages: 2 });
  expect(await quarters()).toMatchObject([{ fetches: 2 }]);
});

it("repeated results, or those without a lease, count as shipped bytes only", async () => {
  const figures = new MinuteFigures();
  await figures.turn(store(), noon);

  figures.results(batch("page", failed("us"), failed("us"), failed("us")), 0);
  await figures.flush(store());

  expect(await spanFigures(world.pool, 1, noon)).toMatchObject({
    ...{ fetches: 0, pages: 0, fetchedBytes: 0, shippedBytes: 400 },
    failures: { us: 0 },
  });
});

const chart = async (name: "1h" | "24h" | "1y", key = "pages") => {
  const range = timeRange({ range: name }, noon);
  const { charts } = await createChartReads(world.pool).charts("overview", range);
  const { times, series } = charts.find((one) => one.key === key)!;
  return times.map((time, index) => [time.slice(5, 16), series[0]!.values[index]] as const);
};

it("a history has a mean for each step, and gaps where nobody wrote", async () => {
  await world.pool.query(
    `insert into minute_figures (minute, pages, fetched_bytes, probes)
     values ($1::timestamptz - interval '2 min', 10, 1000, 4), ($1::timestamptz - interval '1 min', 20, 3000, 0),
       ($1::timestamptz - interval '20 min', 90, 9, 9)`,
    [noon],
  );

  expect((await chart("1h")).slice(-4)).toEqual([
    ["01-01T11:57", null],
    ["01-01T11:58", 10],
    ["01-01T11:59", 20],
    ["01-01T12:00", null],
  ]);
  expect((await chart("1h", "bytes")).at(-2)).toEqual(["01-01T11:59", 3000]);
  // The current ten minutes are empty; the former ones hold the two minutes.
  expect((await chart("24h")).slice(-4).map(([, pages]) => pages)).toEqual([null, 90, 15, null]);
});

it("minutes are kept for 90 days, quarters for 7", async () => {
  await world.pool.query(
    `insert into minute_figures (minute) select $1::timestamptz - make_interval(days => d) from unnest('{89,91}'::int[]) d;`,
    [noon],
  );
  await world.pool.query(
    `insert into crawler_figures (quarter, crawler_id)
     select $1::timestamptz - make_interval(days => d), $2 from unnest('{6,8}'::int[]) d`,
    [noon, athens],
  );

  expect(await forgetFigures(world.pool, noon)).toBe(1);
  expect((await world.pool.query("select from minute_figures")).rowCount).toBe(1);
  expect((await world.pool.query("select from crawler_figures")).rowCount).toBe(1);
});

it("days sum up their minutes, which may be deleted; a year's points are means over written minutes", async () => {
  await world.pool.query(
    `insert into minute_figures (minute, fetches, pages, fetched_bytes, probes)
     select $1::timestamptz - make_interval(days => day, mins => minute), 20, 10 + day, 1000, 4
     from generate_series(0, 100, 10) day, generate_series(1, 2) minute`,
    [noon],
  );

  await forgetFigures(world.pool, noon);
  const { rows: minutes } = await world.pool.query("select count(*)::int as minutes from minute_figures");
  // Written late, by another coordinator.
  await store()(secondsAfterNoon(-120), { ...nothing, fetches: 5, pages: 5 }, new Map());
  await forgetFigures(world.pool, secondsAfterNoon(3600));
  const { rows: days } = await world.pool.query(
    "select day::text, minutes, fetches::int, pages::int from day_figures order by day",
  );
  const known = (await chart("1y")).filter(([, pages]) => pages !== null);

  expect(minutes).toEqual([{ minutes: 18 }]);
  expect(days).toHaveLength(11);
  expect(days[0]).toEqual({ day: "2029-09-23", minutes: 2, fetches: 40, pages: 220 });
  expect(days.at(-1)).toEqual({ day: "2030-01-01", minutes: 2, fetches: 45, pages: 25 });
  expect(known).toHaveLength(11);
  expect(known.at(-1)![1]).toBe(12.5);
});

const nothing = {
  ...{ fetches: 0, pages: 0, fetched_bytes: 0, shipped_bytes: 0, rounds: 0, probes: 0 },
  ...{ target_failures: 0, network_failures: 0, crawler_failures: 0, our_failures: 0 },
};
