/** What crawlers report beyond the page: redirects in a row, sitemaps and feeds, soft 404s, unchanged bodies, politeness. */
import { describe, expect, it } from "vitest";
import { asSubnetId } from "#core/ids";
import { noon, scope, secondsAfterNoon, seeds, worldOfFile } from "../support/store-world.ts";
import { newShippingWorld, text } from "./shipping-world.ts";

const world = worldOfFile(newShippingWorld);

const root = "http://a.example/";
const days = (count: number) => secondsAfterNoon(count * 86_400);
const redirectTo = (location: string) =>
  ({ outcome: { type: "redirected", status: 302, location } }) as const;

describe("redirects", () => {
  it("are leased with the number of hops before them, and end after five", async () => {
    const north = await world.delegatedHost("north", root);
    const hops: (number | undefined)[] = [];

    for (let hop = 0; hop <= 5; hop++) {
      const url = hop === 0 ? root : `${root}${hop}`;
      const leases = await world.ship(
        north,
        { [url]: redirectTo(`${root}${hop + 1}`) },
        secondsAfterNoon(hop),
      );
      hops.push(leases[0]?.urls.find((one) => one.url === url)?.redirects);
    }

    expect(hops).toEqual([undefined, 1, 2, 3, 4, 5]);
    expect(await world.urlRow(`${root}6`)).toBeUndefined();
    expect(await world.urlRow(`${root}5`)).toMatchObject({
      depth: 0,
      last_reason: "to http://a.example/6; not followed, it would be redirect 6 in a row",
    });
  });

  it("include those of a page within a few seconds; later ones are links", async () => {
    const north = await world.delegatedHost("north", root);
    const page = (path: string, seconds: number) => ({
      page: { ...text(1), refresh: { url: `${root}${path}`, seconds } },
      links: [`${root}${path}`],
    });
    await world.ship(north, { [root]: page("soon", 10) }, noon);

    await world.ship(north, { [`${root}soon`]: page("late", 11) }, secondsAfterNoon(1));

    expect(await world.urlRow(`${root}soon`)).toMatchObject({ redirects: 1, depth: 0, back_links: 1 });
    expect(await world.urlRow(`${root}late`)).toMatchObject({ redirects: 0, depth: 1, back_links: 1 });
  });

  it("do not change a known URL", async () => {
    const north = await world.delegatedHost("north", root, `${root}x`);

    await world.ship(north, { [root]: redirectTo(`${root}x`) }, noon);

    expect(await world.urlRow(`${root}x`)).toMatchObject({ redirects: 0, depth: 0, back_links: 1 });
  });

  it("start from zero for the links of the page at their end", async () => {
    const north = await world.delegatedHost("north", root);
    await world.ship(north, { [root]: redirectTo(`${root}page`) }, noon);

    await world.ship(north, { [`${root}page`]: { links: [`${root}next`] } }, secondsAfterNoon(1));

    expect(await world.urlRow(`${root}next`)).toMatchObject({ redirects: 0, depth: 1 });
  });
});

describe("a known body", () => {
  it("keeps its page although the status is 200, and takes the new validators", async () => {
    const north = await world.delegatedHost("north", root);
    await world.ship(north, { [root]: { page: text(1), links: [`${root}x`] } }, noon);
    const outcome = { type: "unchanged", status: 200 } as const;

    const [lease] = await world.ship(north, { [root]: { outcome, result: { etag: '"two"' } } }, days(7));

    expect(lease?.urls.find(({ url }) => url === root)?.digest).toBe(text(1).digest);
    expect(await world.rows("select url from page")).toEqual([{ url: root }]);
    expect(await world.rows("select outcome, status from page_fetch order by fetched_at")).toEqual([
      { outcome: "fetched", status: 200 },
      { outcome: "unchanged", status: 200 },
    ]);
    const row = await world.urlRow(root);
    expect(row).toMatchObject({ etag: '"two"', last_reason: "the same body as before", failures: 0 });
    expect(row?.digest).toEqual(Buffer.from(text(1).digest ?? "", "hex"));
  });
});

