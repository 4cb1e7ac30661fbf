/** What the coordinator remembers, beside what another one reads that starts on the same database. */
import { describe, expect, it } from "vitest";
import type { DelegationMove } from "#coordinator/place/delegation/delegation";
import { backOffLevels } from "#coordinator/place/delegation/knowledge";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { asCrawlerId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { flowWorld } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();

/** Everything that is known of these subnets and crawlers, lists in an order that does not depend on time. */
function known(state: CoordinatorState, subnetIds: readonly SubnetId[], crawlerIds: readonly CrawlerId[]) {
  const placements = subnetIds.map((subnetId) => state.placementOf(subnetId)!);
  return {
    delegations: subnetIds.map((subnetId) => state.delegationOf(subnetId)),
    owners: subnetIds.map((subnetId) => state.ownerOf(subnetId)),
    subnets: crawlerIds.map((crawlerId) => state.subnetsOf(crawlerId).toSorted((a, b) => a - b)),
    counts: crawlerIds.map((crawlerId) => state.subnetCountOf(crawlerId)),
    count: state.delegationTable.size,
    taught: placements.flatMap(backOffLevels).map((level) => ({
      ...level,
      owners: state.knowledge.owners(level).toSorted((a, b) => a.crawlerId - b.crawlerId),
    })),
  };
}

describe("what the coordinator remembers", () => {
  it("is what one that starts anew reads, after rounds, moves and own subnets in any order", async () => {
    const seed = 20260307;
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const subnetIds: SubnetId[] = [await world.subnet("5.1.0.0", "5.1.255.255")];
    for (let number = 0; number < 12; number += 1) subnetIds.push(await world.site(number));
    const crawlerIds = [];
    for (const name of ["a", "b", "c", "d"]) crawlerIds.push(await world.arrived(name));
    const state = await world.state();

    for (let times = 0; times < 120; times += 1) {
      const subnetId = subnetIds[below(subnetIds.length)]!;
      const [to, other] = [crawlerIds[below(4)]!, crawlerIds[below(4)]!];
      const before = state.delegationOf(subnetId);
      if (before && random() < 0.4) await move(state, subnetId, to, random() < 0.5 ? random() * 90 : null);
      else if (!before && random() < 0.3) await own(state, subnetId, to);
      else await decide(state, subnetId, to, other, random);
    }

    expect(known(state, subnetIds, crawlerIds), `seed ${seed}`).toEqual(
      known(await world.state(), subnetIds, crawlerIds),
    );
  });

  async function decide(
    state: CoordinatorState,
    subnetId: SubnetId,
    to: CrawlerId,
    other: CrawlerId,
    random: () => number,
  ): Promise<void> {
    const measured = random() < 0.8;
    const round = {
      ...roundOf(subnetId, measured ? [[to, random() * 90]] : []),
      crawlerId: to,
      measured,
      ...(other === to ? {} : { runnerUpId: other, runnerUpRttMs: random() < 0.5 ? random() * 90 : null }),
    };
    await world.delegations.saveRound(round);
    const { rttMs, runnerUpId, runnerUpRttMs } = round;
    state.setDelegation({ subnetId, crawlerId: to, measured, rttMs, runnerUpId, runnerUpRttMs });
  }

  async function own(state: CoordinatorState, subnetId: SubnetId, crawlerId: CrawlerId): Promise<void> {
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    const nothing = { rttMs: null, runnerUpId: null, runnerUpRttMs: null };
    state.setDelegation({ subnetId, crawlerId, measured: true, ...nothing });
  }

  async function move(
    state: CoordinatorState,
    subnetId: SubnetId,
    to: CrawlerId,
    rttMs: number | null,
  ): Promise<void> {
    const from = state.ownerOf(subnetId)!;
    const cause = to % 2 === 0 ? "overload" : "crawler-left";
    const one: DelegationMove = { subnetId, from, to, cause, reason: "a test", rttMs };
    for (const made of await world.delegations.move([one], secondsAfterNoon(1))) {
      expect(made).toBe(subnetId);
      state.moveDelegation(one);
    }
  }

  it("goes on under a new tree: what is no longer in it is delegated, but teaches nothing", async () => {
    const [crawlerId] = [await world.arrived("a")];
    const [first, second] = [await world.site(1), await world.site(2)];
    for (const subnetId of [first, second])
      await world.delegations.saveRound(roundOf(subnetId, [[crawlerId, 5]]));
    const [before, grown] = [await world.state(), await world.state()];
    await world.pool.query("update subnet set removed_in = added_in where subnet_id = $1", [second]);

    grown.setTree((await world.state()).tree, 2);

    expect(before.knowledge.owners({ kind: "root", key: 0 })).toEqual([{ crawlerId, count: 2 }]);
    expect(grown.knowledge.owners({ kind: "root", key: 0 })).toEqual([{ crawlerId, count: 1 }]);
    expect(grown.delegationOf(second)).toMatchObject({ crawlerId });
    expect([...grown.delegationTable].map(({ subnetId }) => subnetId)).toEqual([first, second]);
  });
});

describe("the fleet of a round", () => {
  const ids = (...numbers: number[]) => numbers.map(asCrawlerId);

  it("is made once for the same candidates, whatever others came between", async () => {
    const state = await world.state();
    const first = state.fleetOf(ids(1, 2, 3));

    for (let other = 10; other < 17; other += 1) state.fleetOf(ids(1, 2, other));

    expect(state.fleetOf(ids(1, 2, 3))).toBe(first);
    expect(state.fleetOf(ids(2, 1, 3)).candidates).toEqual([2, 1, 3]);
    expect(state.fleetOf(ids(1, 2)).candidates).toEqual([1, 2]);
  });

  it("is made anew when a distance was measured", async () => {
    const state = await world.state();
    const [from, to] = [asCrawlerId(1), asCrawlerId(2)];
    expect(state.fleetOf([from, to]).peerRtts.rttMs(from, to)).toBeNull();

    state.learnRtts([{ from, to, rttMs: 7, method: "connect" }]);

    expect(state.fleetOf([from, to]).peerRtts.rttMs(from, to)).toBe(7);
  });

  it("is not changed by a caller that goes on with its list", async () => {
    const state = await world.state();
    const candidates = ids(1, 2);
    state.fleetOf(candidates);

    candidates.push(asCrawlerId(3));

    expect(state.fleetOf(ids(1, 2, 3)).candidates).toEqual([1, 2, 3]);
    expect(state.fleetOf(ids(1, 2)).candidates).toEqual([1, 2]);
  });
});
