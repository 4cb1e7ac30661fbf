/**
 * The embedded server's files: the data folder <home>/postgres, its settings, and the folder of its
 * socket. Two processes may do all of this at once: what is new is built aside and renamed into place.
 */

import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import { DatabaseError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { freeBytesAt } from "./copy-files.ts";
import {
  accountOf,
  findPrograms,
  firstClosedFolder,
  giveOwnAccount,
  handOver,
  isShared,
  type PostgresPrograms,
  runProgram,
  type ServerAccount,
} from "./embedded-binaries.ts";
import { wordsOf } from "./server-database.ts";

/** The server's superuser and its one database. Who may reach the socket's folder (mode 0700) needs no password. */
export const embeddedName = "nearcrawl";

export interface Cluster {
  readonly dataFolder: string;
  readonly logFile: string;
  readonly account: ServerAccount;
  readonly programs: PostgresPrograms;
}

export function dataFolderOf(home: string): string {
  return join(home, "postgres");
}

/** The home whose embedded server keeps its data in that folder of this machine; null: another server does. */
export function homeOf(dataFolder: string): string | null {
  return existsSync(join(dataFolder, "nearcrawl.conf")) ? dirname(dataFolder) : null;
}

export function logFileOf(home: string): string {
  return join(dataFolderOf(home), "server.log");
}

/** In a data folder that came out of a backup: which one, and when. It is not backed up itself. */
export const restoredFileOf = (dataFolder: string): string => join(dataFolder, "restored-from.json");

// A restore puts one data folder aside and another in its place. A mark says so from before the first rename until after
// the second: whoever starts the server in between finishes it, and makes no empty database.

const swapFileOf = (home: string) => join(home, "restore-swap.json");

interface Swap {
  /** Complete and recovered; takes the place of <home>/postgres. */
  readonly fresh: string;
  /** Where what lay there goes; null: nothing did. */
  readonly aside: string | null;
}

/** `between` is called after the first rename. */
export function swapDataFolder(home: string, { fresh, aside }: Swap, between: () => void = () => {}): void {
  writeFileSync(swapFileOf(home), `${JSON.stringify({ fresh, aside })}\n`, { mode: 0o600, flush: true });
  if (aside !== null) renameSync(dataFolderOf(home), aside);
  between();
  finishSwap(home);
}

/** Several may do so at once. */
export function finishSwap(home: string): void {
  const file = swapFileOf(home);
  if (!existsSync(file)) return;
  const dataFolder = dataFolderOf(home);
  const { fresh, aside } = JSON.parse(readFileSync(file, "utf8")) as Swap;
  try {
    if (!hasEntries(dataFolder)) renameSync(fresh, dataFolder);
  } catch (error) {
    if (!hasEntries(dataFolder)) {
      const back = aside === null ? `rm '${file}'` : `mv '${aside}' '${dataFolder}' && rm '${file}'`;
      throw new DatabaseError(
        `a restore was interrupted, and ${fresh} cannot be put in its place (${wordsOf(error)}): to have what was there before, ${back}`,
        { cause: error },
      );
    }
  }
  rmSync(file, { force: true });
}

/** A restore has put the data folder aside, and nothing in its place yet. */
export const isBetweenFolders = (home: string): boolean =>
  existsSync(swapFileOf(home)) && !hasEntries(dataFolderOf(home));

/** A data folder that this build can run, made when there is none, with its settings written anew. */
export async function prepareCluster(home: string): Promise<Cluster> {
  try {
    const dataFolder = dataFolderOf(home);
    finishSwap(home);
    if (!hasEntries(dataFolder)) await createCluster(home, dataFolder);
    if (existsSync(join(dataFolder, "PG_VERSION")) && !isServed(dataFolder)) giveOwnAccount(dataFolder, home);
    const account = accountOf(dataFolder);
    passable(home, account);
    const programs = await findPrograms(home, account);
    checkVersion(dataFolder, programs);
    writeSettings(dataFolder, socketFolderOf(home, account), account);
    return { dataFolder, logFile: logFileOf(home), account, programs };
  } catch (error) {
    if (error instanceof DatabaseError) throw error;
    throw new DatabaseError(`the embedded Postgres in ${home} cannot be prepared: ${wordsOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * The home without symbolic links, made when it is not there: then it lets the server's account pass (0711),
 * whatever the umask.
 */
export function makeHome(folder: string): string {
  try {
    const made = mkdirSync(resolve(folder), { recursive: true }) !== undefined;
    if (made && process.getuid?.() === 0) chmodSync(folder, 0o711);
    return realpathSync(folder);
  } catch (error) {
    throw new DatabaseError(`the home ${folder} cannot be made: ${wordsOf(error)}`, { cause: error });
  }
}

/**
 * Lets the server's account into the home, and says which folder is closed where that is not ours to change.
 * A home that is closed to everybody (mktemp -d) is opened for passing, to that account's group alone.
 */
export function passable(home: string, account: ServerAccount): void {
  if (account === null) return;
  const { uid, gid, mode } = statSync(home);
  const isNobodys = (mode & 0o070) === 0 || ((mode & 0o070) === 0o010 && isShared(gid));
  if (firstClosedFolder(home, account) === home && uid === 0 && isNobodys) {
    chownSync(home, uid, account.gid);
    chmodSync(home, (mode & 0o777) | 0o010);
  }
  const closed = firstClosedFolder(home, account);
  if (closed === null) return;
  throw new DatabaseError(
    `the embedded Postgres runs as uid ${account.uid}, which may not pass ${closed} on the way to ${home}: choose another home, or chmod o+x ${closed}`,
  );
}

/** By the process that it says; one that was killed may have left the file behind. */
function isServed(dataFolder: string): boolean {
  const file = join(dataFolder, "postmaster.pid");
  if (!existsSync(file)) return false;
  const pid = Number.parseInt(readFileSync(file, "utf8"), 10);
  return pid > 0 && isRunning(pid);
}

function hasEntries(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0;
}

/** initdb takes the encoding UTF8, and C.UTF-8 where the system has it: letters beyond ASCII count as letters. */
async function createCluster(home: string, dataFolder: string): Promise<void> {
  removeAbandoned(home);
  const unfinished = `${dataFolder}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  mkdirSync(unfinished, { mode: 0o700 });
  const account = handOver(unfinished);
  passable(home, account);
  const { initdb } = await findPrograms(home, account);
  let said = "";
  for (const locale of ["C.UTF-8", "C"]) {
    const run = await runProgram(
      initdb,
      ["-D", unfinished, "-U", embeddedName, "-A", "trust", "-E", "UTF8", `--locale=${locale}`],
      account,
    );
    if (run.exitCode === 0) {
      giveOwnAccount(unfinished, home);
      return finishCluster(unfinished, dataFolder);
    }
    said = run.output;
  }
  rmSync(unfinished, { recursive: true, force: true });
  // Another process was faster, and has closed the home to all but its server.
  if (hasEntries(dataFolder)) return;
  throw new DatabaseError(`initdb failed in ${dataFolder}: ${said.slice(-2000)}`);
}

/** Another process may have been faster: then its folder stays, and ours goes. */
function finishCluster(unfinished: string, dataFolder: string): void {
  writeFileSync(join(unfinished, "postgresql.conf"), "include 'nearcrawl.conf'\n", { flag: "a" });
  try {
    renameSync(unfinished, dataFolder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!hasEntries(dataFolder)) throw error;
  }
}

/** What processes that were killed in the middle of it left behind. */
function removeAbandoned(home: string): void {
  for (const name of readdirSync(home)) {
    const pid = /^postgres.*\.new-(\d+)/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid)))
      rmSync(join(home, name), { recursive: true, force: true });
  }
}

