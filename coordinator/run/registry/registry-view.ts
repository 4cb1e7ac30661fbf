/** Collects what /registry shows: the tree in force, the effect of a rollback, the cache, the jobs. */
import { z } from "zod";
import { type Actor, mayDo } from "#core/actor";
import type { AuditLog } from "#core/audit";
import { NearcrawlError } from "#core/errors";
import { isPublishedFormat } from "#rir-import/formats/published";
import type { ImportPlan } from "#rir-import/plan";
import type { SubnetsInUse } from "#rir-import/read/status-api";
import { lossText, shrunkRegistries } from "#rir-import/shrinkage";
import type { GenerationStatus, RegistryOverview } from "#rir-import/status";
import type { ToldOf } from "../../web/api-operation.ts";
import type { RegistryJob, RegistryJobStore, RegistryJobWithResult } from "./job-store.ts";
import type { FilesPlace, RegistryCommands, RegistryJobs } from "./jobs.ts";
import type { registryJob, registryOverview, registryPlan } from "./registry-api.ts";

export interface RegistryPorts {
  readonly overview: (now: Date) => Promise<RegistryOverview>;
  /** Counts the subnets in use that rolling back the generation in force would remove. */
  readonly inUseOfRollback: () => Promise<SubnetsInUse>;
  /** The same count for a page; null if it would take too long. */
  readonly inUseSoon: () => Promise<SubnetsInUse | null>;
  readonly store: Pick<RegistryJobStore, "list" | "find" | "askCancel">;
  /** Null if jobs cannot be started here. */
  readonly runner: {
    readonly jobs: Pick<RegistryJobs, "start" | "stop">;
    readonly host: RegistryHost;
  } | null;
  readonly audit: Pick<AuditLog, "list">;
  /** If a plan takes a larger share from a registry, it must be confirmed. */
  readonly shrinkageWarningShare: number;
}

const quarterDays = 92;
const dayMs = 86_400_000;
const jobsShown = 8;
const auditLooked = 100;

export async function registryValue(ports: RegistryPorts, actor: Actor, now: Date): Promise<RegistryValue> {
  const { history, ...overview } = await ports.overview(now);
  const jobs = (await ports.store.list(jobsShown)).map((job) => seenJob(job, actor));
  const cache = await cacheValue(ports, now);
  const rollback = rollbackPreview(history);
  // Only for people who may roll back.
  const inUse = rollback !== null && mayDo(actor, "registry-write") ? await ports.inUseSoon() : null;
  return {
    ...overview,
    now: now.toISOString(),
    ageDays: daysSince(overview.appliedAt, now),
    warnings: warningsOf(overview, now, cache),
    rollback: rollback && { ...rollback, inUse },
    history: await withNames(history, ports, actor),
    cache,
    filesFolder: (await ports.runner?.host.filesFolder()) ?? null,
    publishers: registryPublishers,
    jobs,
    runningJob: jobs.find(({ state }) => state === "running") ?? null,
    canStartJobs: ports.runner !== null,
  };
}

export function seenJob<Job extends RegistryJob>(job: Job, actor: Actor) {
  const { words, ...rest } = job;
  if (mayDo(actor, "audit-read")) return { ...rest, words };
  const isByName = job.cancelAskedBy !== null;
  return { ...rest, words: isByName ? "cancelled" : words, askedBy: null, cancelAskedBy: null };
}

async function cacheValue({ runner }: RegistryPorts, now: Date): Promise<CacheValue | null> {
  if (runner === null) return null;
  try {
    return { ...(await runner.host.cache(now)), fault: null };
  } catch (error) {
    if (!(error instanceof NearcrawlError)) throw error;
    return { folder: "", contact: null, sources: [], fault: error.message };
  }
}

function daysSince(time: string | null, now: Date): number | null {
  return time === null ? null : Math.max(0, Math.floor((now.getTime() - Date.parse(time)) / dayMs));
}

