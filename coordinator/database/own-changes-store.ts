/**
 * What the coordinator changes by itself, written to the audit log where a person would ask later who did it. A note that
 * cannot be written is logged; what was done is done.
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

/** Never rejects. `actor`: whoever brought it about; left out: the coordinator. */
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
