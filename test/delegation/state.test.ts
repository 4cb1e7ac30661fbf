/** What the coordinator remembers equals what another one reads that starts on the same database. */
import { describe, expect, it } from "vitest";
import type { DelegationMove } from "#coordinator/place/delegation/delegation";
import { backOffLevels } from "#coordinator/place/delegation/knowledge";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { asCrawlerId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { flowWorld } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();
const root = { kind: "root", key: 0 } as const;

/** Everything known of these subnets and crawlers, in an order that does not depend on time. */
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

it("memory equals the database after rounds, moves and own subnets in any order", async () => {
  const seed = 20260307;
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const subnetIds: SubnetId[] = [await world.subnet("5.1.0.0", "5.1.255.255")];
  for (let number = 0; number < 12; number += 1) subnetIds.push(await world.site(number));
  const crawlerIds: CrawlerId[] = [];
  for (const name of ["a", "b", "c", "d"]) crawlerIds.push(await world.arrived(name));
  const state = await world.state();

  for (let times = 0; times < 120; times += 1) {
    const subnetId = subnetIds[below(subnetIds.length)]!;
    const [to, other] = [crawlerIds[below(4)]!, crawlerIds[below(4)]!];
    const before = state.delegationOf(subnetId);
    const nothing = { rttMs: null, runnerUpId: null, runnerUpRttMs: null };
    if (before && random() < 0.4) {
      const cause = to % 2 === 0 ? "overload" : "crawler-left";
      const rttMs = random() < 0.5 ? random() * 90 : null;
      const move: DelegationMove = { subnetId, from: before.crawlerId, to, cause, reason: "a test", rttMs };
      const made = await world.delegations.move([move], secondsAfterNoon(1));
      if (made.length > 0) state.moveDelegation(move);
    } else if (!before && random() < 0.3) {
      await world.delegations.delegateOwnSubnet(subnetId, to, noon);
      state.setDelegation({ subnetId, crawlerId: to, measured: true, ...nothing });
    } else {
      const measured = random() < 0.8;
      const runnerUpRttMs = random() < 0.5 ? random() * 90 : null;
      const round = {
        ...roundOf(subnetId, measured ? [[to, random() * 90]] : []),
        ...{ crawlerId: to, measured },
        ...(other !== to && { runnerUpId: other, runnerUpRttMs }),
      };
      await world.delegations.saveRound(round);
      const { rttMs, runnerUpId } = round;
      state.setDelegation({
        subnetId,
        crawlerId: to,
        measured,
        rttMs,
        runnerUpId,
        runnerUpRttMs: round.runnerUpRttMs,
      });
    }
  }

  expect(known(state, subnetIds, crawlerIds), `seed ${seed}`).toEqual(
    known(await world.state(), subnetIds, crawlerIds),
  );
});

it("under a new tree, what is no longer in it stays delegated but teaches nothing", async () => {
  const crawlerId = await world.arrived("a");
  const [first, second] = [await world.site(1), await world.site(2)];
  for (const subnetId of [first, second])
    await world.delegations.saveRound(roundOf(subnetId, [[crawlerId, 5]]));
  const [before, grown] = [await world.state(), await world.state()];
  await world.pool.query("update subnet set removed_in = added_in where subnet_id = $1", [second]);

  grown.setTree((await world.state()).tree, 2);

  expect([before, grown].map((state) => state.knowledge.owners(root))).toEqual([
    [{ crawlerId, count: 2 }],
    [{ crawlerId, count: 1 }],
  ]);
  expect(grown.delegationOf(second)).toMatchObject({ crawlerId });
  expect([...grown.delegationTable].map(({ subnetId }) => subnetId)).toEqual([first, second]);
});

describe("the fleet of a round", () => {
  const ids = (...numbers: number[]) => numbers.map(asCrawlerId);

  it("is reused for the same candidates, whatever fleets came between and whatever its caller does with the list", async () => {
    const state = await world.state();
    const candidates = ids(1, 2, 3);
    const first = state.fleetOf(candidates);
    candidates.push(asCrawlerId(4));

    for (let other = 10; other < 17; other += 1) state.fleetOf(ids(1, 2, other));

    expect(state.fleetOf(ids(1, 2, 3))).toBe(first);
    for (const others of [ids(1, 2, 3, 4), ids(2, 1, 3), ids(1, 2)])
      expect(state.fleetOf(others).candidates).toEqual(others);
  });

  it("knows a distance as soon as it is measured", async () => {
    const state = await world.state();
    const [from, to] = [asCrawlerId(1), asCrawlerId(2)];
    const rttMs = () => state.fleetOf([from, to]).peerRtts.rttMs(from, to);
    expect(rttMs()).toBeNull();

    state.learnRtts([{ from, to, rttMs: 7, method: "connect" }]);

    expect(rttMs()).toBe(7);
  });
});
