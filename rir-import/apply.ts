/**
 * Puts the files' tree in force: reads and compares in memory, then writes the differences and notifies the
 * coordinators in one transaction. If it is killed, the old generation stays in force, and the next import clears what
 * is left of it.
 */

import type { PoolClient } from "pg";
import type { PublishedRanges } from "#coordinator/place/subnets/published-ranges";
import type { Database } from "#db/server-database";
import { type OnProgress, readState, requireSubnets } from "./check.ts";
import {
  beginGeneration,
  clearInterrupted,
  currentGeneration,
  dropGeneration,
  insertSources,
  inTransaction,
  isMadeFrom,
  notifyRegistryChange,
  putInForce,
  withImportLock,
} from "./database/generations.ts";
import { type AcceptedMoves, type PublishedDifference, writePublished } from "./database/published-lists.ts";
import { requireMeant } from "./database/subnets-in-use.ts";
import { type TreeDifference, writeDifference } from "./database/tree-difference.ts";
import {
  changesNothing,
  compareState,
  type ImportPlan,
  requirePlannedFiles,
  requirePlannedGeneration,
} from "./plan.ts";
import type { SourcePath } from "./read/open-source.ts";
import { requireLossesMeant } from "./shrinkage.ts";
import type { RegistryState } from "./tree/registry-state.ts";

export interface AppliedImport {
  readonly plan: ImportPlan;
  readonly generation: number;
  /** False when the files change nothing and no generation was made. */
  readonly isNew: boolean;
  readonly cleared: number;
  readonly seconds: Readonly<Record<"total" | "reading" | "comparing" | "writing", number>>;
}

interface ApplyOptions {
  readonly onProgress?: OnProgress;
  /** A plan's fingerprint. The import stops when the files or the generation have changed since that plan. */
  readonly planned?: string;
  /** The confirmed number of subnets in use that are removed. Required when there are more than a few. */
  readonly removeInUse?: number | null;
  /** Sources whose published places may change without a limit. */
  readonly yesMoved?: AcceptedMoves;
  /** The confirmed total of lost holders, countries and published ranges. Required when it is suspiciously high. */
  readonly loseFacts?: number | null;
}

/**
 * Throws SourceFileError; UsageError when the plan no longer applies; RemovesInUse or LosesFacts, which leave the tree
 * unchanged; and DatabaseError when another import is running.
 */
export async function applyImport(
  database: Database,
  paths: readonly SourcePath[],
  options: ApplyOptions = {},
): Promise<AppliedImport> {
  const onProgress = options.onProgress ?? (() => {});
  return await withImportLock(database, async (client) => {
    const times = [performance.now()];
    const lap = () => times.push(performance.now());
    const between = (from: number, to: number) => (times[to]! - times[from]!) / 1000;
    const cleared = await clearInterrupted(client);
    await restoreIndexes(client);
    const inForce = await currentGeneration(client);
    if (options.planned) requirePlannedGeneration(options.planned, inForce);
    const { files, state, published } = await readState(paths, onProgress);
    requireSubnets(files, state);
    if (options.planned) requirePlannedFiles(options.planned, inForce, files);
    lap();
    const { yesMoved = [] } = options;
    const compared = await compareState({ client, files, state, published, yesMoved, onProgress });
    const { plan } = compared;
    lap();
    const current = plan.generation;
    requireMeant(plan.inUse, options.removeInUse ?? null);
    requireLossesMeant(plan.losses, options.loseFacts ?? null);
    const isNew = current === null || !changesNothing(plan) || !(await isMadeFrom(client, current, files));
    const generation = isNew
      ? await writeGeneration({ database, client, ...compared, state, published, onProgress })
      : current;
    lap();
    return {
      plan,
      generation,
      isNew,
      cleared,
      seconds: {
        total: between(0, 3),
        reading: between(0, 1),
        comparing: between(1, 2),
        writing: between(2, 3),
      },
    };
  });
}

interface GenerationWork {
  readonly database: Database;
  readonly client: PoolClient;
  readonly plan: ImportPlan;
  readonly state: RegistryState;
  readonly difference: TreeDifference;
  readonly published: PublishedRanges;
  readonly publishedDifference: PublishedDifference;
  readonly onProgress: OnProgress;
}

async function writeGeneration(work: GenerationWork): Promise<number> {
  const { database, client, plan } = work;
  const { added, returned, changed, moved, unchanged } = plan.changes;
  const generation = await beginGeneration(database.pool);
  try {
    if (isBulkImport(added, returned + changed + moved + unchanged)) await setIndexesAside(client);
    await inTransaction(client, () => writeAll(work, generation));
  } catch (error) {
    await dropGeneration(database.pool, generation).catch(() => {});
    await restoreIndexes(client).catch(() => {});
    throw error;
  }
  await restoreIndexes(client);
  await client.query("analyze subnet, holder, published_range, published_list");
  return generation;
}

async function writeAll(work: GenerationWork, generation: number): Promise<void> {
  const { client, plan, state, difference, onProgress } = work;
  const records = plan.files.reduce((sum, { read }) => sum + read, 0);
  await insertSources(client, generation, plan.files);
  await writeDifference({
    client,
    generation,
    state,
    difference,
    onRows: (done, total) => onProgress({ phase: "write", done, total, file: "", records }),
  });
  await writePublished(client, generation, {
    published: work.published,
    difference: work.publishedDifference,
  });
  await putInForce(client, generation, {
    state: plan.state,
    registries: plan.registries.flatMap(({ after }) => after ?? []),
    changes: plan.changes,
    holders: withoutSamples(plan.holders),
    delegations: withoutSamples(plan.delegations),
    published: withoutSamples(plan.published),
  });
  await notifyRegistryChange(client, work.database.schema, generation);
}

function withoutSamples(counts: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => typeof value === "number"));
}

// During a bulk import, two indexes cost more than the rows themselves: organisations by similar names, and subnets by
// holder. They are dropped before it and rebuilt after it, without locks. In between, queries that use them take
// seconds. If the import is killed, the next one finds them missing or invalid and rebuilds them.

/** An import of at least this many rows, and of more rows than exist, is a bulk import. Measured in ops/decisions/0005-imports-write-only-what-differs. */
const fewestRows = 500_000;

const indexes: Readonly<Record<string, string>> = {
  holder_name_trigram: "holder using gin (name public.gin_trgm_ops)",
  subnet_holder: "subnet (holder_id)",
};

export function isBulkImport(addedRows: number, presentRows: number): boolean {
  return addedRows >= fewestRows && addedRows > presentRows;
}

/** Call outside a transaction. */
export async function setIndexesAside(client: PoolClient): Promise<void> {
  for (const name of Object.keys(indexes)) await client.query(`drop index concurrently if exists ${name}`);
}

/** Builds missing or invalid indexes, and is quick when there are none. Call outside a transaction. */
export async function restoreIndexes(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name
     from pg_class c
     join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and i.indisvalid and c.relname = any ($1)`,
    [Object.keys(indexes)],
  );
  const present = new Set(rows.map(({ name }) => name));
  for (const [name, on] of Object.entries(indexes)) {
    if (present.has(name)) continue;
    await client.query(`drop index concurrently if exists ${name}`);
    await client.query(`create index concurrently ${name} on ${on}`);
  }
}
