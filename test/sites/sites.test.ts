/** The list of sites over a small world: filters, orders, pages, files, and refusals. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { describeApi } from "#coordinator/open-api";
import {
  type ListedSite,
  sinceWords,
  siteSorts,
  sitesInput,
  sitesQuestion,
} from "#coordinator/tell/sites/sites-api";
import { findSites } from "#coordinator/tell/sites/sites-reads";
import { sitePart, sitesTurn } from "#coordinator/tell/sites/start";
import { urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedHost, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { tinyResolver, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
const hashOf = (host: string) => (urlKeyOf(`https://${host}/`) as { hostHash: string }).hostHash;
const sql = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;
const turn = async (now = worldNow) =>
  await sitesTurn({ pool: database.pool, now: () => now, nowMs: () => performance.now() });
const set = async (host: string, columns: string) =>
  await sql(`update frontier_host set ${columns} where host_hash = $1`, [hashOf(host)]);

const greek = "xn--hxajbheg2az3al.gr";
const hour = 3_600_000;
const at = (hours: number) => new Date(worldNow.getTime() + hours * hour);

beforeAll(async () => {
  await seedWorld(database.pool);
  const { pool } = database;
  await seedHost(pool, { host: greek, subnet: "1.2.3.0", address: "1.2.3.9" });
  await seedHost(pool, { host: "leased.example.org", subnet: "1.2.3.0", address: "1.2.3.8" });
  await seedHost(pool, { host: "shop.example.com", subnet: "1.2.0.0", address: "1.2.77.1" });
  await seedHost(pool, { host: "opted.example.com", subnet: "1.2.0.0", address: "1.2.77.2" });
  await seedHost(pool, { host: "203.0.113.9", subnet: "1.2.0.0", address: "203.0.113.9" });
  await seedHost(pool, { host: "gone.example.com", subnet: "1.2.0.0", address: "1.2.77.3" });
  await sql(
    "insert into delegation select s.subnet_id, c.crawler_id, null, 'probe-round', true, 8, null, null, $1 " +
      "from subnet s, crawler c where s.first_address = '1.2.3.0' and c.name = 'athens'",
    [worldNow],
  );
  for (let page = 1; page <= 3; page++) await seedUrl(pool, { url: `https://shop.example.com/${page}` });
  await set(greek, "language = 'el', good_pages = 70, fetched_bytes = 5000, due_at = '2026-03-08T12:00Z'");
  await set(
    "www.example.org",
    "language = 'en', good_pages = 7, near_duplicates = 2, fetched_bytes = 900, fetches = 2",
  );
  await set("opted.example.com", "opt_out_id = 1, due_at = null");
  await set("gone.example.com", "due_at = null");
  await sql(
    `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
     select crawler_id, $1, 'leased.example.org', $2, $2, 1, 1 from crawler where name = 'berlin'`,
    [hashOf("leased.example.org"), worldNow],
  );
  await set("leased.example.org", "lease_id = (select max(lease_id) from lease)");
  await sql(
    "insert into channel (host_hash, host, directories, created_at) values ($1, 'shop.example.com', '{/}', $2)",
    [hashOf("shop.example.com"), worldNow],
  );
  // Some at the same time.
  await sql("update frontier_host set admitted_at = $1::timestamptz - make_interval(hours => url_count)", [
    worldNow,
  ]);
  const fetched = async (host: string, when: Date, blame: string | null) =>
    await sql(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, total_ms, wire_bytes, body_bytes, shipped_bytes)
       values ($1, 1, 1, $2, $3, $4, 1, 1, 1, 1)`,
      [hashOf(host), when, blame === null ? "fetched" : "failed", blame],
    );
  await fetched("www.example.org", at(-2), null);
  await fetched("www.example.org", at(-30), "target");
  // Eight days ago, so outside the last seven.
  await fetched("www.example.org", at(-8 * 24), "target");
  await turn();
  app = webServer(database, {
    parts: [sitePart({ pool, resolver: tinyResolver, config: readCoordinatorConfig({}) })],
  });
  await app.ready();
});
afterAll(async () => await app?.close());

const get = async (url: string) => await app.inject({ url });
const hosts = async (query: string) => {
  const { sites } = (await get(`/api/sites?limit=1000&${query}`)).json() as { sites: ListedSite[] };
  return sites.map(({ host }) => host);
};
const siteOf = async (host: string) => {
  const { sites } = (await get(`/api/sites?host=${host}`)).json() as { sites: ListedSite[] };
  return sites[0]!;
};

it("lists a host's crawler, organisation, pages, and fetches of seven days", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const answer = (await get("/api/sites?host=www.")).json();

  expect(faultsOf(answer, schemas.Sites!, schemas)).toEqual([]);
  expect(answer.sites).toMatchObject([
    {
      ...{ host: "www.example.org", name: "www.example.org", state: "due", reason: null, crawler: "athens" },
      ...{ subnet: "1.2.3.0/24", language: "en", organisation: "Example Web Ltd", tld: "org", rttMs: 8 },
      ...{ pages: 9, urls: 1, dueUrls: 1, moreDueUrls: false, failures: 1, fetches: 2, bytes: 900 },
      fetchedAt: at(-2).toISOString(),
    },
  ]);
});

it.each([
  [
    "state=due",
    ["203.0.113.9", "empty.example.net", "old.example.org", "shop.example.com", "www.example.org"],
  ],
  ["state=scheduled", [greek]],
  ["state=in-progress", ["leased.example.org"]],
  ["state=blocked", ["inside.example.org", "opted.example.com"]],
  ["state=unresolved", ["nowhere.example.org"]],
  ["state=left-out", ["gone.example.com"]],
  ["crawler=berlin", ["old.example.org"]],
  ["crawler=nobody%27s", []],
  ["language=EL", [greek]],
  ["country=gr&tld=org", ["leased.example.org", "old.example.org", "www.example.org"]],
  ["organisation=example%20web%20ltd", ["leased.example.org", "www.example.org", greek]],
  ["organisation=%25", []],
  ["tld=gr", [greek]],
  ["channel=with", ["shop.example.com"]],
  ["channel=without&under=example.com", ["gone.example.com", "opted.example.com"]],
  ["host=o", ["old.example.org", "opted.example.com"]],
  ["host=%D0%BF%25_", []],
  ["host=%CF%80%CE%B1%CF%81", [greek]],
  ["under=example.com", ["gone.example.com", "opted.example.com", "shop.example.com"]],
  // Not every name with this ending is below it.
  ["under=ample.com", []],
])("%s filters as it says", async (query, expected) => {
  expect(await hosts(query)).toEqual(expected);
});

it("says why a host is blocked or unresolved, and who is fetching another crawler's host", async () => {
  expect((await siteOf("inside.")).reason).toBe("its address is not public: 10.0.0.0/8 private use");
  expect((await siteOf("opted.")).reason).toBe("the site opted out");
  expect((await siteOf("nowhere.")).reason).toBe("its name does not resolve: the name does not exist");
  expect(await siteOf("leased.")).toMatchObject({
    state: "in-progress",
    crawler: "athens",
    inProgressBy: "berlin",
  });
});

it("shows on each host's page the same state as in the list", async () => {
  const { sites } = (await get("/api/sites?limit=1000")).json() as { sites: ListedSite[] };
  const onPages = await Promise.all(
    sites.map(async ({ host }) => [host, (await get(`/api/sites/${host}`)).json().site.state]),
  );

  expect(onPages).toEqual(sites.map(({ host, state }) => [host, state]));
});

/** The order's rule in JavaScript: missing values last, ties by key. */
function inOrder(
  sites: readonly ListedSite[],
  sort: (typeof siteSorts)[number],
  direction: "up" | "down",
): string[] {
  const value = (site: ListedSite): string | number | null => {
    const time = (date: Date | string | null) => (date === null ? null : Date.parse(String(date)));
    const values = {
      ...{ host: site.host, pages: site.pages, due: site.dueUrls, failures: site.failures, rtt: site.rttMs },
      ...{ bytes: site.bytes, fetched: time(site.fetchedAt), added: time(site.addedAt) },
    };
    return values[sort];
  };
  const sign = direction === "up" ? 1 : -1;
  return [...sites]
    .sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if ((x === null) !== (y === null)) return x === null ? 1 : -1;
      if (x !== null && y !== null && x !== y) return x < y ? -sign : sign;
      return BigInt(hashOf(a.host)) < BigInt(hashOf(b.host)) ? -sign : sign;
    })
    .map(({ host }) => host);
}

