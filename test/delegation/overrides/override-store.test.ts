/** Hosts by themselves and parts of leaves: who leases what, and what becomes of them. */
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
let owner: CrawlerId;
let near: CrawlerId;
let third: CrawlerId;

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

async function round(
  probes: readonly (readonly [CrawlerId, number])[] = eachMs([near, 10], [owner, 90]),
  targetAddress = "10.1.2.200",
): Promise<RoundId> {
  const { subnetId: _, ...rest } = roundOf(leaf, probes, {
    cause: "measures-apart",
    targetUrl: "http://high.example/",
    targetAddress,
  });
  return await finer.saveRound({ ...rest, withinSubnetId: leaf } satisfies FinerRound);
}

const part = async (first: string, last: string, differences: Partial<PlannedPart> = {}) => ({
  first,
  last,
  crawlerId: near,
  roundId: differences.roundId ?? (await round()),
  rttMs: 10,
  runnerUpId: owner,
  runnerUpRttMs: 90,
  subnetRttMs: 90,
  reason: "it measures apart",
  ...differences,
});

const split = async (...parts: PlannedPart[]) =>
  await finer.setParts({ subnetId: leaf, subnetCrawlerId: owner, parts }, times);

const byItself = async (name: string, crawlerId: CrawlerId = near) =>
  await finer.setHost(
    {
      hostHash: keyOf(`http://${name}/`).hostHash,
      subnetId: leaf,
      crawlerId,
      roundId: await round(),
      rttMs: 10,
      runnerUpId: null,
      runnerUpRttMs: null,
      subnetRttMs: 90,
      seen: [{ crawlerId: null, addresses: ["10.1.2.7"] }],
      reason: "it resolves differently by place",
    },
    times,
  );

const leased = async (crawlerId: CrawlerId) => (await world.lease(crawlerId)).map((one) => one.host).sort();
const history = async () =>
  await world.rows<object>(
    "select from_crawler_id, to_crawler_id, cause from delegation_history where cause <> 'own-subnet' order by changed_at, cause",
  );

describe("a part of a leaf", () => {
  it("has its hosts leased by its own crawler, the others by the subnet's", async () => {
    const set = await split(await part("10.1.2.128", "10.1.2.255"));

    expect(set).toEqual({ added: 1, ended: 0 });
    // Asked first, the subnet's crawler gets none of the part's.
    expect(await leased(owner)).toEqual(["low.example"]);
    expect(await leased(near)).toEqual(["high.example"]);
    expect(await history()).toEqual([
      { from_crawler_id: owner, to_crawler_id: near, cause: "measures-apart" },
    ]);
  });

  it("covers hosts that come later, and lets those go whose address changes", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));

    await host("new.example", "10.1.2.130");
    await world.resolve("high.example", "10.1.2.9", leaf);

    expect(await leased(near)).toEqual(["new.example"]);
    expect(await leased(owner)).toEqual(["high.example", "low.example"]);
  });

  it("follows when hosts come to lie in another subnet, by resolution or by the tree", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));
    const inner = await world.subnet("10.1.2.192", "10.1.2.255");
    await world.delegations.delegateOwnSubnet(inner, third, noon);
    await host("higher.example", "10.1.2.201");

    await world.resolve("high.example", "10.1.2.200", inner);
    await world.frontier.reassignSubnets((address) => (address.startsWith("10.1.2.20") ? inner : leaf));

    expect(await leased(near)).toEqual([]);
    expect(await leased(third)).toEqual(["high.example", "higher.example"]);
  });

  it("is not made when the leaf has passed to another crawler meanwhile", async () => {
    const planned = await part("10.1.2.128", "10.1.2.255");
    await world.pool.query("update delegation set crawler_id = $1", [third]);

    expect(await split(planned)).toBeNull();
    expect(await finer.partsOf(leaf)).toEqual([]);
  });

  it("stays the same part when it is found again, and ends when it is not", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));
    const [before] = await finer.partsOf(leaf);

    const again = await split(
      await part("10.1.2.128", "10.1.2.255"),
      await part("10.1.2.0", "10.1.2.15", { crawlerId: third }),
    );
    const after = await finer.partsOf(leaf);
    const joined = await split();

    expect(again).toEqual({ added: 1, ended: 0 });
    expect(after.map(({ crawlerId }) => crawlerId)).toEqual([third, near]);
    expect(after[1]!.finerId).toBe(before!.finerId);
    expect(joined).toEqual({ added: 0, ended: 2 });
    expect(await leased(owner)).toEqual(["high.example", "low.example"]);
  });

  it("is told with its crawlers and what its round probed", async () => {
    await world.delegations.saveRound(roundOf(leaf, [[owner, 20]]));
    const roundId = await round();
    await split(await part("10.1.2.128", "10.1.2.255", { roundId }));

    // What was measured of the subnet as a whole stays.
    expect(await world.delegations.probedRtts([leaf])).toMatchObject([{ crawlerId: owner, rttMs: 20 }]);
    expect(await finer.partsOf(leaf)).toEqual([
      {
        finerId: expect.any(Number),
        place: { type: "part", first: "10.1.2.128", last: "10.1.2.255" },
        subnetId: leaf,
        crawlerId: near,
        subnetCrawlerId: owner,
        target: { url: "http://high.example/", host: "high.example", address: "10.1.2.200" },
        roundId,
        rttMs: 10,
        runnerUpId: owner,
        runnerUpRttMs: 90,
        subnetRttMs: 90,
      },
    ]);
  });
});

