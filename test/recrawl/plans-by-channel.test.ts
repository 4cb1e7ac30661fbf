/** A channel that is configured of a host is planned for itself, beside the rest of the host (SARSS section 2.1). */
import { beforeEach, expect, test } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import type { RecrawlPlan } from "#coordinator/crawl/recrawl/make-plan";
import { groupChannels, refreshChannels } from "#coordinator/crawl/recrawl/plan-store";
import { planRecrawls } from "#coordinator/crawl/recrawl/plan-writes";
import { fixedPlan, type PlanInForce } from "#coordinator/crawl/recrawl/recrawl-plan";
import { groupRecords, keepRecords } from "#coordinator/crawl/recrawl/sample-store";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { policySections } from "#coordinator/run/settings/schema";
import type { CrawlerId } from "#core/ids";
import { newShippingWorld, type Shipped, text } from "../results/shipping-world.ts";
import { noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";

const hour = 3600;

const world = worldOfFile(async () => await newShippingWorld(() => plan));
let plan: PlanInForce = fixedPlan;
let crawlerId: CrawlerId;

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

test("what changes often has an interval of its own, beside the rest of the same host", async () => {
  await channels().add(channel("news"), noon);
  await visits(0, 4, ["news"]);

  await planAt(4);
  await visit(5 * hour, ["news"]);

  const [urgent, calm] = plan.groupIntervalSeconds.map((seconds) => expect.closeTo(seconds / hour, 2));
  expect(await planned()).toEqual(["/news/ 1 0", "rest 2 1"]);
  expect(plan.groupIntervalSeconds[0]).toBeLessThan(plan.groupIntervalSeconds[1]! / 2);
  expect(await hoursToNext()).toEqual({ "news/a": urgent, "archive/a": calm, "archive/b": calm });
});

test("a channel has what the rest of its host has until a plan has looked at it, and again when it is gone", async () => {
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

test("the most urgent channel alone has six updates: its group's records are its own", async () => {
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

test("what a host's leases hand out is divided by visits, and by pages where there were none", async () => {
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

test("of channels that share a directory the earliest has its pages, as when they are admitted", async () => {
  await channels().add(channel("archive", "news"), noon);
  await world.pool.query(
    `insert into channel (host_hash, host, directories, created_at)
     select host_hash, host, '{/news/}', created_at from channel`,
  );
  await visits(0, 2, ["news"]);

  await refreshChannels(world.pool, null);

  expect(await planned()).toEqual(["/archive/,/news/ 3"]);
});
