/** The coordinator's web server over a seeded database, with a coordinator's memory made by hand. */
import type { FastifyInstance } from "fastify";
import { accessOver } from "#coordinator/access-parts";
import { fleetPart } from "#coordinator/fleet-part";
import type { NameResolver } from "#coordinator/flows/ports";
import type { LiveState } from "#coordinator/flows/show-overview";
import { silentLog } from "#coordinator/log";
import type { Access } from "#coordinator/net/access";
import type { ContactPorts } from "#coordinator/net/contact-routes";
import { createWebServer, type WebPorts } from "#coordinator/net/http-server";
import { createMetrics } from "#coordinator/net/metrics";
import { createAuditLog } from "#coordinator/postgres/audit-log";
import { createComplaintStore } from "#coordinator/postgres/complaint-store";
import { createFleetOutside } from "#coordinator/postgres/fleet-outside";
import { createOptOutStore } from "#coordinator/postgres/opt-out-store";
import { createReleaseFileStore } from "#coordinator/postgres/release-file-store";
import { createReleaseKeyStore } from "#coordinator/postgres/release-key-store";
import { createReleaseStore } from "#coordinator/postgres/release-store";
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

export function contactPorts({ pool }: Database): ContactPorts {
  return {
    optOuts: createOptOutStore(pool),
    complaints: createComplaintStore(pool),
    fleet: createFleetOutside(pool),
  };
}

export const webSettings: WebPorts["settings"] = {
  version: "0.1.0",
  tls: null,
  userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
  contact: "crawl@example.org",
  politenessSeconds: 1,
};

/** Everybody may read, tokens are good for their scopes, and `signIn` (signed-in.ts) gives sessions. */
export function testAccess(
  { pool }: Database,
  now: () => Date,
  anonymousMayRead: boolean | "on-this-machine" = true,
): Access {
  return accessOver(pool, anonymousMayRead, now);
}

export function webServer(database: Database, changed: Partial<WebPorts> = {}): FastifyInstance {
  return createWebServer({
    reads: createReports(database.pool, () => performance.now()),
    resolver: tinyResolver,
    scope: { pagesPerHost: 100, maxDepth: 8, admitNewHosts: false },
    order: { name: "anansi", newShare: 0.9 },
    live: () => liveState,
    metrics: createMetrics(),
    log: silentLog,
    now: () => worldNow,
    releaseFiles: {
      files: createReleaseFileStore(database.pool),
      releases: createReleaseStore(database.pool),
      keys: createReleaseKeyStore(database.pool),
      dock: async () => null,
      now: () => worldNow,
    },
    parts: [fleetPart(database.pool, changed.now ?? (() => worldNow))],
    settings: webSettings,
    access: testAccess(database, changed.now ?? (() => worldNow)),
    audit: createAuditLog(database.pool),
    contact: contactPorts(database),
    ...changed,
  });
}
