/** Visits, what results say of changes, and the plans that are made of them, through the real stores. */
import { beforeEach, describe, expect, test } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import type { RecrawlPlan } from "#coordinator/crawl/recrawl/make-plan";
import {
  groupChannels,
  latestPlan,
  latestPlans,
  refreshChannels,
} from "#coordinator/crawl/recrawl/plan-store";
import { planRecrawls } from "#coordinator/crawl/recrawl/plan-writes";
import { fixedPlan, type PlanInForce } from "#coordinator/crawl/recrawl/recrawl-plan";
import { groupRecords, keepRecords, sampledPages } from "#coordinator/crawl/recrawl/sample-store";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { alone } from "#coordinator/database/bounded-work";
import { policySections } from "#coordinator/run/settings/schema";
import type { CrawlerId } from "#core/ids";
import { newShippingWorld, type Shipped, text } from "../results/shipping-world.ts";
import { noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";

const hour = 3600;

const world = worldOfFile(async () => await newShippingWorld(() => plan));
let plan: PlanInForce = fixedPlan;
let crawlerId: CrawlerId;
describe("plans by hosts", () => {
  const day = 24 * hour;

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

  test("visits are compared by digest and 304, and each stores what it found with its fetch", async () => {
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

  test("a clock jump adds no time, and the page's change is noted all the same", async () => {
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

  test("a sample of pages is never empty, counts its share, and excludes invalid rates", async () => {
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

  test("iir and icr: hosts are divided when half of the pages are known, and reassigned after six updates of the most urgent", async () => {
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
    expect(next?.reason).toContain(
      "1 of the 1 hosts and channels that change most had more than five updates",
    );
    expect(next?.groups[0]?.successRate).toBeGreaterThan(0.9);
    expect(next?.groupIntervalSeconds).not.toEqual(first.groupIntervalSeconds);
  });

  test("one coordinator at a time makes plans, and a strategy that is withdrawn leaves a plan that says so", async () => {
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
});

describe("a configured channel is planned beside the rest of its host (SARSS section 2.1)", () => {
  /** One site with a page of news, an archive of two pages, and whatever else a test adds. */
  beforeEach(async () => {
    plan = fixedPlan;
    await world.pool.query("delete from channel");
    crawlerId = await world.arrived("north", 5000);
    const subnetId = await world.site(1);
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    await world.frontier.admit(seeds(at("news/a"), at("archive/a"), at("archive/b")), scope, noon);
    await world.pool.query("delete from frontier_url where url = $1", [at("")]);
  });

  const at = (path: string) => `http://s1.example/${path}`;
  const channels = () => createChannelStore(world.pool);
  const channel = (...directories: string[]) =>
    readChannel({
      prefixes: directories.map((directory) => `s1.example/${directory}/`),
      ...{ seeds: [], include: [], exclude: [], maxDepth: null },
    });
  /** The plan of two groups, made at this hour and in force from then on. */
  async function planAt(atHour: number): Promise<RecrawlPlan> {
    const settings = { strategy: "iir", groups: 2, shortestHours: 0.001, longestDays: 100 };
    const policies = policySections.recrawl.parse(settings);
    const now = secondsAfterNoon(atHour * hour);
    const made = (await planRecrawls({ pool: world.pool, policies, now }))!;
    plan = made;
    return made;
  }

  /** All is due, and fetched: pages under `changing` say something else each time. */
  async function visit(atSeconds: number, changing: readonly string[]): Promise<void> {
    await world.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [noon]);
    await world.pool.query("update frontier_host set due_at = $1, not_before = '-infinity'", [noon]);
    const { rows } = await world.pool.query<{ url: string }>(
      "select url from frontier_url where state = 'due'",
    );
    const found = rows.map(({ url }): [string, Shipped] => {
      const isNew = changing.some((directory) => url.startsWith(at(directory)));
      return [url, { page: text(isNew ? atSeconds : 0) }];
    });
    await world.ship(crawlerId, Object.fromEntries(found), secondsAfterNoon(atSeconds));
  }

  async function visits(fromHour: number, count: number, changing: readonly string[]): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await visit((fromHour + turn) * hour, changing);
  }

  async function hoursToNext(): Promise<Record<string, number>> {
    const { rows } = await world.pool.query<{ path: string; hours: number }>(
      `select substring(url from 19) as path,
       round(extract(epoch from next_fetch_at - last_fetched_at)::numeric / 3600, 3)::float8 as hours
     from frontier_url order by url`,
    );
    return Object.fromEntries(rows.map(({ path, hours }) => [path, hours]));
  }

  /** "news 1 0": directories of the channel, or the rest; its pages; its group. */
  async function planned(): Promise<string[]> {
    const { rows } = await world.pool.query<{ line: string }>(
      `select concat_ws(' ', coalesce(array_to_string(c.directories, ','), 'rest'), p.pages, p.recrawl_group) as line
     from recrawl_host p left join channel c using (channel_id)
     order by 1`,
    );
    return rows.map(({ line }) => line);
  }

  async function lookAgain(atHour: number): Promise<void> {
    await refreshChannels(world.pool, secondsAfterNoon(atHour * hour));
    await groupChannels(world.pool, 2);
  }

  test("what changes often has its own interval, beside the rest of the same host", async () => {
    await channels().add(channel("news"), noon);
    await visits(0, 4, ["news"]);

    await planAt(4);
    await visit(5 * hour, ["news"]);

    const [urgent, calm] = plan.groupIntervalSeconds.map((seconds) => expect.closeTo(seconds / hour, 2));
    expect(await planned()).toEqual(["/news/ 1 0", "rest 2 1"]);
    expect(plan.groupIntervalSeconds[0]).toBeLessThan(plan.groupIntervalSeconds[1]! / 2);
    expect(await hoursToNext()).toEqual({ "news/a": urgent, "archive/a": calm, "archive/b": calm });
  });

  test("a channel follows the rest of its host until a plan has seen it, and again when it is removed", async () => {
    await visits(0, 4, ["news"]);
    await channels().add(channel("archive"), noon);
    await planAt(4);
    const before = await planned();
    await channels().add(channel("news"), noon);
    await visit(5 * hour, ["news"]);
    const meanwhile = (await hoursToNext())["news/a"];

    await lookAgain(6);
    const looked = await planned();
    const news = (await channels().list()).find(({ directories }) => directories[0] === "/news/")!;
    await channels().remove(news.channelId, secondsAfterNoon(6 * hour));
    await visit(7 * hour, ["news"]);
    const after = (await hoursToNext())["news/a"];
    await lookAgain(8);
    const oneLeft = await planned();
    const [archive] = await channels().list();
    await channels().remove(archive!.channelId, secondsAfterNoon(8 * hour));
    await lookAgain(9);

    expect(before).toEqual(["/archive/ 2 1", "rest 1 0"]);
    expect(meanwhile).toBeCloseTo(plan.groupIntervalSeconds[0]! / hour, 2);
    // Nothing lies outside of channels, so there is no rest until one is gone: the fixed interval holds meanwhile.
    expect(looked).toEqual(["/archive/ 2 1", "/news/ 1 0"]);
    expect(after).toBe(defaultRecrawlSettings.intervalSeconds / hour);
    expect(oneLeft).toEqual(["/archive/ 2 1", "rest 1 0"]);
    expect(await planned()).toEqual(["rest 3 0"]);
  });

  test("a group's records are its own when only the most urgent channel has six updates", async () => {
    await channels().add(channel("news"), noon);
    await visits(0, 4, ["news"]);
    const made = await planAt(4);
    await world.pool.query("update frontier_url set state = 'refused' where url like '%archive%'");
    await visits(5, 6, ["news"]);

    const { records, withEnoughUpdates } = await groupRecords(world.pool, made, secondsAfterNoon(11 * hour));
    await keepRecords(world.pool, made, secondsAfterNoon(11 * hour));

    expect(records.map(({ channels: all, submitted, updates }) => [all, submitted, updates])).toEqual([
      [1, 6, 6],
      [1, 0, 0],
    ]);
    expect(withEnoughUpdates).toEqual([1, 0]);
    const { rows } = await world.pool.query(
      "select gap_seconds, channel_id = 0 as rest from recrawl_host order by 2",
    );
    expect(rows).toEqual([
      { gap_seconds: (hour * 7) / 6, rest: false },
      { gap_seconds: null, rest: true },
    ]);
  });

  test("a host's leased URLs are divided by visits, or by pages without any", async () => {
    await channels().add(channel("news"), noon);
    await visits(0, 4, ["news"]);
    const made = await planAt(4);
    const submitted = async () =>
      (await groupRecords(world.pool, made, secondsAfterNoon(20 * hour))).records.map((one) => one.submitted);

    await world.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [noon]);
    await world.pool.query("update frontier_host set due_at = $1, not_before = '-infinity'", [noon]);
    await world.ship(crawlerId, {}, secondsAfterNoon(5 * hour));
    const unvisited = await submitted();
    await visit(6 * hour, ["news"]);

    // Three URLs in each of the leases, of which one is news: once of one page, once each of two.
    expect(unvisited).toEqual([1, 1]);
    expect(await submitted()).toEqual([2, 2]);
  });

  test("of channels that share a directory the earliest has its pages, as at admission", async () => {
    await channels().add(channel("archive", "news"), noon);
    await world.pool.query(
      `insert into channel (host_hash, host, directories, created_at)
     select host_hash, host, '{/news/}', created_at from channel`,
    );
    await visits(0, 2, ["news"]);

    await refreshChannels(world.pool, null);

    expect(await planned()).toEqual(["/archive/,/news/ 3"]);
  });
});
