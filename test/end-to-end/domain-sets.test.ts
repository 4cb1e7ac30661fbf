/**
 * Two crawlers with a domain set each, in the emulated Internet: each fetches only hosts of its own set, whatever their
 * subnets, and is asked to slow down once little is left to do.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { giveDomainSets } from "#coordinator/place/domain-sets/domain-set-store";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 12, sites: 14, crawlers: 2 });
const scope = { pagesPerHost: 2, maxDepth: 3, admitNewHosts: false };
let fleet: EmulatedFleet;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    settings: {
      delegation: { expectedCrawlers: 2, settleSeconds: 5 },
      pace: { slowDownUnder: 3, hurryUpOver: 1000, everySeconds: 0.5 },
      scope,
    },
    crawlerSettings: { politenessFloorMs: 10 },
  });
  await fleet.addCoordinator();
  // One is narrowed by its partner, the other by an operator.
  await fleet.startOne(0, { domainSets: [".example"] });
  await fleet.startOne(1);
  await giveDomainSets(fleet.database.pool, world.crawlers[1]!.name, [".test"]);
}, 120_000);
afterAll(async () => await fleet?.close(), 60_000);

describe("crawlers with domain sets", { timeout: 120_000 }, () => {
  it("together fetch everything, each only its own set, and slow down when little is left", async () => {
    const hosts = world.sites.map(({ host }) => host);
    await fleet.admit(frontPages(world.sites), { ...scope, admitNewHosts: true });
    await until(async () => {
      const { urlsPending, linksWaiting } = await fleet.frontier.progress();
      return urlsPending + linksWaiting === 0;
    }, 100_000);
    await until(async () => {
      const paced = await fleet.rows("select from crawler where pace = 'slow-down'");
      return paced.length === 2;
    }, 20_000);

    // No set names a language, and people ask for them all the same.
    const spoken = "exists (select from page p where p.host_hash = h.host_hash and p.language is not null)";
    await until(async () => {
      const without = `select from frontier_host h where language is null and ${spoken}`;
      return (await fleet.rows(without)).length === 0;
    }, 20_000);
    expect(await fleet.rows("select from frontier_host where language is not null")).not.toEqual([]);

    const fetched = await fleet.rows<{ domain: string; crawler: string; twice: number }>(
      `select substring(u.host from '[a-z]+$') as domain, min(c.name) as crawler,
         count(distinct c.name)::int - 1 as twice
       from page_fetch f
       join frontier_host u using (host_hash)
       join crawler c using (crawler_id)
       group by 1
       order by 1`,
    );

    expect(new Set(hosts.map((host) => host.split(".").at(-1)))).toEqual(new Set(["example", "test"]));
    expect(fetched).toEqual([
      { domain: "example", crawler: world.crawlers[0]!.name, twice: 0 },
      { domain: "test", crawler: world.crawlers[1]!.name, twice: 0 },
    ]);
  });
});
