/** Crawlers that arrive, over a real database: from another place than before, and a whole fleet at once. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { refreshCrawlers, welcomeCrawler } from "#coordinator/place/balance/presence";
import { measuredPeers, takePeerReport } from "#coordinator/place/delegation/measure-peers";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { PublishedRangesBuilder } from "#coordinator/place/subnets/published-ranges";
import { Gathered } from "#core/coalesce";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import type { ProbeOutcome } from "#protocol/messages";
import { holds, registeredIn } from "../delegation/round-world.ts";
import { type FlowWorld, hello, newFlowWorld } from "../support/flow-world.ts";
import { makeGate } from "../support/gate.ts";
import { eachMs, noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

let world: FlowWorld;
beforeAll(async () => {
  world = await newFlowWorld();
});
afterAll(async () => await world?.close());

const fleet = 250;

describe("a crawler that comes from another address", () => {
  let crawlerId: CrawlerId;
  let other: CrawlerId;
  let state: CoordinatorState;
  let subnetId: SubnetId;

  /** Ranges of a country and, if there is one, a holder; what networks publish of them. */
  const ranges: readonly (readonly [string, string, string | null])[] = [
    ["5.1.1", "NL", "one"],
    ["5.1.2", "NL", "one"],
    ["5.1.3", "NL", "two"],
    ["5.1.4", "JP", "one"],
    ["5.1.5", "NL", null],
    ["5.1.6", "NL", "cloud"],
    ["5.1.7", "NL", "cloud"],
    ["5.1.8", "NL", "cloud"],
    ["2a00:1:", "NL", "six"],
    ["2a00:2:", "JP", "six"],
  ];

  const published = new PublishedRangesBuilder();
  const cloud = { kind: "aws", isNamedByObjects: false, listDate: null, version: null } as const;
  const list = published.addList({ ...cloud, source: "aws" });
  for (const [prefix, place] of [
    ["5.1.6", "aws west"],
    ["5.1.7", "aws east"],
    ["5.1.8", "aws west"],
  ] as const)
    published.add(list, parseRange(`${prefix}.0/24`)!, { place, within: null });

  beforeEach(async () => {
    await world.reset();
    for (const [prefix, country, holder] of ranges) {
      const [first, last] = prefix.includes(":") ? [":", ":ffff"] : [".0", ".255"];
      const id = await world.subnet(`${prefix}${first}`, `${prefix}${last}`);
      await registeredIn(world, country, id);
      if (holder !== null) await holds(world, holder, id);
    }
    [crawlerId, other] = [await world.crawler("athens"), await world.arrived("sparta")];
    subnetId = await world.site(9);
    state = await world.state();
    state.setPublished(published.build());
    state.setTree(state.tree, 1);
  });

  let seconds = 0;

  type Came = Parameters<typeof comes>;
  const private_ = ["127.0.0.1", null] as const;

  async function comes(from: string, stated: string | null = from, country = "NL"): Promise<void> {
    seconds += 1;
    const place = { name: "there", country, latitude: 0, longitude: 0 };
    const spoken = hello("athens", { publicAddress: stated, place });
    await world.pool.query("update crawler set seen_address = $2 where crawler_id = $1", [crawlerId, from]);
    await welcomeCrawler(
      { crawlerId, hello: spoken, remoteAddress: from },
      { ...world, state },
      secondsAfterNoon(seconds),
    );
    await refreshCrawlers({ ...world, state });
  }

  async function measured(): Promise<void> {
    const rtts = [crawlerId, other].map((by, at) => [by, [5, 20][at]!] as const);
    await world.delegations.saveRound(roundOf(subnetId, rtts, { method: "connect" }));
    for (const delegation of await world.delegations.readAll()) state.setDelegation(delegation);
    await world.crawlers.saveRtts([{ from: other, to: crawlerId, rttMs: 30, method: "connect" }], noon);
    state.learnRtts(await world.crawlers.rtts());
  }

  const hasMoved = () => state.crawler(crawlerId)?.placedAt !== undefined;

  it.each([
    ["of the same holder and country, as homes have every day", "5.1.1.9", "5.1.2.9", false],
    ["of another holder", "5.1.1.9", "5.1.3.9", true],
    ["of the same holder in another country", "5.1.1.9", "5.1.4.9", true],
    ["of nobody known", "5.1.1.9", "5.1.5.9", true],
    ["of a cloud's other region", "5.1.6.9", "5.1.7.9", true],
    ["of the same region of a cloud", "5.1.6.9", "5.1.8.9", false],
    ["in the same subnet", "5.1.1.9", "5.1.1.77", false],
    ["of the other family in the same country", "5.1.1.9", "2a00:1::9", false],
    ["of the other family in another country", "5.1.1.9", "2a00:2::9", true],
    ["that no registry knows", "5.1.1.9", "9.9.9.9", true],
    ["while its partner still states the old one", "5.1.1.9", ["5.1.4.9", "5.1.1.9"], true],
    ["that is not public, while its partner states the country of before", private_, private_, false],
    ["that is not public, once its partner states another country", private_, [...private_, "JP"], true],
  ] as const)("%s", async (_, before, after, isElsewhere) => {
    await comes(...([before].flat() as Came));
    expect(hasMoved()).toBe(false);

    await comes(...([after].flat() as Came));

    expect(hasMoved()).toBe(isElsewhere);
  });

  it("voids what it measured and what others measured of it, in the database and in memory", async () => {
    await comes("5.1.1.9");
    await measured();
    await world.crawlers.hasJoined(crawlerId);

    await comes("5.1.4.9");

    const known = await world.state();
    for (const one of [state, known]) {
      expect(one.delegationOf(subnetId)).toMatchObject({ crawlerId, measured: false, rttMs: null });
      expect(one.peerRtts.rttMs(other, crawlerId)).toBeNull();
      expect(one.knowledge.owners({ kind: "country", key: "NL" })).toEqual([]);
      expect(one.crawler(crawlerId)?.joiningSince).toEqual(secondsAfterNoon(seconds));
      // It has the subnet that it is in now.
      expect(one.ownerOf(one.subnetOf("5.1.4.9")!)).toBe(crawlerId);
      expect(one.learnedRtts("connect").wonBy(crawlerId)).toEqual([]);
    }
    expect(await world.rows("select cause, retry_at from delegation where not measured")).toEqual([
      { cause: "crawler-moved", retry_at: null },
      { cause: "crawler-moved", retry_at: null },
    ]);
    expect(await world.delegations.probedRtts([subnetId])).toMatchObject([{ crawlerId: other, rttMs: 20 }]);
    expect(await world.delegations.latestRounds(10)).toMatchObject([{ probes: [{ crawlerId: other }] }]);
  });

  it("is no heir for what it measured elsewhere, and gets nothing back for it", async () => {
    await comes("5.1.1.9");
    await world.delegations.saveRound(roundOf(subnetId, eachMs([other, 4], [crawlerId, 5])));
    for (const delegation of await world.delegations.readAll()) state.setDelegation(delegation);

    await comes("5.1.4.9");

    expect(state.delegationOf(subnetId)).toMatchObject({
      crawlerId: other,
      rttMs: 4,
      runnerUpId: null,
      runnerUpRttMs: null,
    });
    const left = {
      subnetId,
      from: crawlerId,
      to: other,
      cause: "crawler-left",
      reason: "",
      rttMs: 4,
    } as const;
    await world.delegations.move([{ ...left, from: other, to: crawlerId, rttMs: 1 }, left], noon);
    await world.delegations.move([left], noon);
    expect(await world.delegations.formerSubnets(crawlerId, new Date(0))).toEqual([
      { subnetId, rttMs: null },
    ]);
  });

  it("is moved at the other coordinators when they hear of it", async () => {
    await comes("5.1.1.9");
    await measured();
    const elsewhere = await world.state();
    expect(elsewhere.peerRtts.rttMs(other, crawlerId)).toBe(30);
    expect(elsewhere.learnedRtts("connect").wonBy(crawlerId)).toHaveLength(1);

    await comes("5.1.4.9");
    await refreshCrawlers({ ...world, state: elsewhere }, [crawlerId]);

    expect(elsewhere.peerRtts.rttMs(other, crawlerId)).toBeNull();
    expect(elsewhere.learnedRtts("connect").wonBy(crawlerId)).toEqual([]);
  });
});

