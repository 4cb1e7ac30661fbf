/** Results: exactly once, only under a lease, and what they change in the frontier. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { CrawlerId } from "#core/ids";
import type { FetchOutcome } from "#protocol/result";
import {
  arrivedResult,
  keyOf,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  spoolId,
  spoolOf,
  type World,
} from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const root = "http://a.example/";

/** `north` with a lease of the given URLs of a.example. */
async function leased(...urls: string[]): Promise<{ crawlerId: CrawlerId; leaseId: string }> {
  const crawlerId = await world.delegatedHost("north", ...urls);
  const [lease] = await world.lease(crawlerId);
  return { crawlerId, leaseId: lease!.leaseId };
}

const acknowledged = async () =>
  (await world.rows<{ n: string }>("select acknowledged_sequence n from spool"))[0]?.n;
const counted = async (table: string) =>
  (await world.rows<{ n: number }>(`select count(*)::int n from ${table}`))[0]?.n;

test("a fetched page is stored with its links, and the last URL closes the lease", async () => {
  const { crawlerId, leaseId } = await leased(root);

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x", "http://b.example/"] }),
  ]);

  expect(taken).toEqual({ stored: 1, duplicates: 0, withoutLease: 0, newUrls: 2 });
  expect(await acknowledged()).toBe("1");
  expect(await world.rows("select url, crawler_id, title, words, lexemes::text from page")).toEqual([
    { url: root, crawler_id: crawlerId, title: "Two words", words: 2, lexemes: "'two':1A 'word':2A" },
  ]);
  expect(await world.rows("select outcome, status, host(address) address, total_ms from page_fetch")).toEqual(
    [{ outcome: "fetched", status: 200, address: "198.51.100.7", total_ms: 30 }],
  );
  expect(await counted("link")).toBe(2);
  expect(await world.rows("select ending, open_urls, closed_at from lease")).toEqual([
    { ending: "done", open_urls: 0, closed_at: noon },
  ]);
  expect(
    await world.rows(
      `select state, visits, failures, last_outcome, last_status, etag, lease_id, next_fetch_at, last_fetched_at
       from frontier_url where url = 'http://a.example/'`,
    ),
  ).toEqual([
    {
      state: "due",
      visits: 1,
      failures: 0,
      last_outcome: "fetched",
      last_status: 200,
      etag: '"one"',
      lease_id: null,
      next_fetch_at: secondsAfterNoon(86_400),
      last_fetched_at: noon,
    },
  ]);
});

test("the host waits as long as it asked for, and then its new link is due", async () => {
  const { crawlerId, leaseId } = await leased(root);

  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x"] }),
  ]);

  expect(
    await world.rows(
      "select lease_id, due_at, not_before, url_count from frontier_host where host = 'a.example'",
    ),
  ).toEqual([{ lease_id: null, due_at: noon, not_before: secondsAfterNoon(1), url_count: 2 }]);
  expect(await world.lease(crawlerId)).toEqual([]);
  const [next] = await world.lease(crawlerId, secondsAfterNoon(1));
  expect(next?.urls.map((one) => one.url)).toEqual(["http://a.example/x"]);
});

test("links are one step deeper than their page, and stop at the depth of the scope", async () => {
  const { crawlerId, leaseId } = await leased(root);
  await world.rows(`update frontier_url set depth = ${scope.maxDepth - 1}`);
  const first = arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x"] });

  await world.take(crawlerId, [first]);
  const [lease] = await world.lease(crawlerId, secondsAfterNoon(60));
  const deepest = arrivedResult({
    sequence: 2,
    leaseId: lease!.leaseId,
    url: "http://a.example/x",
    links: ["http://a.example/y"],
  });
  const taken = await world.take(crawlerId, [deepest], secondsAfterNoon(60));

  expect(taken).toMatchObject({ stored: 1, newUrls: 0 });
  expect(await world.rows("select depth from frontier_url order by depth")).toEqual([
    { depth: 4 },
    { depth: 5 },
  ]);
});

test("a result that arrives twice counts once", async () => {
  const { crawlerId, leaseId } = await leased(root);
  const result = arrivedResult({ sequence: 1, leaseId, url: root });

  await world.take(crawlerId, [result]);
  const again = await world.take(crawlerId, [result]);

  expect(again).toEqual({ stored: 0, duplicates: 1, withoutLease: 0, newUrls: 0 });
  expect(await counted("page_fetch")).toBe(1);
});

