/** Crawlers that come, and what becomes of the subnets and leases of those that do not come back. */
import { expect, it } from "vitest";
import { departedCrawlers, welcomeCrawler } from "#coordinator/balance/presence";
import { type HeirLine, replaceCrawler, successionOf } from "#coordinator/balance/successors";
import { AnycastRanges } from "#coordinator/delegation/anycast";
import { DeniedTargets } from "#coordinator/delegation/denied-targets";
import { measuredPeers, takePeerReport } from "#coordinator/delegation/measure-peers";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { flowWorld, hello } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();

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

it("gives each subnet to the nearest online crawler that its round measured, and names the rest", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();

  const replaced = await replaceCrawler(
    gone,
    { ...world, state, recrawlDays: 7, online: () => [near, far] },
    noon,
  );

  expect(replaced).toEqual({
    returnedLeases: 0,
    moved: expect.arrayContaining([subnets[0], subnets[2]]),
    orphans: [subnets[1]],
  });
  expect(await world.delegations.readAll()).toMatchObject([
    { subnetId: subnets[0], crawlerId: near, rttMs: 20, measured: true },
    { subnetId: subnets[1], crawlerId: gone },
    { subnetId: subnets[2], crawlerId: far, rttMs: 50, measured: true },
  ]);
});

it("moves them in one transaction, with their history", async () => {
  const { gone, near, far, state } = await threeSubnets();

  await replaceCrawler(gone, { ...world, state, recrawlDays: 7, online: () => [near, far] }, noon);

  const moved = "where cause = 'crawler-left'";
  expect(await world.rows(`select distinct xmin::text from delegation ${moved}`)).toHaveLength(1);
  expect(await world.rows(`select from_crawler_id from delegation_history ${moved}`)).toEqual([
    { from_crawler_id: gone },
    { from_crawler_id: gone },
  ]);
});

it("leaves memory as a coordinator that starts afterwards would read it", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();

  await replaceCrawler(gone, { ...world, state, recrawlDays: 7, online: () => [near, far] }, noon);

  const restarted = await world.state();
  for (const subnetId of subnets) {
    expect(state.delegationOf(subnetId)).toEqual(restarted.delegationOf(subnetId));
  }
  expect(state.subnetsOf(gone)).toEqual([subnets[1]]);
});

it("gives nothing to a crawler that is offline or draining", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();
  state.setCrawlers(
    state.crawlers.map((crawler) =>
      crawler.crawlerId === near ? { ...crawler, state: "draining" as const } : crawler,
    ),
  );

  const offline = await replaceCrawler(gone, { ...world, state, recrawlDays: 7, online: () => [near] }, noon);
  expect(offline.moved).toEqual([]);
  const draining = await replaceCrawler(
    gone,
    { ...world, state, recrawlDays: 7, online: () => [near, far] },
    noon,
  );

  expect(draining.moved.toSorted()).toEqual([subnets[0], subnets[2]].toSorted());
  expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: far, rttMs: 50 });
});

it("gives nothing to a crawler whose partner denies it", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();
  const denied = new DeniedTargets();
  denied.setList(near, { networks: ["5.1.1.0/24"], domains: [] });
  denied.noteRefusal(far, subnets[2], noon.getTime());
  const ports = { ...world, state, denied, recrawlDays: 7, online: () => [near, far] };

  const replaced = await replaceCrawler(gone, ports, noon);

  expect(replaced).toMatchObject({ moved: [subnets[0]], orphans: [subnets[1], subnets[2]] });
  expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: far, rttMs: 50 });
});

it("hands an anycast range over, and learns nothing from who gets it", async () => {
  const { gone, near, far, subnets, state } = await threeSubnets();
  const anycast = new AnycastRanges();
  anycast.mark(subnets[0], null);
  await world.pool.query("update delegation set anycast = true where subnet_id = $1", [subnets[0]]);
  const ports = { ...world, state, anycast, recrawlDays: 7, online: () => [near, far] };

  await replaceCrawler(gone, ports, noon);

  const restarted = await world.state();
  expect(state.delegationOf(subnets[0])).toMatchObject({ crawlerId: near, rttMs: 20, measured: false });
  expect(state.delegationOf(subnets[0])).toEqual(restarted.delegationOf(subnets[0]));
  const rootOwners = [...state.knowledge.owners({ kind: "root", key: 0 })].map(({ crawlerId }) => crawlerId);
  expect(rootOwners.toSorted()).toEqual([gone, far].toSorted());
});

