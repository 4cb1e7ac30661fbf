/**
 * Load, where partners deny targets and where ranges are anycast. North may crawl 4 pages a day and has two
 * subnets of 3 pages each, both 10 ms away; the first is 40 ms from south. South is 25 ms from north.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { PutOffMoves } from "#coordinator/place/balance/input";
import { rebalanceLoad } from "#coordinator/place/balance/relief";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type FlowWorld, newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, roundOf } from "../support/store-world.ts";
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

/** South answers the second subnet's probe so. */
const southAnswers = (rttMs: number) =>
  new TableFleet([north, south], { "5.1.2.7": new Map([[south, rttMs]]) });

it("neither probes for nor moves to a crawler whose partner denies the subnet", async () => {
  const fleet = southAnswers(26);
  const denied = new DeniedTargets();
  denied.setList(south, { networks: ["5.1.2.0/24"], domains: [] });

  // The second would be the cheaper one to give up.
  expect(await pass(fleet, {}, { denied })).toEqual([first]);
  expect(fleet.asked).toEqual([]);
  expect(state.delegationOf(second)?.crawlerId).toBe(north);
});

it("measures what it has to know of a subnet as the subnet was measured, whatever the probe method is by now", async () => {
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

it("moves an anycast range away from too much, learns nothing from it, and never takes it home", async () => {
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

it("calls it overload, not a way home, where the crawler that relieves another is nearer to an anycast range", async () => {
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

it("moves no anycast range for latency alone, where another subnet is relief enough", async () => {
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
