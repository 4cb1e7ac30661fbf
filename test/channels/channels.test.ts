/** Channels decide what the frontier takes in and gives out. */
import { beforeEach, expect, test } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import type { CrawlerId } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { arrivedResult, noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
let crawlerId: CrawlerId;
beforeEach(async () => {
  await world.rows("delete from channel");
});

const root = "http://a.example/";
const at = (path: string) => `http://a.example${path}`;
const rules = (changed: object = {}) =>
  readChannel({ prefixes: ["a.example"], seeds: [], include: [], exclude: [], maxDepth: null, ...changed });

async function add(changed: object = {}) {
  const made = await createChannelStore(world.pool).add(rules(changed), noon);
  if (!("channelId" in made)) throw new Error(made.join());
  return made;
}
const settle = async (time = noon) => await createChannelStore(world.pool).settle(time);
const statesOf = async () =>
  Object.fromEntries(
    (await world.rows<{ url: string; state: string }>("select url, state from frontier_url")).map(
      ({ url, state }) => [url.replace("http://a.example", ""), state],
    ),
  );

test("links that its filters leave out or that are too deep are not admitted; other hosts are as they were", async () => {
  crawlerId = await world.delegatedHost("north", root);
  await add({ exclude: ["/old/"], include: ["/docs/"], seeds: [root], maxDepth: 1 });
  const [lease] = await world.lease(crawlerId);
  const links = ["/docs/1", "/old/1", "/else"].map(at).concat("http://b.example/old/1");

  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: root, links })]);
  const [next] = await world.lease(crawlerId, secondsAfterNoon(60));
  const deeper = { sequence: 2, leaseId: next!.leaseId, url: at("/docs/1"), links: [at("/docs/2")] };
  await world.take(crawlerId, [arrivedResult(deeper)], secondsAfterNoon(61));

  expect(Object.keys(await statesOf()).sort()).toEqual(["/", "/docs/1", "http://b.example/old/1"]);
});

test("a host, and the coordinator, have no more channels than can be read with every lease", async () => {
  const fill = async (host: string, many: number) =>
    await world.rows(
      `insert into channel (host_hash, host, directories, created_at)
       select ${hostHashOf(host)}, '${host}', array['/' || n || '/'], now() from generate_series(1, ${many}) n`,
    );
  await fill("a.example", 200);

  const ofHost = await createChannelStore(world.pool).add(rules({ prefixes: ["a.example/new/"] }), noon);
  await fill("b.example", 49_800);
  const ofAll = await createChannelStore(world.pool).add(rules({ prefixes: ["c.example"] }), noon);

  expect(ofHost).toEqual(["a.example has 200 channels already, the maximum for a host"]);
  expect(ofAll).toEqual(["there are 50000 channels, the maximum: remove one first"]);
});

test("what the frontier had before is refused with the reason, and due again when the channel goes", async () => {
  crawlerId = await world.delegatedHost("north", root, at("/old/1"), at("/docs/1"));
  const { channelId } = await add({ exclude: ["/old/"] });

  expect(await settle()).toBe(1);
  const leased = (await world.lease(crawlerId)).flatMap(({ urls }) => urls.map(({ url }) => url));
  const why = await world.rows("select last_outcome, last_reason from frontier_url where state = 'refused'");
  await createChannelStore(world.pool).remove(channelId, noon);

  expect(leased.sort()).toEqual([root, at("/docs/1")]);
  expect(why).toEqual([
    { last_outcome: "outside-channel", last_reason: `channel ${channelId}: its filter skips /old/` },
  ]);
  expect((await statesOf())["/old/1"]).toBe("due");
});

test("what is under a lease is taken out when it comes back, and then the channel is settled", async () => {
  crawlerId = await world.delegatedHost("north", at("/old/1"));
  const [lease] = await world.lease(crawlerId);
  await add({ exclude: ["/old/"] });

  const [during, open] = [await settle(), await createChannelStore(world.pool).list("a.example")];
  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: at("/old/1") })]);
  const [after, done] = [await settle(), await createChannelStore(world.pool).list()];

  expect([during, open[0]?.settled, after]).toEqual([0, false, 1]);
  expect(done[0]).toMatchObject({ settled: true, expectedPages: 1 });
});

test("its seeds come into the frontier with it, also of a host that nobody knew", async () => {
  await add({ prefixes: ["a.example/docs/"], seeds: [at("/docs/"), at("/docs/b")] });

  expect(await statesOf()).toEqual({ "/docs/": "due", "/docs/b": "due" });
});

test("of two that overlap and are added at once, one is refused", async () => {
  const store = createChannelStore(world.pool);

  const made = await Promise.all([
    store.add(rules({ prefixes: ["a.example/docs/"] }), noon),
    store.add(rules({ prefixes: ["a.example/docs/x/"] }), noon),
  ]);

  expect(made.filter((one) => "channelId" in one)).toHaveLength(1);
  expect(await store.remove(99, noon)).toBeNull();
});