describe("a page that says “not found” with status 200", () => {
  const soft = { page: { ...text(2), softNotFound: true }, links: [`${root}trap`] };

  it("leaves the index with its links and validators, but counts as a fetch", async () => {
    const north = await world.delegatedHost("north", root);
    await world.ship(north, { [root]: { page: text(1), links: [`${root}x`] } }, noon);

    await world.ship(north, { [root]: soft }, days(7));

    expect(await world.rows("select from page")).toHaveLength(0);
    expect(await world.rows("select from link")).toHaveLength(0);
    expect(await world.rows("select from page_fetch")).toHaveLength(2);
    expect(await world.urlRow(`${root}trap`)).toBeUndefined();
    expect(await world.urlRow(root)).toMatchObject({
      state: "due",
      failures: 1,
      last_outcome: "soft-not-found",
      last_status: 200,
      last_reason: "the page says “not found”, though with status 200",
      etag: null,
      digest: null,
    });
  });

  it("is gone after saying so three times in a row", async () => {
    const north = await world.delegatedHost("north", root);

    for (const day of [0, 1, 2]) await world.ship(north, { [root]: soft }, days(2 * day));

    expect(await world.urlRow(root)).toMatchObject({ state: "gone", failures: 3 });
  });
});

describe("sitemaps and feeds", () => {
  const list = (kind: "sitemap" | "feed", ...urls: readonly string[]) =>
    ({ page: { kind, text: "", words: 0 }, links: urls }) as const;

  it("add what they name one link from the seeds, and leave no page and no links", async () => {
    const north = await world.delegatedHost("north", root);
    await world.rows("update frontier_url set depth = 4");

    await world.ship(north, { [root]: list("sitemap", `${root}x`, "http://b.example/") }, noon);

    expect(await world.rows("select from page")).toHaveLength(0);
    expect(await world.rows("select from link")).toHaveLength(0);
    expect(await world.urlRow(`${root}x`)).toMatchObject({ depth: 1, lists: 1, back_links: 0 });
    expect(await world.urlRow("http://b.example/")).toMatchObject({ depth: 5 });
    expect(await world.urlRow(root)).toMatchObject({
      last_reason: "a sitemap that names 2 URLs",
      etag: '"one"',
      worth: null,
    });
  });

  it("may be nested, with a limit", async () => {
    const north = await world.delegatedHost("north", root);

    for (const hop of [0, 1, 2, 3]) {
      const url = hop === 0 ? root : `${root}${hop}`;
      await world.ship(north, { [url]: list("sitemap", `${root}${hop + 1}`) }, secondsAfterNoon(hop));
    }

    expect(await world.urls()).toEqual([root, `${root}1`, `${root}2`, `${root}3`]);
    expect((await world.urlRow(`${root}3`))?.last_reason).toContain("too many lists in a row");
  });

  it("named by robots.txt are at the depth of seeds, those named by a page one deeper, none twice", async () => {
    const north = await world.delegatedHost("north", root);
    const robots = {
      state: "rules",
      crawlDelaySeconds: null,
      sitemaps: [`${root}map.xml`, "no url"],
    } as const;
    const feeds = [`${root}feed`, `${root}feed#x`, `${root}map.xml`];

    await world.ship(
      north,
      { [root]: { page: { feeds }, result: { robots: { ...robots, sitemaps: [...robots.sitemaps] } } } },
      noon,
    );

    expect(await world.urlRow(`${root}map.xml`)).toMatchObject({ depth: 0 });
    expect(await world.urlRow(`${root}feed`)).toMatchObject({ depth: 1 });
    expect(await world.hostRow("a.example")).toMatchObject({ url_count: 3, list_urls: 2 });
  });

  it("of another host are ordinary links, and use up none of that host's limit", async () => {
    const north = await world.delegatedHost("north", root, "http://b.example/");
    const sitemaps = ["http://b.example/map.xml"];
    const robots = { state: "rules" as const, crawlDelaySeconds: null, sitemaps };
    const feeds = ["http://b.example/feed"];

    await world.ship(north, { [root]: { page: { feeds }, result: { robots } } }, noon);

    expect(await world.urlRow("http://b.example/map.xml")).toMatchObject({ depth: 1 });
    expect(await world.urlRow("http://b.example/feed")).toMatchObject({ depth: 1 });
    expect(await world.hostRow("b.example")).toMatchObject({ list_urls: 0 });
  });

  /** sitemaps.org, "Sitemaps & Cross Submits" */
  describe("of another host are authorised by a robots.txt that names them", () => {
    const map = "http://maps.example/a.xml";
    const robots = (state: "rules" | "none" | "unreachable", ...sitemaps: string[]) =>
      ({ result: { robots: { state, crawlDelaySeconds: null, sitemaps } } }) as const;
    const naming = (...urls: readonly string[]) => ({
      page: {
        ...{ kind: "sitemap" as const, text: "", words: 0 },
        foreignLinks: urls.map((url) => ({ url, anchor: "", nofollow: false })),
      },
    });

    it("one link from the seeds, and for no other host", async () => {
      const north = await world.delegatedHost("north", root, map, "http://b.example/");
      await world.rows("update frontier_url set depth = 4");
      await world.ship(north, { [root]: robots("rules", map), "http://b.example/": robots("rules") }, noon);

      await world.ship(north, { [map]: naming(`${root}x`, "http://b.example/x", "http://c.example/") }, noon);

      expect(await world.urlRow(`${root}x`)).toMatchObject({ depth: 1, lists: 1, back_links: 0 });
      expect(await world.urlRow("http://b.example/x")).toBeUndefined();
      expect(await world.hostRow("c.example")).toBeUndefined();
    });

    it("even if it names them later: what was ignored is fetched in full again", async () => {
      const north = await world.delegatedHost("north", root, map);
      await world.ship(north, { [map]: naming(`${root}x`) }, noon);
      const [validators] = await world.rows(
        "select etag, digest from frontier_url where url = 'http://maps.example/a.xml'",
      );

      await world.ship(north, { [root]: robots("rules", map) }, noon);
      await world.ship(north, { [map]: naming(`${root}x`) }, days(7));

      expect(validators).toEqual({ etag: null, digest: null });
      expect(await world.urlRow(`${root}x`)).toMatchObject({ depth: 1 });
      expect(await world.urlRow(map)).toMatchObject({ etag: '"one"' });
    });

    it("until it no longer names them; an unavailable one revokes nothing", async () => {
      const north = await world.delegatedHost("north", root, map);
      const named = async () => await world.rows("select host_hash::text from named_sitemap");
      await world.ship(north, { [root]: robots("rules", map, map, `${root}own.xml`) }, noon);
      const [first, second] = [await named(), days(7)];
      await world.ship(north, { [root]: robots("unreachable") }, second);
      const silent = await named();
      await world.ship(north, { [root]: robots("none") }, days(14));

      expect([first, silent, await named()].map((rows) => rows.length)).toEqual([1, 1, 0]);
    });
  });

  it("are limited per host, whatever its robots.txt names day by day", async () => {
    const north = await world.delegatedHost("north", root);

    for (const day of [0, 8]) {
      const sitemaps = Array.from({ length: 50 }, (_, index) => `${root}${day}/${index}.xml`);
      const robots = { state: "rules" as const, crawlDelaySeconds: null, sitemaps };
      await world.ship(north, { [root]: { page: text(1), result: { robots } } }, days(day));
    }

    expect(await world.hostRow("a.example")).toMatchObject({ list_urls: 60 });
  });

  it("make a page of their own host due that they say has changed since its last fetch", async () => {
    const north = await world.delegatedHost("north", root, `${root}old`, `${root}new`, "http://b.example/");
    const page = { page: text(1) };
    await world.ship(
      north,
      { [`${root}old`]: page, [`${root}new`]: { page: text(2) }, "http://b.example/": { page: text(3) } },
      noon,
    );
    const changed = (url: string, modifiedAt: string) => ({ url, anchor: "", nofollow: false, modifiedAt });
    const links = [
      changed(`${root}old`, "2029-12-31"),
      changed(`${root}new`, "2030-01-01T18:00:00Z"),
      changed("http://b.example/", "2030-01-01T18:00:00Z"),
    ];

    await world.ship(north, { [root]: { page: { kind: "sitemap", links } } }, days(1));

    expect((await world.urlRow(`${root}new`))?.next_fetch_at).toEqual(days(1));
    expect((await world.urlRow(`${root}old`))?.next_fetch_at).toEqual(days(7));
    expect((await world.urlRow("http://b.example/"))?.next_fetch_at).toEqual(days(7));
    expect((await world.hostRow("a.example"))?.due_at).toEqual(days(1));
  });
});