/** Warns about data that is old, incomplete or missing. */
export function warningsOf(
  { appliedAt, outdated, unfinished }: Omit<RegistryOverview, "history">,
  now: Date,
  cache: CacheValue | null = null,
): readonly string[] {
  const ageDays = daysSince(appliedAt, now);
  return [
    ageDays !== null && ageDays > quarterDays
      ? `The generation in force is ${ageDays} days old, older than a quarter: fetch and import what the registries have published since.`
      : "",
    outdated.length > 0
      ? `The data of ${outdated.join(", ")} are older than a quarter (${quarterDays} days).`
      : "",
    unfinished !== null && !unfinished.isRunning
      ? "An import was interrupted; the tree is as before it, and the next import clears away what it left."
      : "",
    cache?.fault ? `The download cache cannot be read: ${cache.fault}` : "",
  ].filter((words) => words !== "");
}

/** Previews a rollback of the latest `imports`; null if nothing is in force. */
export function rollbackPreview(history: readonly GenerationStatus[], imports = 1) {
  const applied = history.filter(({ state }) => state === "applied");
  const [current] = applied;
  if (current === undefined) return null;
  const before = applied[imports];
  const sumOf = (...kinds: (keyof GenerationStatus["changes"])[]) =>
    applied
      .slice(0, imports)
      .reduce((sum, { changes }) => sum + kinds.reduce((part, kind) => part + (changes[kind] ?? 0), 0), 0);
  return {
    generation: current.generation,
    becomes: before?.generation ?? null,
    becomesAppliedAt: before?.appliedAt ?? null,
    removed: sumOf("added", "returned"),
    broughtBack: sumOf("removed"),
    restored: sumOf("changed", "moved"),
  };
}

const appliedSchema = z.object({ generation: z.int() });
const rolledBackSchema = z.object({ rolledBack: z.array(z.int()) });

async function withNames(
  history: readonly GenerationStatus[],
  { audit }: RegistryPorts,
  actor: Actor,
): Promise<readonly PastGeneration[]> {
  const names = { applied: new Map<number, string>(), rolledBack: new Map<number, string>() };
  if (mayDo(actor, "audit-read")) {
    const applied = await audit.list({ action: "registry-applied", limit: auditLooked });
    for (const { actor: by, after } of applied.entries) {
      const known = appliedSchema.safeParse(after);
      if (known.success) names.applied.set(known.data.generation, by);
    }
    const undone = await audit.list({ action: "registry-rolled-back", limit: auditLooked });
    for (const { actor: by, after } of undone.entries) {
      const known = rolledBackSchema.safeParse(after);
      for (const generation of known.data?.rolledBack ?? []) names.rolledBack.set(generation, by);
    }
  }
  return history.map((one) => ({
    ...one,
    appliedBy: names.applied.get(one.generation) ?? null,
    rolledBackBy: names.rolledBack.get(one.generation) ?? null,
  }));
}

// What the coordinator's machine provides: commands in separate processes, and the files of imports. The entry point
// creates it, because it knows how the software was started.

export interface RegistryHost {
  readonly commands: RegistryCommands;
  /** Throws a NearcrawlError if the settings or the list of the cache cannot be read. */
  cache(now: Date): Promise<Omit<CacheValue, "fault">>;
  /** The configured folder of files and the names of its subfolders; null if the settings allow none. */
  filesFolder(): Promise<{ readonly path: string; readonly names: readonly string[] } | null>;
}

export type RegistryValue = ToldOf<typeof registryOverview>;
type CacheValue = NonNullable<RegistryValue["cache"]>;
export type PastGeneration = RegistryValue["history"][number];
/** The asker's name is shown only to people who may read the audit log. */
export type SeenJob = ToldOf<typeof registryJob>;
export type KnownPlan = Omit<ToldOf<typeof registryPlan>, "plan"> & { readonly plan: ImportPlan };

/** Typed to confirm that no tree remains. */
export const emptyConfirmation = "empty the tree";

/** Typed to confirm a rollback, unless many subnets are in use: then their number is typed. */
export const rollbackConfirmation = (generation: number) => `roll back ${generation}`;

// A job's plan: what it found, whether it is still valid, and what must be confirmed before it is applied.

const jobsLooked = 100;

/** Returns null if the job made no plan that this version can show. */
export async function knownPlan(
  job: RegistryJobWithResult,
  ports: RegistryPorts,
  now: Date,
): Promise<KnownPlan | null> {
  const plan = planOf(job);
  if (plan === null || job.order.type !== "plan") return null;
  const jobs = await ports.store.list(jobsLooked);
  const applying = jobs.find(({ order }) => order.type === "apply" && order.planId === job.jobId);
  return {
    jobId: job.jobId,
    madeAt: job.endedAt ?? job.startedAt,
    plan,
    files: job.order.files,
    outdated: await outdatedWords(plan, job.order.files, ports, now),
    shrunk: shrunkRegistries(plan.registries, ports.shrinkageWarningShare),
    appliedBy: applying ? { jobId: applying.jobId, state: applying.state } : null,
  };
}

