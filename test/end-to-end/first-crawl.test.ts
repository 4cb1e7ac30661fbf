/** A first crawl: a coordinator without a registry, and a crawler. Every address is still in a subnet. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 11, sites: 12, crawlers: 2 });
const scope = { pagesPerHost: 1, maxDepth: 0, admitNewHosts: true };

let fleet: EmulatedFleet;
beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    hasRegistry: false,
    settings: { delegation: { settleSeconds: 0 }, scope: { ...scope, admitNewHosts: false } },
    crawlerSettings: { politenessFloorMs: 50 },
  });
}, 60_000);
afterAll(async () => await fleet?.close(), 60_000);

it("crawls without a registry, and continues with one that is imported later", {
  timeout: 120_000,
}, async () => {
  // As an earlier version left them: no address was in any subnet.
  await fleet.admit(frontPages(world.sites.slice(0, 3)), scope);
  const { webUrl } = await fleet.addCoordinator();
  await fleet.startAll();
  await fleet.admit(frontPages(world.sites.slice(3, 6)), scope);
  await allVisited(6);

  expect((await fetch(new URL("/ready", webUrl))).status).toBe(200);
  expect(await alertNames(webUrl)).toContain("registry-old");

  await applyImport(fleet.database, await writeRegistryFiles(world, temporaryFolder("nearcrawl-rir-")), {});
  await fleet.admit(frontPages(world.sites.slice(6, 9)), scope);
  await allVisited(9);

  const { subnets } = await fleet.one<{ subnets: number }>(
    "select count(distinct subnet_id)::int as subnets from frontier_host",
  );
  expect(subnets).toBeGreaterThan(2);
  await until(async () => !(await alertNames(webUrl)).includes("registry-old"), 30_000);
});

async function alertNames(webUrl: string): Promise<string[]> {
  const answer = await fetch(new URL("/api/alerts", webUrl));
  const { alerts } = (await answer.json()) as { readonly alerts: readonly { readonly name: string }[] };
  return alerts.map(({ name }) => name);
}

const allVisited = async (sites: number) =>
  await until(async () => {
    const { visited } = await fleet.one<{ visited: number }>(
      "select count(*)::int as visited from frontier_url where visits > 0",
    );
    return visited === sites;
  }, 60_000);
