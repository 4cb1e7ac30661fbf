/**
 * Answers one request for a page or operation in a command's own process, with the coordinator's router but only the
 * database. What otherwise only a coordinator's memory holds is read from the database, too.
 */
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import type { AuditLog } from "#core/audit";
import { type Log, silentLog } from "#core/log";
import { createNameResolver } from "#core/name-resolver";
import type { Database } from "#db/server-database";
import { softwareVersion } from "#protocol/software-version";
import { type CoordinatorConfig, readCoordinatorConfig } from "./config.ts";
import { DatabaseWatch } from "./database/database-watch.ts";
import { readState } from "./load-state.ts";
import { readCoordinatorPlace } from "./place/crawlers/coordinator-place-store.ts";
import { coordinatorRuns } from "./place/crawlers/coordinator-presence-store.ts";
import { CoordinatorState } from "./place/delegation/state.ts";
import { pagesOfRooms } from "./room-pages.ts";
import { knownPolicies } from "./run/settings/change.ts";
import { createPolicyStore } from "./run/settings/settings-store.ts";
import { createWebServer } from "./start-web.ts";
import { createMetrics } from "./tell/overview/metrics.ts";
import { readinessReads } from "./tell/overview/overview-reads.ts";
import { OwnHealth } from "./tell/overview/own-health.ts";
import { EngineOnDemand } from "./tell/search/engine/engine-on-demand.ts";
import { openAccess, ownerAccess } from "./web/access.ts";

interface InProcessOptions {
  readonly database: Database;
  /** The coordinator's settings; null means the defaults. */
  readonly config: CoordinatorConfig | null;
  /** DNS servers; an empty list means the system's. */
  readonly resolvers: readonly string[];
  readonly audit: (pool: Pool) => Pick<AuditLog, "record">;
  /** Reports the cause of a 500, because a command has no log. */
  readonly onFault: (error: unknown) => void;
  readonly room: string;
  /** The folder with the index of a coordinator that does not run, or null. */
  readonly searchFolder: string | null;
  /** For OpenSearch, where the settings name one. */
  readonly searchAuthorization: () => string | null;
}

export async function openInProcess(options: InProcessOptions): Promise<FastifyInstance> {
  const { database, resolvers, audit, onFault, room } = options;
  const { pool } = database;
  const [place, stored] = [await readCoordinatorPlace(pool), await createPolicyStore(pool).read()];
  const config: CoordinatorConfig = {
    ...(options.config ?? readCoordinatorConfig({})),
    ...knownPolicies(stored).settings,
    domainSets: place?.domainSets ?? [],
    resolvers: [...resolvers],
  };
  const clock = { now: () => new Date(), nowMs: () => performance.now() };
  const log: Log = {
    ...silentLog,
    error: (fields) => onFault((fields as { readonly error?: unknown }).error),
  };
  const watch = new DatabaseWatch(database.url, clock);
  const access = ownerAccess(openAccess, true);
  const shared = {
    ...{ config, log, version: softwareVersion, live: () => null, metrics: createMetrics() },
    ...{ now: clock.now, health: new OwnHealth({ database: watch, ...clock }) },
  };
  // The engine is loaded only when a command searches, because most do not.
  const searchEngine = new EngineOnDemand(async () => {
    const { openCommandEngine } = await import("./tell/search/command-engine-store.ts");
    const { searchFolder: folder, searchAuthorization } = options;
    const ports = { folder, authorization: searchAuthorization(), log };
    return await openCommandEngine(database, config.search, ports);
  });
  const rooms = {
    ...{ ...shared, searchEngine, database, access, pool },
    ...{ patientPool: pool, registryHost: null },
    // Loading the tree takes half a minute for ten million subnets.
    state: room === "explore" ? await readState({ pool }) : new CoordinatorState(),
    succession: async () => [],
    resolver: createNameResolver({ servers: resolvers }),
    runs: async () => await coordinatorRuns(pool),
  };
  const app = createWebServer({
    ...shared,
    ...{ access, audit: audit(pool) },
    reads: readinessReads(watch.pool),
    parts: await pagesOfRooms(rooms, room),
    settings: { version: softwareVersion, tls: null, publicUrl: config.publicUrl },
  });
  app.addHook("onClose", async () => void (await Promise.all([watch.close(), searchEngine.close()])));
  return app;
}