it("a result whose URL has no key is acknowledged and dropped", async () => {
  const north = await world.delegatedHost("north", root);

  await world.ship(north, { [root]: { result: { url: "http://a..b/" } } }, noon);

  expect(await world.rows("select from page_fetch")).toEqual([]);
  expect(await world.rows("select from spool where acknowledged_sequence > 0")).toHaveLength(1);
});

describe("links with rel=nofollow", () => {
  const links = [{ url: `${root}paid`, anchor: "", nofollow: true }];

  it("are in the web graph and not followed, unless the operator wants it", async () => {
    const north = await world.delegatedHost("north", root);

    await world.ship(north, { [root]: { page: { links } } }, noon);
    const unfollowed = await world.urls();
    await world.ship(north, { [root]: { page: { links } } }, days(7), { followNofollow: true });

    expect(unfollowed).toEqual([root]);
    expect(await world.urls()).toEqual([root, `${root}paid`]);
    expect(await world.rows("select nofollow from link")).toEqual([{ nofollow: true }]);
  });

  it("are followed where the page also links to the URL without it; a page has no link to itself", async () => {
    const north = await world.delegatedHost("north", root);
    const link = (url: string, nofollow = false) => ({ url, anchor: "", nofollow });
    const both = [link(`${root}x`, true), link(`${root}x`), link(`${root}x`, true)];

    await world.ship(north, { [root]: { page: { links: [...both, link(`${root}#top`)] } } }, noon);

    expect(await world.urls()).toEqual([root, `${root}x`]);
    expect(await world.rows("select nofollow from link")).toEqual([{ nofollow: false }]);
  });

  it("are never followed where the page forbids following its links", async () => {
    const north = await world.delegatedHost("north", root);
    const robots = { noindex: false, nofollow: true };

    await world.ship(north, { [root]: { page: { links, robots } } }, noon, { followNofollow: true });

    expect(await world.urls()).toEqual([root]);
  });
});