test("the same batch twenty times at once counts once", async () => {
  const urls = Array.from({ length: 10 }, (_, i) => `http://a.example/${i}`);
  const { crawlerId, leaseId } = await leased(...urls);
  const batch = urls.map((url, i) =>
    arrivedResult({ sequence: i + 1, leaseId, url, links: ["http://b.example/"] }),
  );

  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => await world.take(crawlerId, batch)),
  );

  expect(answers.reduce((sum, one) => sum + one.stored, 0)).toBe(10);
  expect(answers.reduce((sum, one) => sum + one.duplicates, 0)).toBe(190);
  expect(await counted("page_fetch")).toBe(10);
  expect(await world.rows("select back_links from frontier_url where url = 'http://b.example/'")).toEqual([
    { back_links: 10 },
  ]);
  expect(await world.rows("select open_urls, ending from lease")).toEqual([{ open_urls: 0, ending: "done" }]);
});

test("twenty spools at once whose pages link to each other's hosts do not stand in each other's way", async () => {
  const hosts = Array.from({ length: 20 }, (_, i) => `http://h${i}.example/`);
  const north = await world.delegatedHost("north", ...hosts);
  const leases = await world.frontier.leaseHosts({
    crawlerId: north,
    hosts: 20,
    urlsPerHost: 5,
    leaseSeconds: 60,
    now: noon,
  });

  const answers = await Promise.all(
    leases.map(async (lease, i) =>
      world.results.take({
        crawlerId: north,
        spoolId: spoolOf(i),
        results: [
          arrivedResult({
            sequence: 1,
            leaseId: lease.leaseId,
            url: lease.urls[0]!.url,
            links: [...hosts.slice(i), ...hosts.slice(0, i)].map((host) => `${host}${i % 4}`),
          }),
        ],
        scope,
        now: noon,
        lastSequence: 1,
      }),
    ),
  );

  expect(answers.map((one) => one.stored)).toEqual(hosts.map(() => 1));
  expect(await counted("page")).toBe(20);
  expect(await counted("frontier_url")).toBe(20 + answers.reduce((sum, one) => sum + one.newUrls, 0));
});

test("a result after the lease returned is dropped and acknowledged", async () => {
  const { crawlerId, leaseId } = await leased(root);
  await world.frontier.returnExpired(secondsAfterNoon(61));

  const taken = await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root })]);

  expect(taken).toEqual({ stored: 0, duplicates: 0, withoutLease: 1, newUrls: 0 });
  expect(await acknowledged()).toBe("1");
  expect(await counted("page")).toBe(0);
  expect(await world.rows("select state, visits from frontier_url")).toEqual([{ state: "due", visits: 0 }]);
});

test("a result past the deadline counts as long as nobody took the lease back", async () => {
  const { crawlerId, leaseId } = await leased(root);

  const taken = await world.take(
    crawlerId,
    [arrivedResult({ sequence: 1, leaseId, url: root })],
    secondsAfterNoon(61),
  );

  expect(taken.stored).toBe(1);
});

test("a result and the lease's expiry at once: either counts, never both", async () => {
  const urls = Array.from({ length: 10 }, (_, i) => `http://h${i}.example/`);
  const crawlerId = await world.delegatedHost("north", ...urls);
  const leases = await world.lease(crawlerId);

  const [taken, expired] = await Promise.all([
    Promise.all(
      leases.map(async (lease, i) =>
        world.results.take({
          crawlerId,
          spoolId: spoolOf(i),
          results: [arrivedResult({ sequence: 1, leaseId: lease.leaseId, url: lease.urls[0]!.url })],
          scope,
          now: secondsAfterNoon(61),
          lastSequence: 1,
        }),
      ),
    ),
    world.frontier.returnExpired(secondsAfterNoon(61)),
  ]);

  const stored = taken.reduce((sum, one) => sum + one.stored, 0);
  expect(stored + expired).toBe(10);
  expect(await counted("page")).toBe(stored);
  expect(await counted("frontier_url where state = 'due' and lease_id is null")).toBe(10);
});

test("nobody's result counts under another crawler's lease, nor for a URL that the lease does not hold", async () => {
  const { crawlerId, leaseId } = await leased(root);
  const south = await world.crawler("south");

  const stranger = await world.take(south, [arrivedResult({ sequence: 1, leaseId, url: root })]);
  const elsewhere = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: "http://b.example/" }),
  ]);

  expect(stranger).toMatchObject({ stored: 0, withoutLease: 1 });
  expect(elsewhere).toMatchObject({ stored: 0, withoutLease: 1 });
  expect(await world.rows("select open_urls, closed_at from lease")).toEqual([
    { open_urls: 1, closed_at: null },
  ]);
});

