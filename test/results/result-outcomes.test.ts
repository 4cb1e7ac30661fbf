/** After a result: the state of its URL, its page, its links, and the fetches of its host. */
import { expect, test } from "vitest";
import type { FetchOutcome } from "#protocol/result";
import { arrivedResult, keyOf, noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();

const root = "http://a.example/";

const counted = async (table: string) =>
  (await world.rows<{ n: number }>(`select count(*)::int n from ${table}`))[0]?.n;

test("each outcome leads to its state of the URL", async () => {
  const outcomes: readonly [FetchOutcome, string, number, string | null][] = [
    [{ type: "unchanged", status: 304 }, "due", 0, null],
    [{ type: "redirected", status: 301, location: "http://b.example/" }, "due", 0, "to http://b.example/"],
    [{ type: "http-error", status: 404, retryAfterSeconds: null }, "due", 1, "status 404"],
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
  const { crawlerId, leaseId } = await world.leased(...urls);

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

test("failures in a row are counted until there is an answer", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
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
  const later = secondsAfterNoon(90_000);
  const [third] = await world.lease(crawlerId, later);
  await world.take(crawlerId, [arrivedResult({ sequence: 3, leaseId: third!.leaseId, url: root })], later);
  expect(await world.rows("select visits, failures from frontier_url")).toEqual([{ visits: 3, failures: 0 }]);
});

test("a second visit replaces the page's links and their back-links", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
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
  const { crawlerId, leaseId } = await world.leased(root);
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x"] }),
  ]);
  const tomorrow = secondsAfterNoon(86_400);
  const leases = await world.lease(crawlerId, tomorrow);
  const outcome: FetchOutcome = { type: "http-error", status: 410, retryAfterSeconds: null };

  await world.take(
    crawlerId,
    [
      arrivedResult({
        sequence: 2,
        leaseId: leases[0]!.leaseId,
        url: root,
        outcome,
        result: { etag: null },
        again: () => ({ at: tomorrow, isGone: true }),
      }),
    ],
    tomorrow,
  );

  expect(await counted("page")).toBe(0);
  expect(await counted("link")).toBe(0);
  expect(await world.rows(`select state, etag from frontier_url where url = '${root}'`)).toEqual([
    { state: "gone", etag: null },
  ]);
});

test("an unchanged page stays, and so do its validators", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://b.example/"] }),
  ]);
  const tomorrow = secondsAfterNoon(86_400);
  const [lease] = await world.lease(crawlerId, tomorrow);
  expect(lease?.urls).toEqual([{ url: root, etag: '"one"', lastModified: null, digest: "0".repeat(64) }]);

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

test("a crawler whose clock is ahead does not keep its host waiting", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  const result = { fetchedAt: "2099-01-01T00:00:00Z", address: "not an address" };

  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root, result })]);

  expect(await world.rows("select not_before from frontier_host")).toEqual([
    { not_before: secondsAfterNoon(1) },
  ]);
  expect(await world.rows("select fetched_at, address from page_fetch")).toEqual([
    { fetched_at: noon, address: null },
  ]);
});

test("the latest fetches of a host come oldest first, and a day's fetches are counted by crawler", async () => {
  const urls = ["http://a.example/1", "http://a.example/2", "http://a.example/3"];
  const { crawlerId, leaseId } = await world.leased(...urls);
  await world.take(
    crawlerId,
    urls.map((url, i) =>
      arrivedResult({
        sequence: i + 1,
        leaseId,
        url,
        result: { fetchedAt: secondsAfterNoon(30 - 10 * i).toISOString() },
      }),
    ),
    secondsAfterNoon(40),
  );

  const fetches = await world.results.recentFetches([keyOf(root).hostHash], 2);

  expect(fetches.map((one) => one.fetchedAt)).toEqual([20, 30].map(secondsAfterNoon));
  expect(fetches[0]).toMatchObject({ crawlerId, connectMs: 10, firstByteMs: 20, totalMs: 30 });
  expect(await world.results.fetchesSince(secondsAfterNoon(20))).toEqual([
    { crawlerId, pages: 2, bytes: expect.any(Number) },
  ]);
});

test("earlier failures decide when a URL is fetched again, and whether it is gone", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  const asked: number[] = [];
  const again = (failuresBefore: number) => {
    asked.push(failuresBefore);
    return { at: secondsAfterNoon(60 * 2 ** failuresBefore), isGone: failuresBefore >= 2 };
  };
  const outcome: FetchOutcome = { type: "http-error", status: 404, retryAfterSeconds: null };
  const states: unknown[] = [];

  let lease = leaseId;
  for (const sequence of [1, 2, 3]) {
    const at = secondsAfterNoon(sequence * 1000);
    await world.take(crawlerId, [arrivedResult({ sequence, leaseId: lease, url: root, outcome, again })], at);
    states.push(...(await world.rows("select state, failures from frontier_url")));
    lease = (await world.lease(crawlerId, at))[0]?.leaseId ?? lease;
  }

  // Finally also with one failure fewer: whether it was gone before.
  expect(asked).toEqual([0, 1, 2, 1]);
  expect(states).toEqual([
    { state: "due", failures: 1 },
    { state: "due", failures: 2 },
    { state: "gone", failures: 3 },
  ]);
});

test("URLs disallowed by robots.txt or refused by address, and those gone, are due again after their wait", async () => {
  const urls = [root, "http://a.example/private", "http://a.example/gone"] as const;
  const { crawlerId, leaseId } = await world.leased(...urls);
  const robots: FetchOutcome = { type: "refused-by-robots", rule: "Disallow: /private" };
  const address: FetchOutcome = { type: "refused-address", address: "10.0.0.1", block: "Private-Use" };
  await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, outcome: address }),
    arrivedResult({ sequence: 2, leaseId, url: urls[1], outcome: robots }),
    arrivedResult({
      sequence: 3,
      leaseId,
      url: urls[2],
      outcome: { type: "http-error", status: 410, retryAfterSeconds: null },
      again: () => ({ at: secondsAfterNoon(100_000), isGone: true }),
    }),
  ]);

  const early = await world.frontier.reopenRefused(secondsAfterNoon(86_399));
  const later = await world.frontier.reopenRefused(secondsAfterNoon(86_400));

  const gone = await world.frontier.reopenRefused(secondsAfterNoon(100_000));

  expect([early, later, gone]).toEqual([0, 2, 1]);
  const [lease] = await world.lease(crawlerId, secondsAfterNoon(100_001));
  expect(lease?.urls.map(({ url }) => url).sort()).toEqual([...urls].sort());
});