describe("the pace of a host", () => {
  const tolerated = {
    ...{ perHour: 600, limitedBy: "silent" as const, refusedPerHour: 900, refusedMsAgo: 5000, saidMsAgo: 0 },
  };
  const pace = { crawlDelayMs: 7000, backOffMs: 120_000, backedOffMsAgo: 5000, usualMs: 80, tolerated };

  it("moves with its subnet to another crawler, minus the time since", async () => {
    const north = await world.delegatedHost("north", root, `${root}x`);
    const south = await world.crawler("south");
    const outcome = { type: "http-error", status: 429, retryAfterSeconds: null } as const;
    await world.ship(north, { [root]: { outcome, result: { pace, hostDelayMs: 130_000 } } }, noon);
    const [moved] = await world.rows<{ subnet_id: number }>("select subnet_id from delegation");
    await world.delegations.move(
      [
        {
          subnetId: asSubnetId(moved!.subnet_id),
          from: north,
          to: south,
          cause: "overload",
          reason: "",
          rttMs: null,
        },
      ],
      noon,
    );

    const early = await world.lease(south, secondsAfterNoon(129));
    const [lease] = await world.lease(south, secondsAfterNoon(200));

    expect(early).toEqual([]);
    expect(lease?.pace).toEqual({
      ...{ ...pace, backedOffMsAgo: 205_000 },
      tolerated: { ...tolerated, refusedMsAgo: 205_000, saidMsAgo: 200_000 },
    });
  });

  it("is absent where no result reported it, and stays where a result does not mention it", async () => {
    const north = await world.delegatedHost("north", root, `${root}x`);

    const [first] = await world.ship(north, { [root]: { result: { pace } } }, noon);
    await world.ship(north, { [`${root}x`]: {} }, secondsAfterNoon(60));
    const [third] = await world.lease(north, days(7));

    expect(first?.pace).toBeUndefined();
    expect(third?.pace).toMatchObject({ crawlDelayMs: 7000, usualMs: 80 });
  });

  it("takes the Crawl-delay of robots.txt, and forgets it when the file has none any more", async () => {
    const north = await world.delegatedHost("north", root);
    const robots = { state: "rules" as const, crawlDelaySeconds: 2.5, sitemaps: [] };
    const connection = { http: "2", tls: "TLSv1.3" } as const;

    await world.ship(north, { [root]: { result: { robots, connection } } }, noon);
    const before = await world.hostRow("a.example");
    await world.ship(
      north,
      { [root]: { result: { robots: { ...robots, state: "unreachable", crawlDelaySeconds: null } } } },
      days(7),
    );
    const unreachable = await world.hostRow("a.example");
    await world.ship(
      north,
      { [root]: { result: { robots: { ...robots, crawlDelaySeconds: null } } } },
      days(14),
    );

    expect(before).toMatchObject({
      robots_state: "rules",
      robots_at: noon,
      crawl_delay_ms: 2500,
      http_version: "2",
      tls_version: "TLSv1.3",
    });
    expect(unreachable).toMatchObject({
      robots_state: "unreachable",
      crawl_delay_ms: 2500,
      http_version: "2",
    });
    expect(await world.hostRow("a.example")).toMatchObject({ robots_state: "rules", crawl_delay_ms: 0 });
  });
});

