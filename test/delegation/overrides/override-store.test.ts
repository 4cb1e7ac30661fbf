/** Hosts and parts of leaves with delegations of their own: who leases what, and what becomes of them. */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FinerRound, PlannedPart } from "#coordinator/place/delegation/overrides/override";
import { createFinerDelegationStore } from "#coordinator/place/delegation/overrides/override-store";
import type { CrawlerId, RoundId, SubnetId } from "#core/ids";
import {
  eachMs,
  keyOf,
  noon,
  roundOf,
  scope,
  secondsAfterNoon,
  seeds,
  storeWorld,
} from "../../support/store-world.ts";
import { until } from "../../support/until.ts";

const world = storeWorld();
let finer: ReturnType<typeof createFinerDelegationStore>;
let leaf: SubnetId;
let [owner, near, third] = [0, 0, 0] as unknown as [CrawlerId, CrawlerId, CrawlerId];

beforeAll(async () => {
  finer = createFinerDelegationStore(world.pool);
});
beforeEach(async () => {
  owner = await world.crawler("owner");
  near = await world.crawler("near");
  third = await world.crawler("third");
  leaf = await world.subnet("10.1.2.0", "10.1.2.255");
  await world.delegations.delegateOwnSubnet(leaf, owner, noon);
  await host("low.example", "10.1.2.7");
  await host("high.example", "10.1.2.200");
});

const times = { now: noon, reviewAt: secondsAfterNoon(3600) };

async function host(name: string, address: string, subnetId: SubnetId | null = leaf): Promise<void> {
  await world.frontier.admit(seeds(`http://${name}/`), scope, noon);
  await world.resolve(name, address, subnetId);
}

const round = async (
  probes: readonly (readonly [CrawlerId, number])[] = eachMs([near, 10], [owner, 90]),
): Promise<RoundId> => {
  const target = { targetUrl: "http://high.example/", targetAddress: "10.1.2.200" };
  const { subnetId: _, ...rest } = roundOf(leaf, probes, { cause: "measures-apart", ...target });
  return await finer.saveRound({ ...rest, withinSubnetId: leaf } satisfies FinerRound);
};

const part = async (
  first: string,
  last: string,
  differences: Partial<PlannedPart> = {},
): Promise<PlannedPart> => ({
  ...{ first, last, crawlerId: near, roundId: differences.roundId ?? (await round()), rttMs: 10 },
  ...{ runnerUpId: owner, runnerUpRttMs: 90, subnetRttMs: 90, reason: "it measures apart" },
  ...differences,
});
const upper = async (differences: Partial<PlannedPart> = {}) =>
  await part("10.1.2.128", "10.1.2.255", differences);

const split = async (...parts: PlannedPart[]) =>
  await finer.setParts({ subnetId: leaf, subnetCrawlerId: owner, parts }, times);

const byItself = async (name: string, crawlerId: CrawlerId = near) =>
  await finer.setHost(
    {
      ...{ hostHash: keyOf(`http://${name}/`).hostHash, subnetId: leaf, crawlerId, roundId: await round() },
      ...{ rttMs: 10, runnerUpId: null, runnerUpRttMs: null, subnetRttMs: 90 },
      seen: [{ crawlerId: null, addresses: ["10.1.2.7"] }],
      reason: "it resolves differently by place",
    },
    times,
  );

/** Hosts leased by each of these crawlers, in this order. */
const leased = async (...crawlers: CrawlerId[]) => {
  const hosts: string[] = [];
  for (const crawlerId of crawlers)
    hosts.push(
      (await world.lease(crawlerId))
        .map((one) => one.host.replace(".example", ""))
        .sort()
        .join(),
    );
  return hosts;
};
const history = async () =>
  (
    await world.rows<{ from_crawler_id: number; to_crawler_id: number; cause: string }>(
      "select from_crawler_id, to_crawler_id, cause from delegation_history where cause <> 'own-subnet' order by changed_at, cause",
    )
  ).map((row) => [row.from_crawler_id, row.to_crawler_id, row.cause]);
const owners = async () =>
  (await world.rows<{ crawler_id: number }>("select crawler_id from finer_delegation")).map(
    (row) => row.crawler_id,
  );

