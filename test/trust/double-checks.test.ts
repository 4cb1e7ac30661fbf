/** Pages fetched twice, through the flows and the real stores: leasing, results, and consequences for crawlers. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { trustList, trustReport } from "#coordinator/crawl/trust/reads";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { type Shipped, text } from "../results/shipping-world.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";
import { type CheckedWorld, newCheckedWorld, slotMs } from "./checked-world.ts";

let world: CheckedWorld;
let [owner, second, third, fourth] = [0, 0, 0, 0] as unknown as CrawlerId[] as [
  CrawlerId,
  CrawlerId,
  CrawlerId,
  CrawlerId,
];

const later = secondsAfterNoon;
const count = async (table: string) =>
  (await world.rows<{ count: number }>(`select count(*)::int as count from ${table}`))[0]!.count;

beforeAll(async () => {
  world = await newCheckedWorld();
}, 60_000);

afterAll(async () => {
  await world.close();
});

beforeEach(async () => {
  await world.reset();
  [owner, second, third, fourth] = [
    await world.arrived("owner"),
    await world.arrived("second"),
    await world.arrived("third"),
    await world.arrived("fourth"),
  ];
  await world.open([owner, second, third, fourth]);
});

/** Sites of the owner with a front page and these paths. */
async function sites(numbers: readonly number[], ...paths: string[]): Promise<void> {
  for (const number of numbers) {
    const subnetId = await world.site(number, ...paths);
    await world.delegations.delegateOwnSubnet(subnetId, owner, noon);
  }
}

/** The other crawler that got the comparison, or null. */
async function leasedToOthers(at: Date) {
  for (const crawlerId of [second, third, fourth]) {
    const leases = await world.lease(crawlerId, at);
    if (leases.length > 0) return { crawlerId, leases };
  }
  return null;
}

