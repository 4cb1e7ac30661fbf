/** Effects of results on other hosts wait in the outbox, delay nobody, and count once, whoever applies them. */
import { describe, expect, it } from "vitest";
import type { ArrivedResult } from "#coordinator/crawl/batch/accepted-result";
import { effectsOf, packEffects } from "#coordinator/crawl/frontier/link-outbox";
import {
  applyLinks,
  defaultOutboxBounds,
  outboxBacklog,
  postEffects,
} from "#coordinator/crawl/frontier/link-outbox-store";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { inTransaction } from "#coordinator/database/transaction";
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { Lease } from "#protocol/lease";
import {
  arrivedResult,
  batchOf,
  keyOf,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolOf,
  storeWorld,
} from "../support/store-world.ts";
import { watched } from "../support/watched-pool.ts";

const world = storeWorld();

const settings = { ...defaultOutboxBounds, scope };

interface Page {
  readonly url: string;
  readonly links: readonly string[];
}

/** The results of one lease, or of several: whatever of `pages` they hold. */
const resultsOf = (leases: readonly Lease[], pages: readonly Page[]): ArrivedResult[] =>
  pages.flatMap(({ url, links }, index) => {
    const lease = leases.find(({ urls }) => urls.some((one) => one.url === url));
    if (lease === undefined) return [];
    return [arrivedResult({ sequence: index + 1, leaseId: lease.leaseId, url, links })];
  });

let spools = 1;
const ofOwnSpool = (crawlerId: CrawlerId, results: readonly ArrivedResult[], now = noon) =>
  batchOf(crawlerId, results, { spoolId: spoolOf(++spools), now });

/** All that links change. */
const counted = async () => ({
  urls: await world.rows("select url, state, depth, back_links from frontier_url order by url"),
  hosts: await world.rows(
    `select host, url_count, held_urls, left_out_urls, outside_links, due_at
     from frontier_host order by host`,
  ),
});

describe("a batch of results", () => {
  it("waits neither for a batch whose pages it links to, nor for one that links to the same popular host", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
    // Hosts at one address take turns, and batches of theirs do.
    await world.resolve("b.example", "198.51.100.8", await world.subnet("198.51.100.0", "198.51.100.255"));
    await world.frontier.admit(seeds("http://popular.example/"), scope, noon);
    const leases = await world.lease(crawlerId);
    const linking = (from: string, to: string) =>
      ofOwnSpool(
        crawlerId,
        resultsOf(leases, [{ url: from, links: [to, "http://popular.example/", "http://new.example/"] }]),
      );
    let reached: () => void = () => {};
    let goOn: () => void = () => {};
    const isAtCommit = new Promise<void>((resolve) => (reached = resolve));
    const mayCommit = new Promise<void>((resolve) => (goOn = resolve));
    const held = createResultStore(
      watched(world.pool, async (client, text) => {
        if (text !== "begin") await client.query("set local lock_timeout = '1s'");
        if (text !== "commit") return;
        reached();
        await mayCommit;
      }),
    );
    const impatient = createResultStore(
      watched(world.pool, async (client, text) => {
        if (text !== "begin") await client.query("set local lock_timeout = '1s'");
      }),
    );
    const applier = await world.pool.connect();
    try {
      await applier.query("begin");
      await applier.query("select from frontier_host where host = 'popular.example' for update");
      const first = held.take(linking("http://a.example/", "http://b.example/"));
      await Promise.race([isAtCommit, first]);

      const second = await impatient.take(linking("http://b.example/", "http://a.example/"));

      goOn();
      expect([(await first).stored, second.stored]).toEqual([1, 1]);
    } finally {
      goOn();
      await applier.query("rollback");
      applier.release();
    }
    await world.applyOutbox();
    expect((await counted()).urls).toEqual(
      ["a", "b", "new", "popular"].map((name) => ({
        url: `http://${name}.example/`,
        state: "due",
        depth: name === "new" ? 1 : 0,
        back_links: name === "a" || name === "b" ? 1 : 2,
      })),
    );
  });

  it("counts links among its own hosts at once, and those to others when the outbox is applied", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/", "http://b.example/");
    const links = ["http://a.example/x", "http://b.example/", "http://b.example/y", "http://c.example/"];

    const taken = await world.results.take(
      ofOwnSpool(
        crawlerId,
        resultsOf(await world.lease(crawlerId), [
          { url: "http://a.example/", links },
          { url: "http://b.example/", links: [] },
        ]),
      ),
    );

    expect(taken).toMatchObject({ stored: 2, newUrls: 2, posted: 1 });
    expect(await world.rows("select url, back_links from frontier_url order by url")).toEqual([
      { url: "http://a.example/", back_links: 0 },
      { url: "http://a.example/x", back_links: 1 },
      { url: "http://b.example/", back_links: 1 },
      { url: "http://b.example/y", back_links: 1 },
    ]);
    expect(await world.rows("select outside_links from frontier_host where host = 'b.example'")).toEqual([
      { outside_links: 2 },
    ]);
    expect(await world.frontier.progress()).toMatchObject({ linksWaiting: 1 });
    expect(await outboxBacklog(world.pool)).toMatchObject({ rows: 1, effects: 1 });

    expect(await world.applyOutbox()).toMatchObject([{ effects: 1, newUrls: 1, newHosts: 1, faults: [] }]);

    expect(await world.rows("select back_links from frontier_url where url = 'http://c.example/'")).toEqual([
      { back_links: 1 },
    ]);
    expect(await outboxBacklog(world.pool)).toEqual({ rows: 0, effects: 0, ageSeconds: 0 });
    expect(await world.frontier.progress()).toMatchObject({ linksWaiting: 0 });
  });

  it("leaves nothing in the outbox when it is rolled back", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/");
    const results = resultsOf(await world.lease(crawlerId), [
      { url: "http://a.example/", links: ["http://c.example/"] },
    ]);
    const broken = createResultStore(
      watched(world.pool, async (client, text) => {
        if (text === "commit") await client.query("select 1 / 0");
      }),
    );

    await expect(broken.take(ofOwnSpool(crawlerId, results))).rejects.toThrow("division by zero");

    expect(await outboxBacklog(world.pool)).toMatchObject({ rows: 0 });
  });
});

