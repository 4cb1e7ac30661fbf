/** The owner of a domain can invent any number of hosts: what these get of new hosts, of the queue and of an address. */
import { beforeEach, describe, expect, it } from "vitest";
import { NewHostBudget } from "#coordinator/crawl/frontier/budgets";
import { domainReport } from "#coordinator/crawl/frontier/domain-store";
import { mostHeldAt } from "#coordinator/crawl/frontier/place-urls";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId, asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import type { PageExtract } from "#protocol/result";
import {
  arrivedResult,
  noon,
  scope as openScope,
  secondsAfterNoon,
  seeds,
  spoolId,
  storeWorld,
  type World,
} from "../support/store-world.ts";

const scope = { ...openScope, newHostsPerDomainAndDay: 50, newHostsPerLinkingSiteAndDay: 200 };
const many = (count: number, nameOf: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => `http://${nameOf(index)}/`);
const daysLater = (days: number) => new Date(noon.getTime() + days * 86_400_000);

const world = storeWorld();
let north: CrawlerId;
let leases: Awaited<ReturnType<World["lease"]>>;
let sequence = 0;
beforeEach(async () => {
  sequence = 0;
  north = await world.delegatedHost("north", "http://hub.example/0", "http://other.example/0");
  leases = await world.lease(north);
});

/** North fetches the page of that host, which has these links; gives what the coordinator made of them. */
async function fetched(host: string, links: readonly string[], newHosts = new NewHostBudget(1000)) {
  const lease = leases.find((one) => one.host === host);
  const { result } = arrivedResult({ sequence: 1, leaseId: "1", url: lease!.urls[0]!.url });
  const page = {
    ...(result.page as PageExtract),
    links: links.map((url) => ({ url, anchor: "", nofollow: false })),
  };
  sequence += 1;
  const sent = {
    ...{ sequence, leaseId: asLeaseId(lease!.leaseId), wireBytes: 100 },
    result: { ...result, page, fetchedAt: secondsAfterNoon(30).toISOString() },
  };
  const batch = { crawlerId: north, spoolId, results: [sent] };
  await takeResults(batch, world.results, { scope, recrawl: defaultRecrawlSettings }, secondsAfterNoon(30));
  return await world.applyOutbox(secondsAfterNoon(31), { scope, newHosts });
}

const hostsOf = async (domain: string) =>
  (await world.rows(`select from frontier_host where host like '%${domain}'`)).length;
/** As another process that takes over on that day. */
const onDay = async (days: number) =>
  await world.applyOutbox(daysLater(days), { scope, newHosts: new NewHostBudget(1000) });

describe("new hosts", () => {
  it("of a domain are limited to as many a day as it has, and the rest is admitted on later days", async () => {
    const named = [...many(100, (n) => `h${n}.evil.example`), ...many(30, (n) => `good${n}.example`)];

    const bites = await fetched("hub.example", named);
    const byDay = [await hostsOf(".evil.example")];
    for (const day of [1, 1, 2, 3]) {
      await onDay(day);
      byDay.push(await hostsOf(".evil.example"));
    }

    expect(byDay).toEqual([20, 60, 60, 100, 100]);
    expect(await world.rows("select from frontier_host where host like 'good%'")).toHaveLength(30);
    expect(bites.flatMap((bite) => bite.floods)).toEqual([]);
    expect(bites.flatMap((bite) => bite.domains)).toContainEqual({
      ...{ domain: "evil.example", as: "domain", waiting: 80, leftOut: 0 },
    });
  });

  it("beyond two days' allotment are dropped and counted, also after a restart", async () => {
    const bites = await fetched(
      "hub.example",
      many(300, (n) => `h${n}.evil.example`),
    );
    await onDay(0);

    const report = await domainReport(world.pool, "evil.example", noon);
    expect(bites.flatMap((bite) => bite.domains)).toContainEqual({
      ...{ domain: "evil.example", as: "domain", waiting: 100, leftOut: 180 },
    });
    expect(report).toEqual({
      ...{ domain: "evil.example", hosts: 20, newToday: 20, linkedToday: 0 },
      ...{ waiting: 100, leftOut: 180 },
    });
    expect(await hostsOf(".evil.example")).toBe(20);
  });

  it("linked from one site are limited, however many domains they belong to", async () => {
    const bites = await fetched(
      "hub.example",
      many(90, (n) => `farm${n}.example`),
    );
    await fetched(
      "other.example",
      many(5, (n) => `other${n}.example`),
    );
    const today = await hostsOf("farm%.example");
    await onDay(1);

    expect([today, await hostsOf("farm%.example")]).toEqual([40, 80]);
    expect(await world.rows("select from frontier_host where host ~ '^other[0-9]'")).toHaveLength(5);
    expect(bites.flatMap((bite) => bite.domains)).toContainEqual({
      ...{ domain: "hub.example", as: "linking-site", waiting: 50, leftOut: 0 },
    });
  });

  it("named by people are always admitted; names below a private suffix are domains of their own", async () => {
    const seeded = many(60, (n) => `www${n}.university.example`);
    await world.frontier.admit(seeds(...seeded), scope, noon);
    await fetched(
      "hub.example",
      many(20, (n) => `user${n}.github.io`),
    );

    expect([await hostsOf("university.example"), await hostsOf("github.io")]).toEqual([60, 20]);
    expect(await world.rows("select from frontier_host where domain_place > 0")).toHaveLength(0);
  });

  it("of large domains share a quarter of a crawler's daily budget", async () => {
    await world.pool.query(
      "insert into domain_count values ('big.example', 500, '2029-12-31', 0, 0, 0), ('huge.example', 9000, '2029-12-31', 0, 0, 0)",
    );
    await fetched(
      "hub.example",
      [...many(30, (n) => `${n}.big.example`), ...many(30, (n) => `${n}.huge.example`)],
      new NewHostBudget(40),
    );

    expect((await hostsOf(".big.example")) + (await hostsOf(".huge.example"))).toBe(10);
  });

  it("deferred to a day written by a wrong clock are released", async () => {
    await fetched(
      "hub.example",
      many(40, (n) => `h${n}.evil.example`),
    );
    await world.pool.query("update deferred_link set due_on = '2107-01-01'");

    await onDay(1);

    expect(await hostsOf(".evil.example")).toBe(40);
  });
});

