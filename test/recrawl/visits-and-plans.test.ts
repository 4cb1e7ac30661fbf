/** What results say of their pages' changes, and the plans that are made of it, through the real stores. */
import { beforeEach, expect, test } from "vitest";
import { latestPlan, latestPlans } from "#coordinator/crawl/recrawl/plan-store";
import { planRecrawls } from "#coordinator/crawl/recrawl/plan-writes";
import { fixedPlan, type PlanInForce } from "#coordinator/crawl/recrawl/recrawl-plan";
import { sampledPages } from "#coordinator/crawl/recrawl/sample-store";
import { alone } from "#coordinator/database/bounded-work";
import { policySections } from "#coordinator/run/settings/schema";
import type { CrawlerId } from "#core/ids";
import { newShippingWorld, type Shipped, text } from "../results/shipping-world.ts";
import { noon, secondsAfterNoon, worldOfFile } from "../support/store-world.ts";

const hour = 3600;
const day = 24 * hour;

const world = worldOfFile(async () => await newShippingWorld(() => plan));
let plan: PlanInForce = fixedPlan;
let crawlerId: CrawlerId;

/** Two hosts with a front page each, s1 and s2, of one crawler. */
beforeEach(async () => {
  plan = fixedPlan;
  crawlerId = await world.arrived("north", 5000);
  for (const number of [1, 2]) {
    const subnetId = await world.site(number);
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  }
});

const url = (site: number) => `http://s${site}.example/`;

/** All URLs are due, and those of these sites are fetched. */
async function visit(atSeconds: number, found: Readonly<Record<string, Shipped>>): Promise<void> {
  await world.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [noon]);
  await world.pool.query("update frontier_host set due_at = $1, not_before = '-infinity'", [noon]);
  await world.ship(crawlerId, found, secondsAfterNoon(atSeconds));
}

const sums = async (site: number) => {
  const row = await world.urlRow(url(site));
  return [row?.compared_visits, row?.content_changes, row?.changed_seconds, row?.unchanged_seconds];
};

const daysToNext = async (site: number) => {
  const { rows } = await world.pool.query<{ days: number }>(
    `select extract(epoch from next_fetch_at - last_fetched_at)::float8 / 86400 as days
     from frontier_url where url = $1`,
    [url(site)],
  );
  return rows[0]!.days;
};

const unchanged: Shipped = { outcome: { type: "unchanged", status: 304 } };

/** A plan by policies with these differences, made so long after noon; null: none is. */
const planned = async (differences: Readonly<Record<string, unknown>>, atSeconds: number) => {
  const policies = policySections.recrawl.parse({ shortestHours: 0.001, ...differences });
  return await planRecrawls({ pool: world.pool, policies, now: secondsAfterNoon(atSeconds) });
};

test("visits are compared by digest and by 304, and each leaves what it found with its fetch", async () => {
  await visit(0, { [url(1)]: { page: text(1) } });
  const first = [await sums(1), (await world.urlRow(url(1)))?.changes_per_day];
  await visit(hour, { [url(1)]: { page: text(2) } });
  await visit(3 * hour, { [url(1)]: { page: text(2) } });
  await visit(4 * hour, { [url(1)]: unchanged });

  expect(first).toEqual([[0, 0, 0, 0], expect.closeTo(0.1, 6)]);
  expect(await sums(1)).toEqual([3, 1, hour, 3 * hour]);
  const fetches = await world.pool.query("select changed, gap_seconds from page_fetch order by fetched_at");
  expect(fetches.rows).toEqual([
    { changed: null, gap_seconds: null },
    { changed: true, gap_seconds: hour },
    { changed: false, gap_seconds: 2 * hour },
    { changed: false, gap_seconds: hour },
  ]);
});