describe("a host by itself", () => {
  it("is leased by its own crawler, wherever its address lies", async () => {
    await byItself("low.example");
    await world.resolve("low.example", "10.1.2.99", leaf);

    expect(await leased(owner)).toEqual(["high.example"]);
    expect(await leased(near)).toEqual(["low.example"]);
  });

  it("comes before the part that holds its address, and goes to that part when it ends", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));
    await byItself("high.example", third);
    expect(await finer.dueForReview(10, secondsAfterNoon(3600))).toHaveLength(2);

    const due = await finer.dueForReview(10, secondsAfterNoon(3600));
    const itself = due.find(({ place }) => place.type === "host")!;
    expect(itself.place).toEqual({
      type: "host",
      hostHash: keyOf("http://high.example/").hostHash,
      host: "high.example",
    });
    await finer.end(itself.finerId, "it resolves to the same everywhere", noon);

    expect(await leased(third)).toEqual([]);
    expect(await leased(near)).toEqual(["high.example"]);
  });

  it("keeps its place when it is decided anew", async () => {
    expect(await byItself("low.example")).toBe(true);
    expect(await byItself("low.example", third)).toBe(true);

    expect(await world.rows("select crawler_id from finer_delegation")).toEqual([{ crawler_id: third }]);
    expect(await history()).toHaveLength(1);
  });

  it("is told as one that is, with its addresses and a URL", async () => {
    await byItself("low.example");
    const hosts = ["low.example", "high.example"].map((name) => keyOf(`http://${name}/`).hostHash);

    const places = await finer.hostPlaces(hosts);

    expect(places.toSorted((a, b) => (a.host < b.host ? 1 : -1))).toEqual([
      {
        hostHash: hosts[0],
        host: "low.example",
        url: "http://low.example/",
        addresses: ["10.1.2.7"],
        subnetId: leaf,
        byItself: true,
      },
      expect.objectContaining({ host: "high.example", byItself: false }),
    ]);
  });
});

describe("leases", () => {
  it("go to the hosts that are due longest, of subnets and of finer delegations alike", async () => {
    await split(await part("10.1.2.128", "10.1.2.255", { crawlerId: owner }));
    await world.pool.query("update frontier_host set due_at = $1 where host = 'low.example'", [
      secondsAfterNoon(-60),
    ]);

    const request = { crawlerId: owner, hosts: 1, urlsPerHost: 10, leaseSeconds: 60, now: noon };
    const one = await world.frontier.leaseHosts(request);

    expect(one.map(({ host: name }) => name)).toEqual(["low.example"]);
    expect(await leased(owner)).toEqual(["high.example"]);
  });
});

describe("a crawler that is gone hands over", () => {
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
    await split(await part("10.1.2.128", "10.1.2.255", { roundId: await round(probes()) }));

    expect(await finer.inherit(near, heirs(), noon)).toEqual({ moved: 1, left: 0 });

    const [found] = await world.rows<object>("select crawler_id, rtt_ms, measured from finer_delegation");
    expect({ ...found, due: (await finer.dueForReview(10, noon)).length }).toEqual(then());
    expect(await leased(near)).toEqual([]);
  });

  it("nothing that nobody can take, until somebody can", async () => {
    const roundId = await round([[near, 10]]);
    await split(await part("10.1.2.128", "10.1.2.255", { roundId }));

    expect(await finer.inherit(near, [third], noon)).toEqual({ moved: 0, left: 1 });
    expect(await finer.inherit(near, [third, owner], noon)).toEqual({ moved: 1, left: 0 });
    expect(await finer.inherit(near, [third, owner], noon)).toEqual({ moved: 0, left: 0 });
  });

  it("to nobody by an answer of another method than the round settled on", async () => {
    const { subnetId: _, ...settled } = roundOf(leaf, eachMs([near, 10], [third, 30]));
    const byHead = { type: "measured", method: "head", rttMs: 12, tries: 3 } as const;
    const probes = [...settled.probes, { crawlerId: owner, outcome: byHead }];
    const roundId = await finer.saveRound({ ...settled, probes, method: "connect", withinSubnetId: leaf });
    await split(await part("10.1.2.128", "10.1.2.255", { roundId }));

    await finer.inherit(near, [owner, third], noon);

    expect(await world.rows("select crawler_id from finer_delegation")).toEqual([{ crawler_id: third }]);
  });
});