describe("the outbox", () => {
  it("admits a URL that twenty batches name once, and counts each of them", async () => {
    const urls = Array.from({ length: 20 }, (_, n) => `http://h${n}.example/`);
    const crawlerId = await world.delegatedHost("north", ...urls);
    const leases = [...(await world.lease(crawlerId)), ...(await world.lease(crawlerId))];
    await Promise.all(
      urls.map(async (url) => {
        const results = resultsOf(leases, [{ url, links: ["http://new.example/"] }]);
        await world.results.take(ofOwnSpool(crawlerId, results));
      }),
    );

    const bites = await world.applyOutbox();

    expect(bites).toMatchObject([{ effects: 20, newUrls: 1, newHosts: 1 }]);
    expect(await world.rows("select back_links from frontier_url where url like '%new%'")).toEqual([
      { back_links: 20 },
    ]);
    expect(await world.rows("select outside_links from frontier_host where host like '%new%'")).toEqual([
      { outside_links: 20 },
    ]);
  });

  it("is applied by whoever opened a bite, although another looks for one between its statements", async () => {
    const crawlerId = await world.crawler("north");
    const named = [{ key: keyOf("http://b.example/"), depth: 1 }];
    await inTransaction(world.pool, async (client) => {
      await postEffects(client, crawlerId, effectsOf(named, []));
    });
    const looker = await world.pool.connect();
    const lookedAt = watched(world.pool, async (_client, text) => {
      if (!/from link_outbox_bite\s+where bite_number/.test(text)) return;
      await looker.query("begin; select from link_outbox_bite for update");
      setTimeout(async () => await looker.query("rollback"), 50);
    });

    const applied = await applyLinks(lookedAt, settings, noon);
    looker.release();

    expect(applied).toMatchObject({ effects: 1, newUrls: 1 });
  });

  it("subtracts links that a page no longer has", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/");
    const visit = async (links: string[], at: Date) =>
      await world.results.take(
        ofOwnSpool(
          crawlerId,
          resultsOf(await world.lease(crawlerId, at), [{ url: "http://a.example/", links }]),
          at,
        ),
      );
    await visit(["http://c.example/", "http://d.example/"], noon);
    await world.applyOutbox();
    await world.pool.query("update frontier_url set next_fetch_at = $1", [noon]);
    await world.pool.query("update frontier_host set due_at = $1", [noon]);
    const later = secondsAfterNoon(3600);

    await visit(["http://d.example/"], later);
    await world.applyOutbox(later);

    expect(await world.rows("select url, back_links from frontier_url order by url")).toEqual([
      { url: "http://a.example/", back_links: 0 },
      { url: "http://c.example/", back_links: 0 },
      { url: "http://d.example/", back_links: 1 },
    ]);
    expect(
      await world.rows(
        "select host, outside_links from frontier_host where host <> 'a.example' order by host",
      ),
    ).toEqual([
      { host: "c.example", outside_links: 0 },
      { host: "d.example", outside_links: 1 },
    ]);
  });

  it("is taken in bites of limited size, oldest first, and a larger row alone", async () => {
    const hosts = Array.from({ length: 4 }, (_, n) => `http://h${n}.example/`);
    const crawlerId = await world.delegatedHost("north", ...hosts);
    const leases = await world.lease(crawlerId);
    for (const [index, url] of hosts.entries()) {
      const links = Array.from({ length: index === 2 ? 9 : 2 }, (_, n) => `http://t${index}.example/${n}`);
      await world.results.take(ofOwnSpool(crawlerId, resultsOf(leases, [{ url, links }])));
    }

    const first = await applyLinks(world.pool, { ...settings, biteEffects: 3 }, noon);
    expect(await world.rows("select effects from link_outbox order by outbox_number")).toEqual([
      { effects: 9 },
      { effects: 2 },
    ]);
    const rest = await world.applyOutbox(noon, { biteEffects: 3 });

    expect([first, ...rest]).toMatchObject([
      { effects: 4, isFull: true },
      { effects: 9, isFull: true },
      { effects: 2, isFull: false },
    ]);
  });

  it("adds no host that opted out meanwhile, and none when the scope admits none", async () => {
    const crawlerId = await world.delegatedHost("north", "http://a.example/");
    const links = ["http://out.example/", "http://c.example/"];
    await world.results.take(
      ofOwnSpool(crawlerId, resultsOf(await world.lease(crawlerId), [{ url: "http://a.example/", links }])),
    );
    await world.pool.query(
      `insert into opt_out (site, source, token, created_at, in_force_at)
       values ('out.example', 'operator', '', $1, $1)`,
      [noon],
    );
    try {
      await world.applyOutbox(noon);
    } finally {
      await world.pool.query("delete from opt_out");
    }

    expect(await world.rows("select host from frontier_host order by host")).toEqual([
      { host: "a.example" },
      { host: "c.example" },
    ]);
  });

  it("drops the one URL that no row can hold, reports it, and applies the others", async () => {
    const crawlerId = await world.crawler("north");
    const good = ["http://c.example/1", "http://c.example/2", "http://d.example/"].map((url) => ({
      key: keyOf(url),
      depth: 1,
    }));
    const bad = { key: { ...keyOf("http://c.example/bad"), url: "http://c.example/\0bad" }, depth: 1 };
    const effects = effectsOf([...good, bad], []);
    await world.pool.query("insert into link_outbox (crawler_id, effects, packed) values ($1, $2, $3)", [
      crawlerId,
      effects.length,
      packEffects(effects),
    ]);

    const bites = await world.applyOutbox();

    expect(bites).toMatchObject([{ newUrls: 3, newHosts: 2, faults: [expect.stringContaining("0x00")] }]);
    expect(await world.rows("select url from frontier_url order by url")).toEqual(
      good.map(({ key }) => ({ url: key.url })),
    );
  });
});