test("a clock that jumps back or far ahead adds no time, and the page's change is noted all the same", async () => {
  await visit(10 * day, { [url(1)]: { page: text(1) } });
  await visit(5 * day, { [url(1)]: { page: text(2) } });
  const back = await sums(1);
  await visit(5000 * day, { [url(1)]: { page: text(3) } });

  expect([back, await sums(1)]).toEqual([
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
  const { rows } = await world.pool.query(
    "select changed, gap_seconds from page_fetch order by changed nulls first",
  );
  expect(rows.map(({ gap_seconds: gap }) => gap)).toEqual([null, null, null]);
  expect(rows.map(({ changed }) => changed)).toEqual([null, true, true]);
});

test("optimal: nothing is planned before a page is known, then the changing page comes sooner at the same total", async () => {
  const optimal = { strategy: "optimal", intervalHours: 12, visitsPerChange: 50 };
  const early = await planned(optimal, 0);
  for (const turn of [0, 1, 2, 3, 4, 5])
    await visit(turn * 6 * hour, { [url(1)]: { page: text(turn >> 1) }, [url(2)]: { page: text(100) } });

  const made = (await planned(optimal, 31 * hour))!;
  plan = made;
  await visit(36 * hour, { [url(1)]: { page: text(2) }, [url(2)]: unchanged });

  expect(early).toBeNull();
  expect(made).toMatchObject({ pages: 2, totalPerDay: 4, allowedPerDay: 5000, correction: 1 });
  const [changing, still] = [await daysToNext(1), await daysToNext(2)];
  expect(changing).toBeLessThan(still / 2);
  expect(Math.abs((1 / changing + 1 / still) / 4 - 1)).toBeLessThan(0.3);
  expect(await latestPlan(world.pool)).toEqual(made);

  // What the fleet was found to manage goes on from plan to plan, a ninth more of one that is not late.
  await world.pool.query("update frontier_host set due_at = $1", [secondsAfterNoon(9 * day)]);
  await world.rows("update recrawl_plan set plan = plan || '{\"capacityPerDay\": 1000}'");
  const next = await planned(optimal, 37 * hour);
  expect(Math.round(next!.capacityPerDay)).toBe(1111);
});

test("a sample of pages is never empty, tells its share as it is, and leaves out what is no rate", async () => {
  for (const turn of [0, 6])
    await visit(turn * hour, { [url(1)]: { page: text(turn) }, [url(2)]: { page: text(100) } });

  const all = await sampledPages(world.pool, 100);
  const some = await sampledPages(world.pool, 1e-6);
  await world.pool.query("update frontier_url set changes_per_day = 'NaN' where url = $1", [url(1)]);
  const numbers = await sampledPages(world.pool, 100);

  expect([all.changesPerDay.length, all.share]).toEqual([2, 1]);
  expect(some.changesPerDay.length).toBeGreaterThan(0);
  expect(some.share).toBe(some.changesPerDay.length / 2);
  expect(numbers.changesPerDay.length).toBe(1);
});

test("iir and icr: hosts are divided when half of the pages are known, and reassigned when the most urgent ones had six updates", async () => {
  const icr = { strategy: "icr", groups: 2, longestDays: 100 };
  const early = await planned(icr, 0);
  for (const turn of [0, 0.5, 1, 2])
    await visit(turn * hour, { [url(1)]: { page: text(2 * turn) }, [url(2)]: { page: text(100) } });
  const first = (await planned(icr, 3 * hour))!;
  plan = first;
  await visit(4 * hour, { [url(1)]: { page: text(9) }, [url(2)]: unchanged });
  const [urgent, calm] = [await daysToNext(1), await daysToNext(2)];

  const soon = await planned(icr, 5 * hour);
  for (const turn of [6, 7, 8, 9, 10, 11])
    await visit(turn * hour, { [url(1)]: unchanged, [url(2)]: unchanged });
  const next = await planned(icr, 12 * hour);

  expect(early).toBeNull();
  expect(first.groups.map(({ channels, pages }) => [channels, pages])).toEqual([
    [1, 1],
    [1, 1],
  ]);
  expect([urgent, calm].map((days) => Math.round(days * day))).toEqual(
    first.groupIntervalSeconds.map(Math.round),
  );
  expect(urgent).toBeLessThan(calm);
  expect(soon).toBeNull();
  expect(next?.reason).toContain("1 of the 1 hosts and channels that change most had more than five updates");
  expect(next?.groups[0]?.successRate).toBeGreaterThan(0.9);
  expect(next?.groupIntervalSeconds).not.toEqual(first.groupIntervalSeconds);
});

test("one coordinator at a time makes plans, and a strategy that is taken back leaves a plan that says so", async () => {
  await visit(0, { [url(1)]: { page: text(1) } });
  const plan = async () => await planned({ strategy: "optimal" }, 1);
  const held = await alone(world.pool, "nearcrawl-recrawl-plan", plan);
  await plan();

  const fixed = await planned({}, 2);
  const again = await planned({}, 3);

  expect(held).toBeNull();
  expect(fixed?.reason).toBe("the strategy is fixed: every page after the same interval");
  expect(again).toBeNull();
  expect((await latestPlans(world.pool, 10)).map(({ strategy }) => strategy)).toEqual(["fixed", "optimal"]);
});
