/** The frontier: one row per URL, host slices leased to one crawler at a time, and every URL comes back. */
import { describe, expect, it, test } from "vitest";
import { bringBack, wasAhead } from "#coordinator/crawl/frontier/of-the-future-writes";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { asLeaseId } from "#core/ids";
import {
  arrivedResult,
  keyOf,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  storeWorld,
} from "../support/store-world.ts";

const world = storeWorld();
test("a link to a known URL counts as a back-link and changes nothing else of it", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);

  await world.frontier.admit([{ key: keyOf("http://a.example/"), depth: 2 }], scope, secondsAfterNoon(9));

  expect(await world.rows("select depth, back_links, discovered_at from frontier_url")).toEqual([
    { depth: 0, back_links: 1, discovered_at: noon },
  ]);
});

test("a host gets at most as many URLs as the scope allows, shallowest first; the rest is counted", async () => {
  const urls = [3, 1, 2].map((depth) => ({ key: keyOf(`http://a.example/${depth}`), depth }));

  const { newUrls } = await world.frontier.admit(urls, { ...scope, pagesPerHost: 2 }, noon);

  expect(newUrls).toBe(2);
  expect(await world.rows("select depth from frontier_url order by depth")).toEqual([
    { depth: 1 },
    { depth: 2 },
  ]);
  expect(await world.rows("select url_count, held_urls, left_out_urls from frontier_host")).toEqual([
    { url_count: 2, held_urls: 0, left_out_urls: "1" },
  ]);
});

test("a URL that is too deep is not admitted, nor its host", async () => {
  const admitted = await world.frontier.admit([{ key: keyOf("http://a.example/"), depth: 6 }], scope, noon);

  expect(admitted).toEqual({ newUrls: 0, newHosts: 0 });
  expect(await world.rows("select host from frontier_host")).toEqual([]);
});

test("without admitNewHosts only URLs of known hosts come in", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);

  const admitted = await world.frontier.admit(
    seeds("http://a.example/x", "http://b.example/"),
    { ...scope, admitNewHosts: false },
    noon,
  );

  expect(admitted).toEqual({ newUrls: 1, newHosts: 0 });
});

test("twenty concurrent admissions of the same URLs leave one row each, and the host's limit holds", async () => {
  const batches = Array.from({ length: 20 }, (_, batch) =>
    Array.from({ length: 10 }, (_, i) => [
      `http://a.example/${(i * 7 + batch) % 20}`,
      `http://b.example/${(i + batch) % 20}`,
    ]).flat(),
  );

  const admitted = await Promise.all(
    batches.map((urls) => world.frontier.admit(seeds(...urls), { ...scope, pagesPerHost: 15 }, noon)),
  );

  expect(admitted.reduce((sum, one) => sum + one.newUrls, 0)).toBe(30);
  expect(admitted.reduce((sum, one) => sum + one.newHosts, 0)).toBe(2);
  expect(
    await world.rows(
      `select h.host, h.url_count, count(*)::int as urls
       from frontier_host h join frontier_url u using (host_hash)
       group by h.host, h.url_count order by h.host`,
    ),
  ).toEqual([
    { host: "a.example", url_count: 15, urls: 15 },
    { host: "b.example", url_count: 15, urls: 15 },
  ]);
});

test("a host is offered for resolution once, and again after two minutes without an answer", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);

  expect(await world.frontier.hostsToResolve(10, noon)).toEqual(["a.example"]);
  expect(await world.frontier.hostsToResolve(10, secondsAfterNoon(119))).toEqual([]);
  expect(await world.frontier.hostsToResolve(10, secondsAfterNoon(121))).toEqual(["a.example"]);
});

test("twenty concurrent claims get each host to resolve once", async () => {
  await world.frontier.admit(
    seeds(...Array.from({ length: 40 }, (_, i) => `http://h${i}.example/`)),
    scope,
    noon,
  );

  const claims = await Promise.all(
    Array.from({ length: 20 }, async () => await world.frontier.hostsToResolve(3, noon)),
  );

  const hosts = claims.flat();
  expect(new Set(hosts).size).toBe(hosts.length);
  expect(hosts.length + (await world.frontier.hostsToResolve(40, noon)).length).toBe(40);
});

