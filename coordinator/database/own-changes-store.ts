/**
 * Writes the coordinator's own changes to the audit log where somebody may ask later who made them. A failed write is logged;
 * the change stays.
 */
import type { Pool } from "pg";
import type { Change } from "#core/audit";
import type { Log } from "#core/log";
import { createAuditLog } from "./audit-log.ts";

interface OwnChangePorts {
  readonly pool: Pool;
  readonly log: Pick<Log, "error">;
  readonly now: () => Date;
}

/** Never rejects. `actor` is who caused the change; absent: the coordinator. */
export type NoteChange = (
  change: Change,
  by?: { readonly actor: string; readonly remoteAddress: string | null },
) => Promise<void>;

export function noteOwnChanges({ pool, log, now }: OwnChangePorts): NoteChange {
  const audit = createAuditLog(pool);
  return async (change, by) => {
    const who = by ? ({ ...by, via: "page" } as const) : coordinator;
    try {
      await audit.record({ ...change, ...who, at: now() });
    } catch (error) {
      log.error({ error, action: change.action, target: change.target }, "a change is not in the audit log");
    }
  };
}

const coordinator = { actor: "coordinator", via: "coordinator", remoteAddress: null } as const;