describe("a comparison", () => {
  it("is leased to another crawler, like a page that was never fetched", async () => {
    await sites([1]);
    await world.crawl(owner, noon);

    const leased = await leasedToOthers(later(1));

    expect(leased?.leases).toMatchObject([
      {
        host: "s1.example",
        addresses: ["5.1.1.7"],
        waitMs: 0,
        urls: [{ url: "http://s1.example/", etag: null, lastModified: null }],
      },
    ]);
    expect(Object.keys(leased!.leases[0]!.urls[0]!)).toEqual(["url", "etag", "lastModified"]);
    expect(await world.lease(owner, later(1))).toEqual([]);
  });

  it("waits until the host has rested", async () => {
    await sites([1]);
    world.lieOf(owner, () => ({
      page: text(18),
      result: { hostDelayMs: 5000, timing: { ...quick, totalMs: 0 } },
    }));
    await world.crawl(owner, noon);

    expect(await leasedToOthers(later(4))).toBeNull();
    expect(await leasedToOthers(later(6))).not.toBeNull();
  });

  it("waits while the host is leased, and holds the host alone", async () => {
    await sites([1], "a", "b");
    const [lease] = await world.lease(owner, noon);
    await world.shipLeases(owner, [{ ...lease!, urls: lease!.urls.slice(0, 1) }], noon);

    expect(await leasedToOthers(later(1))).toBeNull();
    await world.shipLeases(owner, [{ ...lease!, urls: lease!.urls.slice(1) }], later(1));
    const leased = await leasedToOthers(later(2));
    const open = await world.rows<{ host: string }>("select host from lease where closed_at is null");

    expect(leased?.leases).toHaveLength(1);
    expect(open).toHaveLength(1);
  });

  it("is acknowledged, but adds no page, fetch, link or visit", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    const before = [await count("page"), await count("page_fetch"), await count("link")];
    const leased = (await leasedToOthers(later(1)))!;
    const url = "http://s1.example/found-by-the-second";
    world.lieOf(leased.crawlerId, () => ({ page: text(18), links: [url], result: { hostDelayMs: 30_000 } }));

    const { batch, taken } = await world.shipLeases(leased.crawlerId, leased.leases, later(1));

    const checked = [batch.results[0]!.sequence];
    expect(taken).toMatchObject({ stored: 0, withoutLease: 0, newUrls: 0, checked });
    expect([await count("page"), await count("page_fetch"), await count("link")]).toEqual(before);
    expect(await world.rows("select visits, state from frontier_url")).toEqual([{ visits: 1, state: "due" }]);
    const [spool] = await world.rows<{ acknowledged: string }>(
      `select acknowledged_sequence as acknowledged from spool where crawler_id = ${leased.crawlerId} and acknowledged_sequence > 0`,
    );
    expect(Number(spool!.acknowledged)).toBe(checked[0]);
    // The owner has the host again and waits as long as the other crawler reported.
    const [host] = await world.rows<{ lease_id: string | null; not_before: Date }>(
      "select lease_id, not_before from frontier_host",
    );
    expect(host!.lease_id).toBeNull();
    expect(host!.not_before.getTime()).toBeGreaterThanOrEqual(later(31).getTime());
  });

  it("counts once when its result arrives again", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    const leased = (await leasedToOthers(later(1)))!;
    const { batch } = await world.shipLeases(leased.crawlerId, leased.leases, later(1));

    await world.retake(batch, later(2));

    expect(await world.verdicts()).toMatchObject([{ verdict: "agree" }]);
    expect(await count("check_outcome")).toBe(1);
  });

  it("is dropped when nobody fetched the page within the slot", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    const late = new Date(noon.getTime() + slotMs + 1000);

    expect(await leasedToOthers(late)).toBeNull();
    expect(await world.trust.dropStale(late, noon)).toBe(1);
    expect(await world.verdicts()).toMatchObject([{ verdict: "stale", suspect: null }]);
  });

  it("goes to another crawler when the first one gives its lease back", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    const leased = (await leasedToOthers(later(1)))!;

    await world.frontier.returnLeasesOf(leased.crawlerId, later(2));

    expect(await leasedToOthers(later(3))).not.toBeNull();
  });

  it("goes neither to draining crawlers nor to those whose partners deny the site", async () => {
    await sites([1]);
    await world.crawlers.drain("second", noon);
    await world.open([owner, second, third, fourth]);
    world.denied.setList(third, { networks: [], domains: ["s1.example"] });
    await world.crawl(owner, noon);

    const [check] = await world.rows<{ wanted: number[] }>("select wanted from double_check");

    expect(check!.wanted).toEqual([fourth]);
    world.denied.setList(third, undefined);
  });

  it("is not started for refusals, failures, and hosts that differ by place", async () => {
    await sites([1, 2]);
    world.lieOf(owner, (url) =>
      url.includes("s2") ? null : { outcome: { type: "http-error", status: 503, retryAfterSeconds: null } },
    );
    await world.pool.query(
      "insert into host_disagreement (host_hash, silent, changed_at) select host_hash, true, now() from frontier_host where host = 's2.example'",
    );

    await world.crawl(owner, noon);

    expect(await count("double_check")).toBe(0);
  });

  it("is not started for a page that is stored without its text", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    await world.pool.query("delete from double_check");
    await world.pool.query("update frontier_url set next_fetch_at = $1", [later(3600)]);
    await world.pool.query("update frontier_host set due_at = $1", [later(3600)]);
    const standard = { standard: "content-signal", place: "header", text: "search=no" } as const;
    world.lieOf(owner, () => ({
      outcome: { type: "unchanged", status: 304 },
      result: { preferences: [{ ...standard, uses: ["search"], answer: "denied" }] },
    }));

    const { stored } = await world.crawl(owner, later(3600));

    expect(stored).toBe(1);
    expect(await count("double_check")).toBe(0);
  });
});

describe("a crawler that is asked again and stays silent", () => {
  /** The owner holds the lease of its own page again and does not fetch it; returns the time. */
  async function askedAgain(): Promise<Date> {
    await sites([1]);
    world.lieOf(owner, () => ({ page: text(99) }));
    await world.crawl(owner, noon);
    for (let seconds = 1; seconds < 60; seconds += 1) {
      for (const other of [second, third, fourth]) await world.crawl(other, later(seconds));
      if ((await world.lease(owner, later(seconds))).length > 0) return later(seconds);
    }
    throw new Error("the owner was not asked again");
  }

  const secondsLater = (at: Date, seconds: number) => new Date(at.getTime() + seconds * 1000);
  /** After the slot and the wait for a heartbeat. */
  const settled = (asked: Date) => secondsLater(asked, slotMs / 1000 + 120);
  const beats = async (at: Date) =>
    await world.pool.query("update crawler set last_seen_at = $1 where crawler_id = $2", [at, owner]);

  const expires = async (asked: Date) => {
    await world.frontier.returnExpired(secondsLater(asked, 61));
  };
  const once = { verdict: "once", suspect: true };
  const stale = { verdict: "stale", suspect: false };
  it.each([
    ["differed once when its lease expired while it was connected", 90, expires, once],
    [
      "differed once when it gave the lease back",
      90,
      async (asked: Date) => {
        const [open] = await world.rows<{ id: string }>(
          "select lease_id as id from lease where closed_at is null",
        );
        const given = { leaseId: asLeaseId(open!.id), crawlerId: owner, hostWaitMs: 0 };
        await world.frontier.returnLease(given, secondsLater(asked, 5));
      },
      once,
    ],
    ["is not accused when it was away", 30, expires, stale],
    [
      "is not accused when its session ended meanwhile",
      90,
      async (asked: Date) => {
        const ended = secondsLater(asked, 10);
        await world.frontier.returnLeasesOf(owner, ended);
        await world.pool.query("update crawler set connected_at = $1 where crawler_id = $2", [ended, owner]);
      },
      stale,
    ],
    [
      "is not accused when the site opted out",
      90,
      async (asked: Date) => {
        await expires(asked);
        await world.pool.query("update frontier_host set opt_out_id = 1");
      },
      stale,
    ],
  ] as const)("%s", async (_title, lastBeat, happens, { verdict, suspect }) => {
    const asked = await askedAgain();
    await happens(asked);
    await beats(secondsLater(asked, lastBeat));

    await world.settle(settled(asked));

    expect(await world.verdicts()).toMatchObject([{ verdict, suspect: suspect ? owner : null }]);
    expect(await world.rows("select outcome from check_outcome")).toEqual(
      suspect ? [{ outcome: "once" }] : [],
    );
  });

  it("is awaited until a heartbeat could have arrived", async () => {
    const asked = await askedAgain();
    const end = secondsLater(asked, slotMs / 1000 + 1);
    await world.frontier.returnExpired(end);

    await world.settle(end);

    expect(await world.verdicts()).toMatchObject([{ verdict: null }]);
  });
});