it.each(siteSorts.flatMap((sort) => (["up", "down"] as const).map((order) => [sort, order] as const)))(
  "sorts by %s, %s, and each page continues the one before",
  async (sort, order) => {
    const all = ((await get("/api/sites?limit=1000")).json() as { sites: ListedSite[] }).sites;
    const seen: string[] = [];
    for (let after = ""; ; ) {
      const page = (await get(`/api/sites?sort=${sort}&order=${order}&limit=3&after=${after}`)).json();
      seen.push(...page.sites.map(({ host }: ListedSite) => host));
      if (page.next === null) break;
      after = encodeURIComponent(page.next);
    }

    expect(seen).toEqual(inOrder(all, sort, order));
  },
);

it("neither skips nor repeats an unchanged host while others change", async () => {
  const stays = (await hosts("sort=pages")).filter((host) => !host.endsWith(".example.com"));
  const seen: string[] = [];
  const question = sitesQuestion(sitesInput.parse({ sort: "pages", limit: 2 }));
  let after = question.after;
  for (let page = 0; ; page++) {
    const found = await findSites(database.pool, { ...question, after }, worldNow);
    seen.push(...found.sites.map(({ host }) => host));
    if (found.next === null) break;
    after = found.next;
    await sql("update site set pages = 200 - pages where host like '%.example.com'");
    await sql("update site set pages = pages + $1 where host like 'opted.%'", [page]);
  }
  await sql("update site set pages = 0 where host like '%.example.com'");

  expect(seen.filter((host) => !host.endsWith(".example.com"))).toEqual(stays);
});

