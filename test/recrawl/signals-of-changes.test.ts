/** Signals that pages have changed, through the real stores: what they bring nearer under ncis, and what is learnt of them. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inTransaction } from "#coordinator/database/transaction";
import { lockHosts } from "#coordinator/frontier/admission-writes";
import { settleHosts } from "#coordinator/frontier/lease-end-writes";
import { cycleAt, waitsOf } from "#coordinator/recrawl/crawl-value";
import { planRecrawls } from "#coordinator/recrawl/plan-recrawls";
import { createRecrawlPlanStore } from "#coordinator/recrawl/plan-store";
import {
  fixedPlan,
  importanceOf,
  type PlanInForce,
  waitAtMultiplier,
} from "#coordinator/recrawl/recrawl-plan";
import { qualityOf } from "#coordinator/recrawl/signal-quality";
import { type ChangeSignal, heedSignals } from "#coordinator/recrawl/signal-store";
import { policySections } from "#coordinator/settings/schema";
import type { CrawlerId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import { newShippingWorld, type Shipped, type ShippingWorld, text } from "../results/shipping-world.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";

const hour = 3600;
const day = 24 * hour;
const map = "http://s1.example/sitemap.xml";
const page = (name: string) => `http://s1.example/${name}`;
const names = ["one", "two", "three", "four"] as const;
const ordinary = { lastModified: null };
const unchanged: Shipped = { outcome: { type: "unchanged", status: 304 }, result: ordinary };
const policies = (strategy: string) =>
  policySections.recrawl.parse({ strategy, intervalHours: 24, longestDays: 400, shortestHours: 0.1 });

let world: ShippingWorld;
let crawlerId: CrawlerId;
let plan: PlanInForce = fixedPlan;
beforeAll(async () => {
  world = await newShippingWorld(() => plan);
});
beforeEach(async () => {
  plan = fixedPlan;
  await world.reset();
  crawlerId = await world.arrived("north", 5000);
  const subnetId = await world.site(1, "sitemap.xml", ...names);
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
});
afterAll(async () => await world.close());

/** All URLs are due, and these are fetched. */
async function visit(atSeconds: number, found: Readonly<Record<string, Shipped>>): Promise<void> {
  await world.pool.query("update frontier_url set next_fetch_at = $1 where url = any($2)", [
    noon,
    Object.keys(found),
  ]);
  await world.pool.query("update frontier_host set due_at = $1, not_before = '-infinity'", [noon]);
  await world.ship(crawlerId, found, secondsAfterNoon(atSeconds));
}

/** The sitemap is read, which says so of pages. */
async function sitemap(atSeconds: number, changedAt: Readonly<Record<string, number>>): Promise<void> {
  const links = Object.entries(changedAt).map(([url, seconds]) => {
    return { url, anchor: "", nofollow: false, modifiedAt: secondsAfterNoon(seconds).toISOString() };
  });
  await visit(atSeconds, { [map]: { page: { kind: "sitemap", links } } });
}

/** Signals of any source, as whoever hears of them hands them in. */
async function heard(signals: readonly ChangeSignal[], now: Date): Promise<number> {
  return await inTransaction(world.pool, async (client) => {
    const hosts = [...new Set(signals.map(({ hostHash }) => hostHash))];
    await lockHosts(client, hosts);
    const news = await heedSignals(client, signals, { plan, now });
    await settleHosts(client, hosts);
    return news;
  });
}

const row = async (name: string) => (await world.urlRow(page(name)))!;
const dueIn = async (name: string) => {
  const { next_fetch_at: next } = await row(name);
  return ((next as Date).getTime() - noon.getTime()) / 1000;
};
const times = async () => await Promise.all(names.map(dueIn));
const sums = async () =>
  (
    await world.rows<Record<string, number>>(
      "select signals, true_signals, missed_changes, evidence from host_signals",
    )
  )[0];

