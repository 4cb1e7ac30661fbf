/**
 * Pages that change by themselves, on the emulated Internet under the strategy *optimal*: once it is known what changes and
 * what stays, real crawlers fetch the one oftener than the other.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet } from "./emulated-fleet.ts";
import { giveSubnet, plainSites } from "./owned-hosts.ts";

const world = generateWorld({ seed: 6, sites: 16, crawlers: 1 });
const sites = plainSites(world).slice(0, 10);
/**
 * The first five change every four seconds or so, the others never. Oftener than a busy machine can follow, and the plan would
 * rightly give them up: an optimal one fetches nothing that has changed again before anybody reads it.
 */
const changing = sites.slice(0, 5).map(({ host }) => `http://${host}/`);
const intervalSeconds = 1.5;

let fleet: EmulatedFleet;
beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    network: {
      changes: {
        seed: 1,
        startMs: Date.now(),
        changesPerDay: (host) => (changing.includes(`http://${host}/`) ? 21_600 : 0),
      },
    },
    settings: {
      lease: { addressRestSeconds: 0 },
      scope: { maxDepth: 0 },
      trust: { share: 0, newcomerShare: 0 },
      balance: { policy: "none" },
      recrawl: {
        strategy: "optimal",
        intervalHours: intervalSeconds / 3600,
        shortestHours: 0.2 / 3600,
        longestDays: 16 / 86_400,
        visitsPerChange: 2,
        usualChangesPerDay: 20_000,
        everySeconds: 0.3,
      },
    },
    crawlerSettings: { politenessFloorMs: 20 },
  });
  await fleet.addCoordinator();
  await fleet.startAll();
  const [crawler] = await fleet.rows<{ crawler_id: never }>("select crawler_id from crawler");
  await giveSubnet(fleet.database.pool, { crawlerId: crawler!.crawler_id, index: 1 }, { sites, pages: 1 });
}, 60_000);

afterAll(async () => await fleet?.close(), 60_000);

/** Of all pages of a kind together, and the fewest that one of them all had compared. */
const visits = async () =>
  await fleet.one<{ changing: number; still: number; compared: number }>(
    `select (sum(visits) filter (where url = any($1)))::int as changing,
       (sum(visits) filter (where url <> all($1)))::int as still,
       min(compared_visits)::int as compared
     from frontier_url`,
    [changing],
  );

it("fetches pages that change more than twice as often as those that do not", async () => {
  await until(async () => (await visits()).compared >= 3, 150_000);

  // What was fetched before the plans knew is not held against them for ever.
  let before = await visits();
  await until(async () => {
    const now = await visits();
    const [often, seldom] = [now.changing - before.changing, now.still - before.still];
    if (seldom > 20) before = now;
    const rates = await ratesKnown();
    return often >= Math.max(8, 2 * seldom) && Math.min(...rates.changing) > 2 * Math.max(...rates.still);
  }, 150_000);

  const [plan] = await fleet.rows("select strategy from recrawl_plan order by plan_id desc limit 1");
  expect(plan).toEqual({ strategy: "optimal" });
}, 320_000);

const ratesKnown = async () =>
  await fleet.one<{ changing: number[]; still: number[] }>(
    `select array_agg(changes_per_day::float8) filter (where url = any($1)) as changing,
       array_agg(changes_per_day::float8) filter (where url <> all($1)) as still
     from frontier_url`,
    [changing],
  );
