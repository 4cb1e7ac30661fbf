/** The pace that crawlers are told: by the work that they have, with hysteresis. */
import { describe, expect, it } from "vitest";
import { createPaceStore, type ToldPace } from "#coordinator/crawl/frontier/due-work-store";
import { countedSlices, nextPace, PaceOfFleet, paceReason } from "#coordinator/crawl/frontier/pace";
import { giveDomainSets } from "#coordinator/place/domain-sets/domain-set-store";
import { partitionOf } from "#coordinator/place/domain-sets/partition";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { type PaceMessage, WorkPace } from "#crawler/limits/governor";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const rule = { slowDownUnder: 4, hurryUpOver: 64 };

describe("the pace of a crawler", () => {
  it.each([
    ["steady", 0, "slow-down"],
    ["steady", 3, "slow-down"],
    ["steady", 4, "steady"],
    ["steady", 64, "steady"],
    ["steady", 65, "hurry-up"],
    ["slow-down", 7, "slow-down"],
    ["slow-down", 8, "steady"],
    ["hurry-up", 33, "hurry-up"],
    ["hurry-up", 32, "steady"],
    ["slow-down", 65, "hurry-up"],
    ["hurry-up", 3, "slow-down"],
  ] as const)("after %s, with %i slices due, is %s", (before, due, pace) => {
    expect(nextPace(before, due, rule)).toBe(pace);
  });

  it("respects both thresholds when they are close to each other", () => {
    const close = { slowDownUnder: 10, hurryUpOver: 12 };

    expect([9, 10, 12, 13].map((due) => nextPace("slow-down", due, close))).toEqual([
      "slow-down",
      "slow-down",
      "steady",
      "hurry-up",
    ]);
    expect([9, 10, 12].map((due) => nextPace("hurry-up", due, close))).toEqual([
      "slow-down",
      "steady",
      "hurry-up",
    ]);
  });

  it("is sent with its reason, and counts no more slices than it needs", () => {
    expect(countedSlices(rule)).toBe(65);
    expect(paceReason("slow-down", 1, rule)).toBe(
      "1 host slice due or in hand, under 4: no more connections than that",
    );
    expect(paceReason("hurry-up", 65, rule)).toBe(
      "65 host slices due or in hand, over 32: as many connections as are allowed",
    );
  });
});

const narrow = { slowDownUnder: 4, hurryUpOver: 8 };

/** A fleet of which each crawler has so much due work, in memory. */
function pacedFleet(
  due: Map<number, number>,
  { isHere = true, rule = narrow, onPace = (_: PaceMessage) => {}, idle = new Set<number>() } = {},
) {
  const looks: number[] = [];
  const sent: string[] = [];
  const kept: ToldPace[] = [];
  const fleet = new PaceOfFleet({
    paces: {
      dueSlices: async (crawlerIds, most) => {
        looks.push(...crawlerIds);
        return new Map(crawlerIds.map((one) => [one, Math.min(most, due.get(one) ?? 0)]));
      },
      told: async (told) => void kept.push(...told),
    },
    online: () => [...due.keys()].map(asCrawlerId),
    isIdle: (crawlerId) => idle.has(crawlerId),
    send: (crawlerId: CrawlerId, message: CoordinatorMessage) => {
      if (message.type !== "coordinator:work-pace" || !isHere) return false;
      sent.push(`${crawlerId} ${message.pace} ${message.due}`);
      onPace(message);
      return true;
    },
    rule: () => rule,
    now: () => noon,
  });
  return { fleet, sent, kept, looks };
}