describe("a review", () => {
  it("that finds another crawler gives it the part, and says so in the history", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));
    const [known] = await finer.dueForReview(10, secondsAfterNoon(3600));
    const roundId = await round([[third, 5]]);

    await finer.reviewed(
      known!.finerId,
      { ...known!, crawlerId: third, roundId, rttMs: 5, reason: "it is nearer" },
      { now: secondsAfterNoon(3600), reviewAt: secondsAfterNoon(7200) },
    );

    expect(await leased(third)).toEqual(["high.example"]);
    expect(await finer.dueForReview(10, secondsAfterNoon(3600))).toEqual([]);
    expect((await history()).at(-1)).toEqual({
      from_crawler_id: near,
      to_crawler_id: third,
      cause: "review",
    });
  });

  it("without an answer is put off", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));
    const [known] = await finer.dueForReview(10, secondsAfterNoon(3600));

    await finer.reviewed(known!.finerId, null, { now: noon, reviewAt: secondsAfterNoon(7200) });

    const due = [3600, 7200].map(async (at) => (await finer.dueForReview(10, secondsAfterNoon(at))).length);
    expect(await Promise.all(due)).toEqual([0, 1]);
    expect(await leased(near)).toEqual(["high.example"]);
  });
});

describe("a new registry", () => {
  it("ends the parts of a range that is gone, and of one with a more specific range over them", async () => {
    const other = await world.subnet("10.1.3.0", "10.1.3.255");
    await world.delegations.delegateOwnSubnet(other, owner, noon);
    await split(await part("10.1.2.128", "10.1.2.255"), await part("10.1.2.0", "10.1.2.15"));
    await finer.setParts(
      { subnetId: other, subnetCrawlerId: owner, parts: [await part("10.1.3.0", "10.1.3.127")] },
      times,
    );
    await world.pool.query("update subnet set removed_in = 1 where subnet_id = $1", [other]);
    await world.subnet("10.1.2.192", "10.1.2.223");
    await world.subnet("10.1.2.3", "10.1.2.3");

    expect(await finer.endOutdated(noon)).toBe(2);
    expect((await finer.partsOf(leaf)).map(({ place }) => place)).toEqual([
      { type: "part", first: "10.1.2.0", last: "10.1.2.15" },
    ]);
    expect(await leased(owner)).toEqual(["high.example"]);
    expect(await leased(near)).toEqual(["low.example"]);
  });
});

it("keeps hosts and parts in step when a split and a resolution collide", async () => {
  const planned = await part("10.1.2.128", "10.1.2.255");

  await Promise.all([
    split(planned),
    ...Array.from({ length: 10 }, (_, index) =>
      world.resolve("high.example", index % 2 === 0 ? "10.1.2.200" : "10.1.2.201", leaf),
    ),
  ]);

  expect(await leased(near)).toEqual(["high.example"]);
});

it("leaves no host behind when the part that it moves into ends at that moment", async () => {
  await world.resolve("high.example", "10.1.2.9", leaf);
  await split(await part("10.1.2.128", "10.1.2.255"));
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

  expect(await world.rows("select finer_id from frontier_host where host = 'high.example'")).toEqual([
    { finer_id: null },
  ]);
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
  it("does not stand for its subnet where another host can, delegated or waiting", async () => {
    await split(await part("10.1.2.0", "10.1.2.127"));

    const [target] = await world.delegations.targetsFor([leaf]);
    await world.pool.query("delete from delegation");
    const [waiting] = await world.delegations.waiting(1, []);
    await world.pool.query("delete from frontier_url where url like '%high%'");
    const [only] = await world.delegations.targetsFor([leaf]);

    expect(target).toMatchObject({ subnetId: leaf, host: "high.example", address: "10.1.2.200" });
    expect(waiting).toMatchObject({ host: "high.example", address: "10.1.2.200", dueUrls: 1 });
    expect(only).toMatchObject({ subnetId: leaf, host: "low.example" });
  });

  it("is work for its own crawler, and none for the subnet's", async () => {
    await split(await part("10.1.2.128", "10.1.2.255"));

    const [load] = await world.delegations.loads(7, [owner]);
    const loads = await world.delegations.crawlerLoads(7);

    expect(load).toMatchObject({ subnetId: leaf, pagesPerDay: 1 });
    expect(loads).toMatchObject([
      { crawlerId: owner, subnets: 1, pagesPerDay: 1 },
      { crawlerId: near, subnets: 0, pagesPerDay: 1 },
    ]);
  });
});
