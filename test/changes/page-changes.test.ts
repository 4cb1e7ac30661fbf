/** A visit's changes go into the feed's inbox with the result, and with nothing else. */
import { beforeEach, expect, test } from "vitest";
import type { ArrivedResult } from "#coordinator/crawl/batch/accepted-result";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { forgetDifferencesOf, numberChanges } from "#coordinator/crawl/changes/change-writes";
import { type ChangeKind, everyChange } from "#coordinator/crawl/changes/page-change";
import type { CrawlerId } from "#core/ids";
import type { StatedPreference } from "#protocol/preferences";
import type { FetchOutcome, PageExtract } from "#protocol/result";
import { arrivedResult, noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
let crawlerId: CrawlerId;
let hours: number;
beforeEach(async () => {
  await world.rows("delete from page_change");
  crawlerId = await world.delegatedHost("north", root);
  hours = 0;
});

const root = "http://a.example/";
const missing: FetchOutcome = { type: "http-error", status: 404, retryAfterSeconds: null };
const moved: FetchOutcome = { type: "redirected", status: 301, location: "http://a.example/new" };
const timedOut: FetchOutcome = { type: "failed", blame: "network", code: "timeout", reason: "no answer" };

interface Found {
  readonly outcome?: FetchOutcome;
  readonly page?: Partial<PageExtract>;
  readonly links?: readonly string[];
  readonly again?: ArrivedResult["again"];
  readonly preferences?: readonly StatedPreference[];
}

/** One visit after the other, each with the given result; returns what they left in the inbox. */
async function visits(...found: readonly Found[]) {
  for (const { preferences = [], ...one } of found) {
    hours += 1;
    const at = secondsAfterNoon(3601 * hours);
    await world.rows(
      `update frontier_url set state = 'due', next_fetch_at = '${noon.toISOString()}' where url = '${root}'`,
    );
    await world.rows(`update frontier_host set due_at = '${noon.toISOString()}', not_before = '-infinity'`);
    const lease = (await world.lease(crawlerId, at)).find(({ urls }) => urls.some(({ url }) => url === root));
    await world.take(
      crawlerId,
      [
        arrivedResult({
          ...{ sequence: hours, leaseId: lease!.leaseId, url: root, ...one },
          ...(preferences.length === 0 ? {} : { result: { preferences: [...preferences] } }),
        }),
      ],
      at,
    );
    await world.rows("update lease set closed_at = now(), open_urls = 0, open_url_hashes = '{}'");
    await world.rows("update frontier_host set lease_id = null");
  }
  return await world.rows<{ kind: ChangeKind }>("select * from page_change_inbox order by inbox_number");
}

const kinds = (rows: readonly { readonly kind: ChangeKind }[]) => rows.map(({ kind }) => kind);
const other = { digest: "1".repeat(64), simhash: "000000000000ff00", title: "Other words", words: 40 };

test("a page is found, changes, and stays the same: two changes", async () => {
  const rows = await visits(
    { links: ["http://a.example/x"] },
    { page: other, links: ["http://a.example/x"] },
    { page: other, links: ["http://a.example/x"] },
  );

  expect(rows).toMatchObject([
    {
      kind: "first-seen",
      url: root,
      status: 200,
      digest_after: "0".repeat(64),
      title_after: "Two words",
      links_after: 1,
    },
    {
      kind: "changed",
      digest_before: "0".repeat(64),
      digest_after: "1".repeat(64),
      simhash_distance: 8,
      title_before: "Two words",
      title_after: "Other words",
      words_before: 2,
      words_after: 40,
    },
  ]);
  expect(rows).toHaveLength(2);
});

test("other links are a separate change, with the numbers added and removed", async () => {
  const rows = await visits(
    { links: ["http://a.example/x", "http://b.example/"] },
    {
      page: { digest: "2".repeat(64) },
      links: ["http://a.example/x", "http://a.example/y", "http://a.example/z"],
    },
  );

  expect(kinds(rows)).toEqual(["first-seen", "changed", "links-changed"]);
  expect(rows[2]).toMatchObject({ links_before: 2, links_after: 3, links_added: 2, links_removed: 1 });
});

test("a page that disappears is gone once, with the reason and what it was, and comes back", async () => {
  const rows = await visits({}, { outcome: missing }, { outcome: missing }, {});

  expect(kinds(rows)).toEqual(["first-seen", "gone", "came-back"]);
  expect(rows[1]).toMatchObject({
    status: 404,
    reason: "status 404",
    title_before: "Two words",
    title_after: null,
  });
});

test("an unchanged page that forbids indexing is gone, and comes back when it no longer does", async () => {
  const hidden = { page: { robots: { noindex: true, nofollow: false } } };

  const rows = await visits({}, hidden, hidden, {});

  expect(kinds(rows)).toEqual(["first-seen", "gone", "came-back"]);
  expect(rows[1]).toMatchObject({ status: 200, reason: "noindex", title_before: "Two words" });
  expect(rows[2]).toMatchObject({ reason: null, title_after: "Two words" });
});

test("temporary failures change nothing, and a URL never read does not come back", async () => {
  const rows = await visits({ outcome: timedOut }, { outcome: missing }, {}, { outcome: timedOut }, {});

  expect(kinds(rows)).toEqual(["first-seen"]);
});

test("a redirect is reported when it begins, with its target", async () => {
  const rows = await visits({}, { outcome: moved }, { outcome: moved }, {});

  expect(kinds(rows)).toEqual(["first-seen", "redirected", "came-back"]);
  expect(rows[1]).toMatchObject({ location: "http://a.example/new", title_before: "Two words", status: 301 });
});

test("a URL that redirects from the start is reported once", async () => {
  expect(kinds(await visits({ outcome: moved }, { outcome: moved }))).toEqual(["redirected"]);
});

test("a URL is given up once, after the allowed number of misses", async () => {
  const again = (failures: number) => ({ at: noon, isGone: failures + 1 >= 2 });
  const rows = await visits(
    { outcome: missing, again },
    { outcome: missing, again },
    { outcome: missing, again },
  );

  expect(kinds(rows)).toEqual(["given-up"]);
});

test("a page that says “not found” is gone, and so is one that robots.txt disallows", async () => {
  const rows = await visits(
    {},
    { page: { softNotFound: true } },
    {},
    { outcome: { type: "refused-by-robots", rule: "Disallow: /" } },
  );

  expect(kinds(rows)).toEqual(["first-seen", "gone", "came-back", "gone"]);
});

test("a refused result leaves nothing", async () => {
  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId: "999", url: root })]);

  expect(await visits()).toEqual([]);
});

