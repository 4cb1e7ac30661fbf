/**
 * Makes the files the tree in force: read first, then one transaction that stages, compares, writes and
 * tells the coordinators. Killed anywhere, the old generation serves on and nothing is left behind.
 */
import type { PoolClient } from "pg";
import type { Database } from "#db/connect";
import { readState, requireSubnets } from "./check.ts";
import { insertGeneration, insertSources, isMadeFrom, notifyRegistryChange } from "./database/generations.ts";
import { inTransaction, withImportLock } from "./database/import-lock.ts";
import { writeChanges } from "./database/write-changes.ts";
import { changesNothing, compareState, type ImportPlan } from "./plan.ts";
import type { OnProgress } from "./progress.ts";
import type { FileReport } from "./read/file-report.ts";
import type { RegistryState } from "./tree/registry-state.ts";

export interface AppliedImport {
  readonly plan: ImportPlan;
  /** The generation in force now. */
  readonly generation: number;
  /** False: the same files again, and nothing to change; no generation was made. */
  readonly isNew: boolean;
  readonly seconds: number;
}

export interface ApplyOptions {
  readonly onProgress?: OnProgress;
}

/** Throws SourceFileError (tree unchanged), or DatabaseError when another import is running. */
export async function applyImport(
  database: Database,
  paths: readonly string[],
  options: ApplyOptions = {},
): Promise<AppliedImport> {
  const startedAt = performance.now();
  const onProgress = options.onProgress ?? (() => {});
  return await withImportLock(database, async (client) => {
    const { files, state } = await readState(paths, onProgress);
    requireSubnets(files, state);
    const applied = await inTransaction(client, () =>
      applyState({ client, schema: database.schema, files, state, onProgress }),
    );
    if (applied.isNew) await client.query("analyze subnet, holder");
    return { ...applied, seconds: (performance.now() - startedAt) / 1000 };
  });
}

async function applyState(work: {
  readonly client: PoolClient;
  readonly schema: string;
  readonly files: readonly FileReport[];
  readonly state: RegistryState;
  readonly onProgress: OnProgress;
}): Promise<Omit<AppliedImport, "seconds">> {
  const { client, files, onProgress } = work;
  const plan = await compareState(work);
  const current = plan.generation;
  if (current !== null && changesNothing(plan.changes) && (await isMadeFrom(client, current, files))) {
    return { plan, generation: current, isNew: false };
  }
  const { state, changes } = plan;
  const generation = await insertGeneration(client, { state, changes, delegations: withoutSamples(plan) });
  await insertSources(client, generation, files);
  await writeChanges(client, generation, (done, total) =>
    onProgress({ phase: "write", done, total, file: "", records: state.subnets }),
  );
  await notifyRegistryChange(client, work.schema, generation);
  return { plan, generation, isNew: true };
}

function withoutSamples({ delegations: { kept, returned, moved, lost } }: ImportPlan) {
  return { kept, returned, moved, lost };
}
