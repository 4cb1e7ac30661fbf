/**
 * A route that changes under a running crawl, on the emulated Internet with 4 ms of noise: the crawler that
 * has a site takes three times as long to it from one moment on. Its fetches show it, the subnet is probed
 * again and goes to another crawler, and the answer to "who" says why.
 */

import { afterAll, beforeAll, expect, it } from "vitest";
import { slowFetchesIn } from "#coordinator/place/delegation/policies/reason";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 5, sites: 10, crawlers: 4 });
/** Between two pages of a host: some three fetches a second. */
const politenessFloorMs = 300;
/** Every page is due again at once; the frontier never runs dry. */
const recrawlHours = 0.0002;
const factor = 3;
const scope = { pagesPerHost: 3, maxDepth: 3, admitNewHosts: true };

let fleet: EmulatedFleet;
let webUrl: string;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    network: { noiseMs: 4 },
    settings: {
      delegation: { expectedCrawlers: 4, settleSeconds: 20 },
      scope: { ...scope, admitNewHosts: false },
      recrawl: { intervalHours: recrawlHours },
      recalibration: { everySeconds: 0.2 },
      // A sample of how near the delegations are would find the new route as well, and have it probed for that.
      accuracy: { subnetsPerHour: 0 },
      balance: { policy: "none" },
      heartbeatSeconds: 2,
    },
    crawlerSettings: { politenessFloorMs },
  });
  ({ webUrl } = await fleet.addCoordinator());
  await fleet.startAll();
}, 60_000);

afterAll(async () => await fleet?.close(), 60_000);

/**
 * Sites with a past of so many fetches by the crawler that has their subnet, and no alarm so far. Each is alone in
 * its subnet: of several, one that has become far is given away by itself (a part of the subnet), not with the rest.
 */
async function watchedSites(fetches: number): Promise<{ host: string; address: string; crawler: string }[]> {
  return await fleet.rows(
    `select h.host, host(h.addresses[1]) as address, c.name as crawler
     from frontier_host h
     join delegation d on d.subnet_id = h.subnet_id
     join crawler c on c.crawler_id = d.crawler_id
     where not exists (select from frontier_host o where o.subnet_id = h.subnet_id and o.host <> h.host)
       and (select count(*) from page_fetch f
            where f.host_hash = h.host_hash and f.crawler_id = d.crawler_id and f.first_byte_ms is not null) >= $1
       and not exists (select from probe_round r where r.subnet_id = h.subnet_id and r.cause = 'slow-fetches')`,
    [fetches],
  );
}

/** The site that gains most from going to another crawler once its own takes three times as long. */
async function siteToChange(): Promise<{ host: string; address: string; crawlerIndex: number }> {
  const sites = (await watchedSites(12)).map(({ host, address, crawler }) => {
    const crawlerIndex = world.crawlers.findIndex(({ name }) => name === crawler);
    const rtts = world.crawlers.map((_, index) => world.rttMs(index, address) ?? Number.NaN);
    const other = Math.min(...rtts.filter((_, index) => index !== crawlerIndex));
    return { host, address, crawlerIndex, gainMs: factor * rtts[crawlerIndex]! - other };
  });
  return sites.toSorted((a, b) => b.gainMs - a.gainMs)[0]!;
}

it("finds a changed route within ten fetches, gives the site to a nearer crawler, and says why", async () => {
  await fleet.admit(frontPages(world.sites), scope);
  await until(async () => (await watchedSites(12)).length >= 3, 150_000);

  const { host, address, crawlerIndex } = await siteToChange();
  const changedAt = new Date();
  fleet.internet.changeRoute({ crawlerIndex, host, factor });
  const ownerNow = async () =>
    (
      await fleet.rows<{ crawler: string; started_at: Date; parameters: Record<string, unknown> }>(
        `select c.name as crawler, r.started_at, r.parameters
         from frontier_host h
         join delegation d on d.subnet_id = h.subnet_id
         join crawler c on c.crawler_id = d.crawler_id
         join probe_round r on r.round_id = d.round_id
         where h.host = $1`,
        [host],
      )
    )[0]!;
  // Ten fetches: a host that has become slow is asked up to ten times less often.
  await until(async () => (await ownerNow()).crawler !== world.crawlers[crawlerIndex]!.name, 150_000);

  const { crawler, started_at, parameters } = await ownerNow();
  const evidence = slowFetchesIn(parameters)!;
  const [fetched] = await fleet.rows<{ fetches: number }>(
    `select count(*)::int as fetches from page_fetch f join frontier_host h using (host_hash)
     where h.host = $1 and f.fetched_at > $2 and f.fetched_at < $3`,
    [host, changedAt, started_at],
  );
  expect(evidence).toMatchObject({ host });
  expect(evidence.fetches).toBeLessThanOrEqual(10);
  // Those that ended while the round was waiting for its turn are no evidence; a busy machine has more of them.
  expect(fetched!.fetches).toBeLessThanOrEqual(100);
  expect(evidence.nowMs).toBeGreaterThan(1.5 * evidence.usualMs);
  const index = world.crawlers.findIndex(({ name }) => name === crawler);
  expect(world.rttMs(index, address)).toBeLessThan(factor * world.rttMs(crawlerIndex, address)!);
  const answer = await fetch(`${webUrl}/api/who?q=${host}`);
  const who = (await answer.json()) as WhoAnswer;
  expect(who.round?.cause).toBe("slow-fetches");
  expect(who.round?.reasonWords).toMatch(
    new RegExp(`^Fetches of ${host} had become slow: time to .* usually \\d+`),
  );
  expect(who.history[0]?.reason).toMatch(new RegExp(`^${host} slower: .* over \\d+ fetches; `));
}, 320_000);
