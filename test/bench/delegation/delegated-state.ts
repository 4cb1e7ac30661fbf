/** A coordinator's state in the midst of a crawl: subnets of the world, delegated as the policies would. */

import type { Delegation } from "#coordinator/delegation/delegation";
import { DelegationTable } from "#coordinator/delegation/delegation-table";
import { CoordinatorState } from "#coordinator/delegation/state";
import type { SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { Crawlers, RegistryWorld } from "./registry-world.ts";

/** A coordinator with so many delegations, each to the crawler that is nearest to its /16. */
export function stateWith(world: RegistryWorld, crawlers: Crawlers, count: number): CoordinatorState {
  const state = new CoordinatorState();
  state.setTree(world.tree, 1);
  state.learnRtts(
    crawlers.ids.flatMap((from, a) =>
      crawlers.ids
        .slice(a + 1)
        .map((to, b) => ({ from, to, rttMs: crawlers.peerRttMs(a, a + 1 + b), method: "connect" as const })),
    ),
  );
  const table = new DelegationTable();
  for (const delegation of delegationsIn(world, crawlers, count)) table.set(delegation);
  state.setDelegations(table);
  return state;
}

/** So many different subnets of the world, and who has them. */
export function* delegationsIn(
  { columns }: RegistryWorld,
  crawlers: Crawlers,
  count: number,
): Generator<Delegation> {
  const nearest = new Map<number, readonly [first: number, second: number]>();
  const random = seededRandom(count);
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(random() * columns.count));
  for (const place of chosen) {
    const address = columns.first[place] as number;
    const block = address >>> 16;
    const two = nearest.get(block) ?? nearestTwo(crawlers, address);
    nearest.set(block, two);
    // One in ten went to the second nearest.
    const [own, runnerUp] = random() < 0.9 ? two : [two[1], two[0]];
    yield {
      subnetId: (3 * place + 1) as SubnetId,
      crawlerId: crawlers.ids[own]!,
      measured: true,
      rttMs: crawlers.rttMs(own, address),
      runnerUpId: crawlers.ids[runnerUp]!,
      runnerUpRttMs: crawlers.rttMs(runnerUp, address),
    };
  }
}

function nearestTwo(crawlers: Crawlers, address: number): readonly [first: number, second: number] {
  const rttsMs = crawlers.ids.map((_, index) => crawlers.rttMs(index, address));
  const [first = 0, second = 0] = rttsMs.map((_, index) => index).sort((a, b) => rttsMs[a]! - rttsMs[b]!);
  return [first, second];
}
