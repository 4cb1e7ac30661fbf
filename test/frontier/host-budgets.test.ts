/** Hosts' budgets in the database: they grow with good pages and shrink with bad ones; URLs beyond them are held. */
import { beforeEach, describe, expect, it } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { addUrls, lockHosts } from "#coordinator/crawl/frontier/admission-writes";
import { hostBudget, hostBudgetSql } from "#coordinator/crawl/frontier/budgets";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import { fetchAgain } from "#coordinator/crawl/frontier/lease-end-writes";
import { createSubmissionStore } from "#coordinator/crawl/submissions/submission-store";
import { inTransaction } from "#coordinator/database/transaction";
import { pageOf } from "#coordinator/tell/search/page-reads";
import { answerWho } from "#coordinator/tell/who/answer";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { newShippingWorld, type Shipped, text } from "../results/shipping-world.ts";
import { everyRead } from "../support/every-read.ts";
import { shownAs } from "../support/shown-as.ts";
import { keyOf, noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";

const world = worldOfFile(newShippingWorld);
const root = "http://a.example/";
const wide = { pagesPerHost: 1000, maxDepth: 1000 };
const pages = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => `${root}${from + index}`);

/** Ships the same for every URL that is due, until nothing is or `rounds` are over; gives the URLs fetched. */
async function crawled(
  pageOf: (url: string, index: number) => Shipped,
  limits: { readonly rounds: number } & Partial<typeof scope>,
): Promise<number> {
  const { rounds, ...scopeNow } = limits;
  const north = await world.delegatedHost("north", root);
  let fetched = 0;
  for (let round = 0; round < rounds; round++) {
    const due = await world.rows<{ url: string }>(
      "select url from frontier_url where state = 'due' and visits = 0 order by depth, url",
    );
    if (due.length === 0) break;
    const given = due.map(({ url }) => [url, pageOf(url, fetched++)] as const);
    await world.ship(north, Object.fromEntries(given), secondsAfterNoon(round), { ...wide, ...scopeNow });
  }
  return fetched;
}

const who = async (question: string, pagesPerHost = 1000) =>
  await answerWho(
    question,
    {
      reads: everyRead(world.pool, () => performance.now()),
      resolver: { resolve: async () => ({ failed: "nobody asks" }) },
      scope: { ...scope, pagesPerHost },
    },
    noon,
  );
const wordsOf = async (question: string, code: string) =>
  (await who(question)).standing.find((line) => line.code === code)?.words;

