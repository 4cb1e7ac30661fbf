/** Sites' statements on the use of their pages, and 402, in who, page, search and the commands. */

import { beforeAll, expect, test } from "vitest";
import { defaultRecrawlSettings, isGone, nextFetchAt } from "#coordinator/crawl/recrawl/visit-findings";
import { describeApi } from "#coordinator/open-api";
import { Counters } from "#coordinator/tell/overview/metrics";
import { pageFacts } from "#coordinator/tell/search/page-facts";
import { pageOf } from "#coordinator/tell/search/page-reads";
import { answerWho } from "#coordinator/tell/who/answer";
import type { CrawlerId } from "#core/ids";
import type { StatedPreference } from "#protocol/preferences";
import type { FetchOutcome } from "#protocol/result";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { searchNow } from "../support/search-engine.ts";
import { arrivedResult, newWorld, noon, scope, secondsAfterNoon, spoolId } from "../support/store-world.ts";
import { tinyResolver } from "../support/web-server.ts";

const world = await forThisFile(newWorld());
let crawlerId: CrawlerId;
const at = secondsAfterNoon(60);

const [silent, closed, open, free, paid] = ["silent", "closed", "open", "free", "paid"].map(
  (name) => `http://a.example/${name}`,
) as [string, string, string, string, string];

const stated = (differences: Partial<StatedPreference>): StatedPreference => ({
  ...{ standard: "content-signal", place: "robots.txt", uses: ["search"], answer: "allowed" },
  ...{ text: "search=yes, ai-train=no", ...differences },
});
const noSearch = stated({ answer: "denied", text: "search=no" });
const noTraining = [stated({}), stated({ uses: ["ai-train"], answer: "denied" })];
const training = [
  stated({ uses: ["ai-train"], standard: "rsl", place: "link", answer: "allowed", text: "rsl.xml" }),
];
const price: FetchOutcome = {
  type: "http-error",
  status: 402,
  retryAfterSeconds: null,
  price: "USD\u001b 0.01",
};

const byPolicy = (outcome: FetchOutcome, failures: number) => {
  const attempt = { now: at, outcome, failures };
  return {
    at: nextFetchAt(attempt, defaultRecrawlSettings),
    isGone: isGone(attempt, defaultRecrawlSettings),
  };
};

beforeAll(async () => {
  crawlerId = await world.delegatedHost("north", silent, closed, open, free, paid);
  const [lease] = await world.lease(crawlerId);
  const found: readonly (readonly [string, StatedPreference[]?, FetchOutcome?])[] = [
    [silent, [noSearch]],
    [closed, noTraining],
    [open, training],
    [free],
    [paid, [], price],
  ];
  await world.take(
    crawlerId,
    found.map(([url, preferences, outcome], index) =>
      arrivedResult({
        ...{ sequence: index + 1, leaseId: lease!.leaseId, url },
        ...(outcome === undefined ? {} : { outcome, again: (failures) => byPolicy(outcome, failures) }),
        result: preferences === undefined ? {} : { preferences },
      }),
    ),
    at,
  );
});

const reads = () => everyRead(world.pool, () => performance.now());
const who = async (question: string) =>
  await answerWho(question, { reads: reads(), resolver: tinyResolver, scope }, secondsAfterNoon(120));
const search = async (preference?: string) =>
  await searchNow(world.pool, "word", secondsAfterNoon(120), preference === undefined ? {} : { preference });
const page = async (url: string) =>
  await pageFacts(
    { page: async (key, offsets) => await pageOf(world.pool, key, offsets) },
    { url, fetches: 0, in: 0, out: 0 },
  );
const urls = (answer: { readonly pages: readonly { readonly url: string }[] }) =>
  answer.pages.map(({ url }) => url).sort();
const command = async (name: string, ...args: string[]) => {
  const { database } = world;
  return await inProcess(commandNamed(name), [
    ...args,
    "--database-url",
    database.url,
    "--schema",
    database.schema,
  ]);
};

test("who shows a page's statements, their source and beginning, and the outcome", async () => {
  const answer = await who(closed);

  expect(answer.url?.stated).toEqual({
    answers: { search: "allowed", "ai-train": "denied" },
    statements: [noTraining[1], noTraining[0]],
    ...{ since: noon.toISOString(), confirmedAt: noon.toISOString() },
  });
  const { out } = await command("who", closed);
  expect(out).toContain("Since 2030-01-01 12:00:00 UTC; found again 2030-01-01 12:00:00 UTC.");
  expect(out).toContain("search: allowed; ai-train: denied");
  expect(out).toContain(
    "Content-Signal in robots.txt: search=yes, ai-train=no (ai-train denied, search allowed)",
  );
});

