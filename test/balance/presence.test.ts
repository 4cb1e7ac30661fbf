/** A whole fleet that arrives at once, over a real database: what is read for it, and that everybody is known after it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { refreshCrawlers, welcomeCrawler } from "#coordinator/balance/presence";
import { Gathered } from "#core/coalesce";
import type { CrawlerId } from "#core/ids";
import { type FlowWorld, hello, newFlowWorld } from "../support/flow-world.ts";
import { makeGate } from "../support/gate.ts";
import { noon } from "../support/store-world.ts";

let world: FlowWorld;
beforeAll(async () => {
  world = await newFlowWorld();
});
afterAll(async () => await world?.close());

const fleet = 250;

it("reads each crawler about once when 250 arrive at once, and never the list of all", async () => {
  const { rows } = await world.pool.query<{ crawler_id: CrawlerId }>(
    "insert into crawler (name) select 'c' || i from generate_series(1, $1) i returning crawler_id",
    [fleet],
  );
  const subnetIds = [];
  for (let at = 0; at < 10; at += 1) subnetIds.push(await world.subnet(`5.1.${at}.0`, `5.1.${at}.255`));
  const state = await world.state();
  const lists: (number | "all")[] = [];
  const crawlers = {
    ...world.crawlers,
    list: async (crawlerIds?: readonly CrawlerId[]) => {
      lists.push(crawlerIds?.length ?? "all");
      return await world.crawlers.list(crawlerIds);
    },
  };

  const arrivals = rows.map(async ({ crawler_id: crawlerId }, at) => {
    const spoken = hello(`c${at + 1}`, { publicAddress: `5.1.${at % 10}.${1 + (at % 200)}` });
    const arrival = { crawlerId, hello: spoken, remoteAddress: "127.0.0.1" };
    return await welcomeCrawler(arrival, { ...world, crawlers, state }, noon);
  });
  await Promise.all(arrivals);

  expect(lists).not.toContain("all");
  expect(lists.reduce<number>((sum, count) => sum + Number(count), 0)).toBe(fleet);
  expect(state.crawlers.filter((crawler) => crawler.state === "online")).toHaveLength(fleet);
  expect(state.crawlers).toEqual(await world.crawlers.list());
  for (const subnetId of subnetIds) expect(state.delegationOf(subnetId)).not.toBeNull();
});

it("never puts back what was read before a newer reading", async () => {
  const state = await world.state();
  const [first] = state.crawlers;
  const gate = makeGate();
  const crawlers = {
    list: async (crawlerIds?: readonly CrawlerId[]) => {
      const read = await world.crawlers.list(crawlerIds);
      if (crawlerIds === undefined) await gate.opened;
      return read;
    },
  };

  const slow = refreshCrawlers({ crawlers, state });
  await world.pool.query("update crawler set place = 'Elsewhere' where crawler_id = $1", [first!.crawlerId]);
  const later = refreshCrawlers({ crawlers, state }, [first!.crawlerId]);
  gate.open();
  await Promise.all([slow, later]);

  expect(state.crawler(first!.crawlerId)?.place).toBe("Elsewhere");
});

it("fails nobody for what another asked", async () => {
  const together: number[][] = [];
  const gathered = new Gathered(async (items: readonly number[]) => {
    together.push([...items]);
    if (items.includes(3)) throw new Error("three");
    return items.map((item) => item * 2);
  }, 10);

  const answers = await Promise.allSettled([1, 2, 3, 4].map((item) => gathered.ask(item)));

  expect(together).toEqual([[1], [2, 3, 4], [2], [3], [4]]);
  expect(answers.map((answer) => (answer.status === "fulfilled" ? answer.value : "failed"))).toEqual([
    2,
    4,
    "failed",
    8,
  ]);
});
