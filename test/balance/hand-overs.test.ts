/**
 * Crawlers that leave with and without notice, over real stores. North, near and far are online; of north's
 * subnets near is the next best, then far.
 */
import { beforeEach, expect, it } from "vitest";
import { HandOvers } from "#coordinator/place/balance/hand-overs";
import { refreshCrawlers } from "#coordinator/place/balance/presence";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import { flowWorld } from "../support/flow-world.ts";
import { eachMs, noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();
let north: CrawlerId;
let near: CrawlerId;
let far: CrawlerId;
let state: CoordinatorState;
let requested: [number, RoundCause][];
let seconds: number;
let online: CrawlerId[];

beforeEach(async () => {
  north = await world.arrived("north", 1000);
  [requested, seconds] = [[], 0];
});

async function fleet(nearPages: number, farPages: number): Promise<void> {
  near = await world.arrived("near", nearPages);
  far = await world.arrived("far", farPages);
  online = [north, near, far];
}

/** North's, with a page each; near measured them at 20 ms and far at 50. */
async function subnetsOfNorth(count: number): Promise<SubnetId[]> {
  const subnets: SubnetId[] = [];
  for (let number = 0; number < count; number += 1) subnets.push(await world.site(number));
  for (const subnetId of subnets) {
    await world.delegations.saveRound(roundOf(subnetId, eachMs([north, 5], [near, 20], [far, 50])));
  }
  return subnets;
}

async function handOvers(): Promise<HandOvers> {
  state = await world.state();
  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      state: online.includes(crawler.crawlerId) ? "online" : "offline",
    })),
  );
  await world.pool.query("update crawler set state = 'online' where crawler_id = any($1)", [online]);
  return new HandOvers(
    {
      ...world,
      state,
      online: () => online,
      recrawlDays: () => 7,
      queue: { request: (subnetIds, cause) => void requested.push([subnetIds.length, cause]) },
      onMoved: () => {},
      log: silentLog,
      now: () => secondsAfterNoon(seconds),
    },
    { departureMs: 120_000, since: noon },
  );
}

async function drains(): Promise<void> {
  await world.crawlers.drain("north", noon);
  await refreshCrawlers({ ...world, state });
}

const owned = (crawlerId: CrawlerId) => state.subnetsOf(crawlerId).length;
const counts = () => [owned(north), owned(near), owned(far)];

it("hand a draining crawler's subnets to the next best at once, though it is online", async () => {
  await fleet(1000, 1000);
  await subnetsOfNorth(3);
  await world.crawlers.hasJoined(north);
  const overs = await handOvers();
  await drains();

  await overs.pass();

  // It is to be given what is nearest to it when it is back.
  expect(state.crawler(north)?.joiningSince).toEqual(noon);

  expect(counts()).toEqual([0, 3, 0]);
  expect(requested).toEqual([]);
  expect(await world.rows("select distinct cause from delegation")).toEqual([{ cause: "drained" }]);
  expect(await world.rows("select distinct reason from delegation_history where cause = 'drained'")).toEqual([
    { reason: "its crawler hands its subnets over; this one was the next best with room, at 20.0 ms" },
  ]);
});

it("leave a draining crawler its open leases, and take those of one that is gone", async () => {
  await fleet(1000, 1000);
  await subnetsOfNorth(2);
  await world.lease(north);
  const overs = await handOvers();
  const open = async () => (await world.rows("select from lease where closed_at is null")).length;
  await drains();

  await overs.pass();
  expect([await open(), owned(north)]).toEqual([2, 0]);

  await world.crawlers.leave({ crawlerId: north, reason: "gone", now: noon });
  await world.delegations.move(
    [{ subnetId: state.subnetsOf(near)[0]!, from: near, to: north, cause: "operator", reason: "", rttMs: 5 }],
    noon,
  );
  online = [near, far];
  const anew = await handOvers();
  await anew.pass();
  expect(await open()).toBe(0);
});

it.each([
  ["of one that is gone, after the grace", false, 121],
  ["of one that left for good, at once", true, 0],
])(
  "spread them over all who have room, the nearest first, and fill nobody beyond what it may: %s",
  async (_, forGood, at) => {
    // Near may take 3 pages a day, far has room for the rest.
    await fleet(3, 1000);
    await subnetsOfNorth(8);
    const overs = await handOvers();
    online = [near, far];
    await world.crawlers.leave({ crawlerId: north, reason: "its power failed", forGood, now: noon });
    await refreshCrawlers({ ...world, state });
    seconds = at;

    await overs.pass();

    expect(counts()).toEqual([0, 3, 5]);
    expect(requested).toEqual([]);
  },
);

it("move nothing of a crawler that is back within the grace", async () => {
  await fleet(1000, 1000);
  await subnetsOfNorth(2);
  const overs = await handOvers();
  const isThere = (presence: "online" | "offline") =>
    state.setCrawlers(
      state.crawlers.map((crawler) =>
        crawler.crawlerId === north ? { ...crawler, state: presence, lastSeenAt: noon } : crawler,
      ),
    );

  isThere("offline");
  seconds = 119;
  await overs.pass();
  isThere("online");
  seconds = 300;
  await overs.pass();

  expect(counts()).toEqual([2, 0, 0]);
});

it("ask for rounds where nobody else was measured, so many a pass, and again after a minute", async () => {
  await fleet(1000, 1000);
  const subnets: SubnetId[] = [];
  for (let number = 0; number < 90; number += 1) subnets.push(await world.site(number));
  for (const subnetId of subnets) await world.delegations.saveRound(roundOf(subnetId, [[north, 5]]));
  const overs = await handOvers();
  await drains();

  for (seconds = 0; seconds < 25; seconds += 5) await overs.pass();
  expect(requested).toEqual([
    [40, "drained"],
    [40, "drained"],
    [10, "drained"],
  ]);
  seconds = 61;
  await overs.pass();

  expect(requested).toHaveLength(4);
  expect(owned(north)).toBe(90);
});

it("give what nothing can be probed in to the crawler next to the one that leaves", async () => {
  await fleet(1000, 1000);
  const empty = await world.subnet("5.9.0.0", "5.9.0.255");
  await world.delegations.delegateOwnSubnet(empty, north, noon);
  await world.crawlers.saveRtts(
    [
      { from: north, to: near, rttMs: 40, method: "connect" },
      { from: far, to: north, rttMs: 30, method: "connect" },
    ],
    noon,
  );
  const overs = await handOvers();
  await drains();

  await overs.pass();

  expect(state.delegationOf(empty)).toMatchObject({ crawlerId: far, measured: false, rttMs: null });
});

it("leave everything where it is while nobody else is there", async () => {
  await fleet(1000, 1000);
  await subnetsOfNorth(2);
  const overs = await handOvers();
  await drains();
  online = [north];

  await overs.pass();

  expect(counts()).toEqual([2, 0, 0]);
});
