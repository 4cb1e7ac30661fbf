/** Crawlers that leave, over real stores: whom their subnets go to, and at what rate. */
import { beforeEach, describe, expect, it } from "vitest";
import {
  HandOvers,
  type HeirLine,
  replaceCrawler,
  successionOf,
} from "#coordinator/place/balance/hand-overs";
import { departedCrawlers, refreshCrawlers } from "#coordinator/place/balance/presence";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import { flowWorld } from "../support/flow-world.ts";
import { eachMs, noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();
describe("a crawler that is gone or hands over", () => {
  const portsOf = (state: CoordinatorState, ...online: CrawlerId[]) => ({
    ...{ ...world, state, recrawlDays: () => 7, online: () => online },
  });

  /** Three subnets of `gone`: near is next best for the first, the second has nobody else, and far the third. */
  async function threeSubnets() {
    const [gone, near, far] = [
      await world.arrived("gone"),
      await world.arrived("near"),
      await world.arrived("far"),
    ];
    const subnets = [await world.site(1), await world.site(2), await world.site(3)] as const;
    const roundWith = async (subnetId: SubnetId, ...others: (readonly [CrawlerId, number])[]) =>
      await world.delegations.saveRound(roundOf(subnetId, [[gone, 5], ...others]));
    await roundWith(subnets[0], [far, 50], [near, 20]);
    await roundWith(subnets[1]);
    await roundWith(subnets[2], [far, 50]);
    const state = await world.state();
    state.setCrawlers(
      state.crawlers.map((crawler) => ({
        ...crawler,
        state: crawler.crawlerId === gone ? "offline" : "online",
      })),
    );
    return { gone, near, far, subnets, state };
  }

  it("gives each subnet to the nearest online crawler that its round measured, in one transaction, and lists the rest", async () => {
    const { gone, near, far, subnets, state } = await threeSubnets();
    expect(await world.lease(gone)).toHaveLength(3);

    const replaced = await replaceCrawler(gone, portsOf(state, near, far), noon);

    const moved = expect.arrayContaining([subnets[0], subnets[2]]);
    expect(replaced).toEqual({ returnedLeases: 3, moved, orphans: [subnets[1]] });
    expect((await world.lease(near)).map(({ host }) => host)).toEqual(["s1.example"]);
    expect(await world.delegations.readAll()).toMatchObject([
      { subnetId: subnets[0], crawlerId: near, rttMs: 20, measured: true },
      { subnetId: subnets[1], crawlerId: gone },
      { subnetId: subnets[2], crawlerId: far, rttMs: 50, measured: true },
    ]);
    const left = "where cause = 'crawler-left'";
    expect(await world.rows(`select distinct xmin::text from delegation ${left}`)).toHaveLength(1);
    expect(await world.rows(`select from_crawler_id from delegation_history ${left}`)).toEqual([
      { from_crawler_id: gone },
      { from_crawler_id: gone },
    ]);
    // Memory is as a coordinator that starts afterwards would read it.
    const restarted = await world.state();
    for (const subnetId of subnets)
      expect(state.delegationOf(subnetId)).toEqual(restarted.delegationOf(subnetId));
    expect(state.subnetsOf(gone)).toEqual([subnets[1]]);
  });

  it("gives nothing to a crawler that is offline or draining", async () => {
    const { gone, near, far, subnets, state } = await threeSubnets();
    state.setCrawlers(
      state.crawlers.map((crawler) =>
        crawler.crawlerId === near ? { ...crawler, state: "draining" as const } : crawler,
      ),
    );

    const offline = await replaceCrawler(gone, portsOf(state, near), noon);
    expect(offline.moved).toEqual([]);
    const draining = await replaceCrawler(gone, portsOf(state, near, far), noon);

    expect(draining.moved.toSorted()).toEqual([subnets[0], subnets[2]].toSorted());
    expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: far, rttMs: 50 });
  });

  it("gives nothing to a crawler whose partner denies it", async () => {
    const { gone, near, far, subnets, state } = await threeSubnets();
    const denied = new DeniedTargets();
    denied.setList(near, { networks: ["5.1.1.0/24"], domains: [] });
    denied.noteRefusal(far, subnets[2], noon.getTime());
    const ports = { ...portsOf(state, near, far), denied };

    const replaced = await replaceCrawler(gone, ports, noon);

    expect(replaced).toMatchObject({ moved: [subnets[0]], orphans: [subnets[1], subnets[2]] });
    expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: far, rttMs: 50 });
  });

  it("hands over an anycast range, and learns nothing from its new crawler", async () => {
    const { gone, near, far, subnets, state } = await threeSubnets();
    const anycast = new AnycastRanges();
    anycast.mark(subnets[0], null);
    await world.pool.query("update delegation set anycast = true where subnet_id = $1", [subnets[0]]);
    const ports = { ...portsOf(state, near, far), anycast };

    await replaceCrawler(gone, ports, noon);

    const restarted = await world.state();
    expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: near, rttMs: 20, measured: false });
    expect(state.delegationOf(subnets[0])).toEqual(restarted.delegationOf(subnets[0]));
    const rootOwners = [...state.knowledge.owners({ kind: "root", key: 0 })].map(
      ({ crawlerId }) => crawlerId,
    );
    expect(rootOwners.toSorted()).toEqual([gone, far].toSorted());
  });

  it("counts as departed after the grace time, which begins with the coordinator's start", async () => {
    const { gone, near, state } = await threeSubnets();
    const departed = (sinceSeconds: number, seconds: number) =>
      departedCrawlers(
        state,
        { departureMs: 120_000, since: secondsAfterNoon(sinceSeconds) },
        secondsAfterNoon(sinceSeconds + seconds),
      );

    for (const since of [0, 3600])
      expect([5, 120, 121].map((seconds) => departed(since, seconds))).toEqual([[], [], [gone]]);
    expect(state.crawler(near)?.state).toBe("online");
  });

  it("does what the forecast says, within each heir's room", async () => {
    const { gone, near, far, subnets, state } = await threeSubnets();
    const bare = await world.subnet("6.1.0.0", "6.1.0.255");
    await world.delegations.delegateOwnSubnet(bare, gone, noon);
    state.setDelegation((await world.delegations.readAll()).find(({ subnetId }) => subnetId === bare)!);
    await world.pool.query("update crawler set pages_per_day = 0 where crawler_id = $1", [near]);
    state.setCrawlers(
      state.crawlers.map((crawler) =>
        crawler.crawlerId === near ? { ...crawler, pagesPerDay: 0 } : crawler,
      ),
    );
    const ports = portsOf(state, near, far);

    const said = await successionOf(gone, ports, noon);
    const untouched = state.subnetsOf(gone);
    const done = await replaceCrawler(gone, ports, noon);

    expect(untouched).toEqual(expect.arrayContaining([...subnets, bare]));
    expect(done.moved.map((subnetId) => state.delegationOf(subnetId)!.crawlerId)).toEqual([far, far, far]);
    expect(said).toEqual<HeirLine[]>([
      { crawler: "far", subnets: 2, measured: true },
      { crawler: "far", subnets: 1, measured: false },
      { crawler: null, subnets: done.orphans.length, measured: false },
    ]);
  });

  it("a subnet with nothing to probe goes to the nearest, and to one at an unknown distance last", async () => {
    const gone = await world.arrived("gone");
    const unmeasured = await world.arrived("unmeasured");
    const [full, near, far] = [
      await world.arrived("full"),
      await world.arrived("near"),
      await world.arrived("far"),
    ];
    const bare = await world.subnet("6.1.0.0", "6.1.0.255");
    await world.delegations.delegateOwnSubnet(bare, gone, noon);
    const rtts = [
      { from: far, to: gone, rttMs: 80 },
      { from: gone, to: near, rttMs: 30 },
      { from: full, to: gone, rttMs: 10 },
    ];
    await world.crawlers.saveRtts(
      rtts.map((rtt) => ({ ...rtt, method: "connect" as const })),
      noon,
    );
    await world.pool.query("update crawler set pages_per_day = 0 where crawler_id = $1", [full]);
    const state = await world.state();
    const heirOf = async (...online: CrawlerId[]) =>
      await successionOf(gone, portsOf(state, ...online), noon);
    const given = (crawler: string) => [{ crawler, subnets: 1, measured: false }];

    expect(await heirOf(unmeasured, full, far, near)).toEqual(given("near"));
    expect(await heirOf(unmeasured, full)).toEqual(given("full"));
    await replaceCrawler(gone, portsOf(state, unmeasured, far), noon);

    expect(state.delegationOf(bare)).toMatchObject({ crawlerId: far, measured: false, rttMs: null });
  });
});

describe("hand-overs", () => {
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
    expect(
      await world.rows("select distinct reason from delegation_history where cause = 'drained'"),
    ).toEqual([
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
      [
        {
          subnetId: state.subnetsOf(near)[0]!,
          from: near,
          to: north,
          cause: "operator",
          reason: "",
          rttMs: 5,
        },
      ],
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

  it("request a limited number of rounds per pass for unmeasured subnets, and again after a minute", async () => {
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

  it("leave everything while nobody else is online", async () => {
    await fleet(1000, 1000);
    await subnetsOfNorth(2);
    const overs = await handOvers();
    await drains();
    online = [north];

    await overs.pass();

    expect(counts()).toEqual([2, 0, 0]);
  });
});
