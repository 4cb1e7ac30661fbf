/** For those who run the coordinator: whether it lives (/health), whether it can work (/ready), what it counts (/metrics). */
import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { within } from "#core/timer-ms";
import { sendRefusal } from "../../ask/views.ts";
import { type Access, refusalFor } from "../../web/access.ts";
import type { Metrics } from "./metrics.ts";
import type { ReadinessReads } from "./overview-reads.ts";
import type { HealthFault, OwnHealth } from "./own-health.ts";

interface OperationPorts {
  readonly reads: ReadinessReads;
  readonly health: Pick<OwnHealth, "look">;
  /** `treeGeneration`: of the tree in memory; null: it is empty. Left out where there is no tree (tests of pages). */
  readonly live: () => { readonly treeGeneration?: number | null } | null;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** However busy the coordinator is: one line from memory, and one look at the database for all that ask. */
const always = { config: { boundedElsewhere: true } } as const;

export function addOperation(app: FastifyInstance, ports: OperationPorts): void {
  const { settings } = ports;
  app.get("/health", always, async () => ({ status: "ok", version: settings.version }));
  // Whoever asks while it is being looked gets the same answer.
  let looking: Promise<HealthFault[]> | null = null;
  app.get("/ready", always, async (_request, reply) => {
    looking ??= faultsNow(ports).finally(() => {
      looking = null;
    });
    const faults = await looking;
    const inTheWay = faults.filter(({ isInTheWay }) => isInTheWay);
    const told = faults.map(({ since, ...fault }) => ({ ...fault, since: since?.toISOString() ?? null }));
    reply.header("cache-control", "no-store");
    if (inTheWay.length === 0) return { ready: true, faults: told };
    const reason = inTheWay.map(({ words }) => words).join("; ");
    return reply.code(503).send({ ready: false, reason, faults: told });
  });
  app.get("/metrics", async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "metrics-read");
    if (refusal) return sendRefusal(request, reply, refusal, settings);
    reply.header("cache-control", "no-store");
    return reply.type(ports.metrics.registry.contentType).send(await ports.metrics.registry.metrics());
  });
}

/** As long as the look at the database takes at most: whoever asks waits no longer than that. */
const factsMs = 1000;

/** Where the database does not say whether it has all migrations, it is not known to lack any. */
async function faultsNow(ports: OperationPorts): Promise<HealthFault[]> {
  const [faults, missing] = await Promise.all([
    ports.health.look(),
    within(
      factsMs,
      missingParts(ports).catch((error: unknown) => {
        ports.log.warn({ error }, "what readiness asks the database was not answered");
        return null;
      }),
    ),
  ]);
  return [...(missing ?? []), ...faults];
}

/** A tree that is one import behind serves on, and counts as there. */
async function missingParts({ reads, live }: OperationPorts): Promise<HealthFault[]> {
  const [pending, generation] = await Promise.all([reads.pendingMigrations(), reads.currentGeneration()]);
  const missing: HealthFault[] = [];
  if (pending.length > 0)
    missing.push({
      ...{ code: "migrations-missing", words: migrationWords(pending), since: null, isInTheWay: true },
    });
  if (generation !== null && live()?.treeGeneration === null) missing.push(noTree);
  return missing;
}

function migrationWords(pending: readonly string[]): string {
  return (
    `the database lacks ${pending.length === 1 ? "a migration" : `${pending.length} migrations`} ` +
    `(${pending.slice(0, 5).join(", ")}): start the coordinator of this version`
  );
}

const noTree: HealthFault = {
  code: "tree-missing",
  words: "a registry is in force, and its tree is not in memory yet",
  since: null,
  isInTheWay: true,
};
