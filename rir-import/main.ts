/**
 * rir-import: registry dumps become the IP tree. Everything that commands and `nearcrawl up` call.
 * Sources are files or folders, plain, gzip or ZIP; the format is decided by their first bytes.
 */
export { type AppliedImport, type ApplyOptions, applyImport } from "./apply.ts";
export { checkSources, type SourceCheck } from "./check.ts";
export { type FoundSubnet, type LookUp, lookUp } from "./lookup.ts";
export { type ImportPlan, type PlanOptions, planImport } from "./plan.ts";
export type { ImportProgress, OnProgress } from "./progress.ts";
export type { FileReport } from "./read/file-report.ts";
export { type RolledBack, rollbackImport } from "./rollback.ts";
export { type RegistryStatus, registryStatus } from "./status.ts";
