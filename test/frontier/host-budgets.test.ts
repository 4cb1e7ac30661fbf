/** Budgets of hosts: they grow with pages of quality and shrink with trash; what is found beyond them waits. */
import { describe, expect, it } from "vitest";
import { hostBudget } from "#coordinator/crawl/frontier/budgets";
import { hostBudgetSql } from "#coordinator/crawl/frontier/host-budget-sql";
import { answerWho } from "#coordinator/tell/who/answer";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { seededRandom } from "#core/random";
import { newShippingWorld, type Shipped, text } from "../results/shipping-world.ts";
import { everyRead } from "../support/every-read.ts";
import { shownAs } from "../support/shown-as.ts";
import { noon, scope, secondsAfterNoon, worldOfFile } from "../support/store-world.ts";

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
  it("of good pages is crawled whole: what was held comes in as the budget grows", async () => {
    const fetched = await crawled(
      (url, index) => ({ page: text(index), links: url === root ? pages(400) : [] }),
      { rounds: 20 },
    );

    expect(fetched).toBe(401);
    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 401, held_urls: 0, good_pages: 401 });
  });

  it("that is a trap of near-duplicates without end stops, and says why", async () => {
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

  it("never gets more than the operator's limit, held ones and all", async () => {
    const north = await world.delegatedHost("north", root);

    await world.ship(north, { [root]: { page: text(1), links: pages(300) } }, noon, {
      ...wide,
      pagesPerHost: 60,
    });

    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 54, held_urls: 6 });
  });

  it("loses nothing that was admitted when its pages turn bad, and earns again when they turn good", async () => {
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

  it("earns by links from other hosts, and loses that when they go", async () => {
    const north = await world.delegatedHost("north", root, "http://b.example/");
    const other = "http://b.example/";

    await world.ship(north, { [other]: { links: [root, `${root}x`, `${other}own`] } }, noon, wide);
    const linked = await world.hostRow("a.example");
    await world.ship(north, { [other]: { links: [`${root}x`] } }, secondsAfterNoon(7 * 86_400), wide);

    expect(linked).toMatchObject({ outside_links: 2 });
    expect(await world.hostRow("a.example")).toMatchObject({ outside_links: 1 });
    expect(await world.hostRow("b.example")).toMatchObject({ outside_links: 0 });
  });

  it("pays for the links that its crawler left out as traps, once", async () => {
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
