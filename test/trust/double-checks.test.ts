/**
 * Pages that are fetched twice, through the flows and the real stores: how comparisons are handed out, what becomes
 * of their results, and what follows for the crawler that stands alone.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { trustList, trustReport } from "#coordinator/crawl/trust/reads";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { extractPage } from "#crawler/extract/extract-page";
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

/** Sites of the owner, of one page each and these paths. */
async function sites(numbers: readonly number[], ...paths: string[]): Promise<void> {
  for (const number of numbers) {
    const subnetId = await world.site(number, ...paths);
    await world.delegations.delegateOwnSubnet(subnetId, owner, noon);
  }
}

/** Whoever of the others the comparison was leased to. */
async function leasedToOthers(at: Date) {
  for (const crawlerId of [second, third, fourth]) {
    const leases = await world.lease(crawlerId, at);
    if (leases.length > 0) return { crawlerId, leases };
  }
  return null;
}

describe("a comparison", () => {
  it("is leased to a crawler that does not have the host, as a page that was never fetched", async () => {
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

  it("waits while somebody has the host, and nobody has it beside the comparison", async () => {
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

  it("is acknowledged and counted, but is no page, no fetch, no link, and no visit", async () => {
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
    // The host is its owner's again, who waits for as long as the other crawler says.
    const [host] = await world.rows<{ lease_id: string | null; not_before: Date }>(
      "select lease_id, not_before from frontier_host",
    );
    expect(host!.lease_id).toBeNull();
    expect(host!.not_before.getTime()).toBeGreaterThanOrEqual(later(31).getTime());
  });

  it("counts once, however often its result arrives", async () => {
    await sites([1]);
    await world.crawl(owner, noon);
    const leased = (await leasedToOthers(later(1)))!;
    const { batch } = await world.shipLeases(leased.crawlerId, leased.leases, later(1));

    await world.retake(batch, later(2));

    expect(await world.verdicts()).toMatchObject([{ verdict: "agree" }]);
    expect(await count("check_outcome")).toBe(1);
  });

  it("is dropped when nobody has fetched the page within the slot", async () => {
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

  it("is nothing for crawlers that drain, or whose partners deny the site", async () => {
    await sites([1]);
    await world.crawlers.drain("second", noon);
    await world.open([owner, second, third, fourth]);
    world.denied.setList(third, { networks: [], domains: ["s1.example"] });
    await world.crawl(owner, noon);

    const [check] = await world.rows<{ wanted: number[] }>("select wanted from double_check");

    expect(check!.wanted).toEqual([fourth]);
    world.denied.setList(third, undefined);
  });

  it("is not begun of what says nothing of a page: refusals, failures, and hosts that differ by place", async () => {
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

  it("is not begun of a page that is kept without its words, which others would seem to have made up", async () => {
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

  it("cannot be judged where there are only two crawlers, and is recorded", async () => {
    await sites([1]);
    await world.open([owner, second]);
    world.lieOf(owner, () => ({ page: text(1) }));

    await world.crawlOn(noon);

    expect(await world.verdicts()).toMatchObject([
      {
        verdict: "cannot-tell",
        suspect: null,
        words: expect.stringMatching(/with two crawlers nobody can say/),
      },
    ]);
  });
});

describe("a crawler that is asked again and is silent", () => {
  /** The owner has the lease of its page once more, and does not fetch it; gives when. */
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
  /** Past the slot, and past the time in which a heartbeat is waited for. */
  const settled = (asked: Date) => secondsLater(asked, slotMs / 1000 + 120);
  const beats = async (at: Date) =>
    await world.pool.query("update crawler set last_seen_at = $1 where crawler_id = $2", [at, owner]);

  const expires = async (asked: Date) => {
    await world.frontier.returnExpired(secondsLater(asked, 61));
  };
  const once = { verdict: "once", suspect: true };
  const stale = { verdict: "stale", suspect: false };
  it.each([
    ["differed once, where its lease ran out while it was connected", 90, expires, once],
    [
      "differed once, where it gave the lease back and asked for it no more",
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
    ["is not accused when it was away, or came back only since", 30, expires, stale],
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
      "is not accused when the lease was taken away, since the site opted out",
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

  it("is waited for until a heartbeat can have told that it is there", async () => {
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
  /** As whoever crawls the host sees it: the second and later URLs with the error page are known for what they are. */
  const remembered = (url: string) =>
    /\/[b-d]$/.test(url) ? { page: { ...errorPage, softNotFound: true, lexemes: "" } } : seen(url);
  const seen = (url: string): Shipped | null =>
    /\/[a-d]$/.test(url) ? { page: errorPage, links: ["http://s1.example/"] } : null;
  const outcomes = async () =>
    (await world.rows<{ outcome: string }>("select distinct outcome from check_outcome")).map(
      ({ outcome }) => outcome,
    );

  it("counts against nobody, where it knows the error page that others take for a page", async () => {
    await sites([1, 2, 3, 4, 5], ...paths);
    world.lieOf(owner, remembered);
    for (const other of [second, third, fourth]) world.lieOf(other, seen);

    await world.crawlOn(noon);

    expect(await outcomes()).toEqual(["agree"]);
    expect(await trustReport(world.pool, "owner")).toMatchObject({ standing: "trusted", distrusted: null });
  });

  it("does not excuse a page that is said to be missing, where no other page of the host reads so", async () => {
    await sites([1], "a", "b");
    const gone = { ...text(18), softNotFound: true, lexemes: "" } as const;
    const others = (url: string) => (url.endsWith("/a") ? { page: text(3) } : null);
    for (const other of [second, third, fourth]) world.lieOf(other, others);
    world.lieOf(owner, (url) => (url.endsWith("/b") ? { page: gone } : others(url)));

    await world.crawlOn(noon);

    const alone = (await world.verdicts()).filter(({ verdict }) => verdict === "alone");
    expect(alone).toMatchObject([{ url: "http://s1.example/b", suspect: owner }]);
  });

  it("makes links into a known trap no difference that can be judged", async () => {
    await sites([1]);
    const links = ["http://s1.example/1", "http://s1.example/2", "http://s1.example/3"];
    world.lieOf(owner, () => ({ page: { ...text(18), trappedLinks: 2 }, links: links.slice(0, 1) }));
    for (const other of [second, third, fourth]) world.lieOf(other, () => ({ page: text(18), links }));

    await world.crawlOn(noon);

    const verdicts = await world.verdicts();
    expect(new Set(verdicts.map(({ verdict, words }) => `${verdict}: ${words}`))).toEqual(
      new Set([
        "cannot-tell: they differ in links that one of them left out as a trap, by what it knows of the site",
      ]),
    );
  });
});

describe("a crawler that stands alone", () => {
  const paths = ["a", "b", "c"];
  const altered = (url: string) => (url.endsWith("/b") ? { page: text(99) } : null);

  it("on one host is watched, and not accused", async () => {
    await sites([1], ...paths);
    world.lieOf(owner, altered);

    await world.crawlOn(noon);

    const verdicts = await world.verdicts();
    expect(verdicts.filter(({ verdict }) => verdict === "alone")).toMatchObject([
      { url: "http://s1.example/b", suspect: owner },
    ]);
    expect(await trustReport(world.pool, "owner")).toMatchObject({ standing: "watched", distrusted: null });
  });

  it("on several hosts is not trusted any more, hands over, and its pages are due again", async () => {
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

  it("is honest where its whole host shows its country something else", async () => {
    await sites([1, 2], ...paths);
    world.lieOf(owner, (url) => (url.includes("s1") ? { page: text(99) } : null));

    await world.crawlOn(noon);

    expect((await trustReport(world.pool, "owner"))?.standing).not.toBe("distrusted");
  });

  it("keeps its subnets' pages out of the index of others' pages that were fetched since", async () => {
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

describe("a crawler that states another version than the others", () => {
  const paths = ["a", "b", "c"];
  const altered = (url: string) => (/\/[ab]$/.test(url) ? { page: text(99) } : null);
  /** Its dock runs this release; `offered`: it is one of ours, and was offered to it. */
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
  ])("is compared like any other, where %s", async (_case, states) => {
    await sites([1, 2, 3, 4, 5], ...paths);
    await states();
    world.lieOf(owner, altered);

    await world.crawlOn(noon);

    expect(await untold()).toEqual([]);
    expect(await standing()).toBe("distrusted");
  });

  it("is accused where it has another text, though it runs a release of ours alone and claims the same bytes", async () => {
    await sites([1, 2, 3, 4, 5], ...paths);
    await runs(owner, "1.4.0", "offered");
    world.lieOf(owner, (url) =>
      /\/[ab]$/.test(url) ? { page: { ...text(url.length), simhash: text(99).simhash! } } : null,
    );

    await world.crawlOn(noon);

    expect(await standing()).toBe("distrusted");
  });

  it("is unproven, in words, where a release of ours may explain its differences, which are many", async () => {
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

  it.each([["one of four"], ["two of four"]])(
    "is honest in the middle of a staged release (%s), whose extractor leaves out what the one before it read",
    async (share) => {
      const docked = share === "one of four" ? [owner] : [owner, third];
      await sites([1, 2, 3, 4, 5], ...paths);
      for (const crawlerId of docked) await runs(crawlerId, "1.4.0", "offered");
      const views = { older: new Map<string, Shipped>(), newer: new Map<string, Shipped>() };
      for (const site of [1, 2, 3, 4, 5]) {
        for (const path of ["", ...paths]) {
          const url = `http://s${site}.example/${path}`;
          views.older.set(url, await extracted(url, (html) => html));
          views.newer.set(url, await extracted(url, withoutNavigation));
        }
      }
      for (const crawlerId of [owner, second, third, fourth]) {
        const view = docked.includes(crawlerId) ? views.newer : views.older;
        world.lieOf(crawlerId, (url) => view.get(url) ?? null);
      }

      await world.crawlOn(noon);

      const verdicts = await world.verdicts();
      expect(verdicts).toHaveLength(20);
      expect(verdicts.filter(({ verdict }) => verdict !== "agree")).toEqual([]);
      expect(await standing()).toBe("trusted");
      const read =
        (views.older.get("http://s1.example/a")!.links?.length ?? 0) -
        (views.newer.get("http://s1.example/a")!.links?.length ?? 0);
      expect(read).toBe(5);
    },
  );
});

/** Of the page's text some bits differ, as between two releases. */
const near = (simhash: string) => (BigInt(`0x${simhash}`) ^ 0x3ffn).toString(16).padStart(16, "0");

const withoutNavigation = (html: string) => html.replace(/<nav>.*?<\/nav>/s, "");

/** What the real extractor makes of a page; its bytes are those of the site, whatever of them a release reads. */
async function extracted(url: string, read: (html: string) => string): Promise<Shipped> {
  const html = pageOf(url);
  const bytes = Buffer.from(read(html));
  const digest = createHash("sha256").update(html).digest("hex");
  const body = { url, bytes, digest, contentType: "text/html; charset=utf-8" };
  const nothing = { contentLanguage: null, robotsTag: undefined, quiet: async () => {} };
  const { page } = await extractPage({ ...body, ...nothing });
  return { page: { ...page, links: [] }, links: page.links.map((link) => link.url) };
}

/** An article of some 300 words, which differ from page to page, with ten links and a navigation of five. */
function pageOf(url: string): string {
  const random = seededRandom(
    [...url].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7),
  );
  const words = (count: number) =>
    Array.from({ length: count }, () => vocabulary[Math.floor(random() * vocabulary.length)]);
  const links = (name: string, count: number) =>
    Array.from({ length: count }, (_, at) => `<a href="/${name}/${at}">${words(2).join(" ")}</a>`).join(" ");
  return `<!doctype html><html lang="en"><title>${words(4).join(" ")}</title>
<nav>${links("section", 5)}</nav>
<main><h1>${words(5).join(" ")}</h1><p>${words(300).join(" ")}</p><p>${links("more", 10)}</p></main></html>`;
}

const vocabulary = [
  ..."amber trade road river harbour winter stone wool market bridge letter silver grain ship tower".split(
    " ",
  ),
  ..."coast valley forest garden window paper glass iron copper salt honey bread candle mirror ladder".split(
    " ",
  ),
];
