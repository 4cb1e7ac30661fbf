/** Runs one of the Postgres programs to its end, under the server's account. */
import { execFile } from "node:child_process";
import { chownSync, lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseError } from "#core/errors";

/** Longer than pg_ctl's own patience. */
const deadlineMs = 180_000;

/** Nothing of the caller's: PGDATA, PGPORT and the like change nothing, and the folder can be reached by every account. */
export const programEnvironment = { cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } } as const;

/**
 * Exit code and everything printed; a program that cannot be started has exit code -1 and the reason as
 * output.
 */
export async function runProgram(
  program: string,
  options: readonly string[],
  account: ServerAccount,
): Promise<{ exitCode: number; output: string }> {
  return await new Promise((resolve) => {
    execFile(
      program,
      [...options],
      { ...programEnvironment, timeout: deadlineMs, ...account },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        const printed = `${stdout}${stderr}`.trim();
        resolve({ exitCode, output: printed === "" && error !== null ? error.message : printed });
      },
    );
  });
}

// Under which account the embedded Postgres runs, and whether that account reaches a folder. Postgres
// refuses to run as root; there it runs under a uid that owns nothing else, without a user being created.

/** uid and gid to switch to; null: the server runs as the user who starts it. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | null;

/** nobody, daemon, bin: initdb wants a uid that the system has a name for, and a container may map only some. */
const candidates = [65534, 1, 2] as const;

/**
 * Hands `folder` (new and empty) to the account that the server will run under, and says which that is.
 * The root of a user namespace may lack some uids, so each candidate is tried.
 */
export function handOver(folder: string): ServerAccount {
  if (process.getuid?.() !== 0) return null;
  for (const id of candidates) {
    try {
      chownSync(folder, id, id);
      return { uid: id, gid: id };
    } catch {}
  }
  throw new DatabaseError(
    `${folder} cannot be given to another user (tried uids ${candidates.join(", ")}), and Postgres does not run as root: start as an ordinary user, or set DATABASE_URL`,
  );
}

/** The account that a data folder belongs to. */
export function accountOf(dataFolder: string): ServerAccount {
  const { uid, gid } = lstatSync(dataFolder);
  const own = process.getuid?.() ?? uid;
  if (own !== 0) {
    if (uid === own) return null;
    throw new DatabaseError(
      `${dataFolder} belongs to uid ${uid}: start as that user, or choose another home`,
    );
  }
  if (uid !== 0) return { uid, gid };
  throw new DatabaseError(
    `${dataFolder} belongs to root, and Postgres does not run as root: chown -R ${candidates[0]}:${candidates[0]} ${dataFolder}`,
  );
}

/** The first folder on the way to `path` (and including it) that the account may not pass, or null. */
export function firstClosedFolder(path: string, account: ServerAccount): string | null {
  if (account === null) return null;
  const parent = dirname(path);
  const above = parent === path ? null : firstClosedFolder(parent, account);
  if (above !== null) return above;
  const { uid, gid, mode } = statSync(path);
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
  return (mode & bit) === 0 ? path : null;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === "EPERM";
  }
}
