/** Sites' statements on the use of their pages: stored with the page, obeyed, and reported when they change. */
import { beforeEach, expect, test } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { changeWords, everyChange } from "#coordinator/crawl/changes/page-change";
import { defaultRecrawlSettings, isGone, nextFetchAt } from "#coordinator/crawl/recrawl/visit-findings";
import { forgetUnusedSets } from "#coordinator/crawl/results/stated-uses-store";
import type { CrawlerId } from "#core/ids";
import type { StatedPreference } from "#protocol/preferences";
import type { FetchOutcome, FetchResult, PageExtract } from "#protocol/result";
import { arrivedResult, noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
let crawlerId: CrawlerId;
let hours: number;
beforeEach(async () => {
  await world.rows("delete from preference_set");
  await world.rows("delete from page_change");
  await world.rows("update change_feed set last_number = 0, removed_through = 0");
  crawlerId = await world.delegatedHost("north", root, other);
  hours = 0;
});

const root = "http://a.example/";
const other = "http://a.example/other";
const unchanged: FetchOutcome = { type: "unchanged", status: 304 };

const statement = (differences: Partial<StatedPreference>): StatedPreference => ({
  ...{ standard: "content-signal", place: "robots.txt", uses: ["ai-train"], answer: "denied" },
  ...{ text: "search=yes, ai-train=no", ...differences },
});
const noTraining = statement({});
const noSearch = statement({ uses: ["search"], text: "search=no" });
const noSearchInPage = statement({
  standard: "rsl",
  place: "link",
  uses: ["search"],
  text: "https://a.example/rsl.xml",
});

const longText: Partial<PageExtract> = {
  unquoted: "An image",
  words: 60,
  simhash: "00ff00ff00ff00ff",
  structured: { type: "Article", name: "Two", description: "words" },
};

interface Visit {
  readonly url?: string;
  readonly outcome?: FetchOutcome;
  readonly preferences?: readonly StatedPreference[];
  readonly page?: Partial<PageExtract>;
  readonly links?: readonly string[];
}

/** One visit an hour; returns the URLs as the crawler received them. */
async function visit({ url = root, outcome, preferences, page, links }: Visit) {
  hours += 1;
  const at = secondsAfterNoon(3601 * hours);
  await world.rows(`update frontier_url set state = 'due', next_fetch_at = '${noon.toISOString()}'`);
  await world.rows(`update frontier_host set due_at = '${noon.toISOString()}', not_before = '-infinity'`);
  const lease = (await world.lease(crawlerId, at)).find(({ urls }) => urls.some((one) => one.url === url))!;
  const result: Partial<FetchResult> = {
    fetchedAt: at.toISOString(),
    ...(preferences === undefined ? {} : { preferences: [...preferences] }),
  };
  const again = (failures: number) => {
    const attempt = { now: at, outcome: outcome ?? arrived.result.outcome, failures };
    return {
      at: nextFetchAt(attempt, defaultRecrawlSettings),
      isGone: isGone(attempt, defaultRecrawlSettings),
    };
  };
  const arrived = arrivedResult({
    again,
    ...{ sequence: hours, leaseId: lease.leaseId, url, result },
    ...(outcome === undefined ? {} : { outcome }),
    ...(page === undefined ? {} : { page }),
    ...(links === undefined ? {} : { links }),
  });
  const taken = await world.take(crawlerId, [arrived], at);
  expect(taken.stored).toBe(1);
  await world.rows("update lease set closed_at = now(), open_urls = 0, open_url_hashes = '{}'");
  await world.rows("update frontier_host set lease_id = null");
  return lease.urls.find((one) => one.url === url)!;
}

const pages = async () =>
  await world.rows(
    `select p.url, p.title, p.noindex, s.answers, p.preferences_since as since
     from page p left join preference_set s on s.set_id = p.preference_set
     order by p.url`,
  );

const words = async () =>
  await world.rows(
    `select p.title, d.description, d.headings, d.structured, d.text, d.unquoted, p.simhash, p.text_group, p.noindex,
       (select o.anchors from out_link o where o.url_hash = p.url_hash) as anchors,
       (select count(*)::int from text_band b where b.url_hash = p.url_hash) as bands
     from page p join document d using (host_hash, url_hash) where p.url = '${root}'`,
  );

const noWords = {
  ...{ title: "", description: "", headings: [], structured: null, text: "", unquoted: null },
  ...{ simhash: "0".repeat(16), text_group: null, noindex: true, anchors: "", bands: 0 },
};

test("statements are stored once for all pages and kept with each, since the visit that found them", async () => {
  await visit({ preferences: [noTraining, noSearch].slice(0, 1) });
  await visit({ url: other, preferences: [noTraining, noTraining] });
  await visit({ preferences: [noTraining] });
  await visit({ outcome: unchanged, preferences: [noTraining] });

  expect(await pages()).toEqual([
    {
      url: root,
      title: "Two words",
      noindex: false,
      answers: { "ai-train": "denied" },
      since: secondsAfterNoon(3601),
    },
    {
      url: other,
      title: "Two words",
      noindex: false,
      answers: { "ai-train": "denied" },
      since: secondsAfterNoon(7202),
    },
  ]);
  expect(await world.rows("select stated from preference_set")).toEqual([{ stated: [noTraining] }]);
});

test("a page that forbids search is stored without its words, whatever was sent", async () => {
  await visit({ preferences: [noTraining, noSearch], page: longText, links: ["http://a.example/x"] });

  expect(await words()).toEqual([noWords]);
  expect(await pages()).toMatchObject([{ answers: { search: "denied", "ai-train": "denied" } }]);
});

test("a page loses its words when its site forbids search, even by a 304", async () => {
  await visit({ page: longText, links: ["http://a.example/x"] });
  await visit({ url: other, page: { ...longText, title: "Nearly the same" } });
  expect(await words()).toMatchObject([{ title: "Two words", anchors: "to http://a.example/x", bands: 4 }]);

  await visit({ outcome: unchanged, preferences: [noSearch] });

  expect(await words()).toEqual([noWords]);
  // The other page of the group represents it.
  expect(
    await world.rows(
      "select distinct u.url from text_band b join frontier_url u using (host_hash, url_hash)",
    ),
  ).toEqual([{ url: other }]);
});

test("its words return with the first visit without the statement, which is unconditional", async () => {
  await visit({ page: longText, preferences: [noSearch] });
  const asked = await visit({ page: longText });

  expect(asked).toEqual({ url: root, etag: null, lastModified: null });
  expect(await words()).toMatchObject([
    { title: "Two words", text: "Two words", unquoted: "An image", noindex: false, bands: 4 },
  ]);
  expect(await pages()).toMatchObject([{ answers: null, since: null }]);
  expect(await visit({ page: longText })).toMatchObject({ etag: '"one"' });
});

test("after a 304 for a page without words the next fetch is unconditional", async () => {
  await visit({ page: longText });
  await visit({ outcome: unchanged, preferences: [noSearch] });
  await visit({ outcome: unchanged });

  expect(await visit({ page: longText })).toEqual({ url: root, etag: null, lastModified: null });
  expect(await words()).toMatchObject([{ title: "Two words", noindex: false }]);
});

test("a text left out as known by an older crawler is fetched again", async () => {
  await visit({ url: other, preferences: [noSearch] });
  const { textKnown } = { textKnown: true } as const;
  await visit({
    preferences: [noSearch],
    page: { textKnown, title: "", text: "", headings: [] },
  });
  expect(await world.rows(`select last_outcome from frontier_url where url = '${root}'`)).toEqual([
    { last_outcome: "fetched" },
  ]);

  await visit({ page: { textKnown, title: "", text: "", headings: [] } });

  expect(
    await world.rows(`select last_outcome, last_reason from frontier_url where url = '${root}'`),
  ).toMatchObject([{ last_outcome: "failed", last_reason: expect.stringContaining("text-not-known") }]);
});

test("the page's own statements remain for an unchanged body", async () => {
  await visit({ preferences: [noTraining, { ...noSearchInPage, answer: "allowed" }] });
  await visit({ outcome: unchanged, preferences: [] });

  expect(await pages()).toMatchObject([{ answers: { search: "allowed" } }]);
});

test("the feed has the old and new statements, and no title of a page that forbids search", async () => {
  await visit({ preferences: [noTraining] });
  await visit({ outcome: unchanged, preferences: [noTraining] });
  await visit({ outcome: unchanged, preferences: [noTraining, noSearch] });
  await visit({ page: { digest: "1".repeat(64), title: "Another" }, preferences: [] });
  await numberChanges(world.pool, secondsAfterNoon(99_999));
  const feed = createChangeFeed(world.pool);
  const { changes } = await feed.latest({ filter: everyChange, limit: 10 });

  expect(
    changes.map((one) => [one.kind, one.titleAfter, one.stated?.answers ?? null, changeWords(one)]),
  ).toEqual([
    ["first-seen", "Two words", { "ai-train": "denied" }, "“Two words”; 2 words; 0 links"],
    [
      "preferences-changed",
      null,
      { search: "denied", "ai-train": "denied" },
      "ai-train=denied → search=denied; ai-train=denied",
    ],
    ["changed", "Another", null, expect.stringContaining("title none → “Another”")],
    ["preferences-changed", null, null, "search=denied; ai-train=denied → nothing stated"],
  ]);

  await visit({ outcome: unchanged, preferences: [noSearch] });
  const hidden = await feed.latest({ filter: everyChange, limit: 10 });
  expect(hidden.changes.map(({ titleAfter }) => titleAfter)).toEqual([null, null, null, null]);
});

test("endless statements are cut, the strictest last", async () => {
  const many = Array.from({ length: 24 }, (_, at) =>
    statement({ answer: "allowed", text: `${at}`.padEnd(300, "x") }),
  );
  await visit({ preferences: [...many.slice(1), noSearch] });
  await visit({ outcome: unchanged, preferences: many.map((one) => ({ ...one, place: "meta" as const })) });

  const [row] = await world.rows<{ stated: StatedPreference[] }>(
    "select stated from preference_set order by set_id limit 1",
  );
  expect(row!.stated[0]).toEqual(noSearch);
  expect(row!.stated.reduce((sum, { text }) => sum + text.length, 0)).toBe(2000);
});

test("a page that can no longer be read loses its words, too, if it forbids search", async () => {
  await visit({ page: longText });
  await visit({
    outcome: { type: "unsupported", status: 200, contentType: "image/png" },
    preferences: [noSearch],
  });

  expect(await words()).toMatchObject([{ title: "", text: "", noindex: true, bands: 0 }]);
});

test("lists that no page uses are deleted once no change can name them, those of pages stay", async () => {
  const forget = async (before: number) =>
    await forgetUnusedSets(world.pool, secondsAfterNoon(86_400 * before), 100);
  await visit({ preferences: [noTraining] });
  await visit({ url: other, preferences: [noSearch] });
  await world.rows("update preference_set set used_at = '2020-01-01'");
  await visit({ preferences: [] });

  // The change that tells of the list's end names it.
  expect(await forget(0)).toBe(0);
  expect(await forget(20)).toBe(1);
  expect(await world.rows("select stated from preference_set")).toEqual([{ stated: [noSearch] }]);
});

test("after a 402 the page is deleted, the URL waits a month, and the host is asked for one URL a week", async () => {
  const price: FetchOutcome = { type: "http-error", status: 402, retryAfterSeconds: null, price: "USD 0.01" };
  await visit({});
  for (let n = 0; n < 5; n += 1) await visit({ outcome: price });

  expect(await world.rows("select url from page")).toEqual([]);
  expect(
    await world.rows(
      `select state, next_fetch_at, last_outcome, last_reason from frontier_url where url = '${root}'`,
    ),
  ).toEqual([
    {
      ...{ state: "gone", next_fetch_at: secondsAfterNoon(3601 * 6 + 30 * 86_400) },
      ...{ last_outcome: "payment-required", last_reason: "not for us: the site asks USD 0.01 for the page" },
    },
  ]);
  expect(await world.rows("select payments_asked, payment_price, not_before from frontier_host")).toEqual([
    { payments_asked: 5, payment_price: "USD 0.01", not_before: secondsAfterNoon(3601 * 6 + 7 * 86_400) },
  ]);
  await world.rows(`update frontier_url set state = 'due', next_fetch_at = '${noon.toISOString()}'`);
  await world.rows(`update frontier_host set due_at = '${noon.toISOString()}', not_before = '-infinity'`);
  const [lease] = await world.lease(crawlerId, secondsAfterNoon(99_999));
  expect(lease!.urls).toHaveLength(1);
  await world.rows("update lease set closed_at = now(), open_urls = 0, open_url_hashes = '{}'");
  await world.rows("update frontier_host set lease_id = null");

  await visit({ url: lease!.urls[0]!.url });

  expect(
    await world.rows("select payments_asked, payment_price, payment_asked_at from frontier_host"),
  ).toEqual([{ payments_asked: null, payment_price: null, payment_asked_at: null }]);
  expect(await world.rows("select max(not_before) < '2030-01-02' as soon from frontier_host")).toEqual([
    { soon: true },
  ]);
});

test("a denial of search is kept even where there are too many denials", async () => {
  const many = Array.from({ length: 24 }, (_, at) => statement({ text: `ai-train=no, a=${at}` }));
  await visit({ preferences: [...many.slice(1), { ...noSearchInPage }] });

  await visit({ outcome: unchanged, preferences: many });

  expect(await pages()).toMatchObject([{ answers: { search: "denied", "ai-train": "denied" } }]);
});

test("a 402 after a page, or on robots.txt and the like, is no refusal of the host", async () => {
  const price: FetchOutcome = { type: "http-error", status: 402, retryAfterSeconds: null };
  const busy: FetchOutcome = { type: "http-error", status: 503, retryAfterSeconds: null };
  for (const outcome of [price, price, undefined, price, busy, price])
    await visit(outcome ? { outcome } : {});

  expect(await world.rows("select payments_asked, payment_price from frontier_host")).toEqual([
    { payments_asked: 2, payment_price: null },
  ]);
});