describe("what a page says about itself", () => {
  it("is stored without invalid dates and characters that no column accepts", async () => {
    const north = await world.delegatedHost("north", root, `${root}x`);
    const structured = { type: "Article", name: "A\0\ud800B", description: "" };
    const dated = { publishedAt: "2029-05-06", modifiedAt: "2029-05-07T10:00", declaredLanguage: "en-GB\0" };

    await world.ship(
      north,
      {
        [root]: { page: { ...dated, detectedLanguage: "en", structured } },
        [`${root}x`]: { page: { publishedAt: "2029-02-31", modifiedAt: "2099-01-01", title: "\ud800" } },
      },
      noon,
    );

    expect(
      await world.rows(
        "select title, declared_language, detected_language, published_at, modified_at, structured from page join document using (host_hash, url_hash) order by url",
      ),
    ).toEqual([
      {
        title: "Two words",
        declared_language: "en-GB",
        detected_language: "en",
        published_at: new Date("2029-05-06T00:00:00Z"),
        modified_at: new Date("2029-05-07T10:00:00Z"),
        structured: { type: "Article", name: "A\ufffdB", description: "" },
      },
      {
        title: "\ufffd",
        declared_language: null,
        detected_language: null,
        published_at: null,
        modified_at: null,
        structured: null,
      },
    ]);
  });
});

it("seeds from people may fill a host up to the operator's limit", async () => {
  const urls = Array.from({ length: 80 }, (_, index) => `${root}${index}`);

  await world.frontier.admit(seeds(...urls), scope, noon);

  expect(await world.urls()).toHaveLength(80);
});
