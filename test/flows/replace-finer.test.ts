/** Crawlers that are gone or drained: what they have besides whole subnets goes to others. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type FinerDelegationStore, reviewTimes } from "#coordinator/flows/finer-delegations";
import { replaceFiner } from "#coordinator/flows/replace-finer";
import { createFinerDelegationStore } from "#coordinator/postgres/finer-delegation-store";
import type { CrawlerId } from "#core/ids";
import { noon, roundOf, secondsAfterNoon } from "../contract/world.ts";
import { type FlowWorld, newFlowWorld } from "./flow-world.ts";

let world: FlowWorld;
let finer: FinerDelegationStore;
let owner: CrawlerId;
let near: CrawlerId;
let third: CrawlerId;

beforeAll(async () => {
  world = await newFlowWorld();
  finer = createFinerDelegationStore(world.pool);
});
beforeEach(async () => {
  await world.reset();
  owner = await world.arrived("owner");
  near = await world.arrived("near");
  third = await world.arrived("third");
  const leaf = await world.site(1);
  await world.delegations.delegateOwnSubnet(leaf, owner, noon);
  const { subnetId, ...round } = roundOf(leaf, [
    [near, 10],
    [third, 30],
  ]);
  const roundId = await finer.saveRound({ ...round, withinSubnetId: subnetId });
  const measured = { rttMs: 10, runnerUpId: third, runnerUpRttMs: 30, subnetRttMs: null };
  const part = { first: "5.1.1.0", last: "5.1.1.127", crawlerId: near, roundId, reason: "", ...measured };
  await finer.setParts({ subnetId: leaf, subnetCrawlerId: owner, parts: [part] }, reviewTimes(noon));
});
afterAll(async () => await world.close());

const pass = async (seconds: number, online: readonly CrawlerId[] = [owner, third]) => {
  const times = { departureMs: 120_000, since: noon, now: secondsAfterNoon(seconds) };
  return await replaceFiner({ finer, state: await world.state(), online: () => online }, times);
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

it("waits while nobody is there to take it", async () => {
  await world.crawlers.leave({ crawlerId: near, reason: "gone", now: noon });

  expect(await pass(121, [])).toBe(0);
  expect(await crawler()).toEqual({ crawler_id: near });
});