/** Two visits of each page, the second with other links; everybody links to one popular host. */
function twoVisits(hosts: number, seed: number): readonly (readonly Page[])[] {
  const random = seededRandom(seed);
  const some = <T>(values: readonly T[], share: number) => values.filter(() => random() < share);
  const pages = Array.from({ length: hosts }, (_, host) =>
    Array.from({ length: 3 }, (_, page) => `http://h${host}.example/${page}`),
  ).flat();
  const others = [
    ...pages,
    ...Array.from({ length: 20 }, (_, n) => `http://t${n % 6}.example/${n}`),
    "http://popular.example/",
    "http://popular.example/x",
  ];
  return [1, 2].map(() =>
    pages.map((url) => ({ url, links: some(others, 0.3).filter((link) => link !== url) })),
  );
}

/** The pages come in batches of one host each; `take` says how they are taken. */
async function crawl(
  visits: readonly (readonly Page[])[],
  take: (batches: ReturnType<typeof ofOwnSpool>[], at: Date) => Promise<void>,
) {
  await world.reset();
  const crawlerId = await world.delegatedHost("north", ...visits[0]!.map(({ url }) => url));
  for (const [index, pages] of visits.entries()) {
    const at = secondsAfterNoon(3600 * index);
    await world.pool.query("update frontier_url set next_fetch_at = $1 where url like 'http://h%'", [noon]);
    await world.pool.query("update frontier_host set due_at = $1 where host like 'h%'", [noon]);
    const leases = await world.lease(crawlerId, at);
    const batches = leases.map((lease) => ofOwnSpool(crawlerId, resultsOf([lease], pages), at));
    expect(batches.flatMap(({ results }) => results).length).toBe(pages.length);
    await take(batches, at);
  }
  return await counted();
}