test("two results for one URL in a batch: the first counts", async () => {
  const { crawlerId, leaseId } = await leased(root, "http://a.example/x");

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root }),
    arrivedResult({ sequence: 2, leaseId, url: root }),
  ]);

  expect(taken).toMatchObject({ stored: 1, withoutLease: 1 });
  expect(await world.rows("select open_urls, closed_at from lease")).toEqual([
    { open_urls: 1, closed_at: null },
  ]);
});

test("each outcome leaves the URL in the state that follows from it", async () => {
  const outcomes: readonly [FetchOutcome, string, number, string | null][] = [
    [{ type: "unchanged", status: 304 }, "due", 0, null],
    [{ type: "redirected", status: 301, location: "http://b.example/" }, "due", 0, "to http://b.example/"],
    [{ type: "http-error", status: 404, retryAfterSeconds: null }, "gone", 1, "status 404"],
    [{ type: "http-error", status: 410, retryAfterSeconds: null }, "gone", 1, "status 410"],
    [{ type: "http-error", status: 503, retryAfterSeconds: 60 }, "due", 1, "status 503"],
    [{ type: "refused-by-robots", rule: "Disallow: /" }, "refused", 0, "robots.txt: Disallow: /"],
    [
      { type: "refused-address", address: "10.0.0.1", block: "Private-Use" },
      "refused",
      0,
      "10.0.0.1 is a special-purpose address (Private-Use)",
    ],
    [
      { type: "unsupported", status: 200, contentType: "image/png" },
      "due",
      0,
      "content type image/png is not indexed",
    ],
    [{ type: "failed", blame: "network", code: "timeout", reason: "10 s" }, "due", 1, "timeout: 10 s"],
  ];
  const urls = outcomes.map((_, i) => `http://a.example/${i}`);
  const { crawlerId, leaseId } = await leased(...urls);

  await world.take(
    crawlerId,
    outcomes.map(([outcome], i) => arrivedResult({ sequence: i + 1, leaseId, url: urls[i]!, outcome })),
  );

  expect(
    await world.rows(
      "select url, state, failures, last_outcome, last_reason from frontier_url where visits = 1 order by url",
    ),
  ).toEqual(
    outcomes.map(([outcome, state, failures, last_reason], i) => ({
      url: urls[i],
      state,
      failures,
      last_outcome: outcome.type,
      last_reason,
    })),
  );
  expect(await counted("page")).toBe(0);
});

test("failures in a row are counted until an answer comes", async () => {
  const { crawlerId, leaseId } = await leased(root);
  const outcome: FetchOutcome = { type: "failed", blame: "target", code: "reset", reason: "" };
  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root, outcome })]);
  const tomorrow = secondsAfterNoon(86_400);
  const [second] = await world.lease(crawlerId, tomorrow);
  await world.take(
    crawlerId,
    [arrivedResult({ sequence: 2, leaseId: second!.leaseId, url: root, outcome })],
    tomorrow,
  );

  expect(await world.rows("select visits, failures from frontier_url")).toEqual([{ visits: 2, failures: 2 }]);
  const [third] = await world.lease(crawlerId, secondsAfterNoon(90_000));
  await world.take(crawlerId, [arrivedResult({ sequence: 3, leaseId: third!.leaseId, url: root })]);
  expect(await world.rows("select visits, failures from frontier_url")).toEqual([{ visits: 3, failures: 0 }]);
});

test("a second visit replaces the page's links and their back-links", async () => {
  const { crawlerId, leaseId } = await leased(root);
  const before = ["http://a.example/stays", "http://a.example/goes"];
  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root, links: before })]);
  await world.rows("update frontier_url set state = 'gone' where url <> 'http://a.example/'");
  await world.rows("update frontier_host set due_at = '2030-01-02T12:00:00Z'");
  const [second] = await world.lease(crawlerId, secondsAfterNoon(86_400));
  const after = ["http://a.example/stays", "http://a.example/comes"];

  await world.take(
    crawlerId,
    [arrivedResult({ sequence: 2, leaseId: second!.leaseId, url: root, links: after })],
    secondsAfterNoon(86_400),
  );

  expect(await world.rows("select url, back_links from frontier_url order by url")).toEqual([
    { url: root, back_links: 0 },
    { url: "http://a.example/comes", back_links: 1 },
    { url: "http://a.example/goes", back_links: 0 },
    { url: "http://a.example/stays", back_links: 1 },
  ]);
  const targets = await world.rows<{ to_url_hash: string }>("select to_url_hash from link");
  expect(targets.map((row) => row.to_url_hash).sort()).toEqual(after.map((url) => keyOf(url).urlHash).sort());
});