/** Suspicious losses that must be confirmed. Plans of earlier versions list none. */
export const losingIn = ({ shrunk, plan }: Pick<KnownPlan, "shrunk" | "plan">): readonly string[] => [
  ...shrunk.map(({ registry }) => registry),
  ...(plan.losses ?? []).map(lossText),
];

/** Reads the output of `rir plan --json`. In that of an older version newer fields are missing. */
function planOf({ order, state, result }: RegistryJobWithResult): ImportPlan | null {
  if (order.type !== "plan" || state !== "done" || typeof result !== "object" || result === null) return null;
  return "fingerprint" in result && "registries" in result ? (result as ImportPlan) : null;
}

/** Checks quickly by digests. The import itself verifies every byte. */
async function outdatedWords(
  plan: ImportPlan,
  files: FilesPlace,
  ports: RegistryPorts,
  now: Date,
): Promise<string | null> {
  const { generation } = await ports.overview(now);
  if (generation !== plan.generation) {
    const then = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
    const since =
      generation === null ? "no registry is in force now" : `generation ${generation} is in force now`;
    return `It was made against ${then}, and ${since}.`;
  }
  if (files.from !== "cache") return null;
  const cached = (await cacheValue(ports, now))?.sources ?? [];
  // Geofeeds are kept in a separate folder, and the import itself skips outdated published lists, so neither is compared here.
  const isSeen = ({ kind }: { readonly kind: string }) => !isPublishedFormat(kind);
  const digests = cached.filter(isSeen).flatMap(({ sha256 }) => sha256 ?? []);
  const planned = plan.files.filter(({ format }) => format !== "geofeeds" && !isPublishedFormat(format));
  const same = sorted(digests) === sorted(planned.map(({ sha256 }) => sha256));
  return same ? null : "The files in the download cache are not those that it was made from.";
}

const sorted = (texts: readonly string[]) => [...new Set(texts)].sort().join();

// The publishers of imported data, with links to their terms. These are hints for operators. Only the terms are binding.

const registryPublishers: RegistryValue["publishers"] = [
  {
    registry: "iana",
    name: "IANA",
    region: "the whole address space",
    publishes: "which registry has which block",
    terms: "Free for any purpose (CC0).",
    termsUrl: "https://www.iana.org/help/licensing-terms",
  },
  {
    registry: "afrinic",
    name: "AFRINIC",
    region: "Africa",
    publishes: "statistics daily; the database, without persons",
    terms: "For operating networks and research into them; not to be resold or passed on.",
    termsUrl: "https://afrinic.net/whois/terms",
  },
  {
    registry: "apnic",
    name: "APNIC",
    region: "Asia and the Pacific",
    publishes: "statistics daily; the database by type of object",
    terms:
      "For operating networks and research into them; not to be passed on in bulk. Mapping addresses to places is excluded, which the statistics are for.",
    termsUrl: "https://www.apnic.net/manage-ip/using-whois/bulk-access/copyright/",
  },
  {
    registry: "arin",
    name: "ARIN",
    region: "North America and parts of the Caribbean",
    publishes: "statistics daily; bulk WHOIS data on request",
    terms: "The bulk data are for those who signed its terms, and not to be passed on.",
    termsUrl: "https://www.arin.net/reference/research/bulkwhois/",
  },
  {
    registry: "lacnic",
    name: "LACNIC",
    region: "Latin America and parts of the Caribbean",
    publishes: "statistics daily; the database, without persons; a bulk copy by agreement",
    terms: "The bulk copy is for operation and research by agreement, and not to be passed on.",
    termsUrl: "https://www.lacnic.net/",
  },
  {
    registry: "ripencc",
    name: "RIPE NCC",
    region: "Europe, the Middle East, Central Asia",
    publishes: "statistics daily; the database by type of object, without persons",
    terms: "For operating networks and research into them; personal data must not be taken in bulk.",
    termsUrl: "https://www.ripe.net/manage-ips-and-asns/db/support/documentation/terms",
  },
];
