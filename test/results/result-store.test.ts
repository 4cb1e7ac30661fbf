/** Results: exactly once, only under a lease, and their effect on the frontier. */
import { expect, test } from "vitest";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { asLeaseId } from "#core/ids";
import { createPool } from "#db/server-database";
import {
  arrivedResult,
  batchOf,
  noon,
  scope,
  secondsAfterNoon,
  spoolOf,
  storeWorld,
} from "../support/store-world.ts";

const world = storeWorld();

const root = "http://a.example/";

const acknowledged = async () =>
  (await world.rows<{ n: string }>("select acknowledged_sequence n from spool"))[0]?.n;
const counted = async (table: string) =>
  (await world.rows<{ n: number }>(`select count(*)::int n from ${table}`))[0]?.n;

test("a fetched page is stored with its links, and the last URL closes the lease", async () => {
  const { crawlerId, leaseId } = await world.leased(root);

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root, links: ["http://a.example/x", "http://b.example/"] }),
  ]);

  expect(taken).toEqual({ stored: 1, duplicates: 0, withoutLease: 0, newUrls: 1, posted: 1 });
  expect(await acknowledged()).toBe("1");
  expect(
    await world.rows(
      "select url, crawler_id, title, words, text from page join document using (host_hash, url_hash)",
    ),
  ).toEqual([{ url: root, crawler_id: crawlerId, title: "Two words", words: 2, text: "Two words" }]);
  expect(await world.rows("select outcome, status, host(address) address, total_ms from page_fetch")).toEqual(
    [{ outcome: "fetched", status: 200, address: "198.51.100.7", total_ms: 30 }],
  );
  expect(await counted("link")).toBe(2);
  expect(await world.rows("select ending, open_urls, closed_at from lease")).toEqual([
    { ending: "done", open_urls: 0, closed_at: noon },
  ]);
  expect(
    await world.rows(
      `select state, visits, failures, last_outcome, last_status, etag, next_fetch_at, last_fetched_at
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
      next_fetch_at: secondsAfterNoon(86_400),
      last_fetched_at: noon,
    },
  ]);
});

test("the host rests as long as it asked, and then its new link is due", async () => {
  const { crawlerId, leaseId } = await world.leased(root);

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
  const { crawlerId, leaseId } = await world.leased(root);
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
  const { crawlerId, leaseId } = await world.leased(root);
  const result = arrivedResult({ sequence: 1, leaseId, url: root });

  const first = await world.take(crawlerId, [result, result]);
  const again = await world.take(crawlerId, [result]);

  expect(first).toMatchObject({ stored: 1, duplicates: 1, withoutLease: 0 });
  expect(again).toEqual({ stored: 0, duplicates: 1, withoutLease: 0, newUrls: 0 });
  expect(await counted("page_fetch")).toBe(1);
});

test("the same batch sent twenty times at once counts once", async () => {
  const urls = Array.from({ length: 10 }, (_, i) => `http://a.example/${i}`);
  const { crawlerId, leaseId } = await world.leased(...urls);
  const batch = urls.map((url, i) =>
    arrivedResult({ sequence: i + 1, leaseId, url, links: ["http://b.example/"] }),
  );
  await world.take(crawlerId, []);

  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => await world.take(crawlerId, batch)),
  );

  await world.applyOutbox();

  expect(answers.reduce((sum, one) => sum + one.stored, 0)).toBe(10);
  expect(answers.reduce((sum, one) => sum + one.duplicates, 0)).toBe(190);
  expect(await counted("page_fetch")).toBe(10);
  expect(await world.rows("select back_links from frontier_url where url = 'http://b.example/'")).toEqual([
    { back_links: 10 },
  ]);
  expect(await world.rows("select open_urls, ending from lease")).toEqual([{ open_urls: 0, ending: "done" }]);
});

