/** The coordinator's web server with everything it shows, listening. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { ConfigError } from "#core/errors";
import type { Log } from "#core/log";
import type { Database } from "#db/connect";
import { createPool } from "#db/server-database";
import { pinOf } from "#protocol/identity";
import { accessOver, anonymousMayRead } from "./access/start.ts";
import { notedOptOuts, noteOwnChanges } from "./access/system-audit-store.ts";
import type { CoordinatorConfig } from "./config.ts";
import { stateCoordinatorPlace } from "./crawlers/coordinator-place-store.ts";
import { createFleetOutside } from "./crawlers/public-list-reads.ts";
import { createAuditLog } from "./database/audit-log.ts";
import type { CoordinatorState } from "./delegation/state.ts";
import { frontierOrder } from "./frontier/order/strategies.ts";
import type { NameResolver } from "./frontier/ports.ts";
import { createWebServer } from "./http-server.ts";
import { following } from "./live-config.ts";
import { createComplaintStore } from "./opt-outs/complaint-store.ts";
import { createOptOutStore } from "./opt-outs/store.ts";
import type { Metrics } from "./overview/metrics.ts";
import type { LiveState } from "./overview/overview.ts";
import type { RegistryHost } from "./registry/facts.ts";
import { createReleaseKeyStore } from "./releases/key-store.ts";
import { createReleaseFileStore, createReleaseStore } from "./releases/release-store.ts";
import { dockFile } from "./releases/supervisor-file-store.ts";
import { publishedKeySet } from "./room-settings.ts";
import { webParts } from "./web-parts.ts";
import { createReports } from "./who/reads.ts";

export interface OpenWebOptions {
  readonly config: CoordinatorConfig;
  readonly database: Database;
  readonly resolver: NameResolver;
  readonly live: () => LiveState;
  readonly metrics: Metrics;
  readonly version: string;
  readonly log: Log;
  readonly registryHost: RegistryHost | null;
  readonly state: CoordinatorState;
}

/** What crawlers keep to unless their partner or a site asks for more (migrating-crawler/config). */
const defaultPolitenessSeconds = 1;
const readingConnections = 4;
const readingTimeoutMs = 5000;
/** How many ports after the one asked for are tried when it is taken. */
const portsTried = 20;

export async function openWebServer(options: OpenWebOptions): Promise<{ web: FastifyInstance; url: string }> {
  const { config, database, log } = options;
  const tls = readTls(config);
  // Pages have connections of their own, few and impatient, so that they never starve the flows.
  const pool = createPool(database.url, readingConnections, readingTimeoutMs);
  const access = accessOver(pool, anonymousMayRead(config));
  const web = createWebServer({
    access,
    audit: createAuditLog(pool),
    reads: createReports(pool, () => performance.now()),
    resolver: options.resolver,
    scope: following(() => config.scope),
    order: following(() => frontierOrder(config.frontier)),
    domainSets: config.domainSets,
    live: options.live,
    metrics: options.metrics,
    log,
    now: () => new Date(),
    contact: {
      optOuts: notedOptOuts(createOptOutStore(pool), noteOwnChanges({ pool, log, now: () => new Date() })),
      complaints: createComplaintStore(pool),
      fleet: createFleetOutside(pool),
    },
    parts: webParts({ ...options, pool, access }),
    releaseFiles: {
      files: createReleaseFileStore(pool),
      releases: createReleaseStore(pool),
      keys: createReleaseKeyStore(pool),
      dock: dockFile(),
      now: () => new Date(),
      // A proxy's one address stands for everybody's.
      ...(config.behindProxy ? { limits: { downloadsPerAddress: Number.POSITIVE_INFINITY } } : {}),
    },
    settings: {
      version: options.version,
      userAgent: config.userAgent,
      contact: config.contact,
      signRequests: config.signRequests && publishedKeySet(config) !== null,
      politenessSeconds: defaultPolitenessSeconds,
      tls,
      behindProxy: config.behindProxy,
      publicUrl: config.publicUrl,
    },
  });
  web.addHook("onClose", async () => await pool.end());
  try {
    await listen(web, config.listen);
    const url = urlOf(web, config);
    const certificatePin = tls === null ? null : pinOf(tls.cert);
    await stateCoordinatorPlace(
      database.pool,
      {
        webUrl: config.publicUrl ?? url,
        certificatePin,
        hasPublicUrl: config.publicUrl !== null,
        domainSets: config.domainSets,
      },
      new Date(),
    );
    return { web, url };
  } catch (error) {
    await web.close();
    throw error;
  }
}

function urlOf(web: FastifyInstance, config: CoordinatorConfig): string {
  const { port } = web.server.address() as AddressInfo;
  const host = config.listen.host.includes(":") ? `[${config.listen.host}]` : config.listen.host;
  return `${config.tls ? "https" : "http"}://${host}:${port}`;
}

async function listen(web: FastifyInstance, { host, port }: CoordinatorConfig["listen"]): Promise<void> {
  for (let tried = 0; ; tried += 1) {
    try {
      await web.listen({ host, port: port === 0 ? 0 : port + tried });
      return;
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!taken || tried >= portsTried || port + tried >= 65_535) {
        throw new ConfigError([`listen: ${host}:${port}: ${(error as Error).message}`]);
      }
    }
  }
}

function readTls(config: CoordinatorConfig): { cert: Buffer; key: Buffer } | null {
  if (config.tls === null) return null;
  const faults: string[] = [];
  const read = (name: string, file: string) => {
    try {
      return readFileSync(file);
    } catch (error) {
      faults.push(`tls.${name}: ${(error as Error).message}`);
      return Buffer.alloc(0);
    }
  };
  const tls = {
    cert: read("certificateFile", config.tls.certificateFile),
    key: read("keyFile", config.tls.keyFile),
  };
  if (faults.length > 0) throw new ConfigError(faults);
  return tls;
}
