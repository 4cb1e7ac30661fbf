/**
 * Load, over real stores. North may crawl 4 pages a day and has two subnets of 3 pages each; south has room.
 * North measured both at 10 ms. South measured the first at 40 ms; the second, which it never measured, is
 * predicted at 25 ms, half way between |25 − 10| and 25 + 10, since the crawlers are 25 ms apart.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { PutOffMoves } from "#coordinator/place/balance/input";
import { rebalanceLoad } from "#coordinator/place/balance/relief";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type FlowWorld, newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";
import { balanceSettings, twoCrawlers } from "../support/two-crawlers.ts";

let world: FlowWorld;
let north: CrawlerId;
let south: CrawlerId;
let first: SubnetId;
let second: SubnetId;
let state: CoordinatorState;
let putOff: PutOffMoves;

beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => {
  ({ north, south, first, second, state, putOff } = await twoCrawlers(world));
});
afterAll(async () => await world.close());

async function pass(
  fleet: TableFleet,
  changed: Partial<Parameters<typeof rebalanceLoad>[1]> = {},
  more: { readonly denied?: DeniedTargets; readonly anycast?: AnycastRanges } = {},
) {
  const ports = { state, fleet, delegations: world.delegations, putOff, ...more };
  return await rebalanceLoad(ports, { ...balanceSettings, ...changed }, noon);
}

/** South answers the second subnet's probe with this. */
const southAnswers = (rttMs: number) =>
  new TableFleet([north, south], { "5.1.2.7": new Map([[south, rttMs]]) });

it("measures a predicted move first, by the crawler that would get the subnet, and then makes it", async () => {
  const fleet = southAnswers(26);

  expect(await pass(fleet)).toEqual([second]);

  expect(fleet.asked).toEqual([{ crawlerId: south, address: "5.1.2.7" }]);
  expect((await world.delegations.readAll())[1]).toEqual({
    subnetId: second,
    crawlerId: south,
    measured: true,
    rttMs: 26,
    runnerUpId: north,
    runnerUpRttMs: 10,
  });
  expect(
    await world.rows("select to_crawler_id, cause, reason from delegation_history where cause = 'overload'"),
  ).toEqual([{ to_crawler_id: south, cause: "overload", reason: expect.stringContaining("at 26.0 ms") }]);
  // Memory is as a coordinator that starts afterwards would read it.
  expect(state.delegationOf(second)).toEqual((await world.state()).delegationOf(second));
  expect([north, south].map((crawlerId) => state.subnetsOf(crawlerId))).toEqual([[first], [second]]);
});

it("moves without a probe when the new crawler's RTT is known", async () => {
  await world.delegations.saveRound(roundOf(second, eachMs([north, 10], [south, 12])));
  const fleet = southAnswers(500);

  expect(await pass(fleet)).toEqual([second]);

  expect(fleet.asked).toEqual([]);
  expect((await world.delegations.readAll())[1]).toMatchObject({ crawlerId: south, rttMs: 12 });
});

it("plans again when a move would cost much more than predicted", async () => {
  const fleet = southAnswers(90);

  // The second would cost 80 ms and the first 30 ms: now the first is the cheaper one to give up.
  expect(await pass(fleet)).toEqual([first]);

  expect(fleet.asked).toHaveLength(1);
  expect(state.delegationOf(second)?.crawlerId).toBe(north);
});

it("prefers a subnet that can be measured to one that cannot", async () => {
  expect(await pass(new TableFleet([north, south]))).toEqual([first]);
});

it("retries a measurement that failed when nothing better is left", async () => {
  await world.pool.query("delete from probe where crawler_id = $1", [south]);
  const silent = new TableFleet([north, south]);
  expect([...(await pass(silent)), ...(await pass(silent))]).toEqual([]);

  const moved = await pass(
    new TableFleet([north, south], {
      "5.1.1.7": new Map([[south, 60]]),
      "5.1.2.7": new Map([[south, 60]]),
    }),
  );

  expect(moved).toHaveLength(1);
  expect(state.delegationOf(moved[0]!)).toMatchObject({ crawlerId: south, rttMs: 60, measured: true });
});

it("trusts unused measurements for an hour only", () => {
  putOff.note({ subnetId: second, to: south, rttMs: 90 }, noon);
  putOff.note({ subnetId: second, to: north, rttMs: null }, secondsAfterNoon(1));

  expect([...putOff.of(second, secondsAfterNoon(3600))]).toEqual([
    [south, 90],
    [north, null],
  ]);
  expect([...putOff.of(second, secondsAfterNoon(3601))]).toEqual([[north, null]]);
  expect(putOff.of(second, secondsAfterNoon(3602)).size).toBe(0);
});

it("returns a subnet home when there is room again, and not before", async () => {
  // A move has to save more than 20 ms a page here (balance/plan): from 38 ms to 10 ms does.
  await pass(southAnswers(38));
  expect(await pass(southAnswers(38))).toEqual([]);
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: 100 })));

  expect(await pass(southAnswers(38))).toEqual([second]);

  expect(state.delegationOf(second)).toMatchObject({ crawlerId: north, rttMs: 10, measured: true });
  expect(await world.rows("select cause from delegation where cause in ('home', 'overload')")).toEqual([
    { cause: "home" },
  ]);
  expect(await pass(southAnswers(38))).toEqual([]);
});

it("leaves a subnet away from home when returning would save less than a move is worth", async () => {
  await pass(southAnswers(26));
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: 100 })));

  expect(await pass(southAnswers(26))).toEqual([]);
});