test("twenty simultaneous spools whose pages link to each other's hosts do not block each other", async () => {
  const hosts = Array.from({ length: 20 }, (_, i) => `http://h${i}.example/`);
  const north = await world.delegatedHost("north", ...hosts);
  const leases = await world.lease(north, noon, { hosts: 20, urlsPerHost: 5 });

  const answers = await Promise.all(
    leases.map(async (lease, i) => {
      const links = [...hosts.slice(i), ...hosts.slice(0, i)].map((host) => `${host}${i % 4}`);
      const given = { sequence: 1, leaseId: lease.leaseId, url: lease.urls[0]!.url, links };
      return world.results.take(batchOf(north, [arrivedResult(given)], { spoolId: spoolOf(i) }));
    }),
  );

  expect(answers.map((one) => one.stored)).toEqual(hosts.map(() => 1));
  expect(await counted("page")).toBe(20);
  expect(await counted("frontier_url")).toBe(20 + answers.reduce((sum, one) => sum + one.newUrls, 0));
});

test("a result after the lease returned is dropped and acknowledged", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  await world.frontier.returnExpired(secondsAfterNoon(61));

  const taken = await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: root })]);

  expect(taken).toEqual({ stored: 0, duplicates: 0, withoutLease: 1, newUrls: 0 });
  expect(await acknowledged()).toBe("1");
  expect(await counted("page")).toBe(0);
  expect(await world.rows("select state, visits from frontier_url")).toEqual([{ state: "due", visits: 0 }]);
});

test("a result past the deadline counts until the lease is taken back", async () => {
  const { crawlerId, leaseId } = await world.leased(root);

  const taken = await world.take(
    crawlerId,
    [arrivedResult({ sequence: 1, leaseId, url: root })],
    secondsAfterNoon(61),
  );

  expect(taken.stored).toBe(1);
});

test("of a result and the lease's expiry at the same time, exactly one counts", async () => {
  const urls = Array.from({ length: 10 }, (_, i) => `http://h${i}.example/`);
  const crawlerId = await world.delegatedHost("north", ...urls);
  const leases = await world.lease(crawlerId);

  const [taken, expired] = await Promise.all([
    Promise.all(
      leases.map(async (lease, i) =>
        world.results.take(
          batchOf(
            crawlerId,
            [arrivedResult({ sequence: 1, leaseId: lease.leaseId, url: lease.urls[0]!.url })],
            { spoolId: spoolOf(i), now: secondsAfterNoon(61) },
          ),
        ),
      ),
    ),
    world.frontier.returnExpired(secondsAfterNoon(61)),
  ]);

  const stored = taken.reduce((sum, one) => sum + one.stored, 0);
  expect(stored + expired).toBe(10);
  expect(await counted("page")).toBe(stored);
  expect(await counted("frontier_url where state = 'due'")).toBe(10);
  expect(await counted("lease where closed_at is null or open_url_hashes <> '{}'")).toBe(0);
});

test("no result counts under another crawler's lease or for a URL outside the lease", async () => {
  const crawlerId = await world.delegatedHost("north", root, "http://b.example/");
  const [lease] = await world.lease(crawlerId, noon, { hosts: 1, urlsPerHost: 1 });
  const leaseId = lease!.leaseId;
  const held = lease!.urls[0]!.url;
  const due = held === root ? "http://b.example/" : root;
  const south = await world.crawler("south");

  const stranger = await world.take(south, [arrivedResult({ sequence: 1, leaseId, url: held })]);
  const elsewhere = await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId, url: due })]);

  expect(stranger).toMatchObject({ stored: 0, withoutLease: 1 });
  expect(elsewhere).toMatchObject({ stored: 0, withoutLease: 1 });
  expect(await world.rows("select open_urls, closed_at from lease")).toEqual([
    { open_urls: 1, closed_at: null },
  ]);
});

test("an impossible lease number is refused", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  const tooLarge = "9".repeat(19);

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId: tooLarge, url: root }),
    arrivedResult({ sequence: 2, leaseId, url: root }),
  ]);

  expect(taken).toMatchObject({ stored: 1, withoutLease: 1 });
  expect(await world.frontier.returnLease({ leaseId: asLeaseId(tooLarge), crawlerId }, noon)).toBe(false);
  expect(await world.frontier.returnLeasesOf(crawlerId, noon, [asLeaseId(tooLarge)])).toBe(0);
});

