/**
 * The coordinator's snapshot of its tree: looked at when it starts, written in the background after it built a
 * tree from the database. It only saves time: whatever is wrong with it costs one line in the log and the
 * reading of the rows.
 */
import { join } from "node:path";
import type { Log } from "#core/log";
import { readTreeSnapshot } from "./read-tree-snapshot.ts";
import type { TreeSnapshots } from "./registry-ports.ts";
import { OutdatedSnapshot } from "./tree-snapshot-store.ts";
import { writeTreeSnapshot } from "./write-tree-snapshot.ts";

export interface SnapshotSettings {
  /** Where the files are, one per schema. */
  readonly folder: string;
  readonly schema: string;
  readonly log: Log;
  /** A smaller tree is not worth a file: it is read from the database in less than a second. */
  readonly fewestSubnets?: number;
}

const defaultFewestSubnets = 100_000;
const outdated = "the registry changed since the snapshot of the tree; the tree is built from the database";
const useless = "snapshot of the tree is of no use; the tree is built from the database";
const unwritten = "snapshot of the tree could not be written; the next start takes longer";

export interface RunningSnapshots extends TreeSnapshots {
  /** Resolves when nothing is being written any more. */
  idle(): Promise<void>;
}

export function createTreeSnapshots({
  folder,
  schema,
  log,
  fewestSubnets = defaultFewestSubnets,
}: SnapshotSettings): RunningSnapshots {
  const file = join(folder, `${schema}.tree`);
  let writing = Promise.resolve();
  return {
    read: async (registry) =>
      await readTreeSnapshot(file, registry).catch((error: unknown) => {
        if (error instanceof OutdatedSnapshot) log.info({ file, reason: error.message }, outdated);
        else log.warn({ file, error }, useless);
        return null;
      }),
    keep: (tree, registry) => {
      if (tree.size < fewestSubnets) return;
      writing = writing.then(async () => {
        await writeTreeSnapshot(file, tree, registry).catch((error: unknown) => {
          log.warn({ file, error }, unwritten);
        });
      });
    },
    idle: async () => await writing,
  };
}

/** For where nothing is kept. */
export const noSnapshots: RunningSnapshots = {
  read: async () => null,
  keep: () => {},
  idle: async () => {},
};