const applyAll = async (at: Date) => {
  expect(await world.applyOutbox(at, { stalledMs: 0 })).not.toContainEqual(
    expect.objectContaining({ faults: [expect.anything()] }),
  );
  expect(await outboxBacklog(world.pool)).toMatchObject({ rows: 0 });
};

const oneByOne = async (batches: ReturnType<typeof ofOwnSpool>[], at: Date) => {
  for (const batch of batches) {
    await world.results.take(batch);
    await applyAll(at);
  }
};

describe("every effect counts once", () => {
  it("when the applier's connection ends at any statement, and another one continues", async () => {
    const crawlerId = await world.crawler("north");
    const small = { ...settings, stepUrls: 8, stalledMs: 0 };
    /**
     * The same each time, on hosts of the run's own: links come, and then some go and others come. Every host is named, and
     * has more links than go, before the rest: which of its URLs stand in one step differs from run to run.
     */
    const post = async (run: string) => {
      const random = seededRandom(5);
      const urls = Array.from({ length: 20 }, (_, n) => `http://t${n % 6}-${run}.example/${n}`);
      const rowOf = (least: number, most: number, isFirst = false) => {
        const linked = urls
          .filter(() => isFirst || random() < 0.6)
          .map((url) => ({ ...keyOf(url), links: least + Math.floor(random() * (most - least + 1)) }));
        return effectsOf(
          linked.filter((_url, n) => (isFirst && n < 6) || random() < 0.7).map((key) => ({ key, depth: 1 })),
          linked,
        );
      };
      await inTransaction(
        world.pool,
        async (client) => await postEffects(client, crawlerId, rowOf(3, 5, true)),
      );
      await applyAll(noon);
      for (let row = 0; row < 3; row += 1)
        await inTransaction(world.pool, async (client) => await postEffects(client, crawlerId, rowOf(-1, 2)));
    };
    const countedOf = async (run: string) => [
      await world.rows(
        `select replace(url, '-${run}', '') as url, back_links, depth from frontier_url
         where url like '%-${run}.example%' order by 1`,
      ),
      await world.rows(
        `select replace(host, '-${run}', '') as host, url_count, outside_links from frontier_host
         where host like '%-${run}.example' order by 1`,
      ),
    ];
    await post("whole");
    await applyAll(noon);
    const expected = await countedOf("whole");

    let endAt = 0;
    for (let wasEnded = true; wasEnded; ) {
      endAt += 1;
      wasEnded = false;
      await post(`run${endAt}`);
      let statement = 0;
      const mortal = watched(world.pool, async (client) => {
        statement += 1;
        if (statement === endAt) await client.query("select pg_terminate_backend(pg_backend_pid())");
      });
      await applyLinks(mortal, small, noon).catch(() => {
        wasEnded = true;
      });
      await applyAll(noon);
      expect({ endAt, found: await countedOf(`run${endAt}`) }).toEqual({ endAt, found: expected });
    }

    expect(expected.map((rows) => rows.length)).toEqual([expect.any(Number), 6]);
    expect(endAt).toBeGreaterThan(25);
  });

  it("when batches arrive while four appliers race, and some of them are ended", async () => {
    const visits = twoVisits(8, 11);
    const expected = await crawl(visits, oneByOne);
    const small = { ...settings, stepUrls: 7, biteEffects: 60, stalledMs: 0 };
    const kinds = { bites: 0, ended: 0 };

    const found = await crawl(visits, async (batches, at) => {
      let isOver = false;
      const apply = async (random: () => number) => {
        const mortal = watched(world.pool, async (client) => {
          if (random() < 0.01) await client.query("select pg_terminate_backend(pg_backend_pid())");
        });
        while (!isOver) {
          const applied = await applyLinks(mortal, small, at).catch(() => {
            kinds.ended += 1;
            return null;
          });
          if (applied !== null) kinds.bites += 1;
          else await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const appliers = [1, 2, 3, 4].map(async (seed) => await apply(seededRandom(seed)));
      await Promise.all(batches.map(async (batch) => await world.results.take(batch)));
      while ((await outboxBacklog(world.pool)).rows > 0)
        await new Promise((resolve) => setImmediate(resolve));
      isOver = true;
      await Promise.all(appliers);
      await applyAll(at);
    });

    expect(found).toEqual(expected);
    expect(kinds.bites).toBeGreaterThan(5);
    expect(kinds.ended).toBeGreaterThan(5);
  }, 300_000);
});
