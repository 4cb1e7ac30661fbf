/** The frontier, leases, results and outboxes over four slices on two servers, and hosts that move between them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CrawlerId } from "#core/ids";
import { sliceOfNumber } from "#db/slice-numbers";
import type { Lease } from "#protocol/lease";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { arrivedResult, noon, scope, seeds, spoolId, subnet } from "../support/store-world.ts";
import { until } from "../support/until.ts";

let servers: SliceServers;
let world: SlicedWorld;
beforeAll(async () => {
  servers = await SliceServers.begin();
  world = await slicedWorld(servers.shared);
}, 120_000);
afterAll(async () => {
  await world?.close();
  await servers?.close();
});

const hosts = Array.from({ length: 40 }, (_, index) => `host-${index}.example`);

it("finds nothing to learn where there is one slice", () => {
  expect(world.slices.open).toHaveLength(1);
  expect(world.slices.catalogue.ranges).toEqual([{ first: 0, end: 4096, slice: 0 }]);
});

describe("with URLs in the first slice", () => {
  beforeAll(async () => {
    await world.frontier.admit(seeds(...hosts.map((host) => `http://${host}/`)), scope, noon);
  });

  it("three more take three quarters of the buckets, with their hosts, and nothing is lost or twice there", async () => {
    await addSlices(servers, 4);
    await world.moveAll();

    const rows = await world.rows<{ host: string; host_hash: string; lease_id: string | null }>(
      "select host, host_hash, lease_id from frontier_host",
    );
    const { owners, moves, slices } = world.slices.catalogue;
    expect(rows.map(({ host }) => host).sort()).toEqual([...hosts].sort());
    expect(rows.filter((row) => owners.ofHost(row.host_hash as never) !== row.slice)).toEqual([]);
    expect(rows.filter((row) => row.lease_id !== null)).toEqual([]);
    expect(new Set(rows.map(({ slice }) => slice))).toEqual(new Set([0, 1, 2, 3]));
    expect(moves).toEqual([]);
    const sizes = slices.map(({ number }) =>
      world.slices.catalogue.ranges
        .filter((range) => range.slice === number)
        .reduce((sum, { first, end }) => sum + end - first, 0),
    );
    expect(sizes).toEqual([1024, 1024, 1024, 1024]);
  }, 60_000);

  it("hosts to resolve are given to one of those that ask at once, and none is kept from the next", async () => {
    const ask = async (limit: number) => await world.frontier.hostsToResolve(limit, noon);
    const claims = await Promise.all(Array.from({ length: 10 }, async () => await ask(1)));
    const rest = [...(await ask(7)), ...(await ask(100))];

    expect(claims.map((claim) => claim.length)).toEqual(claims.map(() => 1));
    expect([...claims.flat(), ...rest].sort()).toEqual([...hosts].sort());
    expect(await ask(1)).toEqual([]);
  });

  it("a server that went away just now keeps nobody from the hosts to resolve of the others", async () => {
    const later = new Date(noon.getTime() + 180_000);
    await servers.kill(1);
    const first = await world.frontier.hostsToResolve(100, later);
    await servers.start(1);
    const rest = await world.frontier.hostsToResolve(100, later);

    expect(first.length).toBeGreaterThan(0);
    expect(rest.length).toBeGreaterThan(0);
    expect([...first, ...rest].sort()).toEqual([...hosts].sort());
  });

  it("subnets that wait are counted once, whichever slices their hosts are in", async () => {
    const { pool } = world.shared;
    const subnets = await Promise.all(
      [0, 1, 2, 3, 4].map(async (third) => await subnet(pool, `203.0.${third}.0`, `203.0.${third}.255`)),
    );
    await world.frontier.saveResolutions(
      hosts.map((host, index) => ({
        ...{ type: "resolved", host, addresses: ["203.0.0.1"], ttlSeconds: 86_400 },
        subnetId: subnets[Math.min(index, 4)]!,
      })),
      noon,
    );
    expect(await world.frontier.progress(noon)).toMatchObject({ hosts: 40, subnetsWaiting: 5 });
  });

  it("leases come from all slices, and results go back to theirs, with links between them", async () => {
    const { crawlerId } = await delegated();
    const leases = await leaseAll(crawlerId);
    expect(leases.map(({ host }) => host).sort()).toEqual([...hosts].sort());
    expect(new Set(leases.map(({ leaseId }) => sliceOfNumber(leaseId)))).toEqual(new Set([0, 1, 2, 3]));

    // Every page links to the pages of all hosts, to one that nobody knows, and to one of a host that nobody knows.
    const links = [
      ...hosts.map((host) => `http://${host}/`),
      "http://host-0.example/new",
      "http://new.example/",
    ];
    const results = leases.map((lease, index) =>
      arrivedResult({ sequence: index + 1, leaseId: lease.leaseId, url: lease.urls[0]!.url, links }),
    );
    const batch = { crawlerId, spoolId, scope, now: noon, lastSequence: results.length };
    const taken = await world.results.take({ ...batch, results });
    const again = await world.results.take({ ...batch, results });
    await world.carryAll();

    expect(taken).toMatchObject({ stored: 40, duplicates: 0, withoutLease: 0 });
    expect(again).toMatchObject({ stored: 0, duplicates: 40 });
    const urls = await world.rows<{ url: string; back_links: number; visits: number; host_hash: string }>(
      "select url, back_links, visits, host_hash from frontier_url",
    );
    const { owners } = world.slices.catalogue;
    expect(urls.filter((row) => owners.ofHost(row.host_hash as never) !== row.slice)).toEqual([]);
    expect(
      Object.fromEntries(urls.map(({ url, back_links, visits }) => [url, [back_links, visits]])),
    ).toEqual({
      ...Object.fromEntries(hosts.map((host) => [`http://${host}/`, [40, 1]])),
      "http://host-0.example/new": [40, 0],
      "http://new.example/": [40, 0],
    });
    expect(await world.rows("select from link_outbox")).toEqual([]);
    expect(await world.rows("select from lease where closed_at is null")).toEqual([]);
  });

  it("slices whose server went away just now keep nobody from the leases of the others", async () => {
    const [{ crawler_id: crawlerId }] = (await world.shared.pool.query("select crawler_id from crawler"))
      .rows as [{ crawler_id: CrawlerId }];
    await world.rows("update frontier_url set next_fetch_at = '2000-01-01'");
    await world.rows("update frontier_host set due_at = '2000-01-01', not_before = '-infinity'");
    await servers.kill(1);
    const leases = await leaseAll(crawlerId);
    await servers.start(1);

    const open = await world.rows<{ lease_id: string }>("select lease_id from lease where closed_at is null");
    expect(new Set(leases.map(({ leaseId }) => sliceOfNumber(leaseId)))).toEqual(new Set([0, 2]));
    expect(open.map(({ lease_id }) => lease_id).sort()).toEqual(leases.map(({ leaseId }) => leaseId).sort());
  });
});

async function delegated() {
  const { pool } = world.shared;
  const crawlerId = await world.crawlers.register({ name: "athens", keyHash: "key" });
  const subnetId = await subnet(pool, "198.51.100.0", "198.51.100.255");
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  await until(
    async () => (await replicated("select from delegation")) && replicated("select from crawler"),
    10_000,
  );
  await world.frontier.saveResolutions(
    hosts.map((host, index) => ({
      ...{ type: "resolved", host, addresses: [`198.51.100.${index + 1}`], subnetId, ttlSeconds: 86_400 },
    })),
    noon,
  );
  return { crawlerId, subnetId };
}

const replicated = async (sql: string): Promise<boolean> => {
  const counts = await Promise.all(
    world.slices.open.map(async ({ pool }) => (await pool.query(sql)).rowCount),
  );
  return counts.every((count) => count !== null && count > 0);
};

async function leaseAll(crawlerId: CrawlerId): Promise<Lease[]> {
  return await world.frontier.leaseHosts({
    ...{ crawlerId, hosts: 100, urlsPerHost: 10, leaseSeconds: 60, addressRestSeconds: 0, now: noon },
  });
}
