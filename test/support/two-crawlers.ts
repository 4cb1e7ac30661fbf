/**
 * An overloaded crawler and one with room: north may crawl 4 pages a day and has two subnets of 3 pages each, 10 ms away; the
 * first is 40 ms from south, which is 25 ms from north.
 */

import { PutOffMoves } from "#coordinator/place/balance/input";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { FlowWorld } from "./flow-world.ts";
import { noon, roundOf } from "./store-world.ts";

export interface TwoCrawlers {
  readonly north: CrawlerId;
  readonly south: CrawlerId;
  readonly first: SubnetId;
  readonly second: SubnetId;
  readonly state: CoordinatorState;
  readonly putOff: PutOffMoves;
}

export const balanceSettings = {
  policy: "min-cost-flow",
  movesPerPass: 10,
  recrawlDays: 7,
  probe: { method: "connect", tries: 3, deadlineMs: 3000 },
} as const;

/** Adds them to an empty world. */
export async function twoCrawlers(world: FlowWorld): Promise<TwoCrawlers> {
  await world.reset();
  const north = await world.arrived("north", 4);
  const south = await world.arrived("south", 100);
  const first = await world.site(1, "a", "b");
  const second = await world.site(2, "a", "b");
  await world.delegations.saveRound(
    roundOf(first, [
      [north, 10],
      [south, 40],
    ]),
  );
  await world.delegations.saveRound(roundOf(second, [[north, 10]]));
  await world.crawlers.saveRtts([{ from: north, to: south, rttMs: 25, method: "connect" }], noon);
  return { north, south, first, second, state: await world.state(), putOff: new PutOffMoves() };
}