test("a page that forbids search is in no answer, and who and its page say why", async () => {
  const why =
    "The site states that this page is not to be searched, so nothing of it is shown (Content-Signal in robots.txt: search=no).";

  expect(urls(await search())).not.toContain(silent);
  expect(urls(await search("search=denied"))).toEqual([]);
  expect((await who(silent)).standing).toContainEqual({ code: "not-searched", stops: false, words: why });
  expect(await page(silent)).toMatchObject({
    found: false,
    page: null,
    words: why,
    stated: { statements: [noSearch] },
  });
  const told = await command("page", silent);
  expect([told.code, told.out]).toEqual([3, expect.stringContaining(why)]);
  expect(told.out).toContain("What the site states\nsearch: denied");
});

test("the search filters by statements or their absence, counts them, and shows each page's", async () => {
  expect(urls(await search("ai-train=denied"))).toEqual([closed]);
  expect(urls(await search("ai-train=allowed"))).toEqual([open]);
  expect(urls(await search("ai-train=unstated"))).toEqual([free]);
  expect(urls(await search("search=unstated"))).toEqual([free, open]);

  const all = await search();

  expect(all.facets.preference).toEqual([
    { value: "ai-train=allowed", pages: 1 },
    { value: "ai-train=denied", pages: 1 },
    { value: "search=allowed", pages: 1 },
  ]);
  expect(Object.fromEntries(all.pages.map(({ url, uses }) => [url, uses]))).toEqual({
    [closed]: { search: "allowed", "ai-train": "denied" },
    [open]: { "ai-train": "allowed" },
    [free]: {},
  });
});

test("the command takes the same filter and says how one must look", async () => {
  expect((await command("search", "word", "--preference", "ai-train=denied")).out).toContain(
    "states search=allowed; ai-train=denied",
  );
  expect((await command("search", "word", "--preference", "ai-train=maybe")).err).toContain(
    "preference ai-train=maybe: must be one of search, ai-input, ai-train, text-and-data-mining, =, and one of allowed, licensed, denied, unstated",
  );
});

test("exports of a page include its statements", async () => {
  expect((await page(open)).page?.stated).toMatchObject({
    answers: { "ai-train": "allowed" },
    statements: training,
  });
  expect((await page(free)).page?.stated).toBeNull();
  expect((await command("page", open)).out).toContain("What the site states\nai-train: allowed\n");
});

test("who says that a URL has a price, and of its host how many pages state what", async () => {
  const answer = await who(paid);

  expect(answer.url).toMatchObject({
    state: "payment-required",
    lastOutcome: "payment-required",
    lastStatus: 402,
  });
  expect(answer.standing.find(({ code, stops }) => code === "payment-required" && stops)?.words).toBe(
    "The site answers with status 402: not for us: the site asks USD  0.01 for the page. It is tried again in 30 days.",
  );
  const { host } = await who("a.example");
  expect(host).toMatchObject({
    urlStates: { scheduled: 4, "payment-required": 1 },
    stated: { pages: 4, more: false },
    payment: { inARow: 1, price: "USD  0.01", askedAt: noon.toISOString() },
  });
  expect(host?.stated.counts).toContainEqual({ use: "ai-train", answer: "denied", pages: 1 });
  expect((await command("who", "a.example")).out).toContain(
    "Asks to be paid  1 answer 402 in a row (price USD 0.01)",
  );
});

test("the answers are as the API describes them", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const faults = (value: unknown, name: string) =>
    faultsOf(JSON.parse(JSON.stringify(value)), { $ref: `#/components/schemas/${name}` }, schemas);

  expect(faults(await who(closed), "WhoAnswer")).toEqual([]);
  expect(faults(await who(paid), "WhoAnswer")).toEqual([]);
  expect(faults(await search(), "SearchAnswer")).toEqual([]);
  expect(faults(await page(open), "PageAnswer")).toEqual([]);
  expect(faults(await page(silent), "PageAnswer")).toEqual([]);
});

test("metrics count statements by use and answer, and pages with a price", async () => {
  const counters = new Counters();
  const found = [
    arrivedResult({ sequence: 1, leaseId: "1", url: closed, result: { preferences: noTraining } }),
    arrivedResult({ sequence: 2, leaseId: "1", url: paid, outcome: price }),
  ];
  const results = found.map((one) => ({ ...one, wireBytes: 100 }));
  counters.results(
    { crawlerId, spoolId, results },
    { stored: 2, duplicates: 0, withoutLease: 0, newUrls: 0 },
  );
  const told = await counters.metrics.registry.metrics();

  expect(told).toContain('nearcrawl_stated_pages_total{use="ai-train",answer="denied"} 1');
  expect(told).toContain("nearcrawl_payments_asked_total 1");
});
