/** The stores of releases, for commands that work at the coordinator's database. */
import type { Pool } from "pg";
import { createReleaseFleetStore } from "#coordinator/releases/fleet-store";
import { createReleaseKeyStore } from "#coordinator/releases/key-store";
import type { ReleaseFleetStore, ReleaseKeyStore, ReleaseStore } from "#coordinator/releases/release-ports";
import { createReleaseStore } from "#coordinator/releases/release-store";
import type { Change } from "#core/audit";
import type { Database } from "#db/connect";
import { migrate } from "#db/migrate";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext, withDatabase } from "../command-context.ts";
import type { DatabaseOptions } from "../database-options.ts";
import { readDatabase } from "../read-database.ts";

export interface ReleaseStores {
  readonly releases: ReleaseStore;
  readonly releaseFleet: ReleaseFleetStore;
  readonly keys: ReleaseKeyStore;
  /** Writes a change that was made to the audit log. */
  record(change: Change): Promise<void>;
}

export const releaseStores = (pool: Pool): Omit<ReleaseStores, "record"> => ({
  releases: createReleaseStore(pool),
  releaseFleet: createReleaseFleetStore(pool),
  keys: createReleaseKeyStore(pool),
});

/** `setUp`: a database where nothing was set up yet is set up. */
export async function withReleases<Value>(
  options: DatabaseOptions,
  { setUp = false }: { readonly setUp?: boolean },
  work: (stores: ReleaseStores) => Promise<Value>,
): Promise<Value> {
  const context = commandContext(options);
  const run = async ({ pool }: Database) =>
    await work({ ...releaseStores(pool), record: async (change) => await recordCommand(pool, change) });
  if (!setUp) return await readDatabase(context, run);
  return await withDatabase(context, async (database) => {
    await migrate(database);
    return await run(database);
  });
}
