/** Texts that are known of a channel: they need not travel, and nothing is lost where they are not known after all. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { readChannel } from "#coordinator/channels/channel";
import { createChannelStore } from "#coordinator/channels/channel-store";
import { knownTextsPay } from "#coordinator/channels/known-text-store";
import type { CrawlerId } from "#core/ids";
import { knownTexts, withoutKnownText } from "#crawler/crawl/crawl-slice";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  type World,
} from "../support/store-world.ts";

let world: World;
let crawlerId: CrawlerId;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => {
  await world.reset();
  await world.rows("delete from channel");
});
afterAll(async () => await world.close());

const at = (path: string) => `http://a.example/docs/${path}`;
const text = {
  title: "The ferry",
  lexemes: "'ferry':2A",
  words: 1,
  digest: "a".repeat(64),
  simhash: "1".repeat(16),
};

/** Two pages with one body, a channel that knows them, and a lease on a third that was never read. */
async function knownChannel(result: Partial<FetchResult> = {}): Promise<Lease> {
  crawlerId = await world.delegatedHost("north", at("1"), at("2"));
  const rules = { prefixes: ["a.example/docs/"], seeds: [], include: [], exclude: [], maxDepth: null };
  const store = createChannelStore(world.pool);
  await store.add(readChannel(rules), noon);
  const [lease] = await world.lease(crawlerId);
  const pages = ["1", "2"].map((path, index) =>
    arrivedResult({
      sequence: index + 1,
      leaseId: lease!.leaseId,
      url: at(path),
      page: text,
      links: [at("3")],
      result,
    }),
  );
  await world.take(crawlerId, pages);
  await store.settle(noon);
  return (await world.lease(crawlerId, secondsAfterNoon(60)))[0]!;
}

async function ship(lease: Lease, page: Partial<typeof text>) {
  const fetched = arrivedResult({
    sequence: 3,
    leaseId: lease.leaseId,
    url: at("3"),
    page: { ...text, ...page },
    links: ["http://a.example/docs/4"],
  });
  const { hostDelayMs, ...result } = fetched.result;
  const shipped = { ...withoutKnownText(result, knownTexts(lease)), hostDelayMs };
  await world.take(crawlerId, [{ ...fetched, result: shipped }], secondsAfterNoon(61));
  return shipped;
}

const pageThree = async () =>
  await world.rows(`select title, lexemes::text, words from page where url = '${at("3")}'`);

test("a page with a known body ships without its text, and the index has all of it, with its own links", async () => {
  const lease = await knownChannel();

  const shipped = await ship(lease, {});

  expect(lease.known).toBeDefined();
  expect(shipped.page).toMatchObject({ textKnown: true, title: "", lexemes: "", digest: text.digest });
  expect(await pageThree()).toEqual([{ title: "The ferry", lexemes: "'ferry':2A", words: 1 }]);
  expect(await world.rows(`select url from frontier_url where url = '${at("4")}'`)).toHaveLength(1);
});

test("a page with another body ships whole", async () => {
  const lease = await knownChannel();

  const shipped = await ship(lease, { digest: "b".repeat(64), title: "Another" });

  expect(shipped.page?.textKnown).toBeUndefined();
  expect(await pageThree()).toMatchObject([{ title: "Another" }]);
});

test("a text that is not known after all is no page: the URL is fetched again, and the reason is kept", async () => {
  const lease = await knownChannel();
  await world.rows("delete from page");

  await ship(lease, {});

  expect(await pageThree()).toEqual([]);
  expect(
    await world.rows(
      `select state, digest, etag, last_outcome, last_reason from frontier_url where url = '${at("3")}'`,
    ),
  ).toEqual([
    {
      state: "due",
      digest: null,
      etag: null,
      last_outcome: "failed",
      last_reason: expect.stringContaining("fetched in full next time"),
    },
  ]);
});

test.each([
  ["another simhash", "simhash = repeat('2', 16)"],
  ["another language's stems", "text_search_config = 'german'"],
  ["a wish not to be indexed", "noindex = true"],
])("a text of the same digest with %s is not the one that was left out", async (_, change) => {
  const lease = await knownChannel();
  await world.rows(`update page set ${change}`);

  await ship(lease, {});

  expect(await pageThree()).toEqual([]);
});

test("bodies of pages that are not to be searched are none that are known: they ship whole when they may be", async () => {
  const noSearch = {
    standard: "content-signal",
    place: "header",
    uses: ["search"],
    answer: "denied",
  } as const;

  const lease = await knownChannel({ preferences: [{ ...noSearch, uses: ["search"], text: "search=no" }] });

  expect(lease.known).toBeUndefined();
  expect((await ship(lease, {})).page?.textKnown).toBeUndefined();
  expect(await pageThree()).toMatchObject([{ title: "The ferry" }]);
});

test("a lease on another host has nothing of this one's set", async () => {
  await knownChannel();
  await world.frontier.admit(seeds("http://b.example/docs/3"), scope, noon);
  await world.resolve("b.example", "198.51.100.8", await world.subnet("198.51.100.0", "198.51.100.255"));

  await world.frontier.returnLeasesOf(crawlerId, secondsAfterNoon(61));

  const leases = await world.lease(crawlerId, secondsAfterNoon(3600));

  const told = leases.map(({ host, known }) => [host, known !== undefined]);
  expect(told.sort()).toEqual([
    ["a.example", true],
    ["b.example", false],
  ]);
});

test("pages outside of a channel's directories are not among what it knows", async () => {
  const lease = await knownChannel();
  await world.rows(
    `update page set url = replace(url, '/docs/', '/else/'), digest = repeat('b', 64) where url = '${at("2")}'`,
  );

  await createChannelStore(world.pool).settle(secondsAfterNoon(3700));

  expect(lease.known).toBeDefined();
  expect(await world.rows("select expected_pages, duplicate_share, known_digests from channel")).toEqual([
    { expected_pages: 1, duplicate_share: 0, known_digests: [text.digest] },
  ]);
});

test("a page that is no text to be indexed has none to leave out", async () => {
  const lease = await knownChannel();
  const known = knownTexts(lease);
  const { hostDelayMs: _, ...result } = arrivedResult({
    sequence: 3,
    leaseId: lease.leaseId,
    url: at("3"),
    page: text,
  }).result;
  const shipped = (page: object) =>
    withoutKnownText({ ...result, page: { ...result.page!, ...page } }, known).page?.textKnown;

  expect(shipped({})).toBe(true);
  expect(shipped({ softNotFound: true })).toBeUndefined();
  expect(shipped({ robots: { noindex: true, nofollow: false } })).toBeUndefined();
  expect(shipped({ kind: "feed" })).toBeUndefined();
  expect(shipped({ lexemes: "" })).toBeUndefined();
});

test("a set goes along where it saves bytes: many new URLs, many pages that say the same", () => {
  expect(knownTextsPay({ setBytes: 220, newUrls: 20, duplicateShare: 0.05 })).toBe(true);
  expect(knownTextsPay({ setBytes: 4400, newUrls: 20, duplicateShare: 0.05 })).toBe(false);
  expect(knownTextsPay({ setBytes: 20, newUrls: 20, duplicateShare: 0 })).toBe(false);
});

test("a set that cannot be read is none: every page ships whole", () => {
  expect(knownTexts({ known: "AAAB" })).toBeNull();
  expect(knownTexts({})).toBeNull();
});
