/**
 * Two coordinators on one database, killed one after the other in the middle of a crawl: real processes, real crawlers. Each
 * crawler goes to the one that lives, nobody's subnets are given away for that, no round runs twice, nothing is fetched
 * twice, and everything is fetched. `npm run bench -- two-coordinators` does the same with thirty kills.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { builtProgram } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { longOr } from "../support/long.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { otherSide, SharedFleet, type Side } from "./shared-fleet.ts";

const [sites, crawlers] = longOr([36, 6], [16, 4]);
const world = generateWorld({ seed: 19, sites, crawlers });
const scope = { pagesPerHost: 4, maxDepth: 3, admitNewHosts: false };
const hosts = world.sites.map(({ host }) => host);

let database: Database;
let internet: RunningWorld;
let fleet: SharedFleet;

beforeAll(async () => {
  const folder = temporaryFolder("nearcrawl-two-");
  database = await testDatabase({ maxConnections: 6 });
  await applyImport(database, await writeRegistryFiles(world, `${folder}/registry`), {});
  internet = await startWorld(world);
  fleet = new SharedFleet({
    ...{ database, world, internet, folder },
    main: await builtProgram("ops/cli/main"),
    settings: {
      delegation: { expectedCrawlers: crawlers, settleSeconds: 5 },
      ...{ scope, departureSeconds: 120, heartbeatSeconds: 5 },
    },
    crawlerSettings: { politenessFloorMs: 200, limits: { priority: 0 }, status: { port: 0 } },
  });
}, 180_000);
afterAll(async () => {
  await fleet?.close();
  await internet?.close();
  await database?.close();
}, 60_000);

const fetched = async () => await fleet.count("from page_fetch");
const goOver = async (from: Side) => {
  const before = await fetched();
  await until(async () => (await fetched()) > before, 60_000);
  await fleet.kill(from);
  await until(() => fleet.connectedTo(otherSide(from)).length === crawlers, 30_000);
};

describe("two coordinators on one database", { timeout: 300_000 }, () => {
  it("lose one and then the other in the middle of a crawl, and nothing is lost, moved or done twice", async () => {
    await fleet.startCoordinator(0);
    await fleet.startCoordinator(1);
    for (const index of world.crawlers.keys()) await fleet.startCrawler(index, index < crawlers / 2 ? 0 : 1);
    const areHome = () => ([0, 1] as const).every((side) => fleet.connectedTo(side).length === crawlers / 2);
    await until(areHome, 60_000);
    const terms = [await fleet.term()];

    await fleet.admit(hosts.slice(0, sites / 2), { ...scope, admitNewHosts: true });
    await goOver(0);
    await until(async () => (await fleet.term()) > terms[0]!, 30_000);
    terms.push(await fleet.term());
    await fleet.startCoordinator(0);
    await fleet.admit(hosts.slice(sites / 2), { ...scope, admitNewHosts: true });
    await goOver(1);
    await until(async () => (await fleet.figures()).pending === 0, 120_000);
    terms.push(await fleet.term());
    const figures = await fleet.figures();

    expect(terms).toEqual([1, 2, 3]);
    expect(figures).toMatchObject({ roundsTwice: 0, movedAway: 0, fetchedTwice: 0, pending: 0 });
    expect(figures.subnets).toBeGreaterThan(sites / 4);
    expect(await fleet.count("from frontier_host where state <> 'resolved'")).toBe(0);
    expect(figures.urls).toBe(await fleet.count("from frontier_url"));
  });
});