it("reads each crawler about once when 250 arrive at once, and never the list of all", async () => {
  const { rows } = await world.pool.query<{ crawler_id: CrawlerId }>(
    "insert into crawler (name) select 'c' || i from generate_series(1, $1) i returning crawler_id",
    [fleet],
  );
  const subnetIds = [];
  for (let at = 0; at < 10; at += 1) subnetIds.push(await world.subnet(`5.1.${at}.0`, `5.1.${at}.255`));
  const state = await world.state();
  const lists: (number | "all")[] = [];
  const crawlers = {
    ...world.crawlers,
    list: async (crawlerIds?: readonly CrawlerId[]) => {
      lists.push(crawlerIds?.length ?? "all");
      return await world.crawlers.list(crawlerIds);
    },
  };

  const arrivals = rows.map(async ({ crawler_id: crawlerId }, at) => {
    const spoken = hello(`c${at + 1}`, { publicAddress: `5.1.${at % 10}.${1 + (at % 200)}` });
    const arrival = { crawlerId, hello: spoken, remoteAddress: "127.0.0.1" };
    return await welcomeCrawler(arrival, { ...world, crawlers, state }, noon);
  });
  await Promise.all(arrivals);

  expect(lists).not.toContain("all");
  expect(lists.reduce<number>((sum, count) => sum + Number(count), 0)).toBe(fleet);
  expect(state.crawlers.filter((crawler) => crawler.state === "online")).toHaveLength(fleet);
  expect(state.crawlers).toEqual(await world.crawlers.list());
  for (const subnetId of subnetIds) expect(state.delegationOf(subnetId)).not.toBeNull();
});

