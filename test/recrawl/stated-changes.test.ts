/** What sitemaps state of pages' changes: kept for their own hosts, and expected of a page at its next visit. */
import { beforeAll, expect, test } from "vitest";
import type { CrawlerId } from "#core/ids";
import { newShippingWorld } from "../results/shipping-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";

const world = await forThisFile(newShippingWorld());
let crawlerId: CrawlerId;
beforeAll(async () => {
  crawlerId = await world.delegatedHost("north", map, page("often"), page("seldom"), page("silent"));
});

const map = "http://a.example/sitemap.xml";
const page = (name: string) => `http://a.example/${name}`;
const listed = (url: string, stated: object) => ({ url, anchor: "", nofollow: false, ...stated });
const stated = async (url: string) => {
  const row = await world.urlRow(url);
  return [row?.stated_frequency, row?.stated_modified_day];
};
const rateOf = async (url: string) => Number((await world.urlRow(url))?.changes_per_day);

test("a sitemap's frequencies are kept for its own host, the latest counts, and they set the expected changes", async () => {
  const sitemap = (frequency: string) => ({
    page: {
      kind: "sitemap" as const,
      links: [
        listed(page("often"), { changeFrequency: frequency }),
        listed(page("seldom"), { changeFrequency: "yearly", modifiedAt: "2028-01-01" }),
        listed("http://b.example/", { changeFrequency: "always", modifiedAt: "2029-01-01" }),
      ],
    },
  });

  await world.ship(crawlerId, { [map]: sitemap("always") }, noon);
  const first = [
    await stated(page("often")),
    await stated(page("seldom")),
    await stated("http://b.example/"),
  ];
  await world.rows(`update frontier_url set next_fetch_at = '${noon.toISOString()}'`);
  await world.ship(crawlerId, { [map]: sitemap("daily") }, secondsAfterNoon(60));
  await world.rows(`update frontier_url set next_fetch_at = '${noon.toISOString()}'`);
  await world.ship(
    crawlerId,
    { [map]: { page: { kind: "sitemap", links: [listed(page("seldom"), { modifiedAt: "2028-01-02" })] } } },
    secondsAfterNoon(90),
  );
  const ordinary = { result: { lastModified: null } };
  const found = { [page("often")]: ordinary, [page("seldom")]: ordinary, [page("silent")]: ordinary };
  await world.ship(crawlerId, found, secondsAfterNoon(120));

  expect(first).toEqual([
    [0, null],
    [5, 10_227],
    [null, null],
  ]);
  expect(await stated(page("often"))).toEqual([2, null]);
  expect(await stated(page("seldom"))).toEqual([5, 10_228]);
  expect(await rateOf(page("often"))).toBeCloseTo(1, 3);
  expect(await rateOf(page("silent"))).toBeCloseTo(0.1, 3);
  expect(await rateOf(page("seldom"))).toBeLessThan(0.01);
});

test("a page is due when its host's list says that it changed after its last fetch, but not in the future", async () => {
  await world.rows(`
    update frontier_url set state = 'due', last_outcome = 'fetched', last_fetched_at = '2029-12-01T12:00:00Z',
      next_fetch_at = '${secondsAfterNoon(900_000).toISOString()}'
    where url <> '${map}'`);
  const entries = [
    listed(page("often"), { modifiedAt: "2029-12-01T13:00:00Z" }),
    listed(page("seldom"), { modifiedAt: "2029-12-01T11:00:00Z" }),
    listed(page("silent"), { modifiedAt: "2126-01-01" }),
  ];

  await world.rows(`update frontier_url set next_fetch_at = '${noon.toISOString()}' where url = '${map}'`);
  await world.ship(
    crawlerId,
    { [map]: { page: { kind: "sitemap", links: entries } } },
    secondsAfterNoon(700_000),
  );

  const due = await world.rows(
    `select url from frontier_url where next_fetch_at <= '${secondsAfterNoon(700_000).toISOString()}' and url <> '${map}'`,
  );
  expect(due).toEqual([{ url: page("often") }]);
});