test("a host with an expired address is resolved again when one of its URLs is due", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);
  await world.resolve("a.example", "198.51.100.7", null);

  expect(await world.frontier.hostsToResolve(10, secondsAfterNoon(3599))).toEqual([]);
  expect(await world.frontier.hostsToResolve(10, secondsAfterNoon(3601))).toEqual(["a.example"]);
});

test("a name that does not resolve is retried at doubling intervals", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);
  const failed = { type: "failed", host: "a.example", reason: "NXDOMAIN" } as const;

  await world.frontier.saveResolutions([failed], noon);
  await world.frontier.saveResolutions([failed], secondsAfterNoon(30));

  expect(
    await world.rows("select state, state_reason, resolve_failures, resolve_at from frontier_host"),
  ).toEqual([
    {
      state: "unresolvable",
      state_reason: "NXDOMAIN",
      resolve_failures: 2,
      resolve_at: secondsAfterNoon(30 + 60),
    },
  ]);
});

test("all URLs of a refused host are refused with its reason, including later ones", async () => {
  await world.frontier.admit(seeds("http://a.example/"), scope, noon);

  await world.frontier.saveResolutions(
    [{ type: "refused", host: "a.example", addresses: ["10.0.0.1"], reason: "10.0.0.1 is private" }],
    noon,
  );
  await world.frontier.admit(seeds("http://a.example/later"), scope, noon);

  expect(await world.rows("select state, last_reason from frontier_url")).toEqual([
    { state: "refused", last_reason: "10.0.0.1 is private" },
    { state: "refused", last_reason: "10.0.0.1 is private" },
  ]);
  expect(await world.rows("select state, due_at from frontier_host")).toEqual([
    { state: "refused", due_at: null },
  ]);
});

test("a lease holds the due URLs of one host and says where the host is", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://a.example/x");

  const leases = await world.lease(crawlerId);

  expect(leases).toEqual([
    {
      leaseId: expect.stringMatching(/^\d+$/),
      host: "a.example",
      addresses: ["198.51.100.7"],
      expiresInSeconds: 60,
      waitMs: 0,
      urls: [
        { url: "http://a.example/", etag: null, lastModified: null },
        { url: "http://a.example/x", etag: null, lastModified: null },
      ],
    },
  ]);
  expect(
    await world.rows(
      "select h.lease_id, l.open_urls, cardinality(l.open_url_hashes) as listed from frontier_host h join lease l using (lease_id)",
    ),
  ).toEqual([{ lease_id: leases[0]?.leaseId, open_urls: 2, listed: 2 }]);
});

test("a lease takes as many URLs as requested; the rest stays due until the lease is closed", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://a.example/x");

  const [lease] = await world.lease(crawlerId, noon, { hosts: 1, urlsPerHost: 1 });

  expect(lease?.urls.length).toBe(1);
  expect(await world.lease(crawlerId)).toEqual([]);
  expect(await world.rows("select due_at from frontier_host")).toEqual([{ due_at: noon }]);
});

test("only the crawler of the subnet gets its hosts, and only when they are due and rested", async () => {
  const north = await world.delegatedHost("north", "http://a.example/");
  const south = await world.crawler("south");
  await world.rows("update frontier_host set not_before = '2030-01-01T12:00:05Z'");

  expect(await world.lease(south)).toEqual([]);
  expect(await world.lease(north, secondsAfterNoon(-1))).toEqual([]);
  expect(await world.lease(north, secondsAfterNoon(4))).toEqual([]);
  expect((await world.lease(north, secondsAfterNoon(5))).length).toBe(1);
});