describe("a crawler", () => {
  it("hears when its pace changes, and when its places no longer fit its work", async () => {
    const due = new Map([[1, 5]]);
    const { fleet, sent } = pacedFleet(due);

    for (const slices of [5, 6, 7, 1, 1, 5, 4, 8, 8, 30, 5, 4, 3, 2, 2, 1]) {
      due.set(1, slices);
      await fleet.pass();
    }

    expect(sent).toEqual([
      "1 slow-down 1",
      "1 slow-down 5",
      "1 steady 8",
      "1 hurry-up 9",
      "1 hurry-up 5",
      "1 steady 4",
      "1 slow-down 3",
      "1 slow-down 1",
    ]);
  });

  it("is not checked again while it is idle", async () => {
    const due = new Map([
      [1, 0],
      [2, 2],
    ]);
    const idle = new Set([1, 2]);
    const { fleet, looks } = pacedFleet(due, { idle });

    for (let pass = 0; pass < 3; pass++) await fleet.pass();
    expect(looks).toEqual([1, 2, 2, 2]);
    idle.clear();
    await fleet.pass();
    expect(looks.slice(4).sort()).toEqual([1, 2]);
  });

  it("has places for its work after one pass, whatever the work was before", async () => {
    const due = new Map([[1, 0]]);
    const crawler = new WorkPace();
    const wide = { slowDownUnder: 4, hurryUpOver: 64 };
    const { fleet } = pacedFleet(due, { rule: wide, onPace: (message) => crawler.take(message) });

    const places: number[] = [];
    for (const slices of [0, 30, 0, 200, 5, 64, 40, 3, 4]) {
      due.set(1, slices);
      await fleet.pass();
      places.push(crawler.places(14));
    }

    expect(places).toEqual([1, 14, 1, 14, 5, 14, 14, 3, 4]);
  });

  it("does not hear the same for ever", async () => {
    const due = new Map([
      [1, 0],
      [2, 100],
    ]);
    const { fleet, sent } = pacedFleet(due);

    for (let pass = 0; pass < 30; pass++) await fleet.pass();

    expect(sent.filter((words) => words.startsWith("1"))).toEqual(["1 slow-down 0"]);
    expect(sent.filter((words) => words.startsWith("2")).length).toBe(14);
  });

  it("hears again in a new session", async () => {
    const { fleet, sent } = pacedFleet(new Map([[1, 0]]));
    await fleet.pass();
    await fleet.pass();
    fleet.forget(asCrawlerId(1));
    await fleet.pass();

    expect(sent).toEqual(["1 slow-down 0", "1 slow-down 0"]);
  });

  it("that is gone hears nothing, and nothing is stored for it", async () => {
    const { fleet, sent, kept } = pacedFleet(new Map([[1, 0]]), { isHere: false });

    expect([await fleet.pass(), sent, kept]).toEqual([0, [], []]);
  });

  it("has its turn, however many there are", async () => {
    const { fleet, sent } = pacedFleet(new Map(Array.from({ length: 450 }, (_, at) => [at + 1, 0])));

    for (let pass = 0; pass < 3; pass++) await fleet.pass();

    expect(new Set(sent.map((words) => words.split(" ")[0])).size).toBe(450);
  });
});

describe("due work", () => {
  const world = storeWorld();

  it("excludes what the coordinator's own domain sets do not hold", async () => {
    const north = await world.delegatedHost("north", "http://a.com/", "http://b.gr/", "http://c.gr/");
    await giveDomainSets(world.pool, "north", ["not c.gr"]);
    const paces = createPaceStore(world.pool, partitionOf([".gr"]));

    expect(await paces.dueSlices([north], 10, noon)).toEqual(new Map([[north, 1]]));
  });

  it("is what is due or leased within the crawler's sets, counted up to the limit", async () => {
    const urls = ["a.com", "b.com", "c.com", "d.gr"].map((host) => `http://${host}/`);
    const north = await world.delegatedHost("north", ...urls);
    const paces = createPaceStore(world.pool);
    const south = await world.crawler("south");
    const slices = async (most: number) => (await paces.dueSlices([south, north], most, noon)).get(north);
    const all = await slices(10);
    const first = await slices(2);
    await giveDomainSets(world.pool, "north", [".com"]);
    const held = await slices(10);
    const leased = await world.lease(north);
    const inHand = await slices(10);
    await paces.told([{ crawlerId: north, pace: "slow-down", due: 3, at: noon }]);
    await paces.told([{ crawlerId: north, pace: "slow-down", due: 2, at: secondsAfterNoon(9) }]);

    expect([all, first, held, leased.length, inHand]).toEqual([4, 2, 3, leased.length, 3]);
    expect(
      await world.rows("select pace, pace_due_slices, pace_since from crawler where name = 'north'"),
    ).toEqual([{ pace: "slow-down", pace_due_slices: 2, pace_since: noon }]);
  });
});