describe("a part of a leaf", () => {
  it("has its hosts leased by its own crawler, the others by the subnet's", async () => {
    expect(await split(await upper())).toEqual({ added: 1, ended: 0 });
    // Asked first, the subnet's crawler gets none of the part's.
    expect(await leased(owner, near)).toEqual(["low", "high"]);
    expect(await history()).toEqual([[owner, near, "measures-apart"]]);
  });

  it("covers hosts as their addresses come and go", async () => {
    await split(await upper());

    await host("new.example", "10.1.2.130");
    await world.resolve("high.example", "10.1.2.9", leaf);

    expect(await leased(near, owner)).toEqual(["new", "high,low"]);
  });

  it("loses hosts that move to another subnet, by resolution or by a new tree", async () => {
    await split(await upper());
    const inner = await world.subnet("10.1.2.192", "10.1.2.255");
    await world.delegations.delegateOwnSubnet(inner, third, noon);
    await host("higher.example", "10.1.2.201");

    await world.resolve("high.example", "10.1.2.200", inner);
    await world.frontier.reassignSubnets((address) => (address.startsWith("10.1.2.20") ? inner : leaf));

    expect(await leased(near, third)).toEqual(["", "high,higher"]);
  });

  it("is not made when the leaf has passed to another crawler meanwhile", async () => {
    const planned = await upper();
    await world.pool.query("update delegation set crawler_id = $1", [third]);

    expect(await split(planned)).toBeNull();
    expect(await finer.partsOf(leaf)).toEqual([]);
  });

  it("keeps its identity when it is found again, and ends when it is not", async () => {
    await split(await upper());
    const [before] = await finer.partsOf(leaf);

    const again = await split(await upper(), await part("10.1.2.0", "10.1.2.15", { crawlerId: third }));
    const after = await finer.partsOf(leaf);

    expect(again).toEqual({ added: 1, ended: 0 });
    expect(after.map(({ crawlerId }) => crawlerId)).toEqual([third, near]);
    expect(after[1]!.finerId).toBe(before!.finerId);
    expect(await split()).toEqual({ added: 0, ended: 2 });
    expect(await leased(owner)).toEqual(["high,low"]);
  });

  it("is read with its crawlers and its round's target; the whole subnet's measurements stay", async () => {
    await world.delegations.saveRound(roundOf(leaf, [[owner, 20]]));
    const planned = await upper();
    await split(planned);

    const { first, last, reason: _, ...decision } = planned;
    expect(await world.delegations.probedRtts([leaf])).toMatchObject([{ crawlerId: owner, rttMs: 20 }]);
    expect(await finer.partsOf(leaf)).toEqual([
      {
        ...{ finerId: expect.any(Number), place: { type: "part", first, last }, subnetId: leaf },
        ...{ subnetCrawlerId: owner, ...decision },
        target: { url: "http://high.example/", host: "high.example", address: "10.1.2.200" },
      },
    ]);
  });
});

describe("a host by itself", () => {
  it("is leased by its own crawler, whatever its address, and keeps its place in a new decision", async () => {
    expect([await byItself("low.example"), await byItself("low.example", third)]).toEqual([true, true]);
    await world.resolve("low.example", "10.1.2.99", leaf);

    expect(await leased(owner, third)).toEqual(["high", "low"]);
    expect([await owners(), (await history()).length]).toEqual([[third], 1]);
  });

  it("comes before the part that contains its address, and goes to that part when it ends", async () => {
    await split(await upper());
    await byItself("high.example", third);

    const due = await finer.dueForReview(10, secondsAfterNoon(3600));
    const itself = due.find(({ place }) => place.type === "host")!;
    const { hostHash } = keyOf("http://high.example/");
    expect([due.length, itself.place]).toEqual([2, { type: "host", hostHash, host: "high.example" }]);
    await finer.end(itself.finerId, "it resolves to the same everywhere", noon);

    expect(await leased(third, near)).toEqual(["", "high"]);
  });

  it("is listed with its addresses, a URL, and whether it is one", async () => {
    await byItself("low.example");
    const hosts = ["low.example", "high.example"].map((name) => keyOf(`http://${name}/`).hostHash);

    const places = await finer.hostPlaces(hosts);

    expect(places.toSorted((a, b) => (a.host < b.host ? 1 : -1))).toEqual([
      {
        ...{ hostHash: hosts[0], host: "low.example", url: "http://low.example/", addresses: ["10.1.2.7"] },
        ...{ subnetId: leaf, byItself: true },
      },
      expect.objectContaining({ host: "high.example", byItself: false }),
    ]);
  });
});

