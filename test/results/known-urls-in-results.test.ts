/** URLs known a moment ago are not looked up again, and nothing is lost by that. */
import { describe, expect, it } from "vitest";
import { KnownUrls } from "#coordinator/crawl/frontier/known-urls";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import type { CrawlerId } from "#core/ids";
import { arrivedResult, batchOf, keyOf, noon, scope, storeWorld } from "../support/store-world.ts";

const world = storeWorld();

const root = "http://a.example/";
const near = "http://a.example/near";
const far = "http://b.example/far";
const minutesAfter = (minutes: number) => new Date(noon.getTime() + 60_000 * minutes);

/** A visit of the root that finds these links, through a store with a memory. */
async function visit(
  crawlerId: CrawlerId,
  known: KnownUrls,
  given: {
    readonly at: Date;
    readonly sequence: number;
    readonly pagesPerHost?: number;
    readonly links?: string[];
  },
): Promise<void> {
  const { at, sequence, pagesPerHost = 100, links = [near, far] } = given;
  await world.pool.query("update frontier_host set not_before = $1, due_at = $1", [noon]);
  await world.pool.query(
    "update frontier_url set next_fetch_at = case when url = $2 then $1::timestamptz else 'infinity' end",
    [noon, root],
  );
  const [lease] = await world.lease(crawlerId, at);
  const result = { fetchedAt: at.toISOString() };
  const arrived = arrivedResult({ sequence, leaseId: lease!.leaseId, url: root, links, result });
  await createResultStore(world.pool, known).take(
    batchOf(crawlerId, [arrived], { scope: { ...scope, pagesPerHost }, now: at }),
  );
  await world.applyOutbox(at, { known });
}

const urls = async () =>
  (await world.rows<{ url: string }>("select url from frontier_url order by url")).map(({ url }) => url);

describe("known URLs in results", () => {
  it("are remembered once they are in the frontier, on the page's own host and on others", async () => {
    const crawlerId = await world.delegatedHost("north", root);
    const known = new KnownUrls(1024);

    await visit(crawlerId, known, { at: noon, sequence: 1 });

    expect(await urls()).toEqual([root, near, far]);
    expect([near, far].map((url) => known.has(keyOf(url).urlHash, noon))).toEqual([true, true]);
  });

  it("are added again within an hour if their rows were deleted", async () => {
    const crawlerId = await world.delegatedHost("north", root);
    const known = new KnownUrls(1024);
    await visit(crawlerId, known, { at: noon, sequence: 1 });
    await world.pool.query("delete from frontier_url where url <> $1", [root]);

    await visit(crawlerId, known, { at: minutesAfter(10), sequence: 2 });
    const soon = await urls();
    await visit(crawlerId, known, { at: minutesAfter(61), sequence: 3 });

    expect(soon).toEqual([root]);
    expect(await urls()).toEqual([root, near, far]);
  });

  it("are not remembered while there is no room for them, and enter as soon as there is", async () => {
    const crawlerId = await world.delegatedHost("north", root);
    const known = new KnownUrls(1024);
    await visit(crawlerId, known, { at: noon, sequence: 1, pagesPerHost: 1 });
    const before = await urls();

    await visit(crawlerId, known, { at: minutesAfter(2), sequence: 2 });

    expect(before).not.toContain(near);
    expect(await urls()).toEqual([root, near, far]);
  });

  it("still have their links counted", async () => {
    const crawlerId = await world.delegatedHost("north", root);
    const known = new KnownUrls(1024);
    await visit(crawlerId, known, { at: noon, sequence: 1 });
    await visit(crawlerId, known, { at: minutesAfter(2), sequence: 2, links: [] });
    const without = await world.rows("select back_links from frontier_url where url <> 'http://a.example/'");

    await visit(crawlerId, known, { at: minutesAfter(4), sequence: 3 });

    expect(without).toEqual([{ back_links: 0 }, { back_links: 0 }]);
    expect(await world.rows("select back_links from frontier_url where url <> 'http://a.example/'")).toEqual([
      { back_links: 1 },
      { back_links: 1 },
    ]);
  });
});
