import type { PoolClient } from "pg";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import { addHosts } from "#coordinator/crawl/frontier/admission-writes";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createTrustStore } from "#coordinator/crawl/trust/trust-store";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import {
  liftedWords,
  mostPagesUnconfirmed,
  mostUnconfirmedADay,
  type OptOutRequest,
  type OptOutTarget,
  readOptOut,
} from "#coordinator/run/opt-outs/opt-out";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { asCrawlerId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { levelEngine, searchNow, searchOver } from "../support/search-engine.ts";
import { seedHost, seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { until } from "../support/until.ts";

const database = await forThisFile(testDatabase());
const storesOf = ({ pool }: Database) => ({
  optOuts: createOptOutStore(pool),
  marks: createOptOutMarks(pool),
  frontier: createFrontierStore(pool),
  reports: everyRead(pool, () => 0),
});
const scope = { pagesPerHost: 10, maxDepth: 5, admitNewHosts: true };
const later = (days: number) => new Date(worldNow.getTime() + days * 86_400_000);

const stores = storesOf(database);
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedHost(database.pool, { host: "shop.www.example.org", subnet: "1.2.3.0", address: "1.2.3.9" });
  // Berlin has the first range, Athens the second by inheritance: one row of its own.
  await database.pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select subnet_id, 1, 'operator', true, now() from subnet where first_address = '1.2.3.0'`,
  );
});
beforeEach(async () => {
  await database.pool.query(
    "update lease set closed_at = now(), ending = 'returned' where closed_at is null",
  );
  await database.pool.query("delete from opt_out");
  await database.pool.query(
    "update frontier_host set opt_out_id = null, not_before = '-infinity', lease_id = null, due_at = $1",
    [worldNow],
  );
});

const ask = (site: string, changed: Partial<OptOutRequest> = {}): OptOutRequest => ({
  target: { site, network: null },
  source: "form",
  words: "please",
  replyTo: null,
  requester: "192.0.2.7",
  confirmed: false,
  ...changed,
});
const requested = async (site: string, changed: Partial<OptOutRequest> = {}, at = worldNow) =>
  await stores.optOuts.request(ask(site, changed), at);
const applied = async (at = worldNow) => await stores.marks.apply(at);
/** The opt-out in force, and its effect. */
const taken = async (...asked: Parameters<typeof requested>) => {
  const optOut = await requested(...asked);
  return { ...optOut, applied: await applied() };
};
const leased = async () =>
  (
    await stores.frontier.leaseHosts({
      crawlerId: asCrawlerId(1),
      hosts: 100,
      urlsPerHost: 10,
      leaseSeconds: 300,
      now: worldNow,
    })
  )
    .map(({ host }) => host)
    .sort();
const keyOf = (url: string) => {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  return key;
};
const admitted = async (url: string) => {
  return await stores.frontier.admit([{ key: keyOf(url), depth: 0 }], scope, worldNow);
};

const targetOf = (...named: [string, ("networks" | "sites-only")?, ("url" | null)?]): OptOutTarget => {
  const [text, networks = "sites-only", scope = null] = named;
  const target = readOptOut(text, networks, scope);
  if (typeof target === "string") throw new Error(target);
  return target;
};
const seedAmber = async (url: string) =>
  await seedPage(database.pool, { url, title: "Amber", text: "amber" });
const marked = async () =>
  (
    await database.pool.query<{ host: string }>(
      "select host from frontier_host where opt_out_id is not null order by host",
    )
  ).rows.map(({ host }) => host);
const lastChange = async () => {
  await numberChanges(database.pool, worldNow);
  return (await createChangeFeed(database.pool).state()).last;
};
const changesSince = async (last: Awaited<ReturnType<typeof lastChange>>) => {
  await numberChanges(database.pool, worldNow);
  const read = await createChangeFeed(database.pool).after(last, { filter: everyChange, limit: 10 });
  if (read.type !== "read") throw new Error(read.type);
  return read.changes;
};

describe("an opt-out", () => {
  it("covers the site and everything below it, and nothing beside it: no longer leased or admitted", async () => {
    const before = await leased();

    const optOut = await requested("www.example.org");
    const { leases, hosts } = await applied();
    const open = await database.pool.query("select from lease where closed_at is null");
    const known = await admitted("https://www.example.org/new");
    const fresh = await admitted("https://deep.www.example.org/");
    const beside = await admitted("https://notwww.example.org/");

    expect(optOut).toMatchObject({ target: "www.example.org", state: "unconfirmed" });
    expect(before).toEqual(["shop.www.example.org", "www.example.org"]);
    expect(leases.map(({ host }) => host).sort()).toEqual(before);
    expect([hosts, open.rowCount, await leased()]).toEqual([2, 0, []]);
    expect([known, fresh]).toEqual(Array(2).fill({ newUrls: 0, newHosts: 0 }));
    expect(beside).toEqual({ newUrls: 1, newHosts: 1 });
  });

  it("is not fetched by a second crawler for comparison either", async () => {
    const { hostHash, urlHash, url, host } = keyOf("https://www.example.org/");
    await database.pool.query(
      `insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by)
       values ($1, $2, $3, $4, 2, 'sample', '[]', '{1}', $5)`,
      [hostHash, urlHash, host, url, later(1)],
    );
    const request = { crawlerId: asCrawlerId(1), hosts: 10, leaseSeconds: 60, now: worldNow };
    const check = async () => await createTrustStore(database.pool).lease({ ...request, urlsPerHost: 5 });

    await taken("www.example.org");
    const after = await check();
    await database.pool.query("update frontier_host set opt_out_id = null");
    const without = await check();

    expect(after).toEqual([]);
    expect(without.map((lease) => lease.host)).toEqual(["www.example.org"]);
  });

  it("tells readers of changes which pages are gone when it is confirmed, and not what they said", async () => {
    const pages = [
      { url: "https://www.example.org/", title: "Amber", text: "amber trade" },
      { url: "https://www.example.org/no", title: "x", text: "y", noindex: true },
      { url: "https://old.example.org/", title: "Other", text: "stays" },
    ];
    for (const page of pages) await seedPage(database.pool, page);
    const { optOutId } = await requested("www.example.org");
    const last = await lastChange();
    await applied();
    const unconfirmed = await lastChange();
    await stores.optOuts.confirm(optOutId, "operator", worldNow);
    const { pages: deleted } = await applied();
    await applied();

    expect([unconfirmed, deleted]).toEqual([last, 2]);
    expect(await changesSince(last)).toMatchObject([
      {
        ...{ url: "https://www.example.org/", kind: "gone", reason: "its site has opted out" },
        ...{ seenAt: worldNow, titleBefore: null, digestBefore: null, language: "en" },
      },
    ]);
  });

  it("lapses after 30 days unless somebody confirmed it, and the site is crawled again after a pause", async () => {
    await requested("www.example.org");
    const { optOutId } = await requested("old.example.org", {}, later(0.1));
    expect(await stores.optOuts.sitesSince(worldNow, 1)).toEqual(["old.example.org"]);
    await stores.optOuts.confirm(optOutId, "site", later(1));
    await applied();

    const early = await stores.optOuts.lapse(later(29));
    const lapsed = await stores.optOuts.lapse(later(30));
    await applied();
    const open = await stores.optOuts.list({ open: true, most: 10 });
    const { rows } = await database.pool.query<{ wait: number; due: boolean }>(
      `select extract(epoch from not_before - $1)::int as wait, due_at is not null as due
       from frontier_host where host = 'www.example.org' and opt_out_id is null`,
      [worldNow],
    );

    expect([early, lapsed]).toEqual([0, 1]);
    expect(open.map(({ target, state }) => [target, state])).toEqual([["old.example.org", "confirmed"]]);
    expect(rows).toEqual([{ wait: 900, due: true }]);
  });

  it("stays in force where a wider one that covered the same host is lifted", async () => {
    const wide = await requested("example.org");
    await taken("www.example.org");

    await stores.optOuts.lift(wide.optOutId, "asked for by mistake", worldNow);
    await applied();

    expect(await marked()).toEqual(["shop.www.example.org", "www.example.org"]);
  });

  it("requested twice is one, and an operator's request confirms it", async () => {
    const first = await requested("www.example.org");

    const again = await requested("www.example.org");
    const sure = await requested("www.example.org", { source: "operator", confirmed: true });

    expect([again.optOutId, again.token]).toEqual([first.optOutId, first.token]);
    expect(sure).toMatchObject({ optOutId: first.optOutId, state: "confirmed", confirmedBy: "operator" });
  });

  it("of a network covers every host that resolves into it, until the host moves away", async () => {
    const target = { site: null, network: { first: "1.2.3.0", last: "1.2.3.255" } } as const;
    await taken("", { target, source: "operator", confirmed: true });
    const before = await marked();
    const place = { type: "resolved", subnetId: null, ttlSeconds: 60 } as const;

    await stores.frontier.saveResolutions(
      [
        { ...place, host: "www.example.org", addresses: ["5.6.7.9"] },
        { ...place, host: "old.example.org", addresses: ["5.6.7.9", "1.2.3.77"] },
      ],
      worldNow,
    );
    const after = await marked();
    await stores.frontier.saveResolutions(
      [{ ...place, host: "www.example.org", addresses: ["1.2.3.4"] }],
      worldNow,
    );

    expect(before).toEqual(["shop.www.example.org", "www.example.org"]);
    expect(after).toEqual(["old.example.org", "shop.www.example.org"]);
    expect(await marked()).toContain("www.example.org");
    expect(await stores.optOuts.covering(null, ["1.2.3.200"])).toMatchObject({ target: "1.2.3.0/24" });
  });
});

describe("an opt-out of a part of a site", () => {
  const part = (text: string, changed: Partial<OptOutRequest> = {}) =>
    ask("", { target: targetOf(text, "networks"), ...changed });
  const takenPart = async (text: string, changed: Partial<OptOutRequest> = {}) =>
    await taken("", part(text, changed));
  const sure = { source: "operator", confirmed: true } as const;
  const urlsOf = async (condition: string) =>
    (
      await database.pool.query<{ url: string }>(
        `select url from frontier_url where ${condition} order by url`,
      )
    ).rows.map(({ url }) => url.replace("https://www.example.org", ""));
  const pages = async () =>
    (await database.pool.query<{ url: string }>("select url from page order by url")).rows.map(
      ({ url }) => url,
    );

  beforeAll(async () => {
    for (const path of ["a", "a/b", "a?q", "ab", "a/b/c"])
      await seedUrl(database.pool, { url: `https://www.example.org/${path}` });
    await seedUrl(database.pool, { url: "http://www.example.org/a" });
    await database.pool.query(
      `update frontier_host set subnet_id = (select max(subnet_id) from subnet where first_address = '1.2.3.0')
       where host = 'www.example.org'`,
    );
  });
  beforeEach(async () => {
    await database.pool.query("delete from page");
    await database.pool.query(
      "update frontier_url set state = 'due', last_outcome = null, last_reason = null, next_fetch_at = $1",
      [worldNow],
    );
  });

  it("of one URL covers it in all its spellings by http and https, and nothing else of its host", async () => {
    for (const path of ["a", "a/b"]) await seedAmber(`https://www.example.org/${path}`);

    const optOut = await takenPart("https://WWW.example.ORG.:443/%61#x", sure);
    const known = await admitted("http://www.example.org/a");
    const beside = await admitted("https://www.example.org/new");

    expect(optOut).toMatchObject({
      scope: "url",
      target: "https://www.example.org/a",
      hosts: 1,
      urls: 2,
      pages: 1,
    });
    expect([optOut.applied.pages, await pages()]).toEqual([1, ["https://www.example.org/a/b"]]);
    expect(await urlsOf("last_outcome = 'opted-out'")).toEqual(["http://www.example.org/a", "/a"]);
    expect([known.newUrls, beside.newUrls]).toEqual([0, 1]);
    expect(await leased()).toEqual(["shop.www.example.org", "www.example.org"]);
  });

  it("of a prefix ends with a path segment, and keeps out what links and lists name of it later", async () => {
    await takenPart("https://www.example.org/a/*", sure);
    const late = await Promise.all(
      [
        "https://www.example.org/a/late",
        "http://www.example.org/a/b?late",
        "https://www.example.org/abc",
      ].map(admitted),
    );

    expect(await urlsOf("last_outcome = 'opted-out'")).toEqual([
      "http://www.example.org/a",
      "/a",
      "/a/b",
      "/a/b/c",
      "/a?q",
    ]);
    expect(late.map(({ newUrls }) => newUrls)).toEqual([0, 0, 1]);
  });

  it("of a host leaves those below it, and differs from that of the site of its name", async () => {
    const host = await takenPart("https://www.example.org/*", sure);
    const left = await leased();
    const below = await admitted("https://deep.www.example.org/");

    const site = await requested("www.example.org", sure);

    expect([host.scope, site.scope, site.optOutId !== host.optOutId]).toEqual(["host", "subdomains", true]);
    expect([left, below.newUrls]).toEqual([["shop.www.example.org"], 1]);
  });

  it("takes its URLs off the open lease, which continues; their results are dropped without an incident", async () => {
    await leased();
    const { leases } = (await takenPart("https://www.example.org/a/*")).applied;
    const { rows } = await database.pool.query<{ open: number; listed: number; url_count: number }>(
      `select open_urls as open, cardinality(open_url_hashes) as listed, url_count
       from lease where host = 'www.example.org' and closed_at is null`,
    );
    const ended = (await takenPart("https://www.example.org/*")).applied;

    const [lease] = rows;
    expect(leases).toEqual([]);
    expect(lease!.open).toBeGreaterThan(0);
    expect([lease!.listed, lease!.url_count]).toEqual([lease!.open, lease!.open]);
    expect(ended.leases.map(({ host }) => host)).toEqual(["www.example.org"]);
  });

  it("hides its page until it is confirmed, tells readers of changes, and is fetched again soon when it is lifted", async () => {
    for (const path of ["a", "ab"]) await seedAmber(`https://www.example.org/${path}`);
    const last = await lastChange();
    await levelEngine(database.pool);

    const { optOutId } = await takenPart("https://www.example.org/a");
    const hidden = (await searchOver(database.pool, "amber", worldNow)).total;
    const kept = (await pages()).length;
    const told = await changesSince(last);
    const covering = async (url: string) =>
      (await stores.optOuts.covering("www.example.org", [], url))?.optOutId ?? null;
    const [its, others] = [
      await covering("https://www.example.org/a"),
      await covering("https://www.example.org/ab"),
    ];
    await stores.optOuts.lift(optOutId, "", worldNow);
    await applied();
    const { rows } = await database.pool.query<{ minutes: number }>(
      `select extract(epoch from next_fetch_at - $1)::int / 60 as minutes from frontier_url
       where url like '%//www.example.org/a' and state = 'due' and last_outcome is null order by 1`,
      [worldNow],
    );

    expect([hidden, kept, its, others]).toEqual([1, 2, optOutId, null]);
    expect(told.map(({ url, kind }) => [url, kind])).toEqual([["https://www.example.org/a", "gone"]]);
    expect(rows.map(({ minutes }) => minutes)).toEqual([15, 195]);
  });

  it("is previewed with exact numbers, and a wide one needs confirmation", async () => {
    await seedAmber("https://www.example.org/a/b");
    const previewed = async (text: string) => (await stores.optOuts.preview(part(text).target, worldNow))!;

    const [url, prefix] = [
      await previewed("https://www.example.org/ab"),
      await previewed("https://www.example.org/a/*"),
    ];
    const [host, site] = [await previewed("https://www.example.org/*"), await previewed("example.org")];
    const network = await previewed("1.2.3.0/24");

    expect(url).toEqual({ hosts: 1, urls: 1, pages: 0, dueUrls: 1, wide: null, known: null });
    expect(prefix).toMatchObject({ hosts: 1, pages: 1, wide: null });
    expect(host).toMatchObject({ hosts: 1, pages: 1, wide: null });
    expect(site.hosts).toBeGreaterThan(3);
    expect(site.wide).toBe(`example.org covers ${site.hosts} hosts`);
    expect(network).toMatchObject({ hosts: 3, pages: 1, wide: "1.2.3.0/24 covers 3 hosts" });
  });
});

