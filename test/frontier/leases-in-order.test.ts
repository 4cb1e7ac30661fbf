/** Leases in the order that the operator chose: of URLs within a host, and of hosts by their best new URL. */

import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { LeaseRequest } from "#coordinator/crawl/frontier/frontier";
import { forgetWorths, reckonFromStart, reckonWorths } from "#coordinator/crawl/frontier/order/order-sql";
import type { FrontierOrder } from "#coordinator/crawl/frontier/order/strategies";
import { scheduleHostWorths } from "#coordinator/crawl/frontier/start";
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { Lease } from "#protocol/lease";
import { noon, secondsAfterNoon, storeWorld } from "../support/store-world.ts";
import { firstCarry, owedAfter } from "./order/mix-model.ts";

const world = storeWorld();
describe("URLs of a host are leased", () => {
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

  it("longest due first, then shallowest, without an order", async () => {
    expect(await leased(undefined, 3)).toEqual(["n6", "n5", "n4"]);
  });

  it("by Anansi's two lists: most linked new ones, and old ones whose links change", async () => {
    expect(await leased({ name: "anansi", newShare: 0.5 }, 4)).toEqual(["n6", "o3", "n5", "o2"]);
  });

  it("old ones after the new ones have run out", async () => {
    expect(await leased({ name: "anansi", newShare: 1 }, 8)).toEqual([
      ...["n6", "n5", "n4", "n3", "n2", "n1"],
      ...["o3", "o2"],
    ]);
  });

  it("those without a rank last", async () => {
    const crawlerId = await seeded();
    await world.pool.query(
      `insert into url_rank (host_hash, url_hash, page_rank, ranked_at)
     select host_hash, url_hash, 0.1, $1 from frontier_url where url like '%/n2'`,
      [noon],
    );

    expect((await lease(crawlerId, { name: "pagerank", newShare: 0.9 }, 3))?.[0]).toBe("n2");
  });
});

