/** Connects the registry's pages with the database, this coordinator's jobs and the audit log. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import { createPool, type Database } from "#db/server-database";
import { inUseOfRollback, inUseOfRollbackWithin } from "#rir-import/database/subnets-in-use";
import { registryOverview } from "#rir-import/status";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { createAuditLog } from "../../database/audit-log.ts";
import { jobOperations } from "./job-ask.ts";
import { createRegistryJobStore } from "./job-store.ts";
import { RegistryJobs } from "./jobs.ts";
import { planOperations } from "./plan-ask.ts";
import { registryOperations } from "./registry-ask.ts";
import type { RegistryHost, RegistryPorts } from "./registry-view.ts";

/** How long a page waits for the count of a rollback. The rollback itself always shows it. */
const inUseMs = 1500;

export function registryPart(options: {
  readonly database: Database;
  readonly pool: Pool;
  readonly log: Log;
  readonly registryHost: RegistryHost | null;
  readonly config: { readonly registry: { readonly shrinkageWarningShare: number } };
}): WebPart {
  const { database, pool, log, registryHost: host, config } = options;
  const { schema } = database;
  // A connection for the running job, and one for checking whether it runs. Both are opened on demand.
  const store = createRegistryJobStore({ pool, schema, lockPool: createPool(database.url, 2) });
  const now = () => new Date();
  const jobs = host && new RegistryJobs({ store, commands: host.commands, log, now });
  const ports: RegistryPorts = {
    overview: async (at) => await registryOverview({ pool, schema }, at),
    inUseOfRollback: async () => await inUseOfRollback(pool, 1),
    inUseSoon: async () => await inUseOfRollbackWithin(pool, 1, inUseMs),
    store,
    runner: host && jobs && { jobs, host },
    audit: createAuditLog(pool),
    shrinkageWarningShare: config.registry.shrinkageWarningShare,
  };
  return (to) => {
    addOperations({ ...registryOperations, ...jobOperations, ...planOperations }, ports)(to);
    // Runs before connections are closed, so that the end of the job can be recorded.
    to.app.addHook("preClose", async () => await jobs?.stop());
  };
}