it("leases go to the hosts that are due longest, of subnets and of finer delegations alike", async () => {
  await split(await upper({ crawlerId: owner }));
  const earlier = [secondsAfterNoon(-60)];
  await world.pool.query("update frontier_host set due_at = $1 where host = 'low.example'", earlier);

  const request = { crawlerId: owner, hosts: 1, urlsPerHost: 10, leaseSeconds: 60, now: noon };
  const one = await world.frontier.leaseHosts(request);

  expect(one.map(({ host: name }) => name)).toEqual(["low.example"]);
  expect(await leased(owner)).toEqual(["high"]);
});

describe("a departed crawler's part goes", () => {
  it.each<[string, () => [CrawlerId, number][], () => CrawlerId[], () => object]>([
    [
      "to the nearest heir of the latest round",
      () => eachMs([near, 10], [third, 30], [owner, 90]),
      () => [owner, third],
      () => ({ crawler_id: third, rtt_ms: 30, measured: true, due: 0 }),
    ],
    [
      "to the subnet's crawler when no heir was measured, to be reviewed at once",
      () => [[near, 10]],
      () => [owner],
      () => ({ crawler_id: owner, rtt_ms: null, measured: false, due: 1 }),
    ],
  ])("%s", async (_, probes, heirs, then) => {
    await split(await upper({ roundId: await round(probes()) }));

    expect(await finer.inherit(near, heirs(), noon)).toEqual({ moved: 1, left: 0 });

    const [found] = await world.rows<object>("select crawler_id, rtt_ms, measured from finer_delegation");
    expect({ ...found, due: (await finer.dueForReview(10, noon)).length }).toEqual(then());
    expect(await leased(near)).toEqual([""]);
  });

  it("to nobody while nobody can take it", async () => {
    await split(await upper({ roundId: await round([[near, 10]]) }));

    const passes = [];
    for (const heirs of [[third], [third, owner], [third, owner]])
      passes.push(await finer.inherit(near, heirs, noon));
    expect(passes).toEqual([
      { moved: 0, left: 1 },
      { moved: 1, left: 0 },
      { moved: 0, left: 0 },
    ]);
  });

  it("by the method on which the round settled", async () => {
    const { subnetId: _, ...settled } = roundOf(leaf, eachMs([near, 10], [third, 30]));
    const byHead = { type: "measured", method: "head", rttMs: 12, tries: 3 } as const;
    const probes = [...settled.probes, { crawlerId: owner, outcome: byHead }];
    const roundId = await finer.saveRound({ ...settled, probes, method: "connect", withinSubnetId: leaf });
    await split(await upper({ roundId }));

    await finer.inherit(near, [owner, third], noon);

    expect(await owners()).toEqual([third]);
  });
});

it.each([
  ["that finds another crawler moves the part and records it in the history", true],
  ["without an answer is postponed", false],
])("a review %s", async (_, isAnswered) => {
  await split(await upper());
  const [known] = await finer.dueForReview(10, secondsAfterNoon(3600));
  const found = {
    ...known!,
    crawlerId: third,
    roundId: await round([[third, 5]]),
    rttMs: 5,
    reason: "it is nearer",
  };

  const reviewTimes = { now: noon, reviewAt: secondsAfterNoon(7200) };
  await finer.reviewed(known!.finerId, isAnswered ? found : null, reviewTimes);

  expect(await leased(near, third)).toEqual(isAnswered ? ["", "high"] : ["high", ""]);
  const due = [3600, 7200].map(async (at) => (await finer.dueForReview(10, secondsAfterNoon(at))).length);
  expect(await Promise.all(due)).toEqual([0, 1]);
  const changes = await history();
  expect([changes.length, changes.some((change) => change.join() === `${near},${third},review`)]).toEqual([
    ...[isAnswered ? 2 : 1, isAnswered],
  ]);
});