it("relieves a crawler of more bytes than its partner allows", async () => {
  // Six pages of 40 KB, as nothing is measured yet.
  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      pagesPerDay: 100,
      bytesPerDay: crawler.crawlerId === north ? 150_000 : 1e9,
    })),
  );

  expect(await pass(southAnswers(26))).toEqual([second]);
});

it("reads no subnet while nobody is overloaded", async () => {
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: 6 })));
  const reads: string[] = [];
  const delegations = new Proxy(world.delegations, {
    get: (store, name, receiver) => {
      reads.push(String(name));
      return Reflect.get(store, name, receiver);
    },
  });

  await rebalanceLoad({ state, fleet: southAnswers(26), delegations, putOff }, balanceSettings, noon);

  expect(reads).toEqual(["crawlerLoads"]);
});

it("moves nothing while everybody has room, or when balancing is off", async () => {
  const fleet = southAnswers(26);

  expect(await pass(fleet, { policy: "none" })).toEqual([]);
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: 6 })));
  expect(await pass(fleet)).toEqual([]);
  expect(fleet.asked).toEqual([]);
});

it("leaves the subnets of a draining or offline crawler to hand-overs, and gives it nothing", async () => {
  const fleet = southAnswers(26);
  const crawlers = state.crawlers;
  for (const crawlerId of [north, south]) {
    state.setCrawlers(
      crawlers.map((one) => ({ ...one, drainingSince: one.crawlerId === crawlerId ? noon : null })),
    );
    expect(await pass(fleet)).toEqual([]);
  }
  state.setCrawlers(crawlers);
  for (const crawlerId of [north, south]) {
    fleet.goOnline(crawlerId);
    expect(await pass(fleet)).toEqual([]);
  }
  expect(state.subnetsOf(north)).toHaveLength(2);
});

it("respects the number of moves per pass", async () => {
  const fleet = southAnswers(26);
  state.setCrawlers(
    state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: crawler.crawlerId === north ? 0 : 100 })),
  );

  expect(await pass(fleet, { movesPerPass: 1 })).toHaveLength(1);
});

it("follows the paper's variance rule when it is chosen", async () => {
  const fleet = southAnswers(26);

  // Only the first was measured by two crawlers, so it alone has a variance.
  expect(await pass(fleet, { policy: "variance-rule" })).toEqual([first]);
  expect(fleet.asked).toEqual([]);
});

// Where partners deny targets and where ranges are anycast.

it("neither probes by nor moves to a crawler whose partner denies the subnet", async () => {
  const fleet = southAnswers(26);
  const denied = new DeniedTargets();
  denied.setList(south, { networks: ["5.1.2.0/24"], domains: [] });

  // The second would be the cheaper one to give up.
  expect(await pass(fleet, {}, { denied })).toEqual([first]);
  expect(fleet.asked).toEqual([]);
  expect(state.delegationOf(second)?.crawlerId).toBe(north);
});

it("measures a subnet by the method used before, whatever the current probe method is", async () => {
  const fleet = southAnswers(26);

  await pass(fleet, { probe: { method: "head", tries: 3, deadlineMs: 3000 } });

  expect(fleet.targets.map(({ address, method }) => [address, method])).toEqual([["5.1.2.7", "connect"]]);
});

it.each(["min-cost-flow", "variance-rule"] as const)(
  "leaves a crawler with too much where everybody else refused: %s",
  async (policy) => {
    const fleet = southAnswers(26);
    const denied = new DeniedTargets();
    for (const subnetId of [first, second]) denied.noteRefusal(south, subnetId, noon.getTime());

    expect(await pass(fleet, { policy }, { denied })).toEqual([]);
    expect(fleet.asked).toEqual([]);
  },
);

it("moves an anycast range away from an overload, learns nothing from it, and never returns it", async () => {
  const anycast = new AnycastRanges();
  anycast.mark(second, null);
  await world.pool.query("update delegation set anycast = true where subnet_id = $1", [second]);

  expect(await pass(southAnswers(38), {}, { anycast })).toEqual([second]);
  expect(state.delegationOf(second)).toMatchObject({ crawlerId: south, rttMs: 38, measured: false });
  expect(state.delegationOf(second)).toEqual((await world.state()).delegationOf(second));
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: 100 })));

  expect(await pass(southAnswers(38), {}, { anycast })).toEqual([]);
  expect(state.delegationOf(second)?.crawlerId).toBe(south);
});

it("records overload, not a return, when the relieving crawler is nearer to an anycast range", async () => {
  await world.delegations.saveRound(roundOf(second, eachMs([south, 4], [north, 10])));
  await world.pool.query("update delegation set crawler_id = $1 where subnet_id = $2", [north, second]);
  state = await world.state();
  const anycast = new AnycastRanges();
  anycast.mark(second, null);

  expect(await pass(southAnswers(4), {}, { anycast })).toEqual([second]);
  expect(await world.rows("select cause from delegation order by subnet_id offset 1")).toEqual([
    { cause: "overload" },
  ]);
});

it("moves no anycast range for latency alone when another subnet relieves enough", async () => {
  const large = await world.site(3, "a", "b", "c", "d", "e");
  await world.delegations.saveRound(roundOf(large, [[north, 10]]));
  putOff.note({ subnetId: large, to: south, rttMs: 11 }, noon);
  putOff.note({ subnetId: second, to: south, rttMs: 4 }, noon);
  await world.delegations.saveRound(roundOf(second, [[north, 90]]));
  state = await world.state();
  state.setCrawlers(
    state.crawlers.map((crawler) => ({ ...crawler, pagesPerDay: crawler.crawlerId === north ? 7 : 100 })),
  );
  const anycast = new AnycastRanges();
  anycast.mark(second, null);

  expect(await pass(southAnswers(4), {}, { anycast })).toEqual([large]);
});