describe("hosts are leased", () => {
  const order: FrontierOrder = { name: "back-links", newShare: 0.9, worthShare: 0.75 };
  const later = secondsAfterNoon(60);

  /** Hosts with new URLs of so many links each, the first host due the longest. */
  async function hostsWith(links: Readonly<Record<string, readonly number[]>>): Promise<CrawlerId> {
    const urls = Object.entries(links).flatMap(([host, of]) =>
      of.map((_, n) => `http://${host}.example/${n}`),
    );
    const crawlerId = await world.delegatedHost("north", ...urls);
    for (const [index, [host, of]] of Object.entries(links).entries()) {
      await world.pool.query(
        `with due as (update frontier_host set due_at = $2 where host = $1 returning host_hash)
       update frontier_url u
       set back_links = ($3::int[])[1 + split_part(url, '/', 4)::int], next_fetch_at = $2
       from due
       where u.host_hash = due.host_hash`,
        [`${host}.example`, secondsAfterNoon(index), of],
      );
    }
    return crawlerId;
  }

  const lease = async (crawlerId: CrawlerId, given: Partial<LeaseRequest> = {}) =>
    await world.lease(crawlerId, later, { hosts: 1, order, ...given });

  /** "b 9 5": the host, and the links to its leased URLs. */
  async function told(leases: readonly Lease[]): Promise<string[]> {
    const rows = await world.rows<{ url: string; back_links: number }>(
      "select url, back_links from frontier_url",
    );
    const links = new Map(rows.map((row) => [row.url, row.back_links]));
    return leases.map(({ host, urls }) =>
      [host.split(".")[0], ...urls.map(({ url }) => links.get(url))].join(" "),
    );
  }

  const reckoned = async (name: FrontierOrder["name"] = "back-links") =>
    await reckonWorths(world.pool, name, { after: reckonFromStart, now: later });
  const worths = async () =>
    Object.fromEntries(
      (
        await world.rows<{ host: string; worth: number | null }>(
          "select host, worth from frontier_host order by host",
        )
      ).map(({ host, worth }) => [host.split(".")[0], worth]),
    );

  describe("one by one", () => {
    it("three in four by their best new URL, and one by due time", async () => {
      const crawlerId = await hostsWith({ a: [1], b: [2], c: [7], d: [8], e: [9] });
      await reckoned();

      const leases = [];
      for (let request = 0; request < 5; request++) leases.push(...(await lease(crawlerId)));

      expect(await told(leases)).toEqual(["a 1", "e 9", "d 8", "c 7", "b 2"]);
    });

    it("all by due time when no worth is known, the share is 0, or the order ignores worth", async () => {
      const crawlerId = await hostsWith({ a: [1], b: [2], c: [9] });
      const all = { hosts: 2 };

      const unknown = await told(await lease(crawlerId, all));
      await world.frontier.returnLeasesOf(crawlerId, later);
      await reckoned();
      const none = await told(await lease(crawlerId, { ...all, order: { ...order, worthShare: 0 } }));
      await world.frontier.returnLeasesOf(crawlerId, later);
      const plain = await told(
        await lease(crawlerId, { ...all, order: { ...order, name: "breadth-first" } }),
      );

      expect([unknown, none, plain].map((leases) => leases.sort())).toEqual(Array(3).fill(["a 1", "b 2"]));
    });
  });

  describe("a host chosen by its worth", () => {
    const many = { a: [1], b: [9, 6, 5, 2, 1], c: [5, 4] };
    const first = { ...order, worthShare: 0.9 };

    it("leases those of its URLs that are worth as much as the next host's best", async () => {
      const crawlerId = await hostsWith(many);
      await reckoned();

      const leases = await lease(crawlerId, { hosts: 2, order: first });

      expect((await told(leases)).sort()).toEqual(["a 1", "b 9 6 5"]);
    });

    it("is worth its remaining URLs afterwards", async () => {
      const crawlerId = await hostsWith(many);
      await reckoned();
      const before = await worths();

      await lease(crawlerId, { hosts: 2, order: first });

      expect(before).toEqual({ a: 1, b: 9, c: 5 });
      expect(await worths()).toEqual({ a: null, b: 2, c: 5 });
    });

    it("owes its old URLs what a slice of new ones has taken", async () => {
      const crawlerId = await hostsWith(many);
      await reckoned();

      await lease(crawlerId, { hosts: 2, order: first });

      const [row] = await world.rows<{ host_hash: string; mix_carry: number }>(
        "select host_hash, mix_carry from frontier_host where host = 'b.example'",
      );
      expect(row?.mix_carry).toBeCloseTo(owedAfter(3, 0.9, firstCarry(row!.host_hash)), 9);
    });

    it("is not leased to another crawler, nor while it rests", async () => {
      const crawlerId = await hostsWith({ a: [1], b: [9] });
      const other = await world.crawler("south");
      await reckoned();
      await world.pool.query("update frontier_host set not_before = $1 where host = 'b.example'", [
        secondsAfterNoon(61),
      ]);

      const [ours, theirs] = [
        await lease(crawlerId, { hosts: 2, order: first }),
        await lease(other, { hosts: 2 }),
      ];

      expect(await told(ours)).toEqual(["a 1"]);
      expect(theirs).toEqual([]);
    });
  });

  const tooLong = async () =>
    await setTimeout(10_000, undefined, { ref: false }).then(() => expect.fail("it waits for the row"));

  describe("what hosts are worth", () => {
    it("is recomputed when links arrive, a hundred hosts at a time in due order", async () => {
      await world.pool.query(
        `with hosts as (
         insert into frontier_host (host_hash, host, state, due_at)
         select n, 'h' || n || '.example', 'resolved', $1::timestamptz + make_interval(secs => n / 10.0)
         from generate_series(100, 202) n
         returning host_hash, host, due_at
       )
       insert into frontier_url (host_hash, url_hash, url, back_links, next_fetch_at)
       select host_hash, 1, 'http://' || host || '/', 1, due_at
       from hosts`,
        [noon],
      );

      const after = await reckoned();
      const first = Object.values(await worths()).filter((worth) => worth !== null).length;
      const end = await reckonWorths(world.pool, "back-links", { after: after!, now: later });
      await world.pool.query("update frontier_url set back_links = 30");
      await reckonWorths(world.pool, "back-links", { after: after!, now: later });

      expect([first, end]).toEqual([100, null]);
      expect(Object.values(await worths())).toEqual([...Array(100).fill(1), 30, 30, 30]);
    });

    it("is cleared when the order ignores it, and skipped while the host is leased", async () => {
      const crawlerId = await hostsWith({ a: [1], b: [2, 3] });
      await lease(crawlerId, { order: { ...order, worthShare: 0 } });
      await reckoned();
      const known = await worths();

      const isMore = await forgetWorths(world.pool);

      expect(known).toEqual({ a: null, b: 3 });
      expect(isMore).toBe(false);
      expect(await worths()).toEqual({ a: null, b: null });
    });

    it("is skipped while a row is locked, and not written for a negligible change", async () => {
      await hostsWith({ a: [100], b: [5], c: [7] });
      await reckoned();
      const place = async () => await world.rows("select host, text(ctid) from frontier_host order by host");
      const before = await place();
      await world.pool.query("update frontier_url set back_links = back_links + 1 where back_links <> 5");
      const other = await world.pool.connect();
      try {
        await other.query("begin");
        await other.query("select from frontier_host where host = 'c.example' for update");
        await Promise.race([reckoned(), tooLong()]);
        expect([await worths(), await place()]).toEqual([{ a: 100, b: 5, c: 7 }, before]);
      } finally {
        await other.query("rollback");
        other.release();
      }

      await reckoned();

      expect(await worths()).toEqual({ a: 100, b: 5, c: 8 });
    });

    it("is computed by the clock under the current order, and cleared when the order changes", async () => {
      await hostsWith({ a: [4], b: [2] });
      const turns: (() => Promise<unknown>)[] = [];
      const inForce = { order };
      scheduleHostWorths({
        pool: world.pool,
        timekeeper: { every: (_name, _ms, work) => void turns.push(work) },
        order: () => inForce.order,
        now: () => later,
        nowMs: () => 0,
      });

      await turns[0]!();
      const known = await worths();
      inForce.order = { ...order, name: "breadth-first" };
      await turns[0]!();

      expect([known, await worths()]).toEqual([
        { a: 4, b: 2 },
        { a: null, b: null },
      ]);
    });
  });

  it("nine in ten leased URLs of a mixed host are new, in leases of one to five", async () => {
    const crawlerId = await hostsWith({ a: Array.from({ length: 20 }, () => 1) });
    // Ten of each, which stay due: what is leased is given back.
    await world.pool.query("update frontier_url set last_fetched_at = $1 where right(url, 1)::int % 2 = 0", [
      noon,
    ]);
    const isNew = new Map(
      (
        await world.rows<{ url: string; is_new: boolean }>(
          "select url, last_fetched_at is null as is_new from frontier_url",
        )
      ).map((row) => [row.url, row.is_new]),
    );
    const random = seededRandom(2);

    let [leased, fresh] = [0, 0];
    for (let turn = 0; turn < 40; turn++) {
      const urlsPerHost = 1 + Math.floor(random() * 5);
      const [granted] = await lease(crawlerId, { urlsPerHost, order: { ...order, worthShare: 0 } });
      leased += granted!.urls.length;
      fresh += granted!.urls.filter(({ url }) => isNew.get(url)).length;
      await world.frontier.returnLeasesOf(crawlerId, later);
    }

    expect(leased).toBeGreaterThan(80);
    expect(Math.abs(fresh - 0.9 * leased)).toBeLessThan(1);
  });
});