it("a new registry ends the parts of a range that is gone, and of one with a more specific range over them", async () => {
  const other = await world.subnet("10.1.3.0", "10.1.3.255");
  await world.delegations.delegateOwnSubnet(other, owner, noon);
  await split(await upper(), await part("10.1.2.0", "10.1.2.15"));
  const parts = [await part("10.1.3.0", "10.1.3.127")];
  await finer.setParts({ subnetId: other, subnetCrawlerId: owner, parts }, times);
  await world.pool.query("update subnet set removed_in = 1 where subnet_id = $1", [other]);
  await world.subnet("10.1.2.192", "10.1.2.223");
  await world.subnet("10.1.2.3", "10.1.2.3");

  expect(await finer.endOutdated(noon)).toBe(2);
  expect((await finer.partsOf(leaf)).map(({ place }) => place)).toEqual([
    { type: "part", first: "10.1.2.0", last: "10.1.2.15" },
  ]);
  expect(await leased(owner, near)).toEqual(["high", "low"]);
});

it("keeps hosts and parts in step when a split and resolutions collide", async () => {
  const planned = await upper();
  const addresses = Array.from({ length: 10 }, (_, index) => `10.1.2.20${index % 2}`);

  await Promise.all([
    split(planned),
    ...addresses.map(async (address) => await world.resolve("high.example", address, leaf)),
  ]);

  expect(await leased(near)).toEqual(["high"]);
});

it("leaves no host behind when the part that it enters ends at that moment", async () => {
  await world.resolve("high.example", "10.1.2.9", leaf);
  await split(await upper());
  // The resolution has found the part already, and waits in its transaction for another host's URL.
  const holding = await world.pool.connect();
  await holding.query("begin");
  await holding.query("select from frontier_url where url = 'http://low.example/' for update");
  const addresses = ["10.1.2.200"];
  const resolving = world.frontier.saveResolutions(
    [
      { type: "resolved", host: "high.example", addresses, subnetId: leaf, ttlSeconds: 60 },
      { type: "refused", host: "low.example", addresses: ["10.1.2.7"], reason: "a test" },
    ],
    noon,
  );
  await until(async () => (await waiting()) >= 1, 10_000);

  let hasEnded = false;
  const ending = split().finally(() => {
    hasEnded = true;
  });
  await until(async () => hasEnded || (await waiting()) >= 2, 10_000);
  await holding.query("commit");
  holding.release();
  await Promise.all([resolving, ending]);

  const finerIds = await world.rows("select finer_id from frontier_host where host = 'high.example'");
  expect(finerIds).toEqual([{ finer_id: null }]);
});

/** Sessions of this test that wait for a lock. */
async function waiting(): Promise<number> {
  const { rows } = await world.pool.query<{ count: number }>(
    `select count(*)::int as count
     from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'
       and (query like 'update frontier_url%low%' or query like '%frontier_url u%' or query like '%finer_delegation%')`,
  );
  return rows[0]!.count;
}

describe("a host with a delegation of its own", () => {
  it("represents its subnet only where no other host can, delegated or waiting", async () => {
    await split(await part("10.1.2.0", "10.1.2.127"));

    const [target] = await world.delegations.targetsFor([leaf]);
    await world.pool.query("delete from delegation");
    const [waits] = await world.delegations.waiting(1, []);
    await world.pool.query("delete from frontier_url where url like '%high%'");
    const [only] = await world.delegations.targetsFor([leaf]);

    const high = { host: "high.example", address: "10.1.2.200" };
    expect(target).toMatchObject({ subnetId: leaf, ...high });
    expect(waits).toMatchObject({ ...high, dueUrls: 1 });
    expect(only).toMatchObject({ subnetId: leaf, host: "low.example" });
  });

  it("is load of its own crawler, not of the subnet's", async () => {
    await split(await upper());

    expect(await world.delegations.loads(7, [owner])).toMatchObject([{ subnetId: leaf, pagesPerDay: 1 }]);
    expect(await world.delegations.crawlerLoads(7)).toMatchObject([
      { crawlerId: owner, subnets: 1, pagesPerDay: 1 },
      { crawlerId: near, subnets: 0, pagesPerDay: 1 },
    ]);
  });
});
