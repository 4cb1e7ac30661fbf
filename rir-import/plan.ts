/** What an import would change, without changing it: staged in a transaction that is rolled back. */
import type { PoolClient } from "pg";
import type { Database } from "#db/connect";
import { readState, requireSubnets } from "./check.ts";
import { type ChangeCounts, type ChangeSamples, countChanges, sampleChanges } from "./database/compare.ts";
import { compareDelegations, type DelegationChanges } from "./database/delegation-changes.ts";
import { currentGeneration } from "./database/generations.ts";
import { stageState } from "./database/stage.ts";
import type { ImportProgress, OnProgress } from "./progress.ts";
import type { FileReport } from "./read/file-report.ts";
import type { RegistryState, StateSummary } from "./tree/registry-state.ts";

export interface ImportPlan {
  /** The generation in force that the files are compared with; null before the first import. */
  readonly generation: number | null;
  readonly files: readonly FileReport[];
  readonly state: StateSummary;
  readonly changes: ChangeCounts;
  readonly samples: ChangeSamples;
  readonly delegations: DelegationChanges;
}

export interface PlanOptions {
  readonly onProgress?: OnProgress;
  /** Samples of each kind of change; 20 unless told. */
  readonly samples?: number;
}

const defaultSamples = 20;

export async function planImport(
  database: Database,
  paths: readonly string[],
  options: PlanOptions = {},
): Promise<ImportPlan> {
  const onProgress = options.onProgress ?? (() => {});
  const { files, state } = await readState(paths, onProgress);
  requireSubnets(files, state);
  const client = await database.pool.connect();
  try {
    await client.query("begin isolation level repeatable read");
    return await compareState({
      client,
      files,
      state,
      onProgress,
      samples: options.samples ?? defaultSamples,
    });
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

/** Stages the state in the caller's transaction and says what is different. */
export async function compareState(work: {
  readonly client: PoolClient;
  readonly files: readonly FileReport[];
  readonly state: RegistryState;
  readonly onProgress: OnProgress;
  readonly samples?: number;
}): Promise<ImportPlan> {
  const { client, files, state } = work;
  const limit = work.samples ?? defaultSamples;
  const records = files.reduce((total, { read }) => total + read, 0);
  const report = (phase: ImportProgress["phase"], done: number, total: number) =>
    work.onProgress({ phase, done, total, file: "", records });
  await stageState(client, state, (rows) => report("stage", rows, state.summary.subnets));
  report("compare", 0, 1);
  const plan = {
    generation: await currentGeneration(client),
    files,
    state: state.summary,
    changes: await countChanges(client),
    samples: await sampleChanges(client, limit),
    delegations: await compareDelegations(client, state, limit),
  };
  report("compare", 1, 1);
  return plan;
}

/** True when the tree would stay exactly as it is. */
export function changesNothing({ added, returned, changed, reparented, removed }: ChangeCounts): boolean {
  return added + returned + changed + reparented + removed === 0;
}
