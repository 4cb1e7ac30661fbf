/** The registry of URLs keeps its limits and its fairness: huge hosts, huge pages, huge subnets, jumping clocks. */
import { describe, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { extractPage } from "#crawler/extract/extract-page";
import type { Lease } from "#protocol/lease";
import { maxPageLinks } from "#protocol/result";
import {
  arrivedResult,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  worldOfFile,
} from "../support/store-world.ts";
import { newShippingWorld } from "./shipping-world.ts";

const world = worldOfFile(newShippingWorld);

const root = "http://a.example/";
const wide = { ...scope, pagesPerHost: 1_000_000, maxDepth: 1000 };

/** A crawler with this subnet and due hosts in it, the earlier ones due for longer. */
async function subnetOf(crawlerId: CrawlerId, number: number, hosts: number, dueSeconds: number) {
  const subnetId = await world.subnet(`5.1.${number}.0`, `5.1.${number}.255`);
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  await world.pool.query(
    `with host as (
       insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
       select $1::bigint * 1000000 + i, 'h' || i || '.n' || $1 || '.example', 'resolved',
         array[('5.' || 100 + $1 || '.' || i / 250 || '.' || i % 250)::inet], $2, $3, 1
       from generate_series(1, $4::int) i
       returning host_hash, host, due_at
     )
     insert into frontier_url (host_hash, url_hash, url, next_fetch_at)
     select host_hash, host_hash, 'http://' || host || '/', due_at from host`,
    [number, subnetId, secondsAfterNoon(-dueSeconds), hosts],
  );
}

const lease = async (crawlerId: CrawlerId, hosts: number, at: Date = noon, store = world.frontier) =>
  await store.leaseHosts({
    crawlerId,
    hosts,
    urlsPerHost: 20,
    leaseSeconds: 60,
    addressRestSeconds: 0,
    now: at,
  });

/** Leases by the number of their subnet. */
function bySubnet(leases: readonly Lease[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { host } of leases) {
    const subnet = host.split(".")[1]!;
    counts[subnet] = (counts[subnet] ?? 0) + 1;
  }
  return counts;
}

describe("a subnet with very many hosts that are due longest", () => {
  it("gets a quarter of a request while other subnets have work due, and all of it otherwise", async () => {
    const north = await world.crawler("north");
    await subnetOf(north, 1, 2500, 900);
    for (const number of [2, 3, 4, 5]) await subnetOf(north, number, 4, 10);

    const first = bySubnet(await lease(north, 20));
    const second = bySubnet(await lease(north, 20));

    expect(first).toEqual({ n1: 5, n2: 4, n3: 4, n4: 4, n5: 3 });
    expect(second).toEqual({ n1: 19, n5: 1 });
  });

  it("gets five of twenty hosts when they are requested one by one", async () => {
    const north = await world.crawler("north");
    await subnetOf(north, 1, 40, 900);
    for (const number of [2, 3, 4, 5]) await subnetOf(north, number, 9, 10);

    const leases: Lease[] = [];
    for (let ask = 0; ask < 24; ask++) leases.push(...(await lease(north, 1)));

    expect(bySubnet(leases.slice(0, 20))).toEqual({ n1: 5, n2: 4, n3: 4, n4: 4, n5: 3 });
    expect(leases).toHaveLength(24);
  });

  it("of another crawler delays nobody else's, however many subnets that one has", async () => {
    const [north, south] = [await world.crawler("north"), await world.crawler("south")];
    await subnetOf(north, 1, 2500, 900);
    for (let number = 2; number < 90; number++) await subnetOf(south, number, number === 70 ? 3 : 0, 10);

    expect(bySubnet(await lease(south, 5))).toEqual({ n70: 3 });
  });
});

describe("two coordinators at once", () => {
  it("admit and lease the same URLs, and none has two rows or two leases", async () => {
    const north = await world.crawler("north");
    await subnetOf(north, 1, 60, 10);
    const stores = [createFrontierStore(world.pool), createFrontierStore(world.pool)];
    const urls = Array.from({ length: 60 }, (_, i) => `http://h${i + 1}.n1.example/`);
    const hosts = await world.rows<{ host: string; host_hash: string }>(
      "select host, host_hash from frontier_host",
    );
    const hashOf = new Map(hosts.map((row) => [row.host, row.host_hash]));
    const links = seeds(...urls.map((url) => `${url}next`)).map(({ key }) => ({
      key: { ...key, hostHash: hashOf.get(key.host)! as typeof key.hostHash },
      depth: 1,
    }));

    const [admitted, leased] = await Promise.all([
      Promise.all(Array.from({ length: 8 }, async (_, n) => await stores[n % 2]!.admit(links, scope, noon))),
      Promise.all(Array.from({ length: 8 }, async (_, n) => await lease(north, 10, noon, stores[n % 2]!))),
    ]);

    expect(admitted.reduce((sum, { newUrls }) => sum + newUrls, 0)).toBe(60);
    // Admissions passed over busy hosts; now it is their turn.
    const leases = [...leased.flat(), ...(await lease(north, 60))];
    const inLeases = leases.flatMap((one) => one.urls.map(({ url }) => url));
    expect(new Set(inLeases).size).toBe(inLeases.length);
    expect(new Set(leases.map(({ host }) => host)).size).toBe(60);
    expect(leases).toHaveLength(60);
    expect(await lease(north, 60, noon, stores[1])).toEqual([]);
    expect(
      await world.rows(
        `select count(*)::int as urls, sum(back_links)::int as links,
           (select sum(open_urls) from lease where closed_at is null)::int as leased
         from frontier_url`,
      ),
    ).toEqual([{ urls: 120, leased: inLeases.length, links: 60 * 8 }]);
  });
});

describe("a page with a million links", () => {
  it("adds what its host's budget allows, keeps a thousand links, and counts the rest", async () => {
    const north = await world.delegatedHost("north", root);
    const links = Array.from({ length: 1_000_000 }, (_, i) => `<a href=${i}>`).join("");
    // A body is read to 5 MB (migrating-crawler/fetch).
    const { page } = await extractPage({
      url: root,
      bytes: Buffer.from(links).subarray(0, 5_000_000),
      contentType: "text/html",
      contentLanguage: "en",
      robotsTag: undefined,
      quiet: async () => {},
    });

    await world.ship(north, { [root]: { page, links: page.links.map(({ url }) => url) } }, noon, wide);

    expect(page.links).toHaveLength(maxPageLinks);
    const host = await world.hostRow("a.example");
    const { url_count: open, held_urls: held, left_out_urls: leftOut } = host as Record<string, number>;
    expect(held).toBe(1000);
    expect(open).toBeLessThan(60);
    expect(open! + held! + Number(leftOut)).toBe(maxPageLinks + 1);
    expect(
      await world.rows(
        "select (select count(*)::int from frontier_url) as rows, (select count(*)::int from held_url) as held",
      ),
    ).toEqual([{ rows: open!, held: 1000 }]);
  });

  const links = Array.from({ length: maxPageLinks + 1 }, (_, i) => ({
    url: `${root}${i}`,
    anchor: "",
    nofollow: false,
  }));
  it.each([
    ["ships more of them than any crawler of ours", { links }, {}],
    ["says that it took more bytes on the wire than any is read", { links: [] }, { wireBytes: 2 ** 26 + 1 }],
  ])("that %s is dropped whole, and told", async (_, ofPage, sizes) => {
    const north = await world.delegatedHost("north", root);
    const [held] = await lease(north, 1);
    const shipped = { sequence: 1, leaseId: held!.leaseId, url: root, page: ofPage };
    const result = { ...arrivedResult(shipped).result, ...sizes };

    const taken = await takeResults(
      {
        crawlerId: north,
        spoolId,
        results: [{ sequence: 1, leaseId: asLeaseId(held!.leaseId), result, wireBytes: 100 }],
      },
      world.results,
      { scope: wide, recrawl: defaultRecrawlSettings },
      noon,
    );

    expect(taken).toMatchObject({
      stored: 1,
      newUrls: 0,
      refused: [{ kind: "impossible-result", count: 1 }],
    });
    expect(await world.rows("select from page")).toEqual([]);
    expect(await world.rows("select count(*)::int as rows from frontier_url")).toEqual([{ rows: 1 }]);
  });
});

describe("a clock that jumps", () => {
  const hour = 3600;

  it("back leases nothing twice and ends no lease, and URLs due later wait", async () => {
    const north = await world.delegatedHost("north", root);
    await lease(north, 5, noon);
    const earlier = secondsAfterNoon(-300);

    expect(await lease(north, 5, earlier)).toEqual([]);
    expect(await world.frontier.returnExpired(earlier)).toBe(0);
    await world.frontier.returnLeasesOf(north, earlier);
    expect(await lease(north, 5, earlier)).toEqual([]);
    expect(await lease(north, 5, noon)).toHaveLength(1);
  });

  it("forward ends the leases, whose URLs are leased again and whose late results are not counted", async () => {
    const north = await world.delegatedHost("north", root);
    const [first] = await lease(north, 5, noon);

    expect(await world.frontier.returnExpired(secondsAfterNoon(24 * hour))).toBe(1);
    const [second] = await lease(north, 5, secondsAfterNoon(24 * hour));
    const late = await world.take(north, [
      arrivedResult({ sequence: 1, leaseId: first!.leaseId, url: root }),
    ]);

    expect(second?.urls.map(({ url }) => url)).toEqual([root]);
    expect(late).toMatchObject({ stored: 0, withoutLease: 1 });
    expect(await world.rows("select visits from frontier_url")).toEqual([{ visits: 0 }]);
    expect(await world.rows("select open_urls from lease where closed_at is null")).toEqual([
      { open_urls: 1 },
    ]);
  });

  it("forward and back leaves one lease, whose result counts and is no one's fault", async () => {
    const north = await world.delegatedHost("north", root);
    await lease(north, 5, noon);
    await world.frontier.returnExpired(secondsAfterNoon(24 * hour));
    const [again] = await lease(north, 5, secondsAfterNoon(24 * hour));

    expect(await lease(north, 5, noon)).toEqual([]);
    const taken = await world.take(north, [
      arrivedResult({ sequence: 1, leaseId: again!.leaseId, url: root }),
    ]);

    expect(taken).toEqual({ stored: 1, duplicates: 0, withoutLease: 0, newUrls: 0 });
    expect(await world.rows("select state, visits from frontier_url")).toEqual([{ state: "due", visits: 1 }]);
  });

  it("back for good returns leases from its future as if they had expired", async () => {
    const north = await world.delegatedHost("north", root);
    await lease(north, 5, secondsAfterNoon(24 * hour));

    expect(await world.frontier.returnExpired(secondsAfterNoon(24 * hour - 300))).toBe(0);
    expect(await world.frontier.returnExpired(noon)).toBe(1);

    expect(await lease(north, 5, noon)).toHaveLength(1);
  });
});