test("a crawler gets its hosts however many hosts of others are due longer", async () => {
  const north = await world.delegatedHost("north", "http://a.example/");
  const south = await world.crawler("south");
  const others = await world.subnet("203.0.113.0", "203.0.113.255");
  await world.delegations.delegateOwnSubnet(others, south, noon);
  await world.pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at)
     select i, 'host' || i || '.example', 'resolved', array['203.0.113.7'::inet], $1, $2
     from generate_series(1, 2500) i`,
    [others, secondsAfterNoon(-60)],
  );

  expect((await world.lease(north)).map(({ host }) => host)).toEqual(["a.example"]);
});

test("twenty concurrent requests lease every host once", async () => {
  const urls = Array.from({ length: 30 }, (_, i) => `http://h${i}.example/`);
  const crawlerId = await world.delegatedHost("north", ...urls);

  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => await world.lease(crawlerId, noon, { hosts: 3, urlsPerHost: 5 })),
  );
  const rest = await world.lease(crawlerId, noon, { hosts: 30, urlsPerHost: 5 });

  const hosts = [...answers.flat(), ...rest].map((lease) => lease.host);
  expect(new Set(hosts).size).toBe(30);
  expect(hosts.length).toBe(30);
});

test("a returned lease leaves its URLs due, and returning it again does nothing", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  const [lease] = await world.lease(crawlerId);
  const leaseId = asLeaseId(lease!.leaseId);

  expect(await world.frontier.returnLease({ leaseId, crawlerId }, noon)).toBe(true);
  expect(await world.frontier.returnLease({ leaseId, crawlerId }, noon)).toBe(false);

  expect(await world.rows("select state from frontier_url")).toEqual([{ state: "due" }]);
  expect(await world.rows("select lease_id, due_at from frontier_host")).toEqual([
    { lease_id: null, due_at: noon },
  ]);
  expect(await world.rows("select ending, closed_at, open_url_hashes from lease")).toEqual([
    { ending: "returned", closed_at: noon, open_url_hashes: [] },
  ]);
});

test("leases returned together end once each, and only by their owner", async () => {
  const north = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
  const south = await world.crawler("south");
  const [first, second] = (await world.lease(north)).map((lease) => asLeaseId(lease.leaseId));
  const ends = [
    ...[first, first, second].map((leaseId) => ({ leaseId: leaseId!, crawlerId: north })),
    { leaseId: second!, crawlerId: south },
    { leaseId: asLeaseId("9999999999999999999"), crawlerId: north },
  ];

  const ended = await Promise.all(ends.map((end) => world.frontier.returnLease(end, noon)));

  expect(ended).toEqual([true, false, true, false, false]);
  expect(await world.rows("select from lease where closed_at is null")).toEqual([]);
});

test("a host whose crawler asks for a rest is not leased before, although no result arrived", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  const [lease] = await world.lease(crawlerId);
  const leaseId = asLeaseId(lease!.leaseId);

  await world.frontier.returnLease({ leaseId, crawlerId, hostWaitMs: 60_000 }, noon);

  expect(await world.lease(crawlerId, new Date(noon.getTime() + 59_000))).toEqual([]);
  expect(await world.lease(crawlerId, new Date(noon.getTime() + 61_000))).toHaveLength(1);
});

test("an expired lease returns by itself, once, despite concurrent sweeps", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
  await world.lease(crawlerId);

  const early = await world.frontier.returnExpired(secondsAfterNoon(59));
  const late = await Promise.all(
    Array.from({ length: 20 }, async () => await world.frontier.returnExpired(secondsAfterNoon(60))),
  );

  expect(early).toBe(0);
  expect(late.reduce((sum, one) => sum + one, 0)).toBe(2);
  expect((await world.lease(crawlerId, secondsAfterNoon(60))).length).toBe(2);
});

test("a host refused while it is leased keeps nothing due when the lease returns", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  await world.lease(crawlerId);
  await world.frontier.saveResolutions(
    [{ type: "refused", host: "a.example", addresses: ["127.0.0.1"], reason: "loopback" }],
    noon,
  );

  await world.frontier.returnLeasesOf(crawlerId, noon);

  expect(await world.rows("select state, last_reason from frontier_url")).toEqual([
    { state: "refused", last_reason: "loopback" },
  ]);
  expect((await world.frontier.progress()).urlsPending).toBe(0);
});

