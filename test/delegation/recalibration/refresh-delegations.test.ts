/** Decisions that are probed again, the oldest first, a few in each turn. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { DelegationRefresh } from "#coordinator/delegation/recalibration/recalibrate";
import type { SubnetId } from "#core/ids";
import { type FlowWorld, newFlowWorld } from "../../support/flow-world.ts";
import { noon, roundOf } from "../../support/store-world.ts";

let world: FlowWorld;
beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const dayMs = 86_400_000;
const days = (count: number) => new Date(noon.getTime() + count * dayMs);

/** Subnets decided on day 1, 2, 3 …, in the order of the list. */
async function decidedDaily(count: number): Promise<SubnetId[]> {
  const north = await world.arrived("north");
  const subnets: SubnetId[] = [];
  for (let day = 1; day <= count; day++) {
    const subnetId = await world.site(day);
    await world.delegations.saveRound(roundOf(subnetId, [[north, 5]], { decidedAt: days(day) }));
    subnets.push(subnetId);
  }
  return subnets;
}

const refresh = (roundsPerTurn = 2) => new DelegationRefresh(world.delegations, { days: 30, roundsPerTurn });

it("takes the oldest first, so many in a turn, and starts over at the end", async () => {
  const [first, second, third] = await decidedDaily(4);
  const turns = refresh();
  const day33 = new Date(days(33).getTime() + 1);

  expect(await turns.next(day33)).toEqual([first, second]);
  expect(await turns.next(day33)).toEqual([third]);
  expect(await turns.next(day33)).toEqual([first, second]);
});

it("leaves a decision alone that is younger than a month, and one that was probed again", async () => {
  const [first, second] = await decidedDaily(2);
  const day40 = days(40);
  const north = (await world.crawlers.list())[0]!.crawlerId;
  expect(await refresh().next(days(31))).toEqual([]);

  await world.delegations.saveRound(roundOf(first!, [[north, 5]], { cause: "refresh", decidedAt: days(39) }));

  expect(await refresh().next(day40)).toEqual([second]);
});

it("leaves out what was given away by load, taken over, or never measured", async () => {
  const [moved, unmeasured] = await decidedDaily(2);
  const [north, south] = [(await world.crawlers.list())[0]!.crawlerId, await world.arrived("south")];
  await world.delegations.move(
    [{ subnetId: moved!, from: north, to: south, cause: "overload", reason: "", rttMs: 9 }],
    days(3),
  );
  await world.delegations.saveRound(
    roundOf(unmeasured!, [], { crawlerId: north, measured: false, decidedAt: days(3) }),
  );
  const own = await world.subnet("5.1.99.0", "5.1.99.255");
  await world.delegations.delegateOwnSubnet(own, north, days(1));

  expect(await refresh(10).next(days(90))).toEqual([]);
});
