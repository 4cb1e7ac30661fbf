/** The coordinator's web server over a seeded database, with a coordinator's memory made by hand. */
import type { FastifyInstance } from "fastify";
import type { NameResolver } from "#coordinator/flows/ports";
import type { LiveState } from "#coordinator/flows/show-overview";
import { silentLog } from "#coordinator/log";
import { createWebServer, type WebPorts } from "#coordinator/net/http-server";
import { createMetrics } from "#coordinator/net/metrics";
import { createReports } from "#coordinator/postgres/reports/reports";
import type { Database } from "#db/connect";
import { worldNow } from "./seed-world.ts";

export const liveState: LiveState = {
  startedAt: new Date("2026-03-01T11:00:00.000Z"),
  phase: "crawling",
  sessions: 2,
  roundsUnderWay: 1,
  probesUnderWay: 3,
  totals: { fetches: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0, rounds: 0, probes: 0 },
};

/** Knows one host that the frontier does not: new.example.org, in the range that berlin has. */
export const tinyResolver: NameResolver = {
  async resolve(host) {
    if (host === "new.example.org") return { addresses: ["1.2.9.7"], ttlSeconds: 60 };
    if (host === "private.example.org") return { addresses: ["10.1.2.3"], ttlSeconds: 60 };
    return { failed: "the name does not exist" };
  },
};

export function webServer(database: Database, changed: Partial<WebPorts> = {}): FastifyInstance {
  return createWebServer({
    reads: createReports(database.pool, () => performance.now()),
    resolver: tinyResolver,
    scope: { pagesPerHost: 100, maxDepth: 8, admitNewHosts: false },
    live: () => liveState,
    metrics: createMetrics(),
    log: silentLog,
    now: () => worldNow,
    settings: {
      version: "0.1.0",
      tls: null,
      userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
      contact: "crawl@example.org",
      politenessSeconds: 1,
    },
    ...changed,
  });
}
