/** Writes a command's changes to the audit log, with the system user and the machine. */
import { hostname, userInfo } from "node:os";
import type { Pool } from "pg";
import { createAuditLog } from "#coordinator/database/audit-log";
import { Journal } from "#coordinator/run/journal/journal-store";
import type { Change } from "#core/audit";
import { DatabaseError } from "#core/errors";
import { printable } from "#core/terminal-text";

const mostOfName = 50;

/**
 * Call it after the change. `before` and `after` must not contain secrets. Throws a DatabaseError which says that the change
 * was made but not recorded.
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

/** Databases that this command has changed. */
const changed = new WeakSet<Pool>();

/** Whether the command's changes must be in the journal's files before it reports success. */
export const isJournaled = (pool: Pool) => changed.has(pool);

/** `root` is the folder of the home's journals. Throws a DatabaseError when the journal cannot be written. */
export async function keepJournal(pool: Pool, root: string): Promise<void> {
  const { journal } = await Journal.open(pool, root, () => new Date());
  await journal.catchUp();
}

/** Example: `root on db1`. Names the command's user in the audit log. */
export function commandActor(): string {
  return `${systemUser()} on ${printable(hostname(), mostOfName)}`;
}

/** A user in a container may have no name. */
export function systemUser(): string {
  try {
    return printable(userInfo().username, mostOfName);
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}

/** The system user's name, without characters that the audit log does not allow in names. */
export function ownName(): string {
  return systemUser().replace(/[^\p{L}\p{N}._@+-]/gu, "-");
}
