/** A cap on a site: what its hosts' leases say, what whoever asks is told, and that the site's own word is kept apart. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createSiteCapStore } from "#coordinator/crawl/site-caps/site-cap-store";
import { siteCapPart } from "#coordinator/crawl/site-caps/start";
import { createAuditLog } from "#coordinator/database/audit-log";
import { hostsInHand, queueAges } from "#coordinator/tell/overview/queue-reads";
import type { CrawlerId } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { everyRead } from "../support/every-read.ts";
import { bearer, formBy, signIn } from "../support/signed-in.ts";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  type World,
} from "../support/store-world.ts";
import { webServer } from "../support/web-server.ts";

let world: World;
let app: ReturnType<typeof webServer>;
let headers: { readonly authorization: string };
let crawlerId: CrawlerId;
beforeAll(async () => {
  world = await newWorld();
  app = webServer(world.database, { parts: [siteCapPart(world.pool)] });
  headers = await bearer(world.database, ["read", "policy-write"], { name: "ci" });
  crawlerId = await world.delegatedHost("athens", "http://www.a.example/", "http://www.a.example/1");
});
afterAll(async () => {
  await app?.close();
  await world?.close();
});

const post = async (url: string, payload: object) =>
  await app.inject({ method: "POST", url, headers, payload });
const cap = async (host: string) =>
  (
    await world.rows<{ cap_delay_ms: number | null }>(
      `select cap_delay_ms from frontier_host where host = '${host}'`,
    )
  )[0]?.cap_delay_ms;

it("holds for known hosts and for those that come later, the longest of several, and tells leases", async () => {
  const set = await post("/api/fleet/site-caps", {
    site: "http://A.example/x",
    seconds: 10,
    words: "by phone",
  });
  await post("/api/fleet/site-caps", { site: "www.a.example", seconds: 2.5 });
  await world.frontier.admit(seeds("http://later.a.example/", "http://ba.example/"), scope, noon);

  expect(set.statusCode, set.body).toBe(201);
  expect(set.json()).toMatchObject({
    site: "a.example",
    delayMs: 10_000,
    words: "by phone",
    setBy: "token ci",
    hosts: 1,
  });
  expect(await Promise.all(["www.a.example", "later.a.example", "ba.example"].map(cap))).toEqual([
    10_000,
    10_000,
    null,
  ]);
  const [lease] = await world.lease(crawlerId);
  expect(lease?.pace).toMatchObject({ crawlDelayMs: 10_000 });
  const page = await app.inject({ url: "/fleet/site-caps", headers });
  expect(page.body).toContain("by phone");

  const { pace } = lease!;
  const arrived = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://www.a.example/" });
  await world.take(
    crawlerId,
    [{ ...arrived, result: { ...arrived.result, pace: pace! } }],
    secondsAfterNoon(30),
  );
  // A crawler that gives back what it was told has not heard it from the site.
  const [row] = await world.rows("select crawl_delay_ms from frontier_host where host = 'www.a.example'");
  expect(row).toEqual({ crawl_delay_ms: null });
});

it("stands in who, in the verdict and beside the host in hand", async () => {
  const reports = everyRead(world.pool, () => performance.now());
  const inHand = await hostsInHand(world.pool, { sort: "rate", most: 10 }, secondsAfterNoon(60));
  // The other hosts of this world wait for their addresses, which would be what limits it.
  await world.pool.query("update frontier_host set due_at = null where state = 'unresolved'");
  const { verdict } = await queueAges(world.pool, secondsAfterNoon(60));
  const report = await reports.hostReport(hostHashOf("www.a.example"), secondsAfterNoon(60));

  expect(inHand).toMatchObject({
    hosts: 1,
    shown: [
      {
        ...{ host: "www.a.example", crawler: "athens", urls: 2, openUrls: 1, urlsPerMinute: 1 },
        ...{ limit: "site-cap", delayMs: 10_000, backOffUntil: null },
      },
    ],
  });
  expect(verdict).toEqual({ limitedBy: "site-cap", hosts: 1, words: "limited by operators' caps on 1 host" });
  expect(report?.capDelayMs).toBe(10_000);
});

it("ends, where another one holds for some of its hosts still", async () => {
  const removed = await post("/api/fleet/site-caps/a.example/remove", {});
  const again = await post("/api/fleet/site-caps/a.example/remove", {});
  const { entries } = await createAuditLog(world.pool).list({ limit: 10 });

  expect([removed.statusCode, again.statusCode]).toEqual([200, 404]);
  expect(await Promise.all(["www.a.example", "later.a.example"].map(cap))).toEqual([2500, null]);
  expect(entries.map(({ action, target }) => [action, target])).toEqual([
    ["site-cap-removed", "a.example"],
    ["site-cap-set", "www.a.example"],
    ["site-cap-set", "a.example"],
  ]);
});

it("refuses what is no site and what is no time", async () => {
  const answers = await Promise.all(
    [
      { site: "no site", seconds: 1 },
      { site: "a.example", seconds: 0 },
      { site: "a.example", seconds: 3601 },
      { site: "a.example" },
    ].map(async (body) => (await post("/api/fleet/site-caps", body)).statusCode),
  );

  expect(answers).toEqual([422, 400, 400, 400]);
  expect(await createSiteCapStore(world.pool).list()).toHaveLength(1);
});

it("shows a form that was refused on the page that it was sent from, with what was typed", async () => {
  const anna = await signIn(world.database, "operator");
  const typed = { site: "b.example", seconds: "many", words: "by <phone>" };
  const sent = formBy(anna, "/fleet/site-caps", typed);
  const sentFrom = async (referer: string) =>
    await app.inject({ ...sent, headers: { ...sent.headers, host: "crawl.example", referer } });

  const page = await sentFrom("http://crawl.example/fleet/site-caps?x=1");
  const alone = await sentFrom("https://elsewhere.example/fleet/site-caps");

  expect([page.statusCode, alone.statusCode]).toEqual([400, 400]);
  for (const { body } of [page, alone]) {
    expect(body).toContain('role="alert">Seconds between requests to one host: ');
    expect(body).toContain('value="by &lt;phone&gt;"');
    expect(body.match(/<h1/g)).toHaveLength(1);
  }
  expect(page.body).toContain("<h1>Caps on sites</h1>");
  expect(page.body).toContain("<table");
  expect(page.body).toContain('<a href="/fleet/site-caps" aria-current="page"');
  expect(alone.body).not.toContain("<table");
});