it("never replaces a newer reading by an older one", async () => {
  const state = await world.state();
  const [first] = state.crawlers;
  const gate = makeGate();
  const crawlers = {
    list: async (crawlerIds?: readonly CrawlerId[]) => {
      const read = await world.crawlers.list(crawlerIds);
      if (crawlerIds === undefined) await gate.opened;
      return read;
    },
  };

  const slow = refreshCrawlers({ crawlers, state });
  await world.pool.query("update crawler set place = 'Elsewhere' where crawler_id = $1", [first!.crawlerId]);
  const later = refreshCrawlers({ crawlers, state }, [first!.crawlerId]);
  gate.open();
  await Promise.all([slow, later]);

  expect(state.crawler(first!.crawlerId)?.place).toBe("Elsewhere");
});

it("fails nobody because of another's request", async () => {
  const together: number[][] = [];
  const gathered = new Gathered(async (items: readonly number[]) => {
    together.push([...items]);
    if (items.includes(3)) throw new Error("three");
    return items.map((item) => item * 2);
  }, 10);

  const answers = await Promise.allSettled([1, 2, 3, 4].map((item) => gathered.ask(item)));

  expect(together).toEqual([[1], [2, 3, 4], [2], [3], [4]]);
  expect(answers.map((answer) => (answer.status === "fulfilled" ? answer.value : "failed"))).toEqual([
    2,
    4,
    "failed",
    8,
  ]);
});