it("returns its leases, so that others may take the hosts", async () => {
  const { gone, near, far, state } = await threeSubnets();
  expect(await world.lease(gone)).toHaveLength(3);

  const replaced = await replaceCrawler(
    gone,
    { ...world, state, recrawlDays: 7, online: () => [near, far] },
    noon,
  );

  expect(replaced.returnedLeases).toBe(3);
  expect((await world.lease(near)).map(({ host }) => host)).toEqual(["s1.example"]);
});

it("counts a crawler as departed when it has been gone for long enough and owns something", async () => {
  const { gone, near, state } = await threeSubnets();
  const since = noon;
  const departed = (seconds: number) =>
    departedCrawlers(state, { departureMs: 120_000, since }, secondsAfterNoon(seconds));

  expect(departed(120)).toEqual([]);
  expect(departed(121)).toEqual([gone]);
  expect(state.crawler(near)?.state).toBe("online");
});

it("lets the fleet come back after the coordinator was away for long, before anybody counts as departed", async () => {
  const { gone, state } = await threeSubnets();
  const since = secondsAfterNoon(3600);
  const departed = (seconds: number) =>
    departedCrawlers(state, { departureMs: 120_000, since }, secondsAfterNoon(3600 + seconds));

  expect(departed(5)).toEqual([]);
  expect(departed(121)).toEqual([gone]);
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

it("does not take a subnet from the crawler that has it", async () => {
  const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");
  const { crawlerId: north } = await welcomed("north", "5.1.1.1");

  await welcomed("south", "5.1.1.2");

  expect(await world.delegations.readAll()).toMatchObject([{ subnetId, crawlerId: north }]);
});

it("gives nobody a subnet for saying that it stands there, when it is seen to come from elsewhere", async () => {
  const claimed = await world.subnet("5.1.1.0", "5.1.1.255");
  await world.subnet("5.1.2.0", "5.1.2.255");

  const elsewhere = await welcomed("elsewhere", "5.1.1.1", "5.1.2.1");
  const claimedThen = elsewhere.state.delegationOf(claimed);
  const beside = await welcomed("beside", "5.1.1.1", "5.1.1.2");

  expect(claimedThen).toBeNull();
  expect(beside.state.delegationOf(claimed)).toMatchObject({ crawlerId: beside.crawlerId });
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

it("learns what crawlers measured of each other, and the smaller direction counts", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const state = await world.state();
  const report = (crawlerId: CrawlerId, rttMs: number) => ({
    type: "crawler:peer-rtts" as const,
    peers: [{ crawlerId, outcome: measured(rttMs) }],
  });

  await takePeerReport(north, report(south, 30), { ...world, state }, noon);
  await takePeerReport(south, report(north, 24), { ...world, state }, noon);

  expect([state.peerRtts.rttMs(north, south), state.rttCoverage([north, south])]).toEqual([24, 1]);
  expect((await world.state()).peerRtts.rttMs(south, north)).toBe(24);
});

it("leaves out of a report what was not measured, the crawler itself, and crawlers nobody knows", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const state = await world.state();
  const timedOut = { type: "timed-out", method: "connect", reason: "" } as const;
  const report = {
    type: "crawler:peer-rtts" as const,
    peers: [
      { crawlerId: north, outcome: measured(1) },
      { crawlerId: south, outcome: timedOut },
      { crawlerId: 4_000_000, outcome: measured(1) },
    ],
  };

  await takePeerReport(north, report, { ...world, state }, noon);

  expect(measuredPeers(north, report).map(({ to }) => to)).toEqual([4_000_000]);
  expect(await world.crawlers.rtts()).toEqual([]);
  expect(state.hasMeasured(north, 4_000_000 as CrawlerId)).toBe(false);
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
  const ports = { ...world, state, recrawlDays: 7, online: () => [near, far] };

  const said = await successionOf(gone, ports, noon);
  const untouched = state.subnetsOf(gone);
  const done = await replaceCrawler(gone, ports, noon);

  expect(untouched).toEqual(expect.arrayContaining([...subnets, bare]));
  const ends = new Map<string, number>();
  for (const subnetId of done.moved) {
    const { name } = state.crawler(state.delegationOf(subnetId)!.crawlerId)!;
    ends.set(name, (ends.get(name) ?? 0) + 1);
  }
  const sums = new Map<string, number>();
  for (const { crawler, subnets: count } of said)
    if (crawler !== null) sums.set(crawler, (sums.get(crawler) ?? 0) + count);
  expect(sums).toEqual(ends);
  expect(ends).toEqual(new Map([["far", 3]]));
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
  const ports = { ...world, state, recrawlDays: 7, online: () => [unmeasured, measured] };

  expect(await successionOf(gone, ports, noon)).toEqual([
    { crawler: "measured", subnets: 1, measured: false },
  ]);
  await replaceCrawler(gone, ports, noon);

  expect(state.delegationOf(bare)?.crawlerId).toBe(measured);
});
