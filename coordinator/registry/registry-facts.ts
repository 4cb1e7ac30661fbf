/** What the registry's pages show, and their API answers with. */
import type { SourceRow } from "#rir-import/download/source-status";
import type { ImportPlan } from "#rir-import/plan";
import type { RegistryPublisher } from "#rir-import/registry-publishers";
import type { Shrinkage } from "#rir-import/shrinkage";
import type { GenerationStatus, RegistryOverview } from "#rir-import/status";
import type { FilesPlace, RegistryJob } from "./registry-job-ports.ts";

export interface RegistryValue extends Omit<RegistryOverview, "history"> {
  readonly now: string;
  /** Days since the generation in force was applied. */
  readonly ageDays: number | null;
  /** Plain sentences: what is old, unfinished or missing. */
  readonly warnings: readonly string[];
  /** What rolling back the generation in force would do; null: there is none. */
  readonly rollback: RollbackPreview | null;
  readonly history: readonly PastGeneration[];
  readonly cache: CacheValue | null;
  /** Where files besides the cache may be imported from. */
  readonly filesFolder: { readonly path: string; readonly names: readonly string[] } | null;
  readonly publishers: readonly RegistryPublisher[];
  /** The latest first. */
  readonly jobs: readonly SeenJob[];
  /** Null: none runs. */
  readonly runningJob: SeenJob | null;
  readonly canStartJobs: boolean;
}

/** Typed by whoever means to be left without a tree. */
export const emptyConfirmation = "empty the tree";

export interface RollbackPreview {
  readonly generation: number;
  /** Null: no registry would be in force. */
  readonly becomes: number | null;
  readonly becomesAppliedAt: string | null;
  /** Subnets that would go, come back, or be again what they were. */
  readonly removed: number;
  readonly broughtBack: number;
  readonly restored: number;
}

export interface PastGeneration extends GenerationStatus {
  /** As the audit log has it; null: it does not know, or the reader may not. */
  readonly appliedBy: string | null;
  readonly rolledBackBy: string | null;
}

export interface CacheValue {
  readonly folder: string;
  readonly contact: string | null;
  readonly sources: readonly SourceRow[];
  /** Why the cache cannot be read; null: it can. */
  readonly fault: string | null;
}

/** Who asked is for those who may read the audit log. */
export type SeenJob = Omit<RegistryJob, "askedBy" | "cancelAskedBy"> & {
  readonly askedBy: string | null;
  readonly cancelAskedBy: string | null;
};

export interface KnownPlan {
  readonly jobId: number;
  readonly madeAt: string;
  readonly plan: ImportPlan;
  readonly files: FilesPlace;
  /** Why it cannot be applied any more; null: as far as can be seen, it can. */
  readonly outdated: string | null;
  /** Registries that would lose suspiciously much: to be confirmed. */
  readonly shrunk: readonly Shrinkage[];
  /** The latest job that was to apply it; null: none was. */
  readonly appliedBy: { readonly jobId: number; readonly state: string } | null;
}
