/** What an import would change, without changing it: the files beside the database, compared in memory. */
import type { PoolClient } from "pg";
import type { Database } from "#db/connect";
import { readState, requireSubnets } from "./check.ts";
import { breakDown, type ChangeBreakdown } from "./database/change-breakdown.ts";
import { readCurrentHolders, readCurrentTree } from "./database/current-tree.ts";
import { compareDelegations, type DelegationChanges } from "./database/delegation-changes.ts";
import { type Difference, differencesOf, sampleDifferences } from "./database/differences.ts";
import { currentGeneration } from "./database/generations.ts";
import { describeHolders, type HolderChanges } from "./database/holder-difference.ts";
import { type ChangeCounts, compareTrees, type TreeDifference } from "./database/tree-difference.ts";
import { fingerprintOf } from "./plan-fingerprint.ts";
import type { OnProgress } from "./progress.ts";
import type { FileReport } from "./read/file-report.ts";
import type { RegistryState, StateSummary } from "./tree/registry-state.ts";

export interface ImportPlan extends ChangeBreakdown {
  /** Of the files' contents and the generation: `apply` with it does what is planned here, or nothing. */
  readonly fingerprint: string;
  /** The generation in force that the files are compared with; null before the first import. */
  readonly generation: number | null;
  readonly files: readonly FileReport[];
  readonly state: StateSummary;
  readonly changes: ChangeCounts;
  readonly samples: Readonly<Record<Difference["kind"], readonly Difference[]>>;
  readonly holders: HolderChanges;
  readonly delegations: DelegationChanges;
}

export interface PlanOptions {
  readonly onProgress?: OnProgress;
  /** Samples of each kind of change; 20 unless told. */
  readonly samples?: number;
  /** Called with the plan and a way to read every difference of a kind; the differences end with the call. */
  readonly onDifferences?: (
    plan: ImportPlan,
    differences: (kind: Difference["kind"]) => Iterable<Difference>,
  ) => Promise<void>;
}

const defaultSamples = 20;
/** Of each family. */
const mostLargest = 20;

/** Throws SourceFileError for a source that is not what it claims to be. */
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
    await client.query("begin isolation level repeatable read read only");
    const { plan, difference } = await compareState({
      client,
      files,
      state,
      onProgress,
      samples: options.samples ?? defaultSamples,
    });
    await options.onDifferences?.(plan, (kind) => differencesOf(state, difference, kind));
    return plan;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

/** Reads the tree in force in the caller's transaction and says what is different. */
export async function compareState(work: {
  readonly client: PoolClient;
  readonly files: readonly FileReport[];
  readonly state: RegistryState;
  readonly onProgress: OnProgress;
  readonly samples?: number;
}): Promise<{ readonly plan: ImportPlan; readonly difference: TreeDifference }> {
  const { client, files, state } = work;
  const limit = work.samples ?? defaultSamples;
  const records = files.reduce((total, { read }) => total + read, 0);
  const report = (phase: "current" | "compare", done: number, total: number) =>
    work.onProgress({ phase, done, total, file: "", records });
  const tree = await readCurrentTree(client, state.texts, (rows) => report("current", rows, 0));
  const holders = await readCurrentHolders(client, state.texts, (key) => state.holders.find(key));
  report("compare", 0, 1);
  const difference = compareTrees(state, tree, holders);
  const generation = await currentGeneration(client);
  const plan = {
    fingerprint: fingerprintOf(generation, files),
    generation,
    files,
    state: state.summary,
    changes: difference.counts,
    samples: sampleDifferences(state, difference, limit),
    holders: describeHolders(difference, (text) => state.texts.textAt(text), limit),
    delegations: await compareDelegations(client, difference, limit),
    ...breakDown(state, { tree, difference, limit: Math.min(limit, mostLargest) }),
  };
  report("compare", 1, 1);
  return { plan, difference };
}

/** True when the tree and its holders would stay exactly as they are. */
export function changesNothing({ changes, holders }: ImportPlan): boolean {
  const { added, returned, changed, moved, removed } = changes;
  return added + returned + changed + moved + removed + holders.renamed === 0;
}