test("a page that is gone leaves the index, with its links and validators", async () => {
  const { crawlerId, leaseId } = await leased(root);
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x"] }),
  ]);
  const tomorrow = secondsAfterNoon(86_400);
  const leases = await world.lease(crawlerId, tomorrow);
  const outcome: FetchOutcome = { type: "http-error", status: 410, retryAfterSeconds: null };

  await world.take(
    crawlerId,
    [arrivedResult({ sequence: 2, leaseId: leases[0]!.leaseId, url: root, outcome, result: { etag: null } })],
    tomorrow,
  );

  expect(await counted("page")).toBe(0);
  expect(await counted("link")).toBe(0);
  expect(await world.rows(`select state, etag from frontier_url where url = '${root}'`)).toEqual([
    { state: "gone", etag: null },
  ]);
});

test("an unchanged page stays, and so do its validators", async () => {
  const { crawlerId, leaseId } = await leased(root);
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://b.example/"] }),
  ]);
  const tomorrow = secondsAfterNoon(86_400);
  const [lease] = await world.lease(crawlerId, tomorrow);
  expect(lease?.urls).toEqual([{ url: root, etag: '"one"', lastModified: null }]);

  const outcome: FetchOutcome = { type: "unchanged", status: 304 };
  await world.take(
    crawlerId,
    [arrivedResult({ sequence: 2, leaseId: lease!.leaseId, url: root, outcome, result: { etag: null } })],
    tomorrow,
  );

  expect(await counted("page")).toBe(1);
  expect(await counted("link")).toBe(1);
  expect(await world.rows(`select etag from frontier_url where url = '${root}'`)).toEqual([
    { etag: '"one"' },
  ]);
});

test("a result that the database cannot hold fails alone, to the crawler's blame", async () => {
  const { crawlerId, leaseId } = await leased(root, "http://a.example/x", "http://a.example/y");

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root }),
    arrivedResult({ sequence: 2, leaseId, url: "http://a.example/x", page: { lexemes: "'never ends" } }),
    arrivedResult({ sequence: 3, leaseId, url: "http://a.example/y", page: { title: "a \0 in it" } }),
  ]);

  expect(taken).toMatchObject({ stored: 3 });
  expect(await acknowledged()).toBe("3");
  expect(await world.rows("select url, title from page order by url")).toEqual([
    { url: root, title: "Two words" },
    { url: "http://a.example/y", title: "a  in it" },
  ]);
  expect(await world.rows("select outcome, blame from page_fetch where outcome <> 'fetched'")).toEqual([
    { outcome: "failed", blame: "crawler" },
  ]);
  expect(await world.rows("select ending from lease")).toEqual([{ ending: "done" }]);
});

test("a crawler whose clock is ahead does not keep its host waiting", async () => {
  const { crawlerId, leaseId } = await leased(root);
  const result = { fetchedAt: "2099-01-01T00:00:00Z", address: "not an address" };

  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root, result })]);

  expect(await world.rows("select not_before from frontier_host")).toEqual([
    { not_before: secondsAfterNoon(1) },
  ]);
  expect(await world.rows("select fetched_at, address from page_fetch")).toEqual([
    { fetched_at: noon, address: null },
  ]);
});

test("sequences without a result are acknowledged, and the acknowledgement never goes back", async () => {
  const { crawlerId } = await leased(root);
  const nothing = { crawlerId, spoolId, results: [], scope, now: noon };

  await world.results.take({ ...nothing, lastSequence: 7 });
  await world.results.take({ ...nothing, lastSequence: 3 });

  expect(await acknowledged()).toBe("7");
});

test("the latest fetches of a host come oldest first, and a day's fetches are counted by crawler", async () => {
  const urls = ["http://a.example/1", "http://a.example/2", "http://a.example/3"];
  const { crawlerId, leaseId } = await leased(...urls);
  await world.take(
    crawlerId,
    urls.map((url, i) =>
      arrivedResult({
        sequence: i + 1,
        leaseId,
        url,
        result: { fetchedAt: secondsAfterNoon(-10 * i).toISOString() },
      }),
    ),
  );

  const fetches = await world.results.recentFetches([keyOf(root).hostHash], 2);

  expect(fetches.map((one) => one.fetchedAt)).toEqual([secondsAfterNoon(-10), noon]);
  expect(fetches[0]).toMatchObject({ crawlerId, connectMs: 10, firstByteMs: 20, totalMs: 30 });
  expect(await world.results.fetchesSince(secondsAfterNoon(-10))).toEqual([{ crawlerId, pages: 2 }]);
});
