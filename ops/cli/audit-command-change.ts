/** What a command has changed goes to the audit log, by whom: the system's user, and the machine it was typed on. */
import { hostname, userInfo } from "node:os";
import type { Pool } from "pg";
import { createAuditLog } from "#coordinator/database/audit-log";
import { Journal } from "#coordinator/run/journal/journal-store";
import type { Change } from "#core/audit";
import { DatabaseError } from "#core/errors";
import { printable } from "#core/terminal-text";

const mostOfName = 50;

/**
 * Call it once the change is made; before and after hold no secrets. Throws a DatabaseError that says that the
 * change is made and not written down.
 */
export async function recordCommand(pool: Pool, change: Change): Promise<void> {
  changed.add(pool);
  const who = { actor: commandActor(), via: "command" as const, remoteAddress: null, at: new Date() };
  try {
    await createAuditLog(pool).record({ ...change, ...who });
  } catch (error) {
    throw new DatabaseError(
      `it is done (${change.action}), but could not be written to the audit log: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/** Databases that a command has changed. */
const changed = new WeakSet<Pool>();

/** Whether what the command did has to be in the journal before it says that it is done. */
export const isJournaled = (pool: Pool) => changed.has(pool);

/** `root`: the folder of the home's journals. Throws a DatabaseError where it cannot be written. */
export async function keepJournal(pool: Pool, root: string): Promise<void> {
  const { journal } = await Journal.open(pool, root, () => new Date());
  await journal.catchUp();
}

/** `root on db1`: who types commands here, as the audit log names them. */
export function commandActor(): string {
  return `${systemUser()} on ${printable(hostname(), mostOfName)}`;
}

/** A container's user may have no name. */
export function systemUser(): string {
  try {
    return printable(userInfo().username, mostOfName);
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}

/** The system user's, without what no name in the audit log has. */
export function ownName(): string {
  return systemUser().replace(/[^\p{L}\p{N}._@+-]/gu, "-");
}