describe("a host", () => {
  it("with good pages is crawled completely, as held URLs are admitted when the budget grows", async () => {
    const fetched = await crawled(
      (url, index) => ({ page: text(index), links: url === root ? pages(400) : [] }),
      { rounds: 20 },
    );

    expect(fetched).toBe(401);
    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 401, held_urls: 0, good_pages: 401 });
  });

  it("that is an endless trap of near-duplicates stops, and says why", async () => {
    const endless = (url: string, index: number): Shipped => ({
      page: text(index < 5 ? index : 0),
      links: pages(20, 20 * (Number(url.slice(root.length)) + 1)),
    });

    const fetched = await crawled(endless, { rounds: 50 });

    expect(fetched).toBeLessThan(80);
    const host = await who("a.example");
    expect(host.host?.budget.pages).toMatchObject({ good: 5, nearDuplicates: fetched - 5 });
    expect(await wordsOf("a.example", "host-budget-used-up")).toMatch(
      /^\d{3} URLs of it are held back: the host's budget of 10 URLs is used up: of \d\d URLs that were judged, 8\d % are near-duplicates of others\.$/,
    );
    const [held] = await world.urls("held");
    expect(await wordsOf(held!, "host-budget-used-up")).toContain("It is held back: the host's budget of");
    expect((await who(held!)).url?.state).toBe("held");
    expect(await wordsOf(`${root}unheard-of`, "host-budget-used-up")).toContain(
      "is not in the frontier, and the host's",
    );
  });

  it("holds back no more than a thousand URLs", async () => {
    const north = await world.delegatedHost("north", root);

    await world.ship(north, { [root]: { links: pages(1500) } }, noon, { ...wide, pagesPerHost: 10_000 });

    const host = await world.hostRow("a.example");
    expect(host).toMatchObject({ held_urls: 1000 });
    const leftOut = 1501 - 1000 - Number(host?.url_count);
    expect((await who("a.example")).host?.budget.leftOutUrls).toBe(leftOut);
    const wordsUnder = async (limit: number) =>
      (await who("a.example", limit)).standing.find(({ code }) => code === "host-urls-left-out")?.words;
    const whatThen =
      "A skipped URL is not kept; it is admitted when a page links to it again and there is room.";
    expect(await wordsUnder(10_000)).toBe(
      `URLs skipped ${leftOut} times: its budget is used up, and as many URLs as may wait are held back. ${whatThen}`,
    );
    expect(await wordsUnder(1000)).toContain("times: scope.pagesPerHost allows it 1,000 URLs. A skipped URL");
    expect(shownAs(whoOperations.who, await who("a.example")).words).toContain(
      `, 1,000 held back, URLs skipped ${leftOut} times`,
    );
    expect(shownAs(whoOperations.who, await who("a.example")).page).toContain(
      `URLs skipped ${leftOut} times`,
    );
  });

  it("never exceeds the operator's limit, held URLs included", async () => {
    const north = await world.delegatedHost("north", root);

    await world.ship(north, { [root]: { page: text(1), links: pages(300) } }, noon, {
      ...wide,
      pagesPerHost: 60,
    });

    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 54, held_urls: 6 });
  });

  it("keeps admitted URLs when its pages turn bad, and earns again when they turn good", async () => {
    const north = await world.delegatedHost("north", root);
    const due = pages(40);
    await world.ship(north, { [root]: { page: text(0), links: due } }, noon, wide);
    const all = (page: (index: number) => Shipped) =>
      Object.fromEntries(due.map((url, index) => [url, page(index)]));
    const missing = { type: "http-error", status: 404, retryAfterSeconds: null } as const;

    await world.ship(
      north,
      all(() => ({ outcome: missing })),
      secondsAfterNoon(1),
      wide,
    );
    const bad = await world.hostRow("a.example");
    await world.ship(
      north,
      all((index) => ({ page: text(index + 1) })),
      secondsAfterNoon(2 * 86_400),
      wide,
    );

    expect(bad).toMatchObject({ url_count: 41, failed_urls: 40, good_pages: 1 });
    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 41, failed_urls: 0, good_pages: 41 });
  });

  it("earns by links from other hosts, and loses that when the links go", async () => {
    const north = await world.delegatedHost("north", root, "http://b.example/");
    const other = "http://b.example/";

    await world.ship(north, { [other]: { links: [root, `${root}x`, `${other}own`] } }, noon, wide);
    const linked = await world.hostRow("a.example");
    await world.ship(north, { [other]: { links: [`${root}x`] } }, secondsAfterNoon(7 * 86_400), wide);

    expect(linked).toMatchObject({ outside_links: 2 });
    expect(await world.hostRow("a.example")).toMatchObject({ outside_links: 1 });
    expect(await world.hostRow("b.example")).toMatchObject({ outside_links: 0 });
  });

  it("pays once for the links that its crawler left out as traps", async () => {
    const north = await world.delegatedHost("north", root);
    const page = { ...text(1), trappedLinks: 500 };

    await world.ship(north, { [root]: { page } }, noon);
    await world.ship(north, { [root]: { page } }, secondsAfterNoon(7 * 86_400));

    expect(await world.hostRow("a.example")).toMatchObject({ trapped_links: 500, good_pages: 1 });
    expect((await who("a.example")).host?.budget.earnedUrls).toBe(10);
  });
});

it("the budget is the same in SQL as by the rule", async () => {
  const random = seededRandom(5);
  const whole = (most: number) => Math.floor(random() * most);
  const cases = Array.from({ length: 200 }, () => ({
    good: whole(300),
    nearDuplicates: whole(200),
    notFound: whole(50),
    empty: whole(50),
    failed: whole(100),
    trappedLinks: whole(5000),
    outsideLinks: whole(400),
    limit: 1 + whole(3000),
  }));

  const { rows } = await world.pool.query<{ urls: number }>(
    `select ${hostBudgetSql("h", "h.operator_limit")} as urls
     from json_to_recordset($1) as h (good_pages int, near_duplicates int, not_found_pages int, empty_pages int,
       failed_urls int, trapped_links int, outside_links int, operator_limit int)`,
    [
      JSON.stringify(
        cases.map((one) => ({
          good_pages: one.good,
          near_duplicates: one.nearDuplicates,
          not_found_pages: one.notFound,
          empty_pages: one.empty,
          failed_urls: one.failed,
          trapped_links: one.trappedLinks,
          outside_links: one.outsideLinks,
          operator_limit: one.limit,
        })),
      ),
    ],
  );

  expect(rows.map(({ urls }) => urls)).toEqual(cases.map(({ limit, ...pages }) => hostBudget(pages, limit)));
});

