/** The crawler store: keys, arrivals, departures, draining, and RTTs between crawlers. */

import { beforeEach, expect, test } from "vitest";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import type { CrawlerHeartbeat } from "#protocol/messages";
import { type CrawlerHello, crawlerHello } from "#protocol/messages";
import { forThisFile } from "../support/for-this-file.ts";
import { newWorld, noon, secondsAfterNoon, spoolId } from "../support/store-world.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newWorld());
beforeEach(async () => await world.reset());

const hello: CrawlerHello = crawlerHello.parse({
  type: "crawler:hello",
  protocolVersions: [1],
  name: "north",
  key: "k".repeat(32),
  softwareVersion: "0.1.0",
  spoolId,
  heldLeases: null,
  publicAddress: "198.51.100.1",
  place: { name: "Oslo", country: "NO", latitude: 59.9, longitude: 10.7 },
  capabilities: { probeMethods: ["connect", "head"], ipv6: false },
  limits: { pagesPerDay: 5000, bytesPerDay: 6_000_000_000, concurrentHosts: 7 },
});

test("a crawler keeps its number with a new key, and the old key opens nothing", async () => {
  const crawlerId = await world.crawlers.register({ name: "north", keyHash: "old" });

  const again = await world.crawlers.register({ name: "north", keyHash: "new" });

  expect(again).toBe(crawlerId);
  const { authenticate } = world.crawlers;
  const shown = [authenticate("north", "old"), authenticate("south", "new"), authenticate("north", "new")];
  expect(await Promise.all(shown)).toMatchObject([null, null, { crawlerId, revoked: false }]);
});

test("a revoked crawler authenticates as revoked until it is registered again", async () => {
  const crawlerId = await world.crawlers.register({ name: "north", keyHash: "old" });
  await world.rows("update crawler set revoked_at = now()");

  expect(await world.crawlers.authenticate("north", "old")).toMatchObject({ crawlerId, revoked: true });
  await world.crawlers.register({ name: "north", keyHash: "new" });
  expect(await world.crawlers.authenticate("north", "new")).toMatchObject({ crawlerId, revoked: false });
});

test("an arriving crawler is online with the data of its hello, and learns its acknowledged sequence", async () => {
  const crawlerId = await world.crawler("north");
  const subnetId = await world.subnet("198.51.100.0", "198.51.100.255");
  const arrival = { crawlerId, hello, address: "198.51.100.1", subnetId, now: noon };

  const first = await world.crawlers.arrive(arrival);
  await world.rows("update spool set acknowledged_sequence = 41");
  const second = await world.crawlers.arrive(arrival);

  expect([first, second]).toEqual([0, 41]);
  expect(await world.crawlers.list()).toEqual([
    {
      crawlerId,
      name: "north",
      address: "198.51.100.1",
      subnetId,
      country: "NO",
      place: "Oslo",
      latitude: 59.9,
      longitude: 10.7,
      pagesPerDay: 5000,
      bytesPerDay: 6_000_000_000,
      concurrentHosts: 7,
      probeMethods: ["connect", "head"],
      withoutIpv6: true,
      state: "online",
      lastSeenAt: noon,
      offlineReason: null,
      drainingSince: null,
      joiningSince: expect.any(Date),
    },
  ]);
});

test("a departed crawler is offline with the reason, and a heartbeat updates when it was seen", async () => {
  const crawlerId = await world.crawler("north");
  await world.crawlers.arrive({ crawlerId, hello, address: null, subnetId: null, now: noon });

  const said = { openHosts: 1, spooledResults: 2, pages: 3, fetchedBytes: 4, shippedBytes: 5 };
  const heartbeat: CrawlerHeartbeat = { type: "crawler:heartbeat", ...said, holdingBack: [] };
  await world.crawlers.heartbeats([{ crawlerId, heartbeat, at: secondsAfterNoon(10) }]);
  expect((await world.crawlers.list())[0]?.lastSeenAt).toEqual(secondsAfterNoon(10));
  expect(await world.rows("select heartbeat from crawler")).toMatchObject([{ heartbeat: { pages: 3 } }]);

  await world.crawlers.leave({ crawlerId, reason: "said goodbye", now: secondsAfterNoon(20) });
  expect((await world.crawlers.list())[0]).toMatchObject({
    state: "offline",
    offlineReason: "said goodbye",
    lastSeenAt: secondsAfterNoon(20),
  });
});

test("a coordinator's start marks everybody offline, and keeps older reasons", async () => {
  const north = await world.crawler("north");
  const south = await world.crawler("south");
  await world.crawlers.arrive({ crawlerId: north, hello, address: null, subnetId: null, now: noon });
  await world.crawlers.leave({ crawlerId: south, reason: "its power failed", now: noon });

  await world.crawlers.markAbsent("the coordinator started", secondsAfterNoon(5));

  expect((await world.crawlers.list()).map((one) => [one.state, one.offlineReason])).toEqual([
    ["offline", "the coordinator started"],
    ["offline", "its power failed"],
  ]);
});

test("the RTT between two crawlers is the latest one; unknown crawlers are ignored", async () => {
  const north = await world.crawler("north");
  const south = await world.crawler("south");
  const stranger = asCrawlerId(999);
  const measured = { from: north, to: south, method: "connect" } as const;

  await world.crawlers.saveRtts([{ ...measured, rttMs: 30 }], noon);
  await world.crawlers.saveRtts(
    [
      { ...measured, rttMs: 25 },
      { ...measured, rttMs: 20 },
      { ...measured, to: stranger, rttMs: 1 },
      { ...measured, to: north, rttMs: 1 },
    ],
    secondsAfterNoon(60),
  );

  expect(await world.crawlers.rtts()).toEqual([{ ...measured, rttMs: 20 }]);
});

