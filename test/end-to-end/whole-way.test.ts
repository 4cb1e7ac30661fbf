/**
 * All stages once, in one process, over real sockets and a real Postgres: registry files become the tree, sites are assigned
 * to subnets, subnets are delegated by probing, crawlers fetch and ship, and `who` names the crawler that the pages name.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, excessMs, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 11, sites: 22, crawlers: 4 });
const politenessFloorMs = 50;
const rttMs = (crawler: number, address: string) => world.rttMs(crawler, address) ?? Number.POSITIVE_INFINITY;
/** What the first crawler's partner excludes: the network of the site nearest to it, and a whole domain. */
const nearest = world.sites.toSorted((a, b) => rttMs(0, a.address) - rttMs(0, b.address));
const deniedSite = nearest[0]!;
const deniedNetwork = `${deniedSite.address.replace(/\.\d+$/, "")}.0/24`;
const deniedDomain = nearest.find(({ subnet }) => subnet !== deniedSite.subnet)!.host;
const denials = { denyRanges: [deniedNetwork], denyDomains: [deniedDomain] };
const scope = { pagesPerHost: 3, maxDepth: 10, admitNewHosts: true };

let fleet: EmulatedFleet;
let webUrl: string;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    settings: {
      delegation: { expectedCrawlers: 4, settleSeconds: 20 },
      scope: { ...scope, admitNewHosts: false },
      heartbeatSeconds: 2,
    },
    crawlerSettings: { politenessFloorMs },
  });
  ({ webUrl } = await fleet.addCoordinator());
  await fleet.startAll((index) => (index === 0 ? denials : {}));
}, 120_000);

afterAll(async () => await fleet?.close(), 60_000);

describe("all stages of a crawl", { timeout: 120_000 }, () => {
  it("crawls every site, several pages each, and stores nothing twice", async () => {
    const urls = [...frontPages(world.sites), "http://10.1.2.3/", "http://bad host/"];

    const admitted = await fleet.admit(urls, scope);
    await until(async () => {
      const progress = await fleet.frontier.progress();
      const { hosts, urlsPending, hostsUnresolved, linksWaiting } = progress;
      return hosts > 0 && urlsPending + hostsUnresolved + linksWaiting === 0;
    }, 100_000);

    expect(admitted.rejected).toEqual([
      { url: "http://bad host/", reason: "it cannot be parsed as an absolute URL" },
    ]);
    const visited = await fleet.one<{ sites: number; twice: number }>(
      `select count(distinct host_hash) filter (where last_outcome <> 'refused-address')::int as sites,
         count(*) filter (where visits > 1)::int as twice
       from frontier_url`,
    );
    expect(visited).toEqual({ sites: world.sites.length, twice: 0 });
    const fetches = await fleet.one<{ fetches: number; urls: number }>(
      "select count(*)::int as fetches, count(distinct (host_hash, url_hash))::int as urls from page_fetch",
    );
    expect(fetches.fetches).toBe(fetches.urls);
    expect(fetches.fetches).toBeGreaterThan(world.sites.length);
  });

  it("records the URL that could not be parsed and the one at a private address, each with its reason", async () => {
    const rejected = await fleet.one<{ reason: string }>("select reason from rejected_url");
    const refused = await fleet.one<{ state: string; last_reason: string }>(
      "select state, last_reason from frontier_url where url = 'http://10.1.2.3/'",
    );

    expect(rejected.reason).toMatch(/cannot be parsed/);
    expect(refused.state).toBe("refused");
    expect(refused.last_reason).toMatch(/10\.1\.2\.3 is a special-purpose address/);
  });

  it("runs one probe round for a subnet with several waiting sites", async () => {
    const rounds = await fleet.one<{ rounds: number; subnets: number }>(
      `select count(*)::int as rounds, count(distinct subnet_id)::int as subnets
       from probe_round where cause = 'new-subnet'`,
    );

    expect(rounds.subnets).toBeGreaterThan(0);
    expect(rounds.rounds).toBe(rounds.subnets);
    const shared = world.sites.length - new Set(world.sites.map((site) => site.subnet)).size;
    expect(shared).toBeGreaterThan(0);
  });

  it("fetches each page by the crawler its subnet is delegated to", async () => {
    const strayed = await fleet.one<{ pages: number }>(
      `select count(*)::int as pages
       from page p
       join frontier_host h on h.host_hash = p.host_hash
       join delegation d on d.subnet_id = h.subnet_id
       where d.crawler_id <> p.crawler_id`,
    );

    expect(strayed.pages).toBe(0);
  });

  it("neither probes nor fetches what a crawler's partner denies", async () => {
    const touched = fleet.internet.requestLog
      .entries()
      .filter(
        ({ host, crawlerIndex }) => crawlerIndex === 0 && [deniedSite.host, deniedDomain].includes(host),
      );
    const asked = await fleet.one<{ probes: number }>(
      `select count(*)::int as probes
       from probe p
       join probe_round r using (round_id)
       join crawler c on c.crawler_id = p.crawler_id
       where c.name = $1 and r.target_address <<= $2::cidr`,
      [world.crawlers[0]!.name, deniedNetwork],
    );

    expect(touched).toEqual([]);
    expect(asked.probes).toBe(0);
  });

  it("delegates at least four of five subnets to a crawler within 5 ms of the nearest, also on a busy machine", async () => {
    const rows = await fleet.rows<{ address: string; crawler: string }>(
      `select host(r.target_address) as address, c.name as crawler
       from delegation d
       join probe_round r on r.round_id = d.round_id
       join crawler c on c.crawler_id = d.crawler_id`,
    );
    const denied = world.sites.filter(({ host }) => [deniedSite.host, deniedDomain].includes(host));
    const excess = rows
      .filter(({ address }) => denied.every((site) => site.address !== address))
      .map(({ address, crawler }) => excessMs(world, crawler, () => address));

    expect(excess.length).toBeGreaterThan(15);
    expect(excess.filter((ms) => ms <= 5).length / excess.length).toBeGreaterThanOrEqual(0.8);
  });

  it("leaves the stated pause between two pages of a host", () => {
    const seen = fleet.internet.requestLog.entries();
    const pages = seen.filter(({ method, path }) => method === "GET" && path !== "/robots.txt");

    expect(pages.length).toBeGreaterThan(world.sites.length);
    for (const site of world.sites) {
      const times = pages.filter(({ host }) => host === site.host).map(({ atMs }) => atMs);
      const gapsMs = times.slice(1).map((atMs, index) => atMs - times[index]!);
      // The pause counts from the end of one answer to the start of the next request.
      expect(Math.min(...gapsMs, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(politenessFloorMs - 1);
    }
  });

  it("shows the fleet and the pages on its web page", async () => {
    const page = await (await fetch(webUrl)).text();

    for (const { name } of world.crawlers) expect(page).toContain(name);
  });
});
