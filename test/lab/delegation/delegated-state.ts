/** A coordinator's state during a crawl: subnets of the world, delegated as by the policies. */

import type { PeerRtt } from "#coordinator/place/crawlers/crawler";
import type { Delegation } from "#coordinator/place/delegation/delegation";
import { DelegationTable } from "#coordinator/place/delegation/delegation-table";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { landmarksOf, neighbourCount } from "#coordinator/place/distances/peers";
import type { CrawlerId, SubnetId } from "#core/ids";
import { mix32, seededRandom } from "#core/random";
import type { Crawlers, RegistryWorld } from "./registry-world.ts";

/** A coordinator with this number of delegations, each to the crawler nearest to its /16. */
export function stateWith(world: RegistryWorld, crawlers: Crawlers, count: number): CoordinatorState {
  const state = new CoordinatorState();
  state.setTree(world.tree, 1);
  for (const [index] of crawlers.ids.entries()) state.learnRtts(measuredBy(index, crawlers), noon);
  const table = new DelegationTable();
  for (const delegation of delegationsIn(world, crawlers, count)) table.set(delegation);
  state.setDelegations(table);
  return state;
}

/** This number of different subnets of the world, and their owners. */
function* delegationsIn(
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
    const two = nearest.get(block) ?? crawlers.nearestTwo(address);
    nearest.set(block, two);
    // One in ten is delegated to the second nearest.
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

/** Fleets from this size do not measure all pairs. */
const largestMesh = 724;

const noon = new Date(Date.UTC(2030, 0, 1, 12));

/** The RTTs that a crawler knows after an hour: to all, or to landmarks, neighbours and a sample. */
function measuredBy(index: number, { ids, peerRttMs, neighbours }: Crawlers): PeerRtt[] {
  const others = ids.length <= largestMesh ? ids.slice(index + 1) : sampled(index, ids, neighbours);
  return [...others].map((to) => ({
    from: ids[index]!,
    to,
    rttMs: peerRttMs(index, to - 1),
    method: "connect" as const,
  }));
}

function sampled(
  index: number,
  ids: readonly CrawlerId[],
  neighbours: Crawlers["neighbours"],
): Set<CrawlerId> {
  const others = new Set(landmarksOf(ids));
  for (const neighbour of neighbours(index, neighbourCount)) others.add(ids[neighbour]!);
  for (let drawn = 0; drawn < 64; drawn++) others.add(ids[mix32(index * 64 + drawn) % ids.length]!);
  others.delete(ids[index]!);
  return others;
}
