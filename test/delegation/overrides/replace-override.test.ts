/** Crawlers that are gone or drained: what they have besides whole subnets goes to others. */
import { beforeAll, beforeEach, expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/delegation/denied-targets";
import {
  type FinerDelegationStore,
  replaceFiner,
  reviewTimes,
} from "#coordinator/delegation/overrides/override";
import { createFinerDelegationStore } from "#coordinator/delegation/overrides/override-store";
import type { CrawlerId } from "#core/ids";
import { flowWorld } from "../../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../../support/store-world.ts";

const world = flowWorld();
let finer: FinerDelegationStore;
let owner: CrawlerId;
let near: CrawlerId;
let third: CrawlerId;

beforeAll(async () => {
  finer = createFinerDelegationStore(world.pool);
});
beforeEach(async () => {
  owner = await world.arrived("owner");
  near = await world.arrived("near");
  third = await world.arrived("third");
  const leaf = await world.site(1);
  await world.delegations.delegateOwnSubnet(leaf, owner, noon);
  const probes = [[near, 10] as const, [third, 30] as const];
  const { subnetId, ...round } = roundOf(leaf, probes, { targetAddress: "5.1.1.7" });
  const roundId = await finer.saveRound({ ...round, withinSubnetId: subnetId });
  const measured = { rttMs: 10, runnerUpId: third, runnerUpRttMs: 30, subnetRttMs: null };
  const part = { first: "5.1.1.0", last: "5.1.1.127", crawlerId: near, roundId, reason: "", ...measured };
  await finer.setParts({ subnetId: leaf, subnetCrawlerId: owner, parts: [part] }, reviewTimes(noon));
});

const pass = async (
  seconds: number,
  online: readonly CrawlerId[] = [owner, third],
  denied = new DeniedTargets(),
) => {
  const times = { departureMs: 120_000, since: noon, now: secondsAfterNoon(seconds) };
  return await replaceFiner({ finer, state: await world.state(), denied, online: () => online }, times);
};
const crawler = async () =>
  (await world.rows<{ crawler_id: number }>("select crawler_id from finer_delegation"))[0];

it("moves nothing while its crawler may still come back", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });

  expect(await pass(119)).toBe(0);
  expect(await crawler()).toEqual({ crawler_id: near });
});

it("moves to the next best by the latest round when it has been gone for long enough", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });

  expect(await pass(121)).toBe(1);
  expect(await crawler()).toEqual({ crawler_id: third });
});

it("moves at once when its crawler is drained", async () => {
  await world.crawlers.drain("near", noon);

  expect(await pass(1, [owner, near, third])).toBe(1);
  expect(await crawler()).toEqual({ crawler_id: third });
});

it("goes to the subnet's crawler where the next best may not have it", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });
  const denied = new DeniedTargets();
  denied.setList(third, { networks: ["5.1.1.0/24"], domains: [] });

  expect(await pass(121, [owner, third], denied)).toBe(1);
  expect(await crawler()).toEqual({ crawler_id: owner });
});

it("goes with its subnet again where nobody who is known to be near may have it", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });
  const denied = new DeniedTargets();
  denied.setList(third, { networks: ["5.1.1.0/24"], domains: [] });

  expect(await pass(121, [third], denied)).toBe(0);
  expect(await crawler()).toBeUndefined();
});

it("waits while nobody is there to take it", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });

  expect(await pass(121, [])).toBe(0);
  expect(await crawler()).toEqual({ crawler_id: near });
});
