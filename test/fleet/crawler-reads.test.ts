/** What the fleet's pages read of crawlers: absences, budgets, drainings, the log, failures. */
import { beforeEach, describe, expect, it } from "vitest";
import { trustList } from "#coordinator/crawl/trust/reads";
import { grantBudget } from "#coordinator/place/crawlers/control-store";
import { absencesOf, mostAbsences } from "#coordinator/place/crawlers/crawler-store";
import { failureShares, latestFailures } from "#coordinator/tell/fleet/failure-reads";
import { crawlerLog, fleetEntry } from "#coordinator/tell/fleet/fleet-reads";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import type { CrawlerId } from "#core/ids";
import { type CrawlerHello, crawlerHello } from "#protocol/messages";
import { forThisFile } from "../support/for-this-file.ts";
import { newWorld, noon, secondsAfterNoon, spoolId } from "../support/store-world.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newWorld());
beforeEach(async () => {
  await world.reset();
  await world.rows("delete from audit_entry");
});

const helloOf = (more: Partial<CrawlerHello> = {}): CrawlerHello =>
  crawlerHello.parse({
    ...{ type: "crawler:hello", protocolVersions: [1], name: "north", key: "k".repeat(32) },
    ...{ softwareVersion: "0.1.0", spoolId, heldLeases: null, publicAddress: null, place: null },
    capabilities: { probeMethods: ["connect"], ipv6: false },
    limits: { pagesPerDay: 5000, bytesPerDay: 6_000_000_000, concurrentHosts: 7 },
    ...more,
  });
const arrive = async (crawlerId: CrawlerId, seconds: number, more: Partial<CrawlerHello> = {}) =>
  await world.crawlers.arrive({
    ...{ crawlerId, hello: helloOf(more), address: null, subnetId: null },
    now: secondsAfterNoon(seconds),
  });
const leave = async (crawlerId: CrawlerId, seconds: number, reason: string) =>
  await world.crawlers.leave({ crawlerId, reason, now: secondsAfterNoon(seconds) });

describe("absences", () => {
  it("are written when the crawler returns, with its last words if its process ended", async () => {
    const north = await world.crawler("north");
    await arrive(north, 0);
    await leave(north, 10, "three heartbeats did not come");
    const whileAway = await absencesOf(world.pool, "north");
    await arrive(north, 70);
    await leave(north, 80, "its link broke");
    const lastEnd = { at: secondsAfterNoon(79).toISOString(), reason: "it was ended by SIGKILL" };
    await arrive(north, 90, { lastEnd });

    expect(whileAway).toEqual([]);
    expect(await absencesOf(world.pool, "north")).toEqual([
      {
        ...{ since: secondsAfterNoon(80), until: secondsAfterNoon(90) },
        ...{ reason: "its link broke", lastWords: "it was ended by SIGKILL" },
      },
      {
        ...{ since: secondsAfterNoon(10), until: secondsAfterNoon(70) },
        ...{ reason: "three heartbeats did not come", lastWords: null },
      },
    ]);
  });

  it("are kept up to a hundred", async () => {
    const north = await world.crawler("north");
    await world.pool.query(
      `insert into crawler_absence (crawler_id, away_since, back_at, reason)
       select $1, $2::timestamptz - n * interval '1 day', $2, 'absence ' || n from generate_series(130, 1, -1) n`,
      [north, noon],
    );
    await leave(north, 10, "the last one");
    await arrive(north, 20);
    await world.pool.query("update crawler set last_end_at = $1, last_words = 'out of memory'", [noon]);
    const { identity } = (await fleetEntry(world.pool, "north", noon))!;

    expect(identity.lastAway).toEqual({ since: secondsAfterNoon(10), reason: "the last one" });
    expect(identity.lastEnd).toEqual({ at: noon, reason: "out of memory" });
    expect(identity.signingKey).toBeNull();
    const kept = await absencesOf(world.pool, "north");

    expect(kept).toHaveLength(mostAbsences);
    expect([kept[0]?.reason, kept.at(-1)?.reason]).toEqual(["the last one", "absence 99"]);
  });
});

describe("a budget", () => {
  const inForce = async () => {
    const entry = await fleetEntry(world.pool, "north", noon);
    return [entry?.pagesPerDay, entry?.bytesPerDay];
  };

  it("takes effect at once below what the partner allows, and notifies running coordinators", async () => {
    await arrive(await world.crawler("north"), 0);
    let told = 0;
    const notices = await world.crawlers.onChange(() => {
      told += 1;
    });

    const changed = await grantBudget(world.pool, "north", { pagesPerDay: 300 });

    await until(() => told > 0, 5000);
    await notices.stop();
    expect(changed).toEqual({
      before: { pagesPerDay: null, bytesPerDay: null },
      granted: { pagesPerDay: 300, bytesPerDay: null },
      inForce: { pagesPerDay: 300, bytesPerDay: 6_000_000_000 },
    });
    expect(await inForce()).toEqual([300, 6_000_000_000]);
  });

  it("that is raised or removed gives no more than the partner allows", async () => {
    const north = await world.crawler("north");
    await arrive(north, 0);
    await grantBudget(world.pool, "north", { pagesPerDay: 300, bytesPerDay: 1000 });

    await grantBudget(world.pool, "north", { pagesPerDay: 80_000 });
    const raised = await inForce();
    await grantBudget(world.pool, "north", { pagesPerDay: null, bytesPerDay: null });
    const free = await inForce();
    await arrive(north, 10);

    expect([raised, free, await inForce()]).toEqual([
      [5000, 1000],
      [5000, 6_000_000_000],
      [5000, 6_000_000_000],
    ]);
  });

  it("can be granted before the first connection, but not to an unknown crawler", async () => {
    await world.crawler("north");

    await grantBudget(world.pool, "north", { pagesPerDay: 300 });
    await grantBudget(world.pool, "north", { pagesPerDay: 700 });

    expect((await inForce())[0]).toBe(700);
    expect(await grantBudget(world.pool, "nobody", { pagesPerDay: 1 })).toBeNull();
  });
});