it("all hosts of a domain hold little more URLs than its first twenty", () => {
  const held = (hosts: number) =>
    Array.from({ length: hosts }, (_, place) => mostHeldAt(place)).reduce((sum, most) => sum + most, 0);

  expect(held(20)).toBe(20_000);
  expect(held(100_000)).toBeLessThan(8 * held(20));
});

describe("leases", () => {
  let subnetId: SubnetId;
  beforeEach(async () => {
    const [row] = await world.rows<{ subnet_id: number }>("select subnet_id from delegation");
    subnetId = asSubnetId(row!.subnet_id);
    await world.pool.query("delete from frontier_url; delete from frontier_host");
  });

  /** Hosts that are due from that second on, those beyond their domain's first marked as such. */
  async function due(urls: readonly string[], seconds: number, addressOf: (index: number) => string) {
    await world.frontier.admit(seeds(...urls), scope, secondsAfterNoon(seconds));
    const resolutions = urls.map((url, index) => ({
      ...{ type: "resolved" as const, host: new URL(url).hostname, addresses: [addressOf(index)] },
      ...{ subnetId, ttlSeconds: 3600 },
    }));
    await world.frontier.saveResolutions(resolutions, noon);
    await world.pool.query(
      `update frontier_host h set domain_place = place
       from (
         select host_hash, row_number() over (partition by domain order by due_at, host_hash) - 1 as place from frontier_host
       ) placed
       where h.host_hash = placed.host_hash`,
    );
  }
  const leased = async (seconds: number, hosts = 20) => {
    const now = secondsAfterNoon(seconds);
    const request = {
      crawlerId: north,
      hosts,
      urlsPerHost: 10,
      leaseSeconds: 60,
      addressRestSeconds: 0,
      now,
    };
    return await world.frontier.leaseHosts(request);
  };
  const ofVictims = (leases: readonly { host: string }[]) =>
    leases.filter(({ host }) => !host.includes("evil")).length;

  it("go to a domain by its share, however many of its hosts are due longer", async () => {
    await due(
      many(700, (n) => `h${n}.evil.example`),
      0,
      (n) => `198.51.100.${n % 250}`,
    );
    await due(
      many(15, (n) => `good${n}.example`),
      60,
      (n) => `198.51.100.${n}`,
    );

    expect(ofVictims(await leased(61))).toBe(15);
  });

  it("at a shared address go to each domain, one at a time to the domain that uses most of it", async () => {
    await due(
      many(150, (n) => `h${n}.evil.example`),
      0,
      () => "198.51.100.9",
    );
    await due(
      many(10, (n) => `v${n}.victim.example`),
      60,
      () => "198.51.100.9",
    );

    const first = await leased(61, 100);
    const slow = (url: string) => ({ ...arrivedResult({ sequence: 1, leaseId: "1", url }).result.timing });
    const results = first.flatMap(({ leaseId, urls }) =>
      urls.map(({ url }) => {
        sequence += 1;
        const { result, ...arrived } = arrivedResult({ sequence, leaseId, url });
        const totalMs = url.includes("evil") ? 9000 : 50;
        return { ...arrived, result: { ...result, timing: { ...slow(url), totalMs } } };
      }),
    );
    await world.take(north, results, secondsAfterNoon(70));
    const second = await leased(71, 100);
    const third = await leased(72, 100);

    expect([first.length, ofVictims(first)]).toEqual([16, 8]);
    const [evil, victims] = [
      [...second, ...third].length - ofVictims([...second, ...third]),
      ofVictims(second),
    ];
    expect(victims).toBe(2);
    expect(evil).toBeLessThanOrEqual(8);
    expect(third).toHaveLength(0);
  });
});
