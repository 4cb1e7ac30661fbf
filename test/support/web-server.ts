/** The coordinator's web server over a seeded database, with a handmade memory. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { WebPart } from "#coordinator/ask/add-operations";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { createFleetOutside } from "#coordinator/place/crawlers/public-list-reads";
import { accessOver } from "#coordinator/run/access/start";
import { createComplaintStore } from "#coordinator/run/opt-outs/complaint-store";
import type { PublishedSettings } from "#coordinator/run/opt-outs/published";
import { type ContactPorts, contactPages } from "#coordinator/run/opt-outs/start";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { addReleaseFiles, type ReleaseFilePorts } from "#coordinator/run/releases/download-routes";
import {
  createReleaseFileStore,
  createReleaseKeyStore,
  createReleaseStore,
} from "#coordinator/run/releases/release-store";
import { createWebServer, type WebPorts } from "#coordinator/start-web";
import { fleetPart } from "#coordinator/tell/fleet/start";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import type { LiveState } from "#coordinator/tell/overview/overview-ask";
import {
  createOverviewReads,
  type OverviewReads,
  readinessReads,
} from "#coordinator/tell/overview/overview-reads";
import { OwnHealth } from "#coordinator/tell/overview/own-health";
import { overviewPages } from "#coordinator/tell/overview/routes";
import { searchPart } from "#coordinator/tell/search/start";
import { whoPart } from "#coordinator/tell/who/start";
import { type Access, viewerOf } from "#coordinator/web/access";
import { silentLog } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import type { Database } from "#db/server-database";
import { softwareVersion } from "#protocol/software-version";
import { engineOver } from "./search-engine.ts";
import { worldNow } from "./seed-world.ts";

export const liveState: LiveState = {
  startedAt: new Date("2026-03-01T11:00:00.000Z"),
  phase: "crawling",
  sessions: 2,
  roundsUnderWay: 1,
  probesUnderWay: 3,
};

/** Resolves one host that the frontier lacks: new.example.org, in berlin's range. */
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

export const webSettings: WebSettings = {
  version: softwareVersion,
  tls: null,
  userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
  contact: "crawl@example.org",
  politenessSeconds: 1,
};

/** Everybody may read, tokens have their scopes, and `signIn` (signed-in.ts) makes sessions. */
export function testAccess(
  { pool }: Database,
  now: () => Date,
  anonymousMayRead: boolean | "on-this-machine" = true,
): Access {
  return accessOver(pool, anonymousMayRead, now);
}

type WebSettings = WebPorts["settings"] & PublishedSettings;

interface Changes extends Partial<Omit<WebPorts, "reads" | "settings">> {
  readonly settings?: WebSettings;
  readonly releaseFiles?: Omit<ReleaseFilePorts, "version">;
  readonly reads?: Partial<WebPorts["reads"] & OverviewReads>;
}

/** Adds operators' parts, also when a test passes its own `parts`. */
export function webServer(database: Database, changed: Changes = {}): FastifyInstance {
  const { pool } = database;
  const clock = { now: () => new Date(), nowMs: () => performance.now() };
  const watch = new DatabaseWatch(database.url, clock);
  const { now = () => worldNow, live = () => liveState, log = silentLog } = changed;
  const { health = new OwnHealth({ database: watch, ...clock }) } = changed;
  const reads = {
    ...createOverviewReads(pool, clock.nowMs),
    ...readinessReads(watch.pool),
    ...changed.reads,
  };
  const firstLook: WebPart = (to) => {
    if (to.app.hasRoute({ method: "GET", url: "/who" })) return;
    overviewPages({ reads, live, health, log, now, version: softwareVersion })(to);
    whoPart({ pool, resolver: tinyResolver, config: readCoordinatorConfig({}) })(to);
    searchPart({ pool, searchEngine: engineOver(pool) })(to);
  };
  const { access = testAccess(database, now), settings = webSettings } = changed;
  const outside: WebPart = (to) => {
    if (to.app.hasRoute({ method: "GET", url: "/about-crawler" })) return;
    const seen = {
      settings,
      now,
      log,
      viewerOf: async (request: FastifyRequest) => await viewerOf(access, request),
    };
    contactPages(contactPorts(database), seen)(to);
    const { version } = settings;
    const stores = {
      files: createReleaseFileStore(pool),
      releases: createReleaseStore(pool),
      keys: createReleaseKeyStore(pool),
      program: async () => null,
      now: () => worldNow,
    };
    addReleaseFiles(to.app, { ...stores, ...changed.releaseFiles, version });
  };
  const { parts = [fleetPart({ pool, past: createChartReads(pool), succession: async () => [] }, now)] } =
    changed;
  const server = createWebServer({
    ...{ health, live, log, now, metrics: createMetrics() },
    audit: createAuditLog(pool),
    ...changed,
    ...{ access, settings, reads, parts: [...parts, firstLook, outside] },
  });
  server.addHook("onClose", async () => await watch.close());
  return server;
}

/** A page's content without the common frame. */
export const mainOf = (page: string) => page.slice(page.indexOf("<main"), page.indexOf("</main>"));

/** All routes of a server that is ready. */
export function routesOf(
  app: FastifyInstance,
): { readonly path: string; readonly methods: readonly string[] }[] {
  // A tree, as find-my-way prints it: four columns for each step in.
  const steps: string[] = [];
  const printed = app.printRoutes({ commonPrefix: false });
  return printed.split("\n").flatMap((line) => {
    const [, indent = "", part = "", methods = ""] = /^(.*?)[├└]── (\S+)(?: \((.*)\))?$/.exec(line) ?? [];
    if (part === "") return [];
    steps.splice(indent.length / 4, Number.POSITIVE_INFINITY, part);
    return methods === "" ? [] : [{ path: steps.join(""), methods: methods.split(", ") }];
  });
}