const quick = { dnsMs: 1, connectMs: 1, tlsMs: null, firstByteMs: 1 };

describe("what a crawler remembers of a site", () => {
  const paths = ["a", "b", "c", "d"];
  const errorPage = { words: 40, title: "Harbour line", simhash: "00000000000000ff", digest: "e".repeat(64) };
  /** The view of a crawler that knows the host: it recognises the second and later URLs with the error page. */
  const remembered = (url: string) =>
    /\/[b-d]$/.test(url) ? { page: { ...errorPage, softNotFound: true, text: "" } } : seen(url);
  const seen = (url: string): Shipped | null =>
    /\/[a-d]$/.test(url) ? { page: errorPage, links: ["http://s1.example/"] } : null;
  const outcomes = async () =>
    (await world.rows<{ outcome: string }>("select distinct outcome from check_outcome")).map(
      ({ outcome }) => outcome,
    );

  it("counts against nobody when it recognises an error page that others take for a page", async () => {
    await sites([1, 2, 3, 4, 5], ...paths);
    world.lieOf(owner, remembered);
    for (const other of [second, third, fourth]) world.lieOf(other, seen);

    await world.crawlOn(noon);

    expect(await outcomes()).toEqual(["agree"]);
    expect(await trustReport(world.pool, "owner")).toMatchObject({ standing: "trusted", distrusted: null });
  });

  it("does not excuse a page reported missing when no other page of the host has that text", async () => {
    await sites([1], "a", "b");
    const gone = { ...text(18), softNotFound: true, text: "" } as const;
    const others = (url: string) => (url.endsWith("/a") ? { page: text(3) } : null);
    for (const other of [second, third, fourth]) world.lieOf(other, others);
    world.lieOf(owner, (url) => (url.endsWith("/b") ? { page: gone } : others(url)));

    await world.crawlOn(noon);

    const alone = (await world.verdicts()).filter(({ verdict }) => verdict === "alone");
    expect(alone).toMatchObject([{ url: "http://s1.example/b", suspect: owner }]);
  });
});

