/** Reads sources into the state they describe, without a database. The commands check, plan and apply start with this. */

import { TangledRanges } from "#coordinator/place/subnets/nest";
import type { PublishedRanges } from "#coordinator/place/subnets/published-ranges";
import { SourceFileError } from "#core/errors";
import type { FileReport } from "./read/file-report.ts";
import { listSourceFiles, type SourcePath } from "./read/open-source.ts";
import { readPublished, withoutPublished } from "./read/read-published.ts";
import { readSources } from "./read/read-sources.ts";
import type { RegistryState, StateSummary } from "./tree/registry-state.ts";
import { buildState, RecordStore } from "./tree/to-subnets.ts";

interface BrokenSource {
  readonly file: string;
  readonly line: number | null;
  readonly reason: string;
}

export interface SourceCheck {
  readonly files: readonly FileReport[];
  readonly state: StateSummary;
  readonly publishedRanges: number;
  readonly seconds: number;
  /** Missing or invalid files. Everything else in this record leaves them out. */
  readonly broken: readonly BrokenSource[];
}

export async function checkSources(
  paths: readonly SourcePath[],
  onProgress: OnProgress = () => {},
): Promise<SourceCheck> {
  const startedAt = performance.now();
  const broken: BrokenSource[] = [];
  const { files, state, published } = await readUnbroken(paths, onProgress, broken);
  const seconds = (performance.now() - startedAt) / 1000;
  return { files, state: state.summary, publishedRanges: published.count, seconds, broken };
}

/** When a file is invalid, reads each file separately to find the faulty ones, then the valid ones together. */
async function readUnbroken(
  paths: readonly SourcePath[],
  onProgress: OnProgress,
  broken: BrokenSource[],
): Promise<ReadSources> {
  const first = await orBroken(async () => await readState(paths, onProgress), []);
  if (first !== null) return first;
  const files: SourcePath[] = [];
  for (const path of paths)
    for (const file of (await orBroken(async () => await listSourceFiles([path]), broken)) ?? [])
      if ((await orBroken(async () => await readState([file], onProgress), broken)) !== null)
        files.push(file);
  return await readState(files, onProgress);
}

/** Returns null for a faulty file, after adding it to `broken`. */
async function orBroken<T>(read: () => Promise<T>, broken: BrokenSource[]): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SourceFileError)) throw error;
    const { file, line, reason } = error;
    broken.push({ file, line, reason });
    return null;
  }
}

interface ReadSources {
  readonly files: readonly FileReport[];
  readonly state: RegistryState;
  readonly published: PublishedRanges;
}

export async function readState(paths: readonly SourcePath[], onProgress: OnProgress): Promise<ReadSources> {
  let records = 0;
  const { registryFiles, publishedFiles } = await withoutPublished(await listSourceFiles(paths));
  const store = new RecordStore();
  const reports = await readSources(registryFiles, store, (progress) => {
    records = progress.records;
    const { file, bytesDone, bytesTotal } = progress;
    onProgress({ phase: "read", done: bytesDone, total: bytesTotal, file, records });
  });
  onProgress({ phase: "nest", done: 0, total: 1, file: "", records });
  const state = stateOf(store, registryFiles);
  onProgress({ phase: "nest", done: 1, total: 1, file: "", records });
  const published = await readPublished(publishedFiles, store.geofeeds);
  const files = [...withSharedRegistryWarnings(reports), ...published.reports];
  return { files, state, published: published.ranges };
}

function stateOf(store: RecordStore, files: readonly string[]): RegistryState {
  try {
    return buildState(store);
  } catch (error) {
    if (!(error instanceof TangledRanges)) throw error;
    throw new SourceFileError(files.join(", "), null, `${error.message}: not a registry's data`);
  }
}

export function requireSubnets(files: readonly FileReport[], state: RegistryState): void {
  if (state.summary.subnets > 0) return;
  const names = files.map(({ file }) => file).join(", ");
  throw new SourceFileError(names, null, "no subnets in these files: an import would empty the tree");
}

/** When two statistics files belong to one registry, both count. For an equal range, the first file wins. */
function withSharedRegistryWarnings(files: readonly FileReport[]): readonly FileReport[] {
  const first = new Map<string, string>();
  return files.map((report) => {
    if (report.format !== "delegated" || report.registry === null) return report;
    const other = first.get(report.registry);
    first.set(report.registry, other ?? report.file);
    if (other === undefined) return report;
    const words = `another statistics file of ${report.registry} was read before it: ${other}`;
    return { ...report, warnings: [...report.warnings, words] };
  });
}

export interface ImportProgress {
  readonly phase: "read" | "nest" | "current" | "compare" | "write";
  /** Counted in bytes on disk in the phase `read`, in rows in `current` and `write`, and in steps elsewhere. */
  readonly done: number;
  /** 0 when unknown in advance. */
  readonly total: number;
  readonly file: string;
  readonly records: number;
}

export type OnProgress = (progress: ImportProgress) => void;