it("shows a name in its own script next to the DNS name, escaped", async () => {
  await sql("update holder set name = '<script>alert(1)</script> \u202eמחזיק' where name = 'Empty Org'");
  const { body } = await get("/sites");

  expect(body).toContain("<bdi>παράδειγμα.gr</bdi>");
  expect(body).toContain(`<span class="mono break">${greek}</span>`);
  expect(body).toContain("&lt;script&gt;");
  expect(body).not.toContain("<script>alert");
});

it("says that a clock is off when a fetch is in the future, and never a time before now", async () => {
  const yesterday = new Date(worldNow.getTime() - 24 * hour);
  const question = sitesQuestion(sitesInput.parse({ host: "www." }));
  const { sites } = await findSites(database.pool, question, yesterday);

  expect(sinceWords(sites[0]!.fetchedAt!, yesterday, "its crawler's")).toBe(
    "in the future by its crawler's clock",
  );
  expect(sinceWords(at(-2), worldNow, "its crawler's")).toBe("2 hours ago");
});

it("marks the current order, and its link reverses it", async () => {
  const { body } = await get("/sites?sort=failures&country=gr");

  expect(body).toMatch(
    /aria-sort="descending"><a href="\/sites\?country=gr&amp;sort=failures&amp;order=up">/,
  );
  expect(body.match(/aria-sort=/g)).toHaveLength(1);
  // A chip leads to the list without its filter, in the same order.
  expect(body).toContain(
    '<a href="/sites?sort=failures"><span>Country: <strong><bdi>Greece</bdi></strong></span>',
  );
});

it("offers a next step where nothing matches", async () => {
  const { body } = await get("/sites?host=nothing.like.it");

  expect(body).toContain("No site matches.");
  expect(body).toContain('href="/who?q=nothing.like.it"');
});

it("sends all matches as CSV that no spreadsheet runs", async () => {
  await sql("update holder set name = '=cmd()' where name = 'Example Web Ltd'");
  const { body, headers } = await get("/sites.csv?host=www.&after=x");
  const [head, line] = body.split("\r\n");
  await sql("update holder set name = 'Example Web Ltd' where name = '=cmd()'");

  expect(headers["content-disposition"]).toBe('attachment; filename="nearcrawl-sites.csv"');
  expect(head).toBe(
    "host,name,state,reason,due_at,crawler,in_progress_by,subnet,language,country,organisation,tld,channels," +
      "pages,urls,due_urls,failures_7_days,fetches_7_days,fetched_at,added_at,rtt_ms,bytes",
  );
  expect(line).toMatch(
    /^www\.example\.org,www\.example\.org,due,,.*,athens,,1\.2\.3\.0\/24,en,.*,'=cmd\(\),org,0,9,1,1,1,2,/,
  );
});

it.each([
  "/sites?sort=size",
  "/sites?order=sideways",
  "/sites?state=lost",
  "/sites?country=Cyprus",
  "/sites?language=%3Cscript%3E",
  "/sites?tld=example.org",
  "/sites?under=a%20b",
  "/sites?limit=0",
  "/sites?limit=1e4",
  "/sites?after=1",
  "/sites?sort=pages&after=1;drop~1",
  "/sites?sort=pages&after=1~99999999999999999999",
  `/sites?host=${"w".repeat(2000)}`,
  "/sites.csv?sort=size",
])("refuses %s with the reason", async (url) => {
  const answer = await get(url);

  expect(answer.statusCode).toBe(400);
  expect(answer.body).not.toContain("<script>");
});

it("follows results, delegations and the clock, and drops hosts that the crawl forgot", async () => {
  const { pool } = database;
  await sql("insert into site_touch values (array[$1::bigint], '{40}', '{31}', array[$2::timestamptz])", [
    hashOf("shop.example.com"),
    worldNow,
  ]);
  await sql(
    "update delegation set crawler_id = (select crawler_id from crawler where name = 'berlin'), rtt_ms = 21 " +
      "where crawler_id = (select crawler_id from crawler where name = 'athens')",
  );
  await sql("delete from frontier_host where host_hash = $1", [hashOf("gone.example.com")]);
  await turn(at(1));
  const touched = await siteOf("shop.");
  // A week later its failures are no longer recent.
  await sql("update site_upkeep set finished_at = '2026-01-01'");
  await turn(at(8 * 24));
  const { sites } = await findSites(pool, sitesQuestion(sitesInput.parse({})), at(8 * 24));
  const later = new Map(sites.map((site) => [site.host, site]));

  expect(touched).toMatchObject({
    failures: 31,
    fetches: 40,
    fetchedAt: worldNow.toISOString(),
    crawler: "berlin",
  });
  expect(later.get("shop.example.com")).toMatchObject({
    failures: 0,
    fetches: 0,
    crawler: "berlin",
    rttMs: 21,
  });
  expect(later.get(greek)).toMatchObject({ state: "due", crawler: "berlin" });
  expect(later.has("gone.example.com")).toBe(false);
});
