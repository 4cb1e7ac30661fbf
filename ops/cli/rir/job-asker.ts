/** In whose name a `nearcrawl rir` command works: the person's who asked a coordinator for it, else whoever typed it. */
import type { Pool } from "pg";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Asker } from "#coordinator/registry/jobs";
import type { Change } from "#core/audit";
import { recordCommand } from "../audit-command-change.ts";

export function askerVariables({ by, via }: Asker): Readonly<Record<string, string>> {
  return { NEARCRAWL_JOB_ASKED_BY: by, NEARCRAWL_JOB_VIA: via };
}

/** Writes the change to the audit log; call it once the change is made. */
export async function recordRegistryChange(
  pool: Pool,
  change: Change,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const { NEARCRAWL_JOB_ASKED_BY: actor, NEARCRAWL_JOB_VIA: via } = env;
  // Without a channel to a coordinator these variables are left over from somewhere.
  if (process.send === undefined || !actor || (via !== "page" && via !== "api")) {
    await recordCommand(pool, change);
    return;
  }
  await createAuditLog(pool).record({ ...change, actor, via, remoteAddress: null, at: new Date() });
}