/** The host's signals have proven to be right, four times in five, and to tell of half of the changes. */
const proven = async (evidence = 20) =>
  await world.rows(
    `insert into host_signals (host_hash, signals, true_signals, missed_changes, evidence)
     select host_hash, 98, 79, 78, ${evidence} from frontier_host`,
  );

/** Two visits a day apart, and the plan of the strategy in force from then on. */
async function known(strategy: "ncis" | "optimal"): Promise<void> {
  for (const turn of [0, 1])
    await visit(
      turn * day,
      Object.fromEntries(names.map((name, at) => [page(name), { page: text(turn + at), result: ordinary }])),
    );
  const ports = { store: createRecrawlPlanStore(world.pool), policies: policies(strategy) };
  plan = (await planRecrawls({ ...ports, now: secondsAfterNoon(day + 60) }))!;
  for (const name of names)
    await visit(day + hour, { [page(name)]: { page: text(1 + names.indexOf(name)), result: ordinary } });
}

test("under ncis a signal brings its page's turn nearer once, and no other's; the planned total is the same", async () => {
  await proven();
  await known("ncis");
  const before = await times();

  await sitemap(day + 3 * hour, { [page("one")]: day + 2 * hour });
  const after = await times();
  await sitemap(day + 4 * hour, { [page("one")]: day + 2 * hour, [page("two")]: hour });
  const again = await times();
  await sitemap(day + 5 * hour, { [page("one")]: day + 4 * hour });
  const twice = await times();

  expect(after[0]).toBeLessThan(before[0]! - hour);
  expect(after[0]).toBeGreaterThanOrEqual(day + 3 * hour);
  expect(after.slice(1)).toEqual(before.slice(1));
  // The same change, and one from before the last fetch, are no news.
  expect(again).toEqual(after);
  expect(twice[0]).toBeLessThanOrEqual(after[0]!);
  expect(twice.slice(1)).toEqual(before.slice(1));
  expect((await row("one")).signals).toBe(2);
  expect(plan).toMatchObject({ strategy: "ncis", totalPerDay: 4 });
});

test("the rates that a plan with signals comes to are the total, whatever the signals are worth", async () => {
  const rates = async () => {
    const { changesPerDay, backLinks, hosts } = await createRecrawlPlanStore(world.pool).pages(100);
    const sumsOfHost = hosts[0]!.signalSums;
    const waits = sumsOfHost === null ? null : waitsOf(qualityOf(sumsOfHost));
    return changesPerDay.reduce((sum, rate, at) => {
      const importance = importanceOf({ backLinks: backLinks[at]!, pageRank: null }, 0);
      const wait = waitAtMultiplier({ changesPerDay: rate, importance }, plan.multiplier!, waits);
      return sum + rate / cycleAt(wait, waits?.quality ?? null).length;
    }, 0);
  };
  await known("ncis");
  const ports = { store: createRecrawlPlanStore(world.pool), policies: policies("ncis") };
  const at = secondsAfterNoon(2 * day);

  plan = (await planRecrawls({ ...ports, now: at }))!;
  const [silent, multiplier] = [await rates(), plan.multiplier!];
  await proven();
  plan = (await planRecrawls({ ...ports, now: at }))!;

  expect(silent).toBeCloseTo(4, 1);
  expect(await rates()).toBeCloseTo(4, 1);
  // As many fetches, each worth something else.
  expect(plan.multiplier).not.toBeCloseTo(multiplier, 2);
});

test("signals that have not proven themselves move nothing under ncis, and make a page due at once elsewhere", async () => {
  await known("ncis");
  const before = await times();
  await proven(3);
  await sitemap(day + 3 * hour, { [page("one")]: day + 2 * hour });
  const unproven = await times();
  plan = fixedPlan;
  await sitemap(day + 4 * hour, { [page("one")]: day + 2 * hour });

  expect(unproven).toEqual(before);
  expect(await dueIn("one")).toBe(day + 4 * hour);
  expect((await times()).slice(1)).toEqual(before.slice(1));
  expect((await row("one")).signals).toBe(1);
});