describe("a request by the form", () => {
  it("needs proof for what an operator lifted, and for what is above or below it, not for a neighbour", async () => {
    const first = await requested("www.example.org");
    await stores.optOuts.lift(first.optOutId, "abuse", worldNow);

    const states: Record<string, string> = {};
    for (const site of ["www.example.org", "shop.www.example.org", "example.org", "old.example.org"])
      states[site] = (await requested(site, { requester: "203.0.113.9" }, later(300))).state;
    const { optOutId } = await requested("www.example.org", {}, later(300));
    const proven = await stores.optOuts.confirm(optOutId, "site", later(300));

    expect(states).toEqual({
      "www.example.org": "waiting",
      "shop.www.example.org": "waiting",
      "example.org": "waiting",
      "old.example.org": "unconfirmed",
    });
    expect(proven?.state).toBe("confirmed");
  });

  it("does not let one address, network or domain use up everybody's day, nor unknown names that of sites we crawl", async () => {
    const most = mostUnconfirmedADay;
    await database.pool.query("update frontier_host set fetched_urls = 1 where host = 'www.example.org'");
    const statesOf = async (
      count: number,
      asked: (n: number) => [site: string, requester: string | null],
    ) => {
      const states: string[] = [];
      for (let n = 0; n < count; n += 1) {
        const [site, requester] = asked(n);
        states.push((await requested(site, { requester })).state);
      }
      return states.filter((state) => state === "unconfirmed").length;
    };

    const byAddress = await statesOf(most.ofAddress + 2, (n) => [`a.a${n}.example`, `2001:db8:1:1::${n}`]);
    const byNetwork = await statesOf(most.ofNetwork + 2, (n) => [`a.n${n}.example`, `198.51.100.${n}`]);
    const byDomain = await statesOf(most.ofDomain + 2, (n) => [`a${n}.domain.example`, `203.0.${n}.1`]);
    const honest = (await requested("honest.example.net")).state;
    const left = most.ofAll - byAddress - byNetwork - byDomain - 1;
    const unknown = await statesOf(left + 2, (n) => [`a.u${n}.example`, null]);
    const crawled = (await requested("www.example.org")).state;

    // A requester beyond the daily limit makes nobody else wait.
    const mine = ask("mine.example.org", { requester: "203.0.113.77" });
    const byAttacker = await stores.optOuts.request({ ...mine, requester: "198.51.100.9" }, worldNow);
    const byOwner = await stores.optOuts.request(mine, later(1.1));

    expect([byAttacker.state, byOwner.state, byOwner.deletesAt]).toEqual([
      "waiting",
      "unconfirmed",
      later(8.1),
    ]);
    expect([byAddress, byNetwork, byDomain]).toEqual([most.ofAddress, most.ofNetwork, most.ofDomain]);
    expect([honest, unknown, crawled]).toEqual(["unconfirmed", left, "unconfirmed"]);
    await database.pool.query("update frontier_host set fetched_urls = 0 where host = 'www.example.org'");
  });

  it("waits for proof of hosts with many pages, even of a single host; few pages are removed at once", async () => {
    await seedAmber("https://model.example.net/");
    const { rows } = await database.pool.query<{ columns: string; copied: string }>(
      `select string_agg(quote_ident(attname), ', ') as columns,
         string_agg('copy.' || quote_ident(attname), ', ') as copied
       from pg_attribute
       where attrelid = 'page'::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    );
    const fetched = async (host: string, pages: number) => {
      await seedHost(database.pool, { host, subnet: "1.2.3.0", address: "1.2.3.9" });
      await database.pool.query(
        `insert into page (${rows[0]!.columns})
         select ${rows[0]!.copied}
         from frontier_host h, generate_series(1, $2::int) n, page p,
           jsonb_populate_record(p, jsonb_build_object('host_hash', h.host_hash, 'url_hash', n, 'host', h.host)) copy
         where h.host = $1 and p.host = 'model.example.net'`,
        [host, pages],
      );
    };
    const sizes = { small: mostPagesUnconfirmed - 1, large: mostPagesUnconfirmed + 1 };
    await fetched("www.small.example", sizes.small);
    await fetched("shop.small.example", 1);
    await fetched("one.example", sizes.small);
    await fetched("www.one.example", 1);
    await fetched("en.encyclopedia.example", sizes.large);
    await fetched("de.encyclopedia.example", 1);

    const states: Record<string, string> = {};
    for (const site of ["small.example", "one.example", "encyclopedia.example", "en.encyclopedia.example"]) {
      states[site] = (await requested(site)).state;
    }
    await applied();
    const byOperator = ask("encyclopedia.example", { source: "operator", confirmed: true });

    expect(states).toEqual({
      "small.example": "unconfirmed",
      "one.example": "unconfirmed",
      "encyclopedia.example": "waiting",
      "en.encyclopedia.example": "waiting",
    });
    expect((await marked()).filter((host) => host.endsWith("encyclopedia.example"))).toEqual([]);
    const page = targetOf("https://en.encyclopedia.example/a");
    expect((await requested("", { target: page })).state).toBe("unconfirmed");
    expect((await stores.optOuts.request(byOperator, worldNow)).state).toBe("confirmed");
  });

  it.each(["0.0.0.0/0", "github.io", "co.uk", "many.example"])(
    "never takes out %s, a network, a public suffix or more than 100 hosts, before it is proven",
    async (name) => {
      if (name === "many.example")
        await database.pool.query(
          `insert into frontier_host (host_hash, host)
           select n, 'h' || n || '.many.example' from generate_series(1, 101) n`,
        );

      const asked = ask("", { target: targetOf(name, "networks") });
      const { optOutId, state } = await stores.optOuts.request(asked, worldNow);
      await applied();
      const waiting = await marked();
      const proven = await stores.optOuts.confirm(optOutId, "site", worldNow);

      expect([state, waiting, proven?.state]).toEqual(["waiting", [], "confirmed"]);
    },
  );

  it("never lets a host slip in beside an opt-out that is being recorded", async () => {
    const adding = await database.pool.connect();
    await adding.query("begin");
    await addHosts(adding, [keyOf("https://race.example.org/")], worldNow);

    let isRecorded = false;
    const recorded = requested("race.example.org").then(async () => {
      isRecorded = true;
      await applied();
    });
    await until(async () => isRecorded || (await isWaitedFor(adding)), 5000);
    await adding.query("commit");
    adding.release();
    await recorded;
    const { rows } = await database.pool.query<{ due: boolean; marked: boolean }>(
      `select due_at is not null as due, opt_out_id is not null as marked
       from frontier_host where host = 'race.example.org'`,
    );

    expect(rows).toEqual([{ due: false, marked: true }]);
  });
});

describe("an opt-out that nobody has proven", () => {
  const found = async () => [
    (await searchNow(database.pool, "amber", worldNow)).total,
    (await database.pool.query("select from page")).rowCount,
  ];
  beforeEach(async () => {
    await database.pool.query("delete from page");
    await database.pool.query(
      "update frontier_url set state = 'due', last_outcome = null, last_reason = null",
    );
    await seedAmber("https://www.example.org/");
  });

  it.each(["www.example.org", "https://www.example.org/", "https://www.example.org/*"])(
    "of %s hides pages for a week, in which they come back whole when it is lifted, and then deletes them",
    async (text) => {
      const last = await lastChange();
      const target = targetOf(text, "sites-only", text.endsWith("/") ? "url" : null);

      const first = await taken("", { target });
      await applied(later(6.9));
      const hidden = await found();
      const lifted = await stores.optOuts.lift(first.optOutId, "abuse", later(6.9));
      await applied(later(6.9));
      const shown = await found();
      const told = (await changesSince(last)).map(({ kind }) => kind);
      await database.pool.query("delete from opt_out");
      const second = await taken("", { target });
      const { pages } = await applied(later(7));
      const late = await stores.optOuts.lift(second.optOutId, "abuse", later(8));

      expect(first).toMatchObject({ state: "unconfirmed", deletesAt: later(7) });
      expect([hidden, shown, pages, await found()]).toEqual([[0, 1], [1, 1], 1, [0, 0]]);
      expect(told).toEqual(
        target.part === undefined || target.part.scope === "host" ? [] : ["gone", "came-back"],
      );
      expect(liftedWords(lifted!)).toContain("hidden only");
      expect(liftedWords(late!)).toContain("were deleted from the index on 2026-03-08");
    },
  );

  it("stays hidden by another that covers the page, and comes back when both are lifted", async () => {
    const page = targetOf("https://www.example.org/", "sites-only", "url");
    const { optOutId } = await taken("", { target: page });
    // By an operator, who may name a prefix that the form reads as the host.
    const wide = {
      site: "www.example.org",
      network: null,
      part: { scope: "prefix", of: "//www.example.org" },
    } as const;
    const other = await taken("", { target: wide });
    await stores.optOuts.lift(optOutId, "", worldNow);
    await applied();
    const [still] = await found();
    await stores.optOuts.lift(other.optOutId, "", worldNow);
    await applied();

    expect([still, (await found())[0]]).toEqual([0, 1]);
  });
});

/** Resolves when somebody waits for a lock of this connection. */
async function isWaitedFor(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ waits: boolean }>(
    `select exists (
       select from pg_locks w join pg_locks h using (locktype, classid, objid, objsubid)
       where not w.granted and h.granted and h.pid = pg_backend_pid()) as waits`,
  );
  return rows[0]!.waits;
}
