/** Submitted URLs are answered, followed until they are fetched, fetched again on request, and forgotten in time. */
import { beforeEach, expect, test } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import { followedUrl } from "#coordinator/crawl/submissions/submission";
import { createSubmissionStore, submitUrls } from "#coordinator/crawl/submissions/submission-store";
import { arrivedResult, noon, scope, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
beforeEach(async () => {
  await world.rows("delete from channel");
  await world.rows("delete from submission");
});

const store = () => createSubmissionStore(world.pool);
const submit = async (texts: readonly string[], deed: "add" | "recrawl" = "add", at = noon) =>
  await submitUrls(texts, store(), {
    deed,
    submittedBy: "anna",
    scope,
    allowSpecialPurpose: false,
    now: () => at,
  });
const receipt = async (submissionId: number, at = noon) =>
  await store().urls(submissionId, { after: 0, limit: 100, now: at });

test("each URL has its answer and its reason; blank lines and comments count as lines", async () => {
  await world.delegatedHost("north", "http://a.example/");
  const rules = { prefixes: ["b.example"], seeds: [], include: [], exclude: ["/old/"], maxDepth: null };
  await createChannelStore(world.pool).add(readChannel(rules), noon);

  const { submissionId, urls } = await submit([
    "http://a.example/",
    "",
    "# a comment",
    "http://a.example/new",
    "http://a.example/new",
    "http://b.example/old/1",
    "ftp://a.example/",
    "http://10.0.0.1/",
    "no URL\0 at all",
  ]);
  const lines = await receipt(submissionId);

  expect(urls).toEqual({ new: 1, known: 2, elsewhere: 0, refused: 4 });
  expect(lines.map(({ place, answer, reason }) => [place, answer, reason])).toEqual([
    [1, "known", null],
    [4, "new", null],
    [5, "known", null],
    [6, "refused", expect.stringMatching(/^channel \d+ skips it: its filter skips \/old\/$/)],
    [7, "refused", "only http and https are crawled"],
    [8, "refused", expect.stringContaining("special-purpose address")],
    [9, "refused", "it cannot be parsed as an absolute URL"],
  ]);
  expect(lines[1]).toMatchObject({ state: "due", crawler: "north", aboutAt: noon.toISOString() });
});

test("a receipt follows its URLs: looked up, in hand, fetched", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  const { submissionId } = await submit(["http://a.example/", "http://new.example/"]);
  const before = (await receipt(submissionId)).map(({ state }) => state);
  const [lease] = await world.lease(crawlerId);
  const inHand = (await receipt(submissionId)).map(({ state, words }) => [state, words]);
  const result = { sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/" };
  await world.take(crawlerId, [arrivedResult(result)], secondsAfterNoon(2));
  const after = await receipt(submissionId, secondsAfterNoon(3));

  expect(before).toEqual(["due", "resolving"]);
  expect(inHand[0]).toEqual(["in-progress", "north is fetching it"]);
  expect(after[0]).toMatchObject({ state: "fetched", lastStatus: 200 });
  expect((await store().find(submissionId))?.fetched).toBe(1);
});

test("a known URL is due at once when it is to be fetched again; an unknown one is refused", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  const [lease] = await world.lease(crawlerId);
  const result = { sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/" };
  await world.take(crawlerId, [arrivedResult(result)], secondsAfterNoon(2));
  expect(await world.lease(crawlerId, secondsAfterNoon(60))).toEqual([]);

  const { urls } = await submit(["http://a.example/", "http://a.example/x"], "recrawl", secondsAfterNoon(60));
  const again = await world.lease(crawlerId, secondsAfterNoon(61));

  expect(urls).toMatchObject({ known: 1, refused: 1 });
  expect(again.flatMap((one) => one.urls.map(({ url }) => url))).toEqual(["http://a.example/"]);
});

test("given up and held URLs are due again; leased ones stay unchanged", async () => {
  const crawlerId = await world.delegatedHost(
    "north",
    "http://a.example/",
    "http://a.example/gone",
    "http://a.example/held",
  );
  await world.rows("update frontier_url set state = 'gone' where url like '%/gone'");
  await world.rows(
    `with held as (delete from frontier_url where url like '%/held' returning *)
     insert into held_urls (host_hash, held_at, depth, redirects, lists, url_hashes, links, urls)
     select host_hash, discovered_at, depth, redirects, lists, array[url_hash], array[back_links], url from held`,
  );
  await world.rows("update frontier_host set held_urls = 1, url_count = 2");
  const [lease] = await world.lease(crawlerId);

  const all = ["http://a.example/", "http://a.example/gone", "http://a.example/held"];
  await submit(all, "recrawl");
  const states = await world.rows<{ state: string }>("select url, state from frontier_url order by url");
  const [host] = await world.rows(
    "select held_urls, url_count, lease_id is not null as leased from frontier_host",
  );

  expect(states.map(({ state }) => state)).toEqual(["due", "due", "due"]);
  expect(host).toEqual({ held_urls: 0, url_count: 3, leased: true });
  expect(lease!.urls.map(({ url }) => url)).toEqual(["http://a.example/"]);
});

test("a list longer than a batch is taken whole, and old receipts are forgotten", async () => {
  const texts = Array.from({ length: 2500 }, (_, at) =>
    at % 2 === 0 ? `http://h${at}.example/` : `garbage ${at}`,
  );

  const submission = await submit(texts);
  const inDays = (days: number) => new Date(noon.getTime() + days * 86_400_000);

  expect(submission.urls).toEqual({ new: 1250, known: 0, elsewhere: 0, refused: 1250 });
  expect(await store().forgetOld(inDays(89))).toBe(0);
  expect(await store().forgetOld(inDays(91))).toBe(1);
  expect(await store().find(submission.submissionId)).toBeNull();
});

const facts = {
  ...({ place: 1, url: "http://a.example/", answer: "known", reason: null, submittedAt: noon } as const),
  ...({ state: "due", nextFetchAt: null, lastFetchedAt: null, lastOutcome: null } as const),
  ...({
    lastStatus: null,
    lastReason: null,
    hostState: "resolved",
    hostReason: null,
    resolveAt: null,
  } as const),
  ...({ optedOut: false, notBefore: null, hostPaceMs: null, ahead: 0, crawler: "north" } as const),
  needsUnspokenIpv6: false,
};

test("its estimated time follows from what is due before it and its host's pace", () => {
  const behind = followedUrl({ ...facts, ahead: 6, hostPaceMs: 10_000 }, noon);
  const later = followedUrl({ ...facts, notBefore: secondsAfterNoon(30) }, noon);
  const nobodys = followedUrl({ ...facts, crawler: null }, noon);

  expect(behind.aboutAt).toBe(secondsAfterNoon(60).toISOString());
  expect(behind.words).toContain("after 6 URLs of its host");
  expect(later.aboutAt).toBe(secondsAfterNoon(30).toISOString());
  expect(nobodys).toMatchObject({ state: "undelegated", aboutAt: null });
});

// Issue 41: a URL of next week was due here and scheduled on its site's page.
test("a URL of the future is scheduled, and due once its time has come, however long its host rests", async () => {
  await world.delegatedHost("north", "http://a.example/");
  const { submissionId } = await submit(["http://a.example/"]);
  const stateAt = async (nextFetchAt: Date, notBefore: Date | "-infinity" = "-infinity") => {
    await world.pool.query("update frontier_url set next_fetch_at = $1", [nextFetchAt]);
    await world.pool.query("update frontier_host set not_before = $1", [notBefore]);
    return (await receipt(submissionId))[0]?.state;
  };

  expect(await stateAt(secondsAfterNoon(1))).toBe("scheduled");
  expect(await stateAt(noon)).toBe("due");
  expect(await stateAt(noon, secondsAfterNoon(30))).toBe("due");
});