test("progress counts hosts, URLs and subnets by what remains", async () => {
  await world.delegatedHost("north", "http://a.example/", "http://a.example/x");
  await world.frontier.admit(
    seeds("http://b.example/", "http://c.example/", "http://d.example/", "http://e.example/"),
    scope,
    noon,
  );
  await world.resolve("b.example", "203.0.113.9", await world.subnet("203.0.113.0", "203.0.113.255"));
  await world.frontier.saveResolutions(
    [
      { type: "refused", host: "c.example", addresses: ["10.0.0.1"], reason: "private" },
      { type: "failed", host: "e.example", reason: "NXDOMAIN" },
    ],
    noon,
  );

  expect(await world.frontier.progress()).toEqual({
    hosts: 5,
    hostsUnresolved: 1,
    hostsRefused: 1,
    hostsDelegated: 1,
    hostsFetched: 0,
    urls: 6,
    urlsPending: 4,
    linksWaiting: 0,
    subnetsWaiting: 1,
    subnetsDelegated: 1,
    pages: 0,
    probes: 0,
    rounds: 0,
  });
});

describe("times written by a clock that was ahead", () => {
  const day = 86_400;

  it("hosts keep their rest, counted from now; URLs found meanwhile are due, and nothing else changes", async () => {
    const north = await world.delegatedHost("north", "http://a.example/0", "http://a.example/1");
    const [lease] = await world.lease(north, secondsAfterNoon(day));
    const { result } = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/0" });
    const at = secondsAfterNoon(day + 5);
    await takeResults(
      {
        ...{ crawlerId: north, spoolId },
        results: [
          {
            ...{ sequence: 1, leaseId: asLeaseId(lease!.leaseId), wireBytes: 100 },
            result: { ...result, fetchedAt: at.toISOString(), hostDelayMs: 20_000 },
          },
        ],
      },
      world.results,
      { scope, recrawl: defaultRecrawlSettings },
      at,
    );
    await world.frontier.admit(seeds("http://b.example/"), scope, at);
    await world.frontier.admit(seeds("http://c.example/"), scope, noon);
    await world.pool.query(
      "update frontier_host set not_before = $1, resolve_at = $1 where host = 'c.example'",
      [secondsAfterNoon(2 * day)],
    );
    await world.frontier.returnExpired(secondsAfterNoon(day + 100));
    const now = secondsAfterNoon(60);
    const state = async () =>
      await world.rows<Record<string, unknown>>(
        `select host, extract(epoch from not_before - '${now.toISOString()}')::float8 as rests,
         extract(epoch from due_at - '${now.toISOString()}')::float8 as due,
         extract(epoch from resolve_at - '${now.toISOString()}')::float8 as resolves
       from frontier_host order by host`,
      );
    expect(await world.lease(north, secondsAfterNoon(100))).toEqual([]);
    expect(await wasAhead(world.pool, now)).toBe(true);

    expect(await bringBack(world.pool, now)).toBe(2);

    const [a, b, c] = await state();
    expect(a).toMatchObject({ host: "a.example", rests: 20, due: -60 });
    expect(b).toMatchObject({ host: "b.example", due: 0, resolves: 0 });
    expect(c).toMatchObject({ rests: 2 * day - 60, due: -60, resolves: 2 * day - 60 });
    const [fetched] = await world.rows<{ planned: number; fetched: string }>(
      `select extract(epoch from next_fetch_at - last_fetched_at)::float8 as planned,
       extract(epoch from last_fetched_at - '${now.toISOString()}')::text as fetched
     from frontier_url where url like '%/0'`,
    );
    expect(fetched).toEqual({ planned: defaultRecrawlSettings.intervalSeconds, fetched: "0.000000" });
    const [again] = await world.lease(north, secondsAfterNoon(100));
    expect(again?.urls.map(({ url }) => url)).toEqual(["http://a.example/1"]);
    expect(await wasAhead(world.pool, now)).toBe(false);
    expect(await bringBack(world.pool, secondsAfterNoon(100))).toBe(0);
  });
});