describe("draining by a partner", () => {
  const draining = async () => (await fleetEntry(world.pool, "north", noon))?.draining?.askedBy ?? null;

  it("can be resumed by the partner", async () => {
    await arrive(await world.crawler("north"), 0);

    await world.crawlers.drain("north", noon, "partner");
    const drained = await draining();

    expect(drained).toBe("partner");
    expect(await world.crawlers.resume("north", noon, "partner")).toBe(true);
    expect(await draining()).toBeNull();
  });

  it("cannot be resumed when an operator drained it or it is distrusted", async () => {
    const north = await world.crawler("north");
    await arrive(north, 0);
    await world.crawlers.drain("north", noon);
    await world.crawlers.drain("north", noon, "partner");
    const asOperator = [await world.crawlers.resume("north", noon, "partner"), await draining()];
    await world.crawlers.resume("north", noon);
    await world.crawlers.drain("north", noon, "partner");
    await world.pool.query(
      "insert into crawler_trust (crawler_id, distrusted_at, distrust_words) values ($1, $2, 'it stood alone')",
      [north, noon],
    );

    expect(asOperator).toEqual([false, "operator"]);
    expect(await world.crawlers.resume("north", noon, "partner")).toBe(false);
    expect(await trustList(world.pool)).toMatchObject([
      { crawler: "north", standing: "distrusted", words: "it stood alone" },
    ]);
  });
});

it("the log of a crawler has all its events and no other's, latest first, in pages", async () => {
  const [north, south] = [await world.crawler("north"), await world.crawler("south")];
  await arrive(north, 0);
  await leave(north, 10, "its link broke");
  await arrive(north, 20);
  const incident = { kind: "flood", words: "too many messages", remoteAddress: "192.0.2.7", count: 3 };
  await createIncidentStore(world.pool).record({ ...incident, crawlerId: north, at: secondsAfterNoon(30) });
  await createIncidentStore(world.pool).record({ ...incident, crawlerId: south, at: secondsAfterNoon(31) });
  await world.pool.query(
    `insert into audit_entry (at, actor, via, action, target, words)
     select $1::timestamptz + n * interval '1 minute', 'anna', 'page', 'crawler-drained', 'north', 'drained ' || n
     from generate_series(1, 60) n`,
    [noon],
  );
  await world.rows("update crawler_key set created_at = '2029-01-01'");

  const [first, second] = [
    await crawlerLog(world.pool, "north", 1),
    await crawlerLog(world.pool, "north", 2),
  ];

  expect([first.lines.length, first.more, second.more]).toEqual([50, true, false]);
  expect(first.lines[0]).toEqual({
    ...{ at: secondsAfterNoon(3600), kind: "change", words: "drained 60", by: "anna" },
  });
  expect(second.lines.slice(10).map(({ kind, words }) => `${kind}: ${words}`)).toEqual([
    "incident: flood (3 times): too many messages",
    "connected: connected again",
    "away: its link broke",
    expect.stringMatching(/^key: was issued key \d+$/),
  ]);
});

it("failed fetches are listed with their reason, and counted by cause and crawler", async () => {
  const north = await world.delegatedHost("north", "http://a.example/1", "http://a.example/2");
  await world.rows(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, total_ms, wire_bytes, body_bytes, shipped_bytes)
     select u.host_hash, u.url_hash, ${north}, timestamptz '2030-01-01T11:59:00Z', 'failed', 'network', 10, 0, 0, 100
     from frontier_url u where u.url like '%1'
     union all
     select u.host_hash, u.url_hash, ${north}, '2030-01-01T11:58:00Z', 'fetched', null, 10, 0, 0, 100
     from frontier_url u where u.url like '%2'`,
  );
  await world.rows(
    `update frontier_url set last_fetched_at = '2030-01-01T11:59:00Z', last_reason = 'reset: it hung up'
     where url like '%1'`,
  );

  const since = new Date("2030-01-01T11:00:00Z");
  const latest = await latestFailures(world.pool, { since, blame: "network", crawler: "north", most: 10 });
  const [none, ofHost] = await Promise.all([
    latestFailures(world.pool, { since, blame: "us", most: 10 }),
    latestFailures(world.pool, { since, host: "a.example", most: 10 }),
  ]);

  expect(latest).toMatchObject([
    { url: "http://a.example/1", crawler: "north", blame: "network", words: "reset: it hung up" },
  ]);
  expect([none.length, ofHost.length]).toEqual([0, 1]);
  expect(await failureShares(world.pool, since)).toMatchObject({
    fetches: 2,
    failures: { target: 0, network: 1, crawler: 0, us: 0 },
    byCrawler: [{ crawler: "north", fetches: 2, failures: { network: 1 } }],
  });
});