describe("a crawler that arrives", () => {
  beforeEach(async () => await world.reset());

  async function welcomed(name: string, publicAddress: string | null, remoteAddress = "127.0.0.1") {
    const crawlerId = await world.crawler(name);
    const state = await world.state();
    const arrival = { crawlerId, hello: hello(name, { publicAddress }), remoteAddress };
    const acknowledged = await welcomeCrawler(arrival, { ...world, state }, noon);
    return { crawlerId, state, acknowledged };
  }

  it("gets the subnet that it is in, which then teaches, also after a restart", async () => {
    const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");

    const { crawlerId, state, acknowledged } = await welcomed("north", "5.1.1.1");

    expect(acknowledged).toBe(0);
    expect(state.crawler(crawlerId)).toMatchObject({ state: "online", address: "5.1.1.1", subnetId });
    const restarted = await world.state();
    for (const known of [state, restarted]) {
      expect(known.delegationOf(subnetId)).toMatchObject({ crawlerId, rttMs: null });
      expect(known.knowledge.owners({ kind: "subnet", key: subnetId })).toEqual([{ crawlerId, count: 1 }]);
    }
    expect(restarted.delegationOf(subnetId)).toEqual(state.delegationOf(subnetId));
  });

  it("gets no subnet that another has, nor one that it only claims to be in", async () => {
    const claimed = await world.subnet("5.1.1.0", "5.1.1.255");
    await world.subnet("5.1.2.0", "5.1.2.255");

    const elsewhere = await welcomed("elsewhere", "5.1.1.1", "5.1.2.1");
    const claimedThen = elsewhere.state.delegationOf(claimed);
    const beside = await welcomed("beside", "5.1.1.1", "5.1.1.2");
    await welcomed("south", "5.1.1.2");

    expect(claimedThen).toBeNull();
    const owners = new Map((await world.delegations.readAll()).map((one) => [one.subnetId, one.crawlerId]));
    expect(owners.get(claimed)).toBe(beside.crawlerId);
  });

  it("is placed by its stated address, or else by its connection's, but never by a private one", async () => {
    await world.subnet("5.1.1.0", "5.1.1.255");
    const addressOf = async (...given: Parameters<typeof welcomed>) => {
      const { crawlerId, state } = await welcomed(...given);
      return state.crawler(crawlerId)?.address;
    };

    expect(await addressOf("stated", "5.1.1.1", "5.1.1.2")).toBe("5.1.1.1");
    expect(await addressOf("seen", null, "5.1.1.2")).toBe("5.1.1.2");
    expect(await addressOf("private", "10.0.0.1", "5.1.1.2")).toBe("5.1.1.2");
    expect(await addressOf("nowhere", "not an address", "127.0.0.1")).toBeNull();
  });

  it("loses the leases that it no longer holds, and keeps the others", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
    const [kept] = await world.lease(crawlerId);
    const state = await world.state();
    const arrive = async (heldLeases: string[] | null) =>
      await welcomeCrawler(
        { crawlerId, hello: hello("north", { heldLeases }), remoteAddress: "127.0.0.1" },
        { ...world, state },
        noon,
      );
    const open = async () =>
      (await world.rows<{ lease_id: string }>("select lease_id from lease where closed_at is null")).map(
        ({ lease_id }) => asLeaseId(lease_id),
      );

    await arrive(null);
    expect(await open()).toHaveLength(2);
    await arrive([kept!.leaseId]);
    expect(await open()).toEqual([kept!.leaseId]);
  });

  const measured = (rttMs: number) => ({ type: "measured", method: "connect", rttMs, tries: 3 }) as const;

  it("teaches the smaller direction of measured distances, and nothing of unmeasured ones", async () => {
    const [north, south] = [await world.arrived("north"), await world.arrived("south")];
    const state = await world.state();
    const report = (...peers: (readonly [CrawlerId, ProbeOutcome])[]) => ({
      type: "crawler:peer-rtts" as const,
      peers: peers.map(([crawlerId, outcome]) => ({ crawlerId, outcome })),
    });
    const timedOut = { type: "timed-out", method: "connect", reason: "" } as const;
    const unknown = 4_000_000 as CrawlerId;
    const useless = report([north, measured(1)], [south, timedOut], [unknown, measured(1)]);

    await takePeerReport(north, useless, { ...world, state }, noon);
    expect(measuredPeers(north, useless).map(({ to }) => to)).toEqual([unknown]);
    expect(await world.crawlers.rtts()).toEqual([]);
    expect(state.peerRtts.rttMs(north, unknown)).toBeNull();

    await takePeerReport(north, report([south, measured(30)]), { ...world, state }, noon);
    await takePeerReport(south, report([north, measured(24)]), { ...world, state }, noon);
    expect([state.peerRtts.rttMs(north, south), state.rttCoverage([north, south])]).toEqual([24, 1]);
    expect((await world.state()).peerRtts.rttMs(south, north)).toBe(24);
  });
});
