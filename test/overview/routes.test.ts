/** The overview over HTTP: JSON, CSV, readiness, metrics, and the size of the page. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import { readinessReads } from "#coordinator/tell/overview/overview-reads";
import { observeOperation } from "#coordinator/tell/overview/start";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { liveState, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedOperation(database.pool);
  app = webServer(database);
});
afterAll(async () => await app?.close());

const reads = () => everyRead(database.pool, () => performance.now());

describe("figures", () => {
  it("are those of the seeded world", async () => {
    const overview = (await app.inject("/api/overview")).json();

    expect(overview.lastHour).toMatchObject({
      fetches: 36_800,
      failures: { target: 108, network: 54, us: 0 },
    });
    expect(overview.accuracy).toMatchObject({ samples: 20, nearlyBest: 19, share: 0.95 });
    expect(overview.queue).toMatchObject({ hosts: 4, oldestSeconds: 60 });
    // Five minutes that nobody wrote, and the current one.
    expect(overview.history.charts[0].series[0].values.filter((one: unknown) => one === null)).toHaveLength(
      6,
    );
    // The speed of this machine does not matter here.
    expect(overview.alerts.filter(({ name }: { name: string }) => name !== "database-slow")).toEqual([]);
  });

  it("are refused for unknown questions, with the known ones", async () => {
    const reason = await app.inject("/api/fleet/queue?reason=constructor");

    expect([reason.statusCode, reason.json().error.message]).toEqual([
      400,
      expect.stringContaining("must be one of no-address, no-delegation, no-ipv6, crawler-offline"),
    ]);
  });

  it("come as CSV, too", async () => {
    const queue = await app.inject("/fleet/queue?format=csv");
    const accuracy = await app.inject("/accuracy?only=far&format=csv");

    expect(queue.headers["content-type"]).toBe("text/csv; charset=utf-8");
    expect(queue.body.split("\r\n")).toHaveLength(6);
    expect(accuracy.body.split("\r\n")[1]).toMatch(
      /^2026-03-01T04:50:00.000Z,1.2.0.0\/16,.*athens,53,tokyo,13,40,3,2$/,
    );
  });

  it("are summed up in the tab's title by the number of alerts", async () => {
    const later = webServer(database, { now: () => new Date(worldNow.getTime() + 86_400_000) });

    const page = await later.inject("/");
    const alerts = (await later.inject("/api/alerts")).json().alerts as { name: string }[];
    await later.close();

    expect(alerts.map(({ name }) => name)).toEqual([
      "coordinator-silent",
      "crawler-offline",
      "subnets-wait",
      "queue-age",
    ]);
    expect(page.body).toContain("<title>(4) Overview · Nearcrawl</title>");
  });
});

describe("readiness", () => {
  const readyWith = async (changed: Parameters<typeof webServer>[1]) => {
    const server = webServer(database, changed);
    const answer = await server.inject("/ready");
    await server.close();
    return [answer.statusCode, answer.json()] as const;
  };

  it("names missing migrations and a missing tree", async () => {
    const old = { pendingMigrations: async () => ["0099-later"] };
    const noTree = () => ({ ...liveState, treeGeneration: null });

    const [status, { ready, reason, faults }] = await readyWith({ reads: old, live: noTree });
    expect([status, ready, faults.map(({ code }: { code: string }) => code)]).toEqual([
      503,
      false,
      ["migrations-missing", "tree-missing"],
    ]);
    expect(reason).toContain("lacks a migration (0099-later)");
  });

  it("is given with a migrated database and its tree in memory", async () => {
    expect(await readinessReads(database.pool).pendingMigrations()).toEqual([]);
    expect(await readyWith({ live: () => ({ ...liveState, treeGeneration: 1 }) })).toEqual([
      200,
      { ready: true, faults: [] },
    ]);
  });
});

it("the gauges agree with the pages", async () => {
  const metrics = createMetrics();
  await database.pool.query("update frontier_host set left_out_urls = 1240 where host = 'www.example.org'");
  const queue = await app.inject("/fleet/queue");

  await observeOperation({ reads: reads(), metrics, now: () => worldNow });
  const text = await metrics.registry.metrics();

  for (const line of [
    'nearcrawl_queue_hosts{reason="no-delegation"} 2',
    'nearcrawl_queue_hosts{reason="budget"} 0',
    'nearcrawl_queue_age_seconds{stat="oldest"} 60',
    "nearcrawl_link_outbox_links 0",
    "nearcrawl_link_outbox_age_seconds 0",
    'nearcrawl_alerts{name="crawler-offline",severity="warning"} 0',
    "nearcrawl_accuracy_ratio 0.95",
    "nearcrawl_accuracy_samples 20",
    'nearcrawl_crawler_up{crawler="berlin"} 0',
    'nearcrawl_crawler_subnets{crawler="athens"} 1',
    'nearcrawl_crawlers{state="online"} 2',
    `nearcrawl_figures_written_timestamp_seconds ${Date.parse("2026-03-01T11:59:00Z") / 1000}`,
    "nearcrawl_frontier_left_out_urls 1240",
    "nearcrawl_frontier_bound_hosts 1",
    "nearcrawl_database_round_trip_seconds_count 1",
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  expect(queue.body).toContain("URLs of theirs were skipped 1,240 times");
});

it("the first page stays under 60 KB with two hundred crawlers, those that need attention first", async () => {
  await database.pool.query(
    `insert into crawler (name, place, country, latitude, longitude, state, connected_at, last_seen_at, heartbeat)
     select 'partner-crawler-' || n, 'Some Place ' || n, 'DE', 80 - n * 0.6, n * 1.7 - 170,
       case when n % 40 = 0 then 'offline' else 'online' end, $1, $1, '{"holdingBack": []}'
     from generate_series(1, 200) n`,
    [worldNow],
  );

  const page = await app.inject("/");
  const assets = [...page.body.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((match) => match[1]!);
  const onTheWire = { "accept-encoding": "br" };
  const loaded = await Promise.all(["/", ...assets].map((url) => app.inject({ url, headers: onTheWire })));
  const bytes = loaded.reduce((sum, { rawPayload }) => sum + rawPayload.length, 0);

  expect(bytes).toBeLessThan(60_000);
  expect(page.body.match(/<circle class="at /g)).toHaveLength(203);
  expect(page.body).toContain(">and 178 more</a>");
  expect(page.body.indexOf(">partner-crawler-40</a>")).toBeLessThan(page.body.indexOf(">athens</a></th>"));
});