describe("URLs over the budget", () => {
  let north: CrawlerId;
  beforeEach(async () => {
    await world.rows("delete from channel");
    north = await world.delegatedHost("north", root);
  });

  const wide = { pagesPerHost: 1000, maxDepth: 1000 };
  const pages = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => `${root}${from + index}`);
  const days = (count: number) => secondsAfterNoon(count * 7 * 86_400);
  /** The root has two words, which leaves the host 48 URLs; beyond them these are held. */
  const ship = async (links: readonly string[], at = noon, page: object = {}) =>
    await world.ship(north, { [root]: { links, page } }, at, wide);
  const counts = async () => {
    const { url_count: urls, held_urls: held } = (await world.hostRow("a.example"))!;
    return { urls, held };
  };
  const rowsOf = async (table: string) =>
    (await world.rows<{ n: number }>(`select count(*)::int as n from ${table}`))[0]!.n;
  const held = async () => await world.urls("held");

  describe("held URLs", () => {
    it("share one row, and take none of the frontier", async () => {
      await ship(pages(80));

      expect([await rowsOf("frontier_url"), await rowsOf("held_urls"), await rowsOf("held_url")]).toEqual([
        48, 1, 33,
      ]);
      expect(await counts()).toEqual({ urls: 48, held: 33 });
      expect(await held()).toEqual(pages(33, 47).sort());
    });

    it("are held once, however often links or people name them", async () => {
      await ship(pages(80));
      await ship(pages(90), days(1));
      await world.frontier.admit(seeds(...pages(90)), { ...scope, ...wide }, days(1));

      // What nobody knew comes in by people's hands.
      expect(await counts()).toEqual({ urls: 48, held: 43 });
      expect(await held()).toEqual(pages(43, 47).sort());
    });

    it("are admitted as their host earns them: shallowest first, then oldest", async () => {
      await ship(pages(60));
      await world.ship(north, { [`${root}0`]: { links: pages(10, 100) } }, secondsAfterNoon(1), wide);
      await ship(pages(70), days(1));
      const before = await held();

      // Four for each of three good pages, and the two that the root had cost.
      const good = Object.fromEntries([1, 2].map((page) => [`${root}${page}`, { page: text(page) }]));
      await world.ship(north, { ...good, [root]: { page: text(0), links: pages(70) } }, days(2), wide);

      expect(before).toHaveLength(33);
      // Two were taken by the empty page.
      expect(await counts()).toEqual({ urls: 60, held: 21 });
      expect(await held()).toEqual([...pages(11, 59), ...pages(10, 100)].sort());
      const [found] = await world.rows(
        `select state, depth, back_links, discovered_at, next_fetch_at from frontier_url where url = '${root}47'`,
      );
      expect(found).toEqual({
        ...{ state: "due", depth: 1, back_links: 1, discovered_at: noon, next_fetch_at: noon },
      });
    });

    it("stay within their rows' bounds, whatever their lengths", async () => {
      const long = Array.from({ length: 150 }, (_, index) => `${root}${index}/${"x".repeat(2000)}`);

      await ship(long);
      const lengths = await world.rows<{ urls: number; chars: number }>(
        "select cardinality(url_hashes) as urls, length(urls) as chars from held_urls",
      );

      expect(Math.max(...lengths.map(({ chars }) => chars))).toBeLessThan(16_384 + 2048);
      expect(lengths.reduce((sum, { urls }) => sum + urls, 0)).toBe(103);
      await world.ship(
        north,
        Object.fromEntries(long.slice(0, 40).map((url, page) => [url, { page: text(page) }])),
        days(1),
        wide,
      );
      expect(await counts()).toEqual({ urls: 151, held: 0 });
      expect(await rowsOf("held_urls")).toBe(0);
    });

    it("that an older coordinator also admitted are admitted once", async () => {
      await ship(pages(60));
      await world.rows(
        `insert into frontier_url (host_hash, url_hash, url, depth)
       select host_hash, url_hash, url, 7 from held_url where url = '${root}50'`,
      );

      await ship(pages(60), days(1), text(0));

      expect(await rowsOf("frontier_url")).toBe(54);
      expect((await counts()).held).toBe(7);
      expect(await world.urlRow(`${root}50`)).toMatchObject({ depth: 7 });
    });

    it("are admitted only if their channel includes them by then", async () => {
      await ship(pages(53));
      const rules = { prefixes: ["a.example"], seeds: [], include: [], exclude: ["/50"], maxDepth: null };
      await createChannelStore(world.pool).add(readChannel(rules), noon);

      await ship(pages(50), days(1), text(0));

      expect(await counts()).toEqual({ urls: 53, held: 0 });
      expect(await world.urlRow(`${root}50`)).toBeUndefined();
      expect(await world.urlRow(`${root}51`)).toMatchObject({ state: "due" });
    });

    it("are fetched now when somebody asks for them, and the others wait", async () => {
      await ship(pages(60));

      const due = await fetchAgain(world.pool, [`${root}50`, `${root}55`, `${root}999`].map(keyOf), days(1));

      expect(due).toBe(2);
      expect(await counts()).toEqual({ urls: 50, held: 11 });
      expect(await held()).toEqual(pages(13, 47).filter((url) => !/5[05]$/.test(url)));
      expect(await world.urlRow(`${root}55`)).toMatchObject({ state: "due", depth: 1, back_links: 1 });
      await fetchAgain(world.pool, pages(60).map(keyOf), days(1));
      expect([await counts(), await rowsOf("held_urls")]).toEqual([{ urls: 61, held: 0 }, 0]);
    });

    it("are held once and within the limit under concurrent finds", async () => {
      const found = pages(1500).map((url) => ({ key: keyOf(url), depth: 1 }));
      const limits = { pagesPerHost: 10_000, budgeted: true, links: [], now: noon };

      await Promise.all(
        [0, 300, 0, 600].map(
          async (from) =>
            await inTransaction(world.pool, async (client) => {
              await lockHosts(client, [keyOf(root).hostHash]);
              await addUrls(client, found.slice(from, from + 900), limits);
            }),
        ),
      );

      expect(await counts()).toEqual({ urls: 50, held: 1000 });
      expect(new Set([...(await held()), ...(await world.urls())]).size).toBe(1050);
    });

    it("stay held while their host is refused", async () => {
      await ship(pages(60));
      await world.rows("update frontier_host set state = 'refused'");

      expect(await fetchAgain(world.pool, [keyOf(`${root}50`)], days(1))).toBe(0);

      expect(await counts()).toEqual({ urls: 48, held: 13 });
    });
  });

  describe("whoever asks about a held URL", () => {
    it("learns how it was found, and that it is held", async () => {
      await ship(pages(60));
      const reports = everyRead(world.pool, () => performance.now());

      const report = await reports.urlReport(keyOf(`${root}50`), noon);
      const host = await reports.hostReport(keyOf(root).hostHash, noon);

      expect(report).toMatchObject({ state: "held", foundBy: "link", depth: 1, backLinks: 1, visits: 0 });
      expect(report?.discoveredAt).toBe(noon.toISOString());
      expect(host?.urlStates).toEqual({ due: 47, scheduled: 1, held: 13 });
      expect(await reports.crawlTotals()).toMatchObject({ urls: 61, urlsDue: 48 });
    });

    it("who submits it learns that it is known and waits", async () => {
      await ship(pages(60));
      const store = createSubmissionStore(world.pool);
      const submissionId = await store.begin({ deed: "add", submittedBy: "anna" }, noon);
      const key = keyOf(`${root}50`);

      const batch = [{ place: 1, url: key.url, key, fault: null }];
      const answers = await store.take(submissionId, batch, { deed: "add", scope, now: noon });
      const [followed] = await store.urls(submissionId, { after: 0, limit: 10, now: noon });

      expect(answers).toMatchObject([{ answer: "known", reason: null }]);
      expect(followed).toMatchObject({ state: "held", words: "held until its host's budget grows" });
    });

    it("sees it among the links of the page that named it", async () => {
      await ship(pages(60));

      const page = await pageOf(world.pool, keyOf(root), { fetches: 0, outLinks: 0, inLinks: 0 });
      const none = await pageOf(world.pool, keyOf(`${root}50`), { fetches: 0, outLinks: 0, inLinks: 0 });

      if ("type" in page) throw new Error(page.type);
      expect(page.outLinks.items.map(({ state }) => state)).not.toContain("unknown");
      expect(none).toEqual({ type: "no-page", outcome: null, at: null });
    });
  });
});