const ferry = (hour: string, given: Partial<PageExtract> = {}): Partial<PageExtract> => ({
  text: `The ferry leaves at ${hour} every morning`,
  digest: hour.padEnd(64, "0"),
  ...given,
});

/** As readers of the feed see them. */
async function toldDifferences() {
  await numberChanges(world.pool, noon);
  const { changes } = await createChangeFeed(world.pool).latest({ filter: everyChange, limit: 100 });
  return changes.flatMap(({ kind, difference }) => (kind === "changed" ? [difference] : []));
}

test("a changed text is reported with its differences; a change of the body alone is not", async () => {
  await visits({ page: ferry("7") }, { page: ferry("8") }, { page: ferry("8", { digest: "9".repeat(64) }) });

  const around = { before: "The ferry leaves at", after: "every morning" };
  expect(await toldDifferences()).toEqual([
    { places: [{ part: "text", ...around, removed: "7", added: "8" }], more: 0 },
    null,
  ]);
});

test("a page that forbids search has no differences, and loses earlier ones when it begins to", async () => {
  const denied: StatedPreference = {
    ...{
      standard: "content-signal",
      place: "robots.txt",
      uses: ["search"],
      answer: "denied",
      text: "search=no",
    },
  };
  await visits({ page: ferry("7") }, { page: ferry("8") });
  await numberChanges(world.pool, noon);
  await visits({ page: ferry("9"), preferences: [denied] }, { page: ferry("6"), preferences: [denied] });

  expect(await toldDifferences()).toEqual([null, null, null]);
  for (const table of ["page_change", "page_change_inbox"])
    expect(await world.rows(`select from ${table} where difference is not null`)).toEqual([]);
});

test("an opt-out deletes the differences with the pages", async () => {
  await visits({ page: ferry("7") }, { page: ferry("8") });
  await numberChanges(world.pool, noon);
  await world.rows("update frontier_host set opt_out_id = 1");

  await forgetDifferencesOf(world.pool, { sql: "true", values: [] });

  expect(await toldDifferences()).toEqual([null]);
});
