/** A crawler whose key is for measurements only. */
import { expect, test } from "vitest";
import { welcomeCrawler } from "#coordinator/place/balance/presence";
import { crawlersWithoutRoom, DayBudget } from "#coordinator/place/crawlers/crawler";
import { hello, newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon } from "../support/store-world.ts";

const world = await forThisFile(newFlowWorld());

test("a crawler that only measures does not even get its own subnet, and is no candidate", async () => {
  const crawls = await world.subnet("5.1.1.0", "5.1.1.255");
  const measures = await world.subnet("5.1.2.0", "5.1.2.255");
  const north = await world.crawler("north");
  const south = await world.crawler("south");
  await world.pool.query("update crawler_key set scopes = '{probe}' where crawler_id = $1", [south]);
  const state = await world.state();
  const come = async (name: string, crawlerId: typeof north, publicAddress: string) =>
    await welcomeCrawler(
      { crawlerId, hello: hello(name, { publicAddress }), remoteAddress: "127.0.0.1" },
      { ...world, state },
      noon,
    );

  await come("north", north, "5.1.1.9");
  await come("south", south, "5.1.2.9");

  expect(state.delegationOf(crawls)?.crawlerId).toBe(north);
  expect(state.delegationOf(measures)).toBeNull();
  expect([...crawlersWithoutRoom(state, new DayBudget(), noon)]).toEqual([south]);
});
