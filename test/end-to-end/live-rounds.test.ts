/**
 * Probe rounds over real sockets, with what a plain world has not: anycast ranges, a partner who denies a
 * network and a domain, and subnets with so much to fetch that their first fetch counts as a measurement.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

/** Every anycast range of this world answers three crawlers or more within 8 ms: probes that a busy machine delays still tell. */
const world = generateWorld({ seed: 41, sites: 60, crawlers: 8, oddities: { anycast: 0.4 } });
const scope = { pagesPerHost: 1, maxDepth: 10, admitNewHosts: false };
/** What the first crawler's partner never lets it touch: the site that is nearest to it, and one whole domain. */
const first = 0;
const plain = world.sites.filter(({ anycast }) => anycast === null);
const nearest = plain.toSorted((a, b) => rtt(first, a.address) - rtt(first, b.address));
const deniedSite = nearest[0]!;
const deniedNetwork = `${deniedSite.address.replace(/\.\d+$/, "")}.0/24`;
const deniedDomain = nearest.find(({ subnet }) => subnet !== deniedSite.subnet)!.host;
/** Of the others, enough to be taken for anycast by mistake, among them all that share a subnet. */
const probed = world.sites.filter(
  (site) =>
    site.anycast !== null ||
    [deniedSite.host, deniedDomain].includes(site.host) ||
    world.sites.some(({ host, subnet }) => subnet === site.subnet && host !== site.host),
);
const denials = { denyRanges: [deniedNetwork], denyDomains: [deniedDomain] };

function rtt(crawler: number, address: string): number {
  return world.rttMs(crawler, address) ?? Number.POSITIVE_INFINITY;
}

let fleet: EmulatedFleet;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    settings: {
      delegation: { expectedCrawlers: world.crawlers.length, settleSeconds: 20, getFirstFromUrls: 2 },
      scope,
      heartbeatSeconds: 2,
    },
    crawlerSettings: { politenessFloorMs: 50 },
  });
  // Everything is there before the first round, so that subnets with several sites have as many URLs waiting.
  await fleet.admit(frontPages(probed), scope);
  await fleet.addCoordinator();
  await fleet.startAll((index) => ({ ...placeOf(index), ...(index === first && denials) }));
  await until(async () => {
    const progress = await fleet.frontier.progress();
    return progress.hostsUnresolved === 0 && progress.subnetsWaiting === 0 && (await open()) === 0;
  }, 110_000);
}, 180_000);

afterAll(async () => await fleet?.close(), 60_000);

/** Delegations that are for the time being. */
async function open(): Promise<number> {
  const cause = "select count(*)::int as open from delegation where cause = 'first-fetch'";
  return (await fleet.one<{ open: number }>(cause)).open;
}

function placeOf(index: number) {
  const { place } = world.crawlers[index]!;
  if (place === null) return {};
  const { name, country, latitude, longitude } = world.places[place]!;
  return { place: { name, country, latitude, longitude } };
}

describe("live rounds", () => {
  it("count the first fetch of a subnet with much to fetch as their first measurement", async () => {
    const gets = await fleet.rows<{ ordinal: number; method: string; outcome: string }>(
      `select p.ordinal, p.method, p.outcome from probe p where p.how = 'get'`,
    );
    const provisional = await fleet.rows("select from delegation_history where cause = 'first-fetch'");

    expect(provisional.length).toBeGreaterThan(0);
    expect(gets.length).toBeGreaterThan(0);
    for (const get of gets) expect(get).toMatchObject({ ordinal: 1, method: "connect", outcome: "measured" });
  });

  it("never ask a crawler for what its partner denies, nor let it fetch that", async () => {
    const touched = fleet.internet.requestLog
      .entries()
      .filter(
        ({ host, crawlerIndex }) => crawlerIndex === first && [deniedSite.host, deniedDomain].includes(host),
      );
    const asked = await fleet.rows<{ probes: number }>(
      `select count(*)::int as probes
       from probe p
       join probe_round r using (round_id)
       join crawler c on c.crawler_id = p.crawler_id
       where c.name = $1 and r.target_address <<= $2::cidr`,
      [world.crawlers[first]!.name, deniedNetwork],
    );
    const owners = await fleet.rows<{ name: string }>(
      `select c.name
       from frontier_host h
       join delegation d on d.subnet_id = h.subnet_id
       join crawler c on c.crawler_id = d.crawler_id
       where h.host = $1`,
      [deniedSite.host],
    );

    expect(touched).toEqual([]);
    expect(asked).toEqual([{ probes: 0 }]);
    expect(owners).toHaveLength(1);
    expect(owners[0]!.name).not.toBe(world.crawlers[first]!.name);
  });

  /** How many of them are found depends on how late a busy machine stamps the answers; test/flows/round-anycast has that. */
  it("mark no range as anycast that is none", async () => {
    const marked = await fleet.rows<{ host: string; type: string }>(
      `select h.host, r.reason ->> 'type' as type
       from delegation d
       join probe_round r on r.round_id = d.round_id
       join frontier_host h on h.subnet_id = d.subnet_id
       where d.anycast`,
    );
    const announced = new Set(world.sites.filter(({ anycast }) => anycast !== null).map(({ host }) => host));

    expect(announced.size).toBeGreaterThan(0);
    for (const { host, type } of marked) {
      expect(type).toBe("anycast");
      expect(announced).toContain(host);
    }
  });
});
