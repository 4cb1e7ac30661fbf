/** How many links of a page are asked for their type goes to the crawler with its leases (Anansi, section 4.2). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { handOutTasks } from "#coordinator/frontier/hand-out-tasks";
import { newWorld, noon } from "../support/store-world.ts";

let world: Awaited<ReturnType<typeof newWorld>>;
beforeAll(async () => {
  world = await newWorld();
});
afterAll(async () => await world.close());

it("with every lease where the policy asks for some, and with none where it asks for none", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
  const asked = async (linkTypeChecks: number) => {
    const request = { crawlerId, freeHosts: 5, draining: false, pagesLeftToday: 100 };
    const settings = { leaseSeconds: 60, urlsPerHost: 5, hostsPerRequest: 5, linkTypeChecks };
    const { leases } = await handOutTasks(request, world.frontier, settings, noon);
    await world.frontier.returnLeasesOf(crawlerId, noon);
    return leases.map((lease) => lease.linkTypeChecks);
  };

  expect(await asked(3)).toEqual([3, 3]);
  expect(await asked(0)).toEqual([undefined, undefined]);
});