test("visits tell what a host's signals are worth, under every strategy, and a page's signals begin anew with each", async () => {
  await known("optimal");
  const silent = await sums();
  await sitemap(day + 3 * hour, { [page("one")]: day + 2 * hour, [page("two")]: day + 2 * hour });
  await visit(day + 6 * hour, {
    [page("one")]: { page: text(50), result: ordinary },
    [page("two")]: unchanged,
    [page("three")]: unchanged,
  });
  const first = (await sums())!;
  await sitemap(day + 9 * hour, { [page("two")]: day + 8 * hour });

  expect(silent).toBeUndefined();
  expect(first).toMatchObject({ signals: 2 });
  expect(first.true_signals).toBeGreaterThan(0.5);
  expect(first.true_signals).toBeLessThan(1);
  expect(first.missed_changes).toBeGreaterThan(0);
  // One signal since then, not two.
  expect((await row("two")).signals).toBe(1);
});

test("changing the strategy back and forth loses nothing: times, signals, what was learnt and the capacity stay", async () => {
  await proven();
  await known("ncis");
  await sitemap(day + 3 * hour, { [page("one")]: day + 2 * hour });
  const state = async () => [
    await world.rows(
      "select url, next_fetch_at, signals, signalled_at, changes_per_day from frontier_url order by url",
    ),
    await sums(),
  ];
  const before = await state();
  // What the fleet was found to manage; it is not late.
  await world.pool.query("update frontier_host set due_at = $1", [secondsAfterNoon(9 * day)]);
  await world.rows("update recrawl_plan set plan = plan || '{\"capacityPerDay\": 1000}'");

  const store = createRecrawlPlanStore(world.pool);
  const plans = [];
  for (const [turn, strategy] of ["optimal", "ncis", "fixed", "ncis"].entries())
    plans.push(
      await planRecrawls({
        ...{ store, policies: policies(strategy) },
        now: secondsAfterNoon(day + (4 + turn / 60) * hour),
      }),
    );

  expect(await state()).toEqual(before);
  expect(plans.map((one) => one!.strategy)).toEqual(["optimal", "ncis", "fixed", "ncis"]);
  expect(plans[3]!.multiplier).toBeCloseTo(plans[1]!.multiplier!, 6);
  expect(plans[0]!.multiplier).not.toBeCloseTo(plans[1]!.multiplier!, 2);
  // Each goes on where the other ended, a ninth more of a fleet that is not late.
  expect(plans.slice(0, 2).map((one) => Math.round(one!.capacityPerDay))).toEqual([1111, 1235]);
});

test("signals of any source are heeded: of unknown pages, from the future and in floods they move nothing out of bounds", async () => {
  await proven();
  await known("ncis");
  const at = secondsAfterNoon(day + 2 * hour);
  const signal = (url: string, changedAt: Date) => {
    const key = urlKeyOf(url);
    if (typeof key === "string") throw new Error(key);
    return { hostHash: key.hostHash, urlHash: key.urlHash, changedAt };
  };
  const before = await times();

  const unknown = [signal("http://nowhere.example/", at), signal(page("none"), at)];
  const future = signal(page("two"), secondsAfterNoon(9 * day));
  const ignored = await heard([...unknown, future], at);
  const untouched = await times();
  const flood = Array.from({ length: 5000 }, (_, second) =>
    signal(page("three"), secondsAfterNoon(day + hour + 1 + second / 2)),
  );
  const counted = await heard(flood, at);
  const host = (await world.hostRow("s1.example"))!;

  expect([ignored, counted]).toEqual([0, 1]);
  expect(untouched).toEqual(before);
  expect((await row("three")).signals).toBe(1);
  const [, , third] = await times();
  expect(third).toBeGreaterThanOrEqual(day + 2 * hour);
  expect(third).toBeLessThan(before[2]!);
  expect((host.due_at as Date).getTime()).toBeLessThanOrEqual(noon.getTime() + third! * 1000);
});