test("two results for one URL in a batch: the first counts", async () => {
  const { crawlerId, leaseId } = await world.leased(root, "http://a.example/x");

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root }),
    arrivedResult({ sequence: 2, leaseId, url: root }),
  ]);

  expect(taken).toMatchObject({ stored: 1, withoutLease: 1 });
  expect(await world.rows("select open_urls, closed_at from lease")).toEqual([
    { open_urls: 1, closed_at: null },
  ]);
});

test("a result that the database cannot store fails alone, as the crawler's fault", async () => {
  const { crawlerId, leaseId } = await world.leased(root, "http://a.example/x", "http://a.example/y");

  const taken = await world.take(crawlerId, [
    arrivedResult({ sequence: 1, leaseId, url: root }),
    arrivedResult({ sequence: 2, leaseId, url: "http://a.example/x", page: { textSearchConfig: "\0" } }),
    arrivedResult({
      sequence: 3,
      leaseId,
      url: "http://a.example/y",
      page: { title: "a \0 in it", text: "b \0 \ud800c" },
    }),
  ]);

  expect(taken).toMatchObject({ stored: 3 });
  expect(await acknowledged()).toBe("3");
  expect(
    await world.rows(
      "select url, title, text from page join document using (host_hash, url_hash) order by url",
    ),
  ).toEqual([
    { url: root, title: "Two words", text: "Two words" },
    { url: "http://a.example/y", title: "a  in it", text: "b  \ufffdc" },
  ]);
  expect(await world.rows("select outcome, blame from page_fetch where outcome <> 'fetched'")).toEqual([
    { outcome: "failed", blame: "crawler" },
  ]);
  expect(await world.rows("select ending from lease")).toEqual([{ ending: "done" }]);
});

test("a text is written again only when it changed", async () => {
  const { crawlerId, leaseId } = await world.leased(root);
  const visit = async (sequence: number, held: string, text: string) => {
    const page = { text, title: `Visit ${sequence}`, digest: `${sequence}`.repeat(64) };
    await world.take(crawlerId, [arrivedResult({ sequence, leaseId: held, url: root, page })]);
    return (await world.rows<{ written: string }>("select xmin::text as written, text from document"))[0]!;
  };
  const again = async () => (await world.lease(crawlerId, secondsAfterNoon(100_000)))[0]!.leaseId;

  const first = await visit(1, leaseId, "The ferries sail");
  const second = await visit(2, await again(), "The ferries sail");
  const third = await visit(3, await again(), "The ferries stay");

  expect(second).toEqual(first);
  expect(third).toMatchObject({ text: "The ferries stay" });
  expect(third.written).not.toBe(first.written);
  expect(await world.rows("select title from page")).toEqual([{ title: "Visit 3" }]);
});

test("sequences without a result are acknowledged, and the acknowledgement never goes back", async () => {
  const { crawlerId } = await world.leased(root);

  for (const lastSequence of [7, 3]) await world.results.take(batchOf(crawlerId, [], { lastSequence }));

  expect(await acknowledged()).toBe("7");
});

test("each connection prepares the same statements for all batches and plans none anew", async () => {
  const pool = createPool(world.database.url, 1);
  const store = createResultStore(pool);
  const urls = Array.from({ length: 9 }, (_, at) => `${root}${at}`);
  // Its last URL gets no result, because the end of a lease takes one more statement.
  const { crawlerId, leaseId } = await world.leased(...urls, `${root}last`);
  const plans = async () =>
    (
      await pool.query(
        `select count(*)::int as statements, bool_or(statement like '%into page_fetch%') as "ofFetches",
           sum(custom_plans)::int as anew, sum(generic_plans)::int > 0 as once
         from pg_prepared_statements`,
      )
    ).rows;
  const take = async (from: number, to: number) => {
    const results = urls.slice(from, to).map((url, at) => {
      const links = Array.from({ length: (from + at) % 4 }, (_, link) => `${root}of-${from + at}/${link}`);
      return arrivedResult({ sequence: from + at + 1, leaseId, url, links });
    });
    await store.take(batchOf(crawlerId, results));
  };

  await take(0, 1);
  await take(1, 4);
  const first = await plans();
  await take(4, 9);

  expect(await counted("page")).toBe(9);
  expect(first).toEqual([{ statements: expect.any(Number), ofFetches: true, anew: 0, once: true }]);
  expect(await plans()).toEqual(first);
  await pool.end();
});