describe("a crawler that stands alone", () => {
  const paths = ["a", "b", "c"];
  const altered = (url: string) => (url.endsWith("/b") ? { page: text(99) } : null);

  it("on one host is watched, not accused", async () => {
    await sites([1], ...paths);
    world.lieOf(owner, altered);

    await world.crawlOn(noon);

    const verdicts = await world.verdicts();
    expect(verdicts.filter(({ verdict }) => verdict === "alone")).toMatchObject([
      { url: "http://s1.example/b", suspect: owner },
    ]);
    expect(await trustReport(world.pool, "owner")).toMatchObject({ standing: "watched", distrusted: null });
  });

  it("on several hosts is distrusted, hands over its subnets, and its pages become due", async () => {
    await sites([1, 2, 3, 4, 5], ...paths);
    world.lieOf(owner, altered);

    await world.crawlOn(noon);

    const report = await trustReport(world.pool, "owner");
    expect(report?.standing).toBe("distrusted");
    expect(report?.evidence.filter(({ counts }) => counts).length).toBeGreaterThanOrEqual(4);
    expect(report?.evidence.at(-1)).toMatchObject({
      verdict: "alone",
      why: expect.stringMatching(/agrees with others/),
    });
    expect(world.incidents).toMatchObject([
      { crawlerId: owner, kind: "wrong-result", words: expect.stringMatching(/nearcrawl fleet show owner/) },
    ]);
    const [crawler] = await world.rows<{ drains: boolean; asked: string }>(
      "select draining_since is not null as drains, drain_asked_by as asked from crawler where name = 'owner'",
    );
    expect(crawler).toEqual({ drains: true, asked: "trust" });
    const [due] = await world.rows<{ due: number; digests: number }>(
      `select count(*) filter (where next_fetch_at <= '${later(600).toISOString()}')::int as due,
         count(digest)::int as digests
       from frontier_url where state = 'due'`,
    );
    expect(due).toEqual({ due: 20, digests: 0 });
    expect((await world.state()).crawler(owner)?.distrustedSince).toBeInstanceOf(Date);
  });

  it("leaves pages alone that others fetched since", async () => {
    await sites([1], "b");
    await world.crawlOn(noon);
    await world.trust.distrust({
      crawlerId: owner,
      words: "a test",
      now: later(60),
      drain: { pagesSince: later(30), mostPages: 100 },
    });

    const [due] = await world.rows<{ due: number }>(
      `select count(*)::int as due from frontier_url where next_fetch_at <= '${later(60).toISOString()}'`,
    );

    expect(due!.due).toBe(0);
  });
});

describe("a crawler that states another version", () => {
  const paths = ["a", "b", "c"];
  const altered = (url: string) => (/\/[ab]$/.test(url) ? { page: text(99) } : null);
  /** Its supervisor runs this release, which we offered to it or not. */
  const runs = async (crawlerId: CrawlerId, version: string, offered: "offered" | "not-offered") => {
    const digest = version.replaceAll(".", "").padEnd(64, "0");
    await world.pool.query(
      "update crawler set release_version = $2, release_digest = $3 where crawler_id = $1",
      [crawlerId, version, digest],
    );
    if (offered === "not-offered") return;
    const kept = [
      ["insert into release_bundle (digest, bundle) values ($1, '') on conflict do nothing", [digest]],
      [
        `insert into release (version, sequence, digest, signed, expires_at, published_at)
         values ($1, (select count(*) + 1 from release), $2, '', 'infinity', now()) on conflict do nothing`,
        [version, digest],
      ],
      [
        "insert into release_offer (crawler_id, version, offered_at, state) values ($1, $2, now(), 'running')",
        [crawlerId, version],
      ],
    ] as const;
    for (const [sql, values] of kept) await world.pool.query(sql, [...values]);
  };
  const standing = async () => (await trustReport(world.pool, "owner"))!.standing;
  const untold = async () => (await world.verdicts()).filter(({ verdict }) => verdict === "cannot-tell");

  beforeEach(async () => await world.pool.query("delete from release_offer; delete from release"));

  it.each([
    [
      "no release of ours has that version",
      async () =>
        await world.pool.query("update crawler set software_version = '9.9.9-mine' where crawler_id = $1", [
          owner,
        ]),
    ],
    [
      "a release of that version was never offered to it",
      async () => {
        await runs(second, "1.4.0", "offered");
        await runs(owner, "1.4.0", "not-offered");
      },
    ],
  ])("is compared like any other when %s", async (_case, states) => {
    await sites([1, 2, 3, 4, 5], ...paths);
    await states();
    world.lieOf(owner, altered);

    await world.crawlOn(noon);

    expect(await untold()).toEqual([]);
    expect(await standing()).toBe("distrusted");
  });

  it("is unproven when one of our releases may explain many differences", async () => {
    await sites([1, 2, 3, 4, 5], ...paths);
    await runs(owner, "1.4.0", "offered");
    world.lieOf(owner, (url) =>
      /\/[ab]$/.test(url) ? { page: { ...text(99), simhash: near(text(url.length).simhash!) } } : null,
    );

    await world.crawlOn(noon);

    const report = (await trustReport(world.pool, "owner"))!;
    const [line] = (await trustList(world.pool)).filter(({ crawler }) => crawler === "owner");
    expect(report).toMatchObject({ standing: "unproven", comparisons: { untold: 10, alone: 0, once: 0 } });
    expect(line).toMatchObject({ standing: "unproven", words: expect.stringContaining("10 of 20") });
    expect(await world.rows(`select from crawler_trust where watched_until_page > pages`)).toHaveLength(1);
    expect(world.incidents).toEqual([]);
  });
});

/** Changes some bits, as another release may. */
const near = (simhash: string) => (BigInt(`0x${simhash}`) ^ 0x3ffn).toString(16).padStart(16, "0");
