/** Channels in the database: what they let into the frontier and out of it, and how far their crawl has come. */
import { beforeEach, describe, expect, it, test } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { channelOperations } from "#coordinator/crawl/channels/channels-ask";
import { coverageSum } from "#coordinator/crawl/channels/coverage";
import { coverageList } from "#coordinator/crawl/channels/coverage-reads";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import { createSubmissionStore, submitUrls } from "#coordinator/crawl/submissions/submission-store";
import type { CrawlerId } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { shownAs } from "../support/shown-as.ts";
import { arrivedResult, noon, scope, secondsAfterNoon, seeds, storeWorld } from "../support/store-world.ts";

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

test("links that its filters exclude or that are too deep are not admitted; other hosts are unaffected", async () => {
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

test("earlier URLs that it excludes are refused with the reason, and due again when the channel is removed", async () => {
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

test("leased URLs are refused when they come back, and then the channel is settled", async () => {
  crawlerId = await world.delegatedHost("north", at("/old/1"));
  const [lease] = await world.lease(crawlerId);
  await add({ exclude: ["/old/"] });

  const [during, open] = [await settle(), await createChannelStore(world.pool).list("a.example")];
  await world.take(crawlerId, [arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: at("/old/1") })]);
  const [after, done] = [await settle(), await createChannelStore(world.pool).list()];

  expect([during, open[0]?.settled, after]).toEqual([0, false, 1]);
  expect(done[0]).toMatchObject({ settled: true, expectedPages: 1 });
});

test("its seeds are admitted with it, also of an unknown host", async () => {
  await add({ prefixes: ["a.example/docs/"], seeds: [at("/docs/"), at("/docs/b")] });

  expect(await statesOf()).toEqual({ "/docs/": "due", "/docs/b": "due" });
});

test("of two overlapping channels added concurrently, one is refused", async () => {
  const store = createChannelStore(world.pool);

  const made = await Promise.all([
    store.add(rules({ prefixes: ["a.example/docs/"] }), noon),
    store.add(rules({ prefixes: ["a.example/docs/x/"] }), noon),
  ]);

  expect(made.filter((one) => "channelId" in one)).toHaveLength(1);
  expect(await store.remove(99, noon)).toBeNull();
});

describe("coverage", () => {
  beforeEach(async () => {
    await world.pool.query("delete from channel; delete from submission");
  });

  const nothing = { channel: null, submission: null, host: null, most: 100, maxDepth: scope.maxDepth };

  async function crawl(url: string, links: readonly string[], depth = 1): Promise<void> {
    const crawlerId = await world.delegatedHost("athens", url);
    await crawlOn(crawlerId, links, depth, 0);
  }

  async function crawlOn(
    crawlerId: Parameters<typeof world.lease>[0],
    links: readonly string[],
    depth: number,
    minute: number,
  ) {
    const at = secondsAfterNoon(60 * minute);
    const [lease] = await world.lease(crawlerId, at);
    await world.take(
      crawlerId,
      lease!.urls.map(({ url }, place) => {
        const arrived = arrivedResult({
          sequence: 100 * minute + place + 1,
          leaseId: lease!.leaseId,
          url,
          links,
        });
        return { ...arrived, admit: arrived.admit.map((link) => ({ ...link, depth })) };
      }),
      at,
    );
  }

  it("is in progress while something waits for its first fetch, and complete afterwards", async () => {
    const crawlerId = await world.delegatedHost("athens", "http://a.example/");
    await crawlOn(crawlerId, ["http://a.example/1"], 1, 0);
    const during = await coverageList(world.pool, { ...nothing, host: "a.example" });
    await crawlOn(crawlerId, ["http://a.example/"], 2, 60);

    const after = await coverageList(world.pool, { ...nothing, host: "a.example" });

    expect(during?.coverage[0]).toMatchObject({ state: "in-progress", fetched: 1, waiting: 1, cutBy: [] });
    expect(after?.coverage[0]).toMatchObject({
      state: "complete",
      fetched: 2,
      waiting: 0,
      words: "complete",
    });
    expect(after?.coverage[0]?.seeds).toEqual([
      { url: "http://a.example/", state: "due", lastOutcome: "fetched", lastStatus: 200, fetches: 1 },
    ]);
  });

  it("is cut by depth when its deepest pages link to what is not in the crawl", async () => {
    await crawl(
      "http://a.example/",
      ["http://a.example/deep", "http://a.example/deeper"],
      scope.maxDepth + 1,
    );

    const list = await coverageList(world.pool, { ...nothing, host: "a.example", maxDepth: 0 });

    expect(list?.coverage[0]).toMatchObject({ state: "cut", cutBy: ["depth"], tooDeep: 2, fetched: 1 });
    expect(list?.coverage[0]?.words).toBe("cut by depth (2 URLs more than 0 links from a seed)");
  });

  it("is not cut by depth for links that are not followed", async () => {
    const crawlerId = await world.delegatedHost("athens", "http://a.example/");
    const [lease] = await world.lease(crawlerId);
    const links = ["http://a.example/deep", "http://a.example/deeper"];
    const arrived = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/", links });
    await world.take(crawlerId, [
      { ...arrived, admit: [], links: arrived.links.map((link, at) => ({ ...link, nofollow: at === 0 })) },
    ]);

    const list = await coverageList(world.pool, { ...nothing, host: "a.example", maxDepth: 0 });

    expect(list?.coverage[0]).toMatchObject({ cutBy: ["depth"], tooDeep: 1 });
  });

  it("is cut by budget when URLs are held or dropped, which the line of each seed shows", async () => {
    await crawl(
      "http://a.example/",
      Array.from({ length: 80 }, (_, number) => `http://a.example/${number}`),
    );
    await world.pool.query("update frontier_url set visits = 1; update frontier_host set left_out_urls = 7");

    const list = await coverageList(world.pool, { ...nothing, host: "a.example" });

    const [one] = list!.coverage;
    expect(one).toMatchObject({ state: "cut", cutBy: ["budget"], leftOut: 7 });
    expect(one!.held).toBeGreaterThan(0);
    expect(one!.fetched + one!.held).toBe(81);
    const line = shownAs(channelOperations.coverage, list).lines[0]!;
    expect(line).toMatchObject({ seed: "http://a.example/", state: "cut", cut_by: "budget", left_out: 7 });
    expect([line.fetched, line.held]).toEqual([one!.fetched, one!.held]);
  });

  it("names a channel by its directories, and for a submission each seed's channel or host", async () => {
    const store = createChannelStore(world.pool);
    const docs = { prefixes: ["http://a.example/docs/"], seeds: [], include: [], exclude: [], maxDepth: 3 };
    await store.add(readChannel(docs), noon);
    const submission = await submitUrls(
      ["http://a.example/docs/x", "http://a.example/news", "http://b.example/"],
      createSubmissionStore(world.pool),
      { ...{ deed: "add", submittedBy: "anna", scope, allowSpecialPurpose: false, now: () => noon } },
    );
    await world.pool.query(
      "update frontier_host set state = 'unresolvable', state_reason = 'it has no address' where host = 'b.example'",
    );

    const list = await coverageList(world.pool, { ...nothing, submission: submission.submissionId });
    const channels = await coverageList(world.pool, nothing);

    expect(
      list!.coverage.map(({ host, channelId, seeds: all, state }) => [
        host,
        channelId !== null,
        all.length,
        state,
      ]),
    ).toEqual([
      ["a.example", true, 1, "in-progress"],
      ["a.example", false, 1, "in-progress"],
      ["b.example", false, 1, "blocked"],
    ]);
    expect(list!.coverage[0]).toMatchObject({ waiting: 1, maxDepth: 3, directories: ["/docs/"] });
    expect(coverageSum(list!.coverage)).toBe("2 in progress, 1 blocked");
    expect(channels!.coverage).toHaveLength(1);
  });

  it("is null for unknown channels, submissions and hosts", async () => {
    await world.frontier.admit(seeds("http://a.example/"), scope, noon);

    const answers = await Promise.all([
      coverageList(world.pool, { ...nothing, channel: 99 }),
      coverageList(world.pool, { ...nothing, submission: 99 }),
      coverageList(world.pool, { ...nothing, host: "other.example" }),
    ]);

    expect(answers).toEqual([null, null, null]);
  });
});
