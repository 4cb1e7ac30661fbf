/** Crawlers that come, and what becomes of the subnets and leases of those that do not come back. */
import { expect, it } from "vitest";
import { type HeirLine, replaceCrawler, successionOf } from "#coordinator/place/balance/hand-overs";
import { departedCrawlers, welcomeCrawler } from "#coordinator/place/balance/presence";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { measuredPeers, takePeerReport } from "#coordinator/place/delegation/measure-peers";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import type { ProbeOutcome } from "#protocol/messages";
import { flowWorld, hello } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();

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

it("gives each subnet to the nearest online crawler that its round measured, in one transaction, and names the rest", async () => {
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

it("hands an anycast range over, and learns nothing from who gets it", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();
  const anycast = new AnycastRanges();
  anycast.mark(subnets[0], null);
  await world.pool.query("update delegation set anycast = true where subnet_id = $1", [subnets[0]]);
  const ports = { ...portsOf(state, near, far), anycast };

  await replaceCrawler(gone, ports, noon);

  const restarted = await world.state();
  expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: near, rttMs: 20, measured: false });
  expect(state.delegationOf(subnets[0])).toEqual(restarted.delegationOf(subnets[0]));
  const rootOwners = [...state.knowledge.owners({ kind: "root", key: 0 })].map(({ crawlerId }) => crawlerId);
  expect(rootOwners.toSorted()).toEqual([gone, far].toSorted());
});

it("counts a crawler as departed when it has been gone for long enough since the coordinator is back", async () => {
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

async function welcomed(name: string, publicAddress: string | null, remoteAddress = "127.0.0.1") {
  const crawlerId = await world.crawler(name);
  const state = await world.state();
  const arrival = { crawlerId, hello: hello(name, { publicAddress }), remoteAddress };
  const acknowledged = await welcomeCrawler(arrival, { ...world, state }, noon);
  return { crawlerId, state, acknowledged };
}

it("gives a crawler the subnet that it stands in, which then teaches, also after a restart", async () => {
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

it("gives nobody a subnet that another has, or for saying that it stands there when it comes from elsewhere", async () => {
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

it("places a crawler by the address it states, else by where it comes from, never by a private one", async () => {
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

it("takes the leases back that a crawler no longer holds when it arrives, and leaves those it holds", async () => {
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

it("learns what crawlers measured of each other, the smaller direction, and nothing of what was not measured", async () => {
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

it("what is said beforehand is what is done, with each heir's room", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();
  const bare = await world.subnet("6.1.0.0", "6.1.0.255");
  await world.delegations.delegateOwnSubnet(bare, gone, noon);
  state.setDelegation((await world.delegations.readAll()).find(({ subnetId }) => subnetId === bare)!);
  await world.pool.query("update crawler set pages_per_day = 0 where crawler_id = $1", [near]);
  state.setCrawlers(
    state.crawlers.map((crawler) => (crawler.crawlerId === near ? { ...crawler, pagesPerDay: 0 } : crawler)),
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

it("a subnet with nothing to probe goes to one whose distance is known before one that nobody measured", async () => {
  const gone = await world.arrived("gone");
  const unmeasured = await world.arrived("unmeasured");
  const measured = await world.arrived("measured");
  const bare = await world.subnet("6.1.0.0", "6.1.0.255");
  await world.delegations.delegateOwnSubnet(bare, gone, noon);
  await world.crawlers.saveRtts([{ from: measured, to: gone, rttMs: 80, method: "connect" }], noon);
  await world.pool.query("update crawler set pages_per_day = 0 where crawler_id = $1", [measured]);
  const state = await world.state();
  const ports = portsOf(state, unmeasured, measured);

  expect(await successionOf(gone, ports, noon)).toEqual([
    { crawler: "measured", subnets: 1, measured: false },
  ]);
  await replaceCrawler(gone, ports, noon);

  expect(state.delegationOf(bare)?.crawlerId).toBe(measured);
});
