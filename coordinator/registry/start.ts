/** The registry's pages with what they work on: the database, the jobs of this coordinator, the audit log. */
import { createPool } from "#db/server-database";
import { inUseOfRollback, inUseOfRollbackWithin } from "#rir-import/database/subnets-in-use";
import { registryOverview } from "#rir-import/status";
import { createAuditLog } from "../database/audit-log.ts";
import { apartOf, oneSlice, type Slices } from "../database/slices.ts";
import type { RoomOptions } from "../start-web.ts";
import type { WebPart } from "../web/actions.ts";
import { createRegistryJobStore } from "./job-store.ts";
import { RegistryJobs } from "./jobs.ts";
import { registryRoutes } from "./routes.ts";

/** A page waits no longer for the count of what a rollback takes away; who rolls back is told in any case. */
const inUseMs = 1500;

export function registryPart(
  options: Pick<RoomOptions, "database" | "pool" | "log" | "registryHost"> & {
    /** Left out, the pool has all hosts. */
    readonly slices?: Slices;
    readonly config: { readonly registry: { readonly shrinkageWarningShare: number } };
  },
): WebPart {
  const { database, pool, slices = oneSlice(pool), log, registryHost: host, config } = options;
  const apart = () => apartOf(slices).map((slice) => slice.pool);
  const { schema } = database;
  // One for the job that runs, one for whoever finds that it does; opened when they are needed.
  const store = createRegistryJobStore({ pool, schema, lockPool: createPool(database.url, 2) });
  const now = () => new Date();
  const jobs = host && new RegistryJobs({ store, commands: host.commands, log, now });
  return registryRoutes({
    overview: async (at) => await registryOverview({ pool, schema }, at),
    inUseOfRollback: async () => await inUseOfRollback(pool, 1, apart()),
    // Of a part it would say that too little is in use.
    inUseSoon: async () =>
      slices.down.length > 0 ? null : await inUseOfRollbackWithin(pool, 1, inUseMs, apart()),
    store,
    runner: host && jobs && { jobs, host },
    audit: createAuditLog(pool),
    shrinkageWarningShare: config.registry.shrinkageWarningShare,
  });
}