function checkVersion(dataFolder: string, programs: PostgresPrograms): void {
  const file = join(dataFolder, "PG_VERSION");
  if (!existsSync(file)) {
    throw new DatabaseError(
      `${dataFolder} holds something, but not a Postgres data folder: choose another home`,
    );
  }
  const found = readFileSync(file, "utf8").trim();
  if (found === String(programs.majorVersion)) return;
  throw new DatabaseError(
    `${dataFolder} was made by Postgres ${found}, this build brings Postgres ${programs.majorVersion}: use the build that made it, or dump and load the data with that version's pg_dump, or choose another home`,
  );
}

/**
 * A socket's path may have 103 bytes (sun_path of macOS; Linux has 107), and its file name takes 14 of them:
 * where the home is too deep, the socket goes to a folder in /tmp that is named after the home.
 */
function socketFolderOf(home: string, account: ServerAccount): string {
  const beside = join(dataFolderOf(home), "socket");
  const folder = Buffer.byteLength(beside) <= 88 ? beside : `/tmp/nearcrawl-${shortHash(home)}`;
  if (!existsSync(folder)) {
    mkdirSync(folder, { mode: 0o700 });
    if (account !== null) chownSync(folder, account.uid, account.gid);
  }
  if (account !== null && lstatSync(folder).isDirectory() && isShared(lstatSync(folder).uid))
    lchownSync(folder, account.uid, account.gid);
  const { uid, mode } = lstatSync(folder);
  const expected = account?.uid ?? process.getuid?.() ?? uid;
  if (uid === expected && lstatSync(folder).isDirectory() && (mode & 0o077) === 0) return folder;
  throw new DatabaseError(`the socket's folder ${folder} must be a folder of uid ${expected} with mode 0700`);
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Settings for a small machine. Durability stays on: an acknowledged result survives a power cut. */
function writeSettings(dataFolder: string, socketFolder: string, account: ServerAccount): void {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: "",
    unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: "0700",
    port: "5432",
    max_connections: "100",
    shared_buffers: `${sharedMegabytes()}MB`,
    work_mem: "8MB",
    fsync: "on",
    synchronous_commit: "on",
    // Backups while the server runs, and standbys that follow it (test/bench/results/backup.md has what it costs).
    wal_level: "replica",
    max_wal_senders: "8",
    max_replication_slots: "8",
    // For a standby without a slot that was away for a moment.
    wal_keep_size: "512MB",
    // A backup that stands still, or a standby that never comes back, loses its log before the disk is full of it.
    max_slot_wal_keep_size: `${slotMegabytes(freeBytesAt(dataFolder))}MB`,
    // Each checkpoint makes the first change of a page cost the whole page: rarely, and on a schedule, not by size.
    max_wal_size: "4GB",
    checkpoint_timeout: "15min",
    random_page_cost: "1.1",
    timezone: "UTC",
    log_timezone: "UTC",
  };
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'\n`,
  );
  const file = join(dataFolder, "nearcrawl.conf");
  const unfinished = `${file}.new-${process.pid}`;
  writeFileSync(
    unfinished,
    `# Written by nearcrawl at every start; your own settings go into postgresql.conf, below the include.\n${lines.join("")}`,
  );
  if (account !== null) chownSync(unfinished, account.uid, account.gid);
  renameSync(unfinished, file);
}

const gigabyteInMegabytes = 1024;

/** How much log a slot may hold back: a quarter of the disk that is left, 1 GB at least and 16 GB at most. */
export function slotMegabytes(freeBytes: number): number {
  const quarter = Math.floor(freeBytes / 4 / megabyte);
  return Math.max(gigabyteInMegabytes, Math.min(16 * gigabyteInMegabytes, quarter));
}

// How much memory the embedded Postgres keeps pages of its tables in, by what the machine (or its container) has.

const megabyte = 2 ** 20;

/** Postgres' own default, which runs anywhere. */
const leastMegabytes = 128;

/** Beyond it, the pages that the operating system keeps do as well. */
const mostMegabytes = 1024;

/** An eighth of the memory; for setting shared_buffers. */
export function sharedMegabytes(memoryBytes: number = memoryOfMachine()): number {
  return Math.max(leastMegabytes, Math.min(mostMegabytes, Math.floor(memoryBytes / 8 / megabyte)));
}

/** A container's limit where there is one (cgroups); 0 or a number beyond all memory where there is none. */
function memoryOfMachine(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
