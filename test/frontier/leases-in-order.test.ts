/** Leases in the order that the operator chose: what a crawler is handed first, of new and of old URLs. */
import { expect, it } from "vitest";
import type { FrontierOrder } from "#coordinator/crawl/frontier/order/strategies";
import type { CrawlerId } from "#core/ids";
import { noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();

const root = "http://a.example/";

/** New URLs n1 to n6 with 1 to 6 links to them; old ones o1 to o3, the last of which changes its links most. */
async function seeded() {
  const names = ["n1", "n2", "n3", "n4", "n5", "n6", "o1", "o2", "o3"];
  const crawlerId = await world.delegatedHost("north", ...names.map((name) => `${root}${name}`));
  await world.pool.query(
    `update frontier_url
     set back_links = right(url, 1)::int, depth = 7 - right(url, 1)::int,
       last_fetched_at = case when url like '%/o_' then $1::timestamptz - interval '30 days' end,
       out_links = case when url like '%/o_' then 5 end,
       change_ratio = case when url like '%/o_' then right(url, 1)::int / 3.0 end`,
    [noon],
  );
  return crawlerId;
}

async function leased(order: FrontierOrder | undefined, urlsPerHost: number) {
  return await lease(await seeded(), order, urlsPerHost);
}

async function lease(crawlerId: CrawlerId, order: FrontierOrder | undefined, urlsPerHost: number) {
  const terms = { hosts: 1, urlsPerHost, ...(order && { order }) };
  const [granted] = await world.lease(crawlerId, secondsAfterNoon(1), terms);
  return granted?.urls.map(({ url }) => url.slice(root.length));
}

it("the longest due, then the shallowest, where nothing is said of an order", async () => {
  expect(await leased(undefined, 3)).toEqual(["n6", "n5", "n4"]);
});

it("Anansi's two lists: what most pages link to, and with it old pages whose links change", async () => {
  expect(await leased({ name: "anansi", newShare: 0.5 }, 4)).toEqual(["n6", "o3", "n5", "o2"]);
});

it("old URLs fill what new ones leave", async () => {
  expect(await leased({ name: "anansi", newShare: 1 }, 8)).toEqual([
    ...["n6", "n5", "n4", "n3", "n2", "n1"],
    ...["o3", "o2"],
  ]);
});

it("a URL without a rank comes after all that have one", async () => {
  const crawlerId = await seeded();
  await world.pool.query(
    `insert into url_rank (host_hash, url_hash, page_rank, ranked_at)
     select host_hash, url_hash, 0.1, $1 from frontier_url where url like '%/n2'`,
    [noon],
  );

  expect((await lease(crawlerId, { name: "pagerank", newShare: 0.9 }, 3))?.[0]).toBe("n2");
});
