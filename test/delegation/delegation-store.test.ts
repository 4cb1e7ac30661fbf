/** Delegations: who has a subnet, how that was decided, and what still waits for a decision. */
import { expect, test } from "vitest";
import type { Delegation } from "#coordinator/place/delegation/delegation";
import type { CrawlerId, SubnetId } from "#core/ids";
import {
  arrivedResult,
  eachMs,
  noon,
  roundOf,
  scope,
  secondsAfterNoon,
  seeds,
  storeWorld,
} from "../support/store-world.ts";

const world = storeWorld();

/** An undelegated subnet 203.0.113.0/24 with one resolved URL, and two crawlers. */
async function undecided(): Promise<{ subnetId: SubnetId; north: CrawlerId; south: CrawlerId }> {
  const subnetId = await world.subnet("203.0.113.0", "203.0.113.255");
  await world.frontier.admit(seeds("http://b.example/"), scope, noon);
  await world.resolve("b.example", "203.0.113.9", subnetId);
  return { subnetId, north: await world.crawler("north"), south: await world.crawler("south") };
}
const saved = async (...round: Parameters<typeof roundOf>) =>
  await world.delegations.saveRound(roundOf(...round));
const waiting = async (limit = 10, except: readonly SubnetId[] = []) =>
  await world.delegations.waiting(limit, except);
const unknown = { rttMs: null, runnerUpId: null, runnerUpRttMs: null };

test("a subnet with due URLs and no delegation waits, however many URLs it has", async () => {
  const { subnetId, north } = await undecided();
  await world.frontier.admit(seeds("http://b.example/x", "http://c.example/"), scope, secondsAfterNoon(1));
  await world.resolve("c.example", "203.0.113.10", subnetId);

  const target = { subnetId, url: "http://b.example/", host: "b.example", address: "203.0.113.9" };
  expect(await waiting()).toEqual([{ ...target, dueUrls: 3 }]);
  expect(await waiting(10, [subnetId])).toEqual([]);
  await saved(subnetId, []);
  expect(await waiting()).toHaveLength(1);
  await saved(subnetId, [[north, 10]]);
  expect(await waiting()).toEqual([]);
});

test("subnets wait in the order in which their first host was admitted", async () => {
  for (const [second, name] of ["c", "a", "b"].entries()) {
    await world.frontier.admit(seeds(`http://${name}.example/`), scope, secondsAfterNoon(second));
    const subnetId = await world.subnet(`203.0.${second}.0`, `203.0.${second}.255`);
    await world.resolve(`${name}.example`, `203.0.${second}.9`, subnetId);
  }

  expect((await waiting(2)).map((one) => one.host)).toEqual(["c.example", "a.example"]);
});

test("delegations are read one by one, by subnet, with their nulls; a failing reader does not harm the store", async () => {
  const { subnetId, north, south } = await undecided();
  const low = await world.subnet("203.0.1.0", "203.0.1.255");
  const high = await world.subnet("203.0.2.0", "203.0.2.9");
  const runnerUp = { runnerUpId: south, runnerUpRttMs: 33.25 };
  await saved(high, [[north, 10.5]], runnerUp);
  await saved(low, [], { crawlerId: north, measured: false });
  await world.delegations.delegateOwnSubnet(subnetId, south, noon);
  const found: Delegation[] = [];
  const refuse = () => {
    throw new Error("enough");
  };

  await expect(world.delegations.readEach(refuse)).rejects.toThrow("enough");
  expect(await world.delegations.readEach((delegation) => found.push(delegation))).toBe(3);
  expect(found).toEqual([
    { subnetId, crawlerId: south, measured: true, ...unknown },
    { subnetId: low, crawlerId: north, measured: false, ...unknown },
    { subnetId: high, crawlerId: north, measured: true, rttMs: 10.5, ...runnerUp },
  ]);
});

test("the history records changes of the crawler, not confirmations or rounds that nobody could take", async () => {
  const { subnetId, north, south } = await undecided();
  const cause = "slow-fetches";

  const first = await saved(subnetId, [[north, 10]]);
  await saved(subnetId, [[north, 11]], { cause });
  await saved(subnetId, [], { cause });
  expect((await world.delegations.readAll())[0]?.crawlerId).toBe(north);
  const last = await saved(subnetId, [[south, 9]], { cause, decidedAt: secondsAfterNoon(9) });

  const select = "select from_crawler_id, to_crawler_id, cause, round_id, reason from delegation_history";
  const reason = "nearest";
  expect(await world.rows(`${select} order by changed_at`)).toEqual([
    { from_crawler_id: null, to_crawler_id: north, cause: "new-subnet", round_id: first, reason },
    { from_crawler_id: north, to_crawler_id: south, cause, round_id: last, reason },
  ]);
});

test("a crawler's own subnet is its own without a probe, even when twenty claim it at once", async () => {
  const { subnetId } = await undecided();
  const crawlers = await Promise.all(Array.from({ length: 20 }, (_, i) => world.crawler(`c${i}`)));

  const claims = await Promise.all(
    crawlers.map((crawlerId) => world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon)),
  );

  const winner = crawlers[claims.indexOf(true)];
  expect(claims.filter((claimed) => claimed)).toHaveLength(1);
  expect(await world.rows("select from delegation_history")).toHaveLength(1);
  expect((await world.delegations.readAll())[0]).toMatchObject({ crawlerId: winner, rttMs: null });
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(300))).toEqual([]);
});

