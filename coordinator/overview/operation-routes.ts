/** For those who run the coordinator: whether it lives (/health), whether it can work (/ready), what it counts (/metrics). */
import { setTimeout as delay } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { type Access, refusalFor } from "../web/access.ts";
import { sendRefusal } from "../web/views.ts";
import type { Metrics } from "./metrics.ts";
import type { ReadinessReads } from "./operation-types.ts";

export interface OperationPorts {
  readonly reads: ReadinessReads;
  /** `treeGeneration`: of the tree in memory; null: it is empty. Left out where there is no tree (tests of pages). */
  readonly live: () => { readonly treeGeneration?: number | null };
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** However busy the coordinator is: one line from memory, and one look at the database for all that ask. */
const always = { config: { boundedElsewhere: true } } as const;

/** What a coordinator cannot work without. */
export interface MissingPart {
  readonly name: "database" | "writes" | "migrations" | "tree";
  readonly words: string;
}

export function addOperation(app: FastifyInstance, ports: OperationPorts): void {
  const { settings } = ports;
  app.get("/health", always, async () => ({ status: "ok", version: settings.version }));
  // Whoever asks while it is being looked gets the same answer.
  let looking: Promise<MissingPart[]> | null = null;
  app.get("/ready", always, async (_request, reply) => {
    looking ??= whatIsMissing(ports).finally(() => {
      looking = null;
    });
    const missing = await looking;
    if (missing.length === 0) return { ready: true };
    const reason = missing.map(({ words }) => words).join("; ");
    return reply.code(503).send({ ready: false, reason, missing });
  });
  app.get("/metrics", async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "metrics-read");
    if (refusal) return sendRefusal(request, reply, refusal, settings);
    reply.header("cache-control", "no-store");
    return reply.type(ports.metrics.registry.contentType).send(await ports.metrics.registry.metrics());
  });
}

/** Whoever asks waits no longer: a server whose disk hangs says nothing at all. */
const answerSeconds = 5;

async function whatIsMissing(ports: OperationPorts): Promise<MissingPart[]> {
  const answered = new AbortController();
  const late = delay(answerSeconds * 1000, [tooLate], { signal: answered.signal }).catch(() => [tooLate]);
  const missing = await Promise.race([lookWhatIsMissing(ports), late]);
  answered.abort();
  return missing;
}

/** Without the database nothing else can be told. A tree that is one import behind serves on, and counts as there. */
async function lookWhatIsMissing({ reads, live, log }: OperationPorts): Promise<MissingPart[]> {
  try {
    await reads.ping();
    const [pending, generation, writeFault] = await Promise.all([
      reads.pendingMigrations(),
      reads.currentGeneration(),
      reads.writeFault(),
    ]);
    const missing: MissingPart[] = [];
    if (writeFault !== null) missing.push({ name: "writes", words: writeFault });
    if (pending.length > 0) missing.push({ name: "migrations", words: migrationWords(pending) });
    if (generation !== null && live().treeGeneration === null) missing.push(noTree);
    return missing;
  } catch (error) {
    log.warn({ error }, "not ready: the database does not answer");
    return [{ name: "database", words: "the database does not answer" }];
  }
}

function migrationWords(pending: readonly string[]): string {
  return `the database lacks ${pending.length === 1 ? "a migration" : `${pending.length} migrations`} (${pending.slice(0, 5).join(", ")}): start the coordinator of this version`;
}

const tooLate: MissingPart = {
  name: "database",
  words: `the database does not answer within ${answerSeconds} s`,
};

const noTree: MissingPart = {
  name: "tree",
  words: "a registry is in force, and its tree is not in memory yet",
};
