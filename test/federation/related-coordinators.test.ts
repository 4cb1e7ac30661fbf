/** Valid hierarchies, and URLs when coordinators are away, join, leave, or change their claims. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forgetTold } from "#coordinator/crawl/federation/exchange-queue-store";
import { splitByOwner } from "#coordinator/crawl/frontier/foreign-url-store";
import { rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { answerWho } from "#coordinator/tell/who/answer";
import { verdictOf } from "#coordinator/tell/who/words";
import { hostHashOf } from "#core/url-key";
import { everyRead } from "../support/every-read.ts";
import { noon, seeds } from "../support/store-world.ts";
import { tinyResolver } from "../support/web-server.ts";
import { exchangeAll, newCoordinator, type TestCoordinator } from "./related-coordinators-world.ts";

let top: TestCoordinator;
let middle: TestCoordinator;
let low: TestCoordinator;
beforeAll(async () => {
  [top, middle, low] = await Promise.all([newCoordinator(), newCoordinator(), newCoordinator()]);
});
beforeEach(async () => await Promise.all([top, middle, low].map(async (one) => await one.startAnew())));
afterAll(async () => await Promise.all([top, middle, low].map(async (one) => await one?.close())));

const below = async (
  child: TestCoordinator,
  parent: TestCoordinator,
  owns: readonly string[],
  name = "child",
) => await child.join({ url: parent.url, key: await parent.invite(name), owns });
const failureOf = async (child: TestCoordinator) => (await child.store.list(noon)).parent?.failure;

describe("a hierarchy is refused", () => {
  it("when two children claim the same, naming both", async () => {
    const greek = await below(low, top, [".gr", "example.org"], "greek");
    const other = await below(middle, top, ["www.example.org"], "other");

    expect(await greek.turn()).toBe("done");
    expect(await other.turn()).toBe("failed");

    expect(await failureOf(middle)).toBe('it refuses: "other" and "greek" would both own www.example.org');
    expect((await top.store.list(noon)).children).toMatchObject([
      { name: "greek", state: "connected", owns: [".gr", "example.org"] },
      { name: "other", state: "refused", owns: [] },
    ]);
  });

  it("when a child claims what its parent does not own", async () => {
    await (await below(middle, top, [".gr"])).turn();
    await (await below(low, middle, ["uoa.gr", ".com"])).turn();

    expect(await failureOf(low)).toBe(
      "it refuses: it claims .com, which this coordinator does not own itself: its own parent would keep those URLs",
    );
  });

  it("when a coordinator would be below itself or its own child", async () => {
    const itself = await below(top, top, [".gr"], "self");
    expect(await itself.turn()).toBe("failed");
    expect(await failureOf(top)).toBe(
      "it refuses: a cycle of coordinators: it is this coordinator itself, or runs with a copy of its database; one of them must have no parent",
    );
    await top.startAnew();
    const asking = [await below(middle, top, [".gr"]), await below(low, middle, ["uoa.gr"])];
    await exchangeAll(asking);

    const round = await below(top, low, ["www.uoa.gr"]);

    expect(await round.turn()).toBe("failed");
    expect(await failureOf(top)).toMatch(
      /a cycle of coordinators: it is above this coordinator already \(2 steps up\)/,
    );
  });

  it("when the key belongs to another coordinator or was revoked", async () => {
    const key = await top.invite("greek");
    const greek = await low.join({ url: top.url, key, owns: [".gr"] });
    await greek.turn();
    const copy = await middle.join({ url: top.url, key, owns: [".gr"] });
    expect(await copy.turn()).toBe("failed");
    expect(await failureOf(middle)).toMatch(/the key of "greek" belongs to another coordinator/);

    await top.store.remove("greek");

    expect(await greek.turn()).toBe("failed");
    expect(await failureOf(low)).toMatch(/^it refuses: this key is invalid/);
  });
});

describe("an absent parent", () => {
  it("lets the child crawl its own URLs; others wait, are not lost, and are sent once", async () => {
    const child = await below(low, top, [".gr"]);
    await child.turn();
    await top.stopListening();
    await low.seed("http://a.gr/");
    const links: Record<string, string[]> = {
      "http://a.gr/": ["http://b.gr/", "http://x.com/"],
      "http://b.gr/": ["http://x.com/"],
    };

    const fetched = await low.crawl((url) => links[url] ?? []);
    const outcomes = [await child.turn(), await child.turn(), await child.turn()];

    expect(fetched).toEqual(["http://a.gr/", "http://b.gr/"]);
    expect(outcomes).toEqual(["failed", "failed", "failed"]);
    expect(await failureOf(low)).toMatch(/^it is unreachable: .*ECONNREFUSED/);
    expect(child.nextMs()).toBe(20_000);
    expect(await low.waiting()).toBe(1);
    await top.listenAgain();
    await exchangeAll([child]);
    expect(await top.frontier()).toEqual({ "http://x.com/": 2 });
    expect([await failureOf(low), await low.waiting(), child.nextMs()]).toEqual([null, 0, 5000]);
  });

  it("does not fill the disk: beyond the limit the least linked URLs are dropped and counted", async () => {
    await below(low, top, [".gr"]);
    await low.seed("http://a.gr/", "http://b.gr/");
    await low.crawl((url) =>
      url.startsWith("http://a")
        ? ["http://x.com/1", "http://x.com/2", "http://x.com/3"]
        : ["http://x.com/2"],
    );

    const dropped = await low.drop(1);

    expect(dropped).toBe(2);
    expect(await low.world.rows("select url from foreign_url")).toEqual([{ url: "http://x.com/2" }]);
    expect((await low.store.list(noon)).parent).toMatchObject({ waiting: 1, urlsDropped: 2 });
  });

  it("does not make dropping block exchanges, and URLs sent long ago are forgotten", async () => {
    const child = await below(low, top, [".gr"]);
    await low.seed("http://a.gr/");
    await low.crawl(() => ["http://x.com/told"]);
    await exchangeAll([child]);
    await low.crawlAgain(() => ["http://x.com/told", "http://x.com/1", "http://x.com/2"]);
    const { pool } = low.world;
    const exchange = await pool.connect();
    await exchange.query("begin");
    await exchange.query("select from related_coordinator for update");
    const dropping = low.drop(0);
    await low.someoneWaits("Lock");

    const { rowCount: free } = await exchange.query("select from foreign_url for update skip locked");
    await exchange.query("commit");
    exchange.release();

    expect(free).toBe(3);
    expect(await dropping).toBeGreaterThan(0);
    await forgetTold(pool, new Date(noon.getTime() + 89 * 86_400_000));
    expect(await low.world.rows("select url from foreign_url")).toEqual([{ url: "http://x.com/told" }]);
    await forgetTold(pool, new Date(noon.getTime() + 91 * 86_400_000));
    expect(await low.world.rows("select url from foreign_url")).toEqual([]);
  });
});

describe("differences", () => {
  it("are sent for links that come and go later, and URLs once", async () => {
    const child = await below(low, top, [".gr"]);
    await low.seed("http://a.gr/", "http://b.gr/");
    await low.crawl(() => ["http://x.com/"]);
    await exchangeAll([child]);
    expect(await top.frontier()).toEqual({ "http://x.com/": 2 });

    await low.crawlAgain((url) => (url === "http://a.gr/" ? [] : ["http://x.com/", "http://y.com/"]));
    await exchangeAll([child]);

    expect(await top.frontier()).toEqual({ "http://x.com/": 1, "http://y.com/": 1 });
    expect((await low.store.list(noon)).parent).toMatchObject({ urlsSent: 3, waiting: 0 });
  });

  it("keep links reported by others when the ranking corrects its own", async () => {
    const child = await below(low, top, [".gr"]);
    await top.seed("http://x.com/");
    await top.crawl((url) => (url === "http://x.com/" ? ["http://y.com/"] : []));
    await low.seed("http://a.gr/", "http://b.gr/");
    await low.crawl(() => ["http://x.com/"]);
    await exchangeAll([child]);
    await top.world.pool.query("update frontier_url set back_links = 0 where url = 'http://y.com/'");

    await rankLocally(top.world.pool, { settings: defaultPageRankSettings, write: true, at: noon });

    expect(await top.frontier()).toEqual({ "http://x.com/": 2, "http://y.com/": 1 });
  });

  it("number on from the parent's state after a restore", async () => {
    const child = await below(low, top, [".gr"]);
    await low.seed("http://a.gr/");
    await low.crawl(() => ["http://x.com/1", "http://x.com/2"]);
    await exchangeAll([child]);
    await low.world.pool.query("update related_coordinator set sent_number = 0 where peer_id = 0");
    await low.seed("http://x.com/3");

    await exchangeAll([child]);

    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/1", "http://x.com/2", "http://x.com/3"]);
  });

  it("lose nothing after a restore that reuses numbers", async () => {
    const parent = { url: top.url, key: await top.invite("child"), owns: [".gr"] };
    const child = await low.join(parent);
    await low.seed("http://a.gr/");
    await low.crawl(() => ["http://x.com/1", "http://x.com/2"]);
    await exchangeAll([child]);
    await low.world.pool.query("update related_coordinator set sent_number = 1 where peer_id = 0");
    await low.seed("http://x.com/3", "http://x.com/4");

    await exchangeAll([await low.join(parent)]);

    expect(Object.keys(await top.frontier())).toEqual([1, 2, 3, 4].map((page) => `http://x.com/${page}`));
  });
});

describe("a change of claims", () => {
  it("moves hosts with their links to a later child, leased ones when they are free", async () => {
    const links: Record<string, string[]> = { "http://x.com/": ["http://a.gr/", "http://b.gr/"] };
    await top.seed("http://x.com/");
    await top.crawl((url) => links[url] ?? []);
    const leases = await top.leaseOf("a.gr");
    const child = await below(low, top, [".gr"]);
    await child.turn();

    await top.settleOnce();
    await exchangeAll([child]);
    const before = await low.frontier();
    await top.giveBack(leases);
    await top.settle();
    await exchangeAll([child]);

    expect(before).toEqual({ "http://b.gr/": 1 });
    expect(await low.frontier()).toEqual({ "http://a.gr/": 1, "http://b.gr/": 1 });
    expect(await top.frontier()).toEqual({ "http://x.com/": 0 });
  });

  it("moves URLs held beyond a host's budget with their links", async () => {
    const urls = Array.from({ length: 70 }, (_, number) => `http://a.gr/${number}`);
    await top.seed("http://x.com/", "http://y.com/");
    await top.crawl((url) => (/x|y/.test(url) ? urls : []));
    const holds = async ({ world }: typeof top) =>
      await world.rows("select back_links, count(*)::int as urls from held_url group by 1");
    const before = await holds(top);
    const child = await below(low, top, [".gr"]);
    await child.turn();

    await top.settle();
    await exchangeAll([child]);

    expect(before).toEqual([{ back_links: 2, urls: 20 }]);
    expect([await holds(top), await holds(low)]).toEqual([[], before]);
    expect(Object.values(await low.frontier())).toEqual(Array.from({ length: 50 }, () => 2));
  });

  it("moves a leased host later even after more hosts than fit into one piece", async () => {
    const hosts = Array.from({ length: 120 }, (_, number) => `h${number}.gr`);
    const byHash = hosts.sort((a, b) => (BigInt(hostHashOf(a)) < BigInt(hostHashOf(b)) ? -1 : 1));
    await top.seed(...hosts.map((host) => `http://${host}/`));
    const leases = await top.leaseOf(byHash[0]!);
    const child = await below(low, top, [".gr"]);
    await child.turn();

    await top.settle();
    const left = await top.frontier();
    await top.giveBack(leases);
    await top.settle();

    expect(left).toEqual({ [`http://${byHash[0]}/`]: 0 });
    expect(await top.frontier()).toEqual({});
  });

  it("counts nothing twice when crawled pages move away and come back", async () => {
    const links: Record<string, string[]> = {
      "http://x.com/": ["http://a.gr/", "http://y.com/"],
      "http://y.com/": ["http://a.gr/"],
      "http://a.gr/": ["http://a.gr/b", "http://x.com/", "http://c.gr/"],
      "http://a.gr/b": ["http://a.gr/", "http://c.gr/"],
      "http://c.gr/": ["http://x.com/"],
    };
    const linksOf = (url: string) => links[url] ?? [];
    await top.seed("http://x.com/");
    await top.crawl(linksOf);
    const alone = await top.frontier();
    const parent = { url: top.url, key: await top.invite("child") };
    const counts: object[] = [];
    for (const owns of [["a.gr"], ["a.gr", "c.gr"], ["c.gr"], ["a.gr", "c.gr"]]) {
      const child = await low.join({ ...parent, owns });
      for (let turn = 0; turn < 2; turn += 1) {
        await exchangeAll([child]);
        await Promise.all([top.settle(), low.settle()]);
        await exchangeAll([child]);
        await top.crawlAgain(linksOf);
        await low.crawlAgain(linksOf);
        await exchangeAll([child]);
      }
      counts.push({ ...(await top.frontier()), ...(await low.frontier()) });
    }

    expect(alone).toMatchObject({ "http://a.gr/": 3, "http://x.com/": 2, "http://c.gr/": 2 });
    expect(counts).toEqual([alone, alone, alone, alone]);
  });

  it("waits for URLs that are being placed by the former claims", async () => {
    const child = await below(low, top, [".gr"]);
    const { pool } = top.world;
    const finding = await pool.connect();
    await finding.query("begin");
    const found = seeds("http://a.gr/");
    const { own } = await splitByOwner(finding, found, 1);

    const turn = child.turn();
    await top.someoneWaits("advisory");
    await finding.query("commit");
    finding.release();

    expect(own).toHaveLength(1);
    expect(await turn).toBe("done");
  });

  it("reroutes URLs in transit only when their receiver is gone", async () => {
    const child = await below(low, top, [".gr"]);
    await child.turn();
    await top.seed("http://a.gr/", "http://b.gr/");
    const { pool } = top.world;
    // The child has it, but has not acknowledged it yet.
    await child.turn();
    await pool.query("update foreign_url set number = 1, waits_since = null where url = 'http://a.gr/'");
    await pool.query("update related_coordinator set claims = '{.de}', sent_number = 9 where name = 'child'");

    await top.settleOnce();
    const meanwhile = Object.keys(await top.frontier());
    await pool.query("update foreign_url set number = null, sent_at = now()");
    await top.settleOnce();

    expect(meanwhile).toEqual(["http://b.gr/"]);
    expect(Object.keys(await top.frontier())).toEqual(["http://a.gr/", "http://b.gr/"]);
  });

  it("takes back what waits for a removed child", async () => {
    const child = await below(low, top, [".gr"]);
    await child.turn();
    await top.seed("http://a.gr/", "http://x.com/");
    expect(Object.keys(await top.frontier())).toEqual(["http://x.com/"]);

    await top.store.remove("child");
    await top.settle();

    expect(Object.keys(await top.frontier())).toEqual(["http://a.gr/", "http://x.com/"]);
    expect(await top.waiting()).toBe(0);
  });
});

describe("who URL", () => {
  const answer = async (of: TestCoordinator, url: string) => {
    const reads = everyRead(of.world.pool, () => performance.now());
    const answered = await answerWho(url, { reads, resolver: tinyResolver, scope: null }, noon);
    return [
      verdictOf(answered),
      ...answered.standing.filter(({ code }) => code === "other-coordinator").map(({ words }) => words),
    ];
  };

  it("names the owner, the claim, and whether the URL was sent", async () => {
    const child = await below(low, top, [".gr"], "greek");
    await child.turn();
    await low.seed("http://a.gr/");
    await low.crawl(() => ["http://x.com/"]);
    await top.seed("http://b.gr/");

    const waits = await answer(low, "http://x.com/");
    await exchangeAll([child]);

    expect(waits).toEqual([
      "Another coordinator crawls this",
      `It belongs to another coordinator: this one owns .gr, and its parent ${top.url} knows whose it is. ` +
        "It waits to be sent up, since 2030-01-01 12:00:10 UTC.",
    ]);
    expect((await answer(low, "http://x.com/"))[1]).toMatch(/It was sent up at 2030-01-01 12:00:00 UTC\.$/);
    expect(await answer(top, "http://b.gr/")).toEqual([
      "Another coordinator crawls this",
      "It belongs to coordinator greek (.gr), below this one. It was sent down at 2030-01-01 12:00:00 UTC.",
    ]);
    expect((await answer(top, "http://c.gr/"))[1]).toMatch(
      /below this one\. Once it is found here, it is sent down\.$/,
    );
    expect(await answer(low, "http://a.gr/")).toEqual(["crawler would crawl this"]);
  });
});