test("a move applies while its former crawler still has the subnet; a departed crawler is no runner-up", async () => {
  const { subnetId, north, south } = await undecided();
  await saved(subnetId, [[north, 10]]);
  const move = { subnetId, from: north, to: south, cause: "overload", reason: "", rttMs: 14 } as const;

  expect(await world.delegations.move([move], noon)).toEqual([subnetId]);
  expect(await world.delegations.move([move], noon)).toEqual([]);
  expect(await world.delegations.readAll()).toEqual([
    { subnetId, crawlerId: south, measured: true, rttMs: 14, runnerUpId: north, runnerUpRttMs: 10 },
  ]);

  const left = { ...move, from: south, to: north, cause: "crawler-left", rttMs: null } as const;
  await world.delegations.move([left], noon);
  expect((await world.delegations.readAll())[0]).toMatchObject({ measured: false, runnerUpId: null });
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(300))).toEqual([subnetId]);
});

test("the same moves twenty times at once are made once", async () => {
  const { north, south } = await undecided();
  const subnets = await Promise.all(
    Array.from({ length: 10 }, (_, i) => world.subnet(`192.0.2.${i * 10}`, `192.0.2.${i * 10 + 9}`)),
  );
  for (const subnetId of subnets) await saved(subnetId, [[north, 10]]);
  const move = { from: north, to: south, cause: "overload", reason: "", rttMs: 1 } as const;
  const moves = subnets.map((subnetId) => ({ subnetId, ...move }));

  const made = await Promise.all(
    Array.from({ length: 20 }, async (_, i) =>
      world.delegations.move([...moves.slice(i % 10), ...moves.slice(0, i % 10)], noon),
    ),
  );

  expect(made.flat().sort((a, b) => a - b)).toEqual(subnets.toSorted((a, b) => a - b));
});

test("a subnet's load is what was never fetched and a share of the rest; without URLs there is none", async () => {
  const { subnetId, north, south } = await undecided();
  const empty = await world.subnet("192.0.2.0", "192.0.2.255");
  await saved(subnetId, [[north, 10]]);
  await world.delegations.delegateOwnSubnet(empty, north, noon);
  await world.frontier.admit(seeds("http://b.example/x", "http://b.example/y"), scope, noon);

  // An unmeasured page counts as 40 KB.
  const three = { pagesPerDay: 3, bytesPerDay: 120_000 };
  expect(await world.delegations.loads(7, [north])).toEqual([
    { subnetId, crawlerId: north, ...three, rttMs: 10 },
    { subnetId: empty, crawlerId: north, pagesPerDay: 0, bytesPerDay: 0, rttMs: null },
  ]);
  expect(await world.delegations.loads(7, [south])).toEqual([]);
  expect(await world.delegations.crawlerLoads(7)).toEqual([
    { crawlerId: north, subnets: 2, displaced: 0, ...three },
  ]);

  // Two of the three are fetched: once in 4 days each. Five pages of 40 KB and two of 12,345 bytes.
  const [lease] = await world.lease(north);
  const fetched = (sequence: number, url: string) =>
    arrivedResult({ sequence, leaseId: lease!.leaseId, url, result: { wireBytes: 12_345 } });
  await world.take(north, [fetched(1, "http://b.example/"), fetched(2, "http://b.example/x")]);
  const [load] = await world.delegations.loads(4, [north]);
  expect(load?.pagesPerDay).toBe(1.5);
  expect(load?.bytesPerDay).toBeCloseTo((1.5 * (5 * 40_000 + 2 * 12_345)) / 7, 3);
});

test("subnets that a departed crawler lost are listed with its measurement, as long as others have them", async () => {
  const { subnetId, north, south } = await undecided();
  const second = await world.subnet("192.0.2.0", "192.0.2.255");
  await saved(subnetId, eachMs([north, 10], [south, 20]));
  await world.delegations.delegateOwnSubnet(second, north, noon);
  const move = (id: SubnetId, cause: "crawler-left" | "drained") =>
    ({ subnetId: id, from: north, to: south, cause, reason: "", rttMs: null }) as const;
  const former = async (crawlerId: CrawlerId, seconds = 0) =>
    await world.delegations.formerSubnets(crawlerId, secondsAfterNoon(seconds));

  await world.delegations.move([move(subnetId, "crawler-left"), move(second, "drained")], noon);

  const lost = [
    { subnetId, rttMs: 10 },
    { subnetId: second, rttMs: null },
  ];
  expect([await former(north), await former(south), await former(north, 1)]).toEqual([lost, [], []]);
  await saved(subnetId, [[north, 9]]);
  expect(await former(north)).toEqual(lost.slice(1));
});

test("probed RTTs are those of the latest round that had an answer", async () => {
  const { subnetId, north, south } = await undecided();
  await saved(subnetId, [[north, 10]]);
  await saved(subnetId, eachMs([south, 20], [north, 30]), { decidedAt: secondsAfterNoon(1) });
  await saved(subnetId, [], { decidedAt: secondsAfterNoon(2) });

  expect(await world.delegations.probedRtts([subnetId])).toEqual([
    { subnetId, crawlerId: south, rttMs: 20, method: "connect" },
    { subnetId, crawlerId: north, rttMs: 30, method: "connect" },
  ]);
});

test("a new round probes a URL of the subnet that answered, due or not", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://a.example/x");
  const [lease] = await world.lease(crawlerId);
  const leaseId = lease!.leaseId;
  const reset = { type: "failed", blame: "target", code: "reset", reason: "" } as const;
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: "http://a.example/", outcome: reset }),
    arrivedResult({ sequence: 2, leaseId, url: "http://a.example/x" }),
  ]);
  const [{ subnetId }] = (await world.delegations.readAll()) as [Delegation];

  expect(await world.delegations.targetsFor([subnetId])).toEqual([
    { subnetId, url: "http://a.example/x", host: "a.example", address: "198.51.100.7" },
  ]);
});