test("a large fleet keeps the latest RTTs per crawler, and rewrites none that has hardly changed", async () => {
  const [north, south, east, west] = await Promise.all(["north", "south", "east", "west"].map(world.crawler));
  const from = north!;
  const to = (crawler: CrawlerId | undefined, rttMs: number) =>
    ({ from, to: crawler!, rttMs, method: "connect" }) as const;
  const writtenAt = async (crawler: CrawlerId | undefined) =>
    (
      await world.rows<{ at: Date }>(
        `select measured_at as at from crawler_rtt where to_crawler_id = ${crawler!}`,
      )
    )[0]?.at;

  await world.crawlers.saveRtts([to(south, 30)], noon, 2);
  await world.crawlers.saveRtts([to(south, 31), to(east, 40)], secondsAfterNoon(60), 2);
  expect([await writtenAt(south), await writtenAt(east)]).toEqual([noon, secondsAfterNoon(60)]);

  await world.crawlers.saveRtts([to(south, 31)], secondsAfterNoon(2400), 2);
  await world.crawlers.saveRtts([to(west, 50)], secondsAfterNoon(2460), 2);

  const kept = (await world.crawlers.rtts()).toSorted((a, b) => a.rttMs - b.rttMs);
  expect(kept).toEqual([to(south, 31), to(west, 50)]);
});

/** The states and drainings that a starting coordinator reads. */
const standing = async () =>
  (await world.crawlers.list()).map(({ state, drainingSince }) => [state, drainingSince] as const);
const arriveAt = async (crawlerId: CrawlerId, now: Date) =>
  await world.crawlers.arrive({ crawlerId, hello, address: null, subnetId: null, now });

test("a drained crawler stays drained across its return and a restart of the coordinator", async () => {
  const north = await world.crawler("north");
  await arriveAt(north, noon);

  expect(await world.crawlers.drain("north", secondsAfterNoon(1))).toBe(true);
  expect(await standing()).toEqual([["draining", secondsAfterNoon(1)]]);
  await world.crawlers.leave({ crawlerId: north, reason: "its link broke", now: secondsAfterNoon(2) });
  expect(await standing()).toEqual([["offline", secondsAfterNoon(1)]]);
  await arriveAt(north, secondsAfterNoon(3));
  await world.crawlers.drain("north", secondsAfterNoon(4));
  expect(await standing()).toEqual([["draining", secondsAfterNoon(1)]]);
  await world.crawlers.markAbsent("the coordinator started", secondsAfterNoon(5));
  expect(await standing()).toEqual([["offline", secondsAfterNoon(1)]]);
});

test("a resumed crawler works again and joins anew", async () => {
  const north = await world.crawler("north");
  await arriveAt(north, noon);
  await world.crawlers.hasJoined(north);
  const joiningSince = async () => (await world.crawlers.list())[0]?.joiningSince;

  await world.crawlers.resume("north", secondsAfterNoon(1));
  expect(await joiningSince()).toBeNull();
  await world.crawlers.drain("north", secondsAfterNoon(2));
  expect(await world.crawlers.resume("north", secondsAfterNoon(3))).toBe(true);

  expect(await standing()).toEqual([["online", null]]);
  expect(await joiningSince()).toEqual(secondsAfterNoon(3));
});

test("a crawler that leaves for good is drained, and taken back when it returns", async () => {
  const north = await world.crawler("north");
  await arriveAt(north, noon);

  await world.crawlers.leave({
    crawlerId: north,
    reason: "its host moves",
    forGood: true,
    now: secondsAfterNoon(1),
  });
  expect(await standing()).toEqual([["offline", secondsAfterNoon(1)]]);
  await arriveAt(north, secondsAfterNoon(2));

  expect(await standing()).toEqual([["online", null]]);
});

test("a draining by an operator survives that the crawler leaves for good and returns", async () => {
  const north = await world.crawler("north");
  await arriveAt(north, noon);
  await world.crawlers.drain("north", secondsAfterNoon(1));

  await world.crawlers.leave({ crawlerId: north, reason: "", forGood: true, now: secondsAfterNoon(2) });
  await arriveAt(north, secondsAfterNoon(3));

  expect(await standing()).toEqual([["draining", secondsAfterNoon(1)]]);
});

test("an unknown name drains and resumes nobody", async () => {
  expect(await world.crawlers.drain("north", noon)).toBe(false);
  expect(await world.crawlers.resume("north", noon)).toBe(false);
});

test("listeners hear of drainings and resumptions until they stop", async () => {
  await world.crawler("north");
  let heard = 0;
  const notices = await world.crawlers.onChange(() => {
    heard += 1;
  });

  await world.crawlers.drain("north", noon);
  await until(() => heard === 1, 5000);
  await world.crawlers.resume("north", noon);
  await until(() => heard === 2, 5000);
  await notices.stop();
  await world.crawlers.drain("north", noon);

  expect(heard).toBe(2);
});

test("a crawler joins until it has its subnets, and again after they went to others", async () => {
  const north = await world.crawler("north");
  const joiningSince = async () => (await world.crawlers.list())[0]?.joiningSince;
  expect(await joiningSince()).toEqual(expect.any(Date));

  await world.crawlers.hasJoined(north);
  expect(await joiningSince()).toBeNull();
  await world.crawlers.mustJoin(north, secondsAfterNoon(1));
  await world.crawlers.mustJoin(north, secondsAfterNoon(2));

  expect(await joiningSince()).toEqual(secondsAfterNoon(1));
});
