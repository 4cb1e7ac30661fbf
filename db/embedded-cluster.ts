/**
 * Manages the embedded server's files: the data folder <home>/postgres, its settings, and the socket's folder. Several
 * processes may do this at once, so new files are written under another name and renamed into place.
 */

import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
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
import { lostWords, noteCluster, restoreCommandOf, stampAt } from "./backup-folder.ts";
import { copyTree, freeBytesAt, NotCopied } from "./copy-files.ts";
import {
  accountOf,
  asAccount,
  findPrograms,
  firstClosedFolder,
  firstExchangeable,
  giveAll,
  isForeignId,
  makeDataFolder,
  type PostgresPrograms,
  removeAsOwner,
  runInitdb,
  type ServerAccount,
} from "./embedded-binaries.ts";
import { wordsOf } from "./server-database.ts";

/** Names the server's superuser and only database. Whoever can reach the socket's folder (0700) needs no password. */
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

/** Returns the home whose embedded server uses this data folder, or null when the folder belongs to another server. */
export function homeOf(dataFolder: string): string | null {
  return existsSync(join(dataFolder, "nearcrawl.conf")) ? dirname(dataFolder) : null;
}

export function logFileOf(home: string): string {
  return join(dataFolderOf(home), "server.log");
}

/** Records which backup a restored data folder came from, and when. Backups leave this file out. */
export const restoredFileOf = (dataFolder: string): string => join(dataFolder, "restored-from.json");

// A restore moves one data folder aside and another into its place. A mark exists from before the first rename until
// after the second, so a process that starts the server in between completes the restore instead of creating an empty
// database.

const swapFileOf = (home: string) => join(home, "restore-swap.json");

interface Swap {
  /** The complete, recovered folder that replaces <home>/postgres. */
  readonly fresh: string;
  readonly aside: string | null;
}

export function swapDataFolder(home: string, { fresh, aside }: Swap, between: () => void = () => {}): void {
  writeFileSync(swapFileOf(home), `${JSON.stringify({ fresh, aside })}\n`, { mode: 0o600, flush: true });
  if (aside !== null) renameSync(dataFolderOf(home), aside);
  between();
  finishSwap(home);
}

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

/** True while a restore has moved the data folder aside and not replaced it yet. */
export const isBetweenFolders = (home: string): boolean =>
  existsSync(swapFileOf(home)) && !hasEntries(dataFolderOf(home));

/** Returns whether the home never had an embedded database. Returns false when the home is not readable. */
export function neverHadDatabase(home: string): boolean {
  try {
    const folder = lstatSync(dataFolderOf(home), { throwIfNoEntry: false });
    return folder === undefined && !existsSync(swapFileOf(home)) && lostWords(home) === null;
  } catch {
    return false;
  }
}

/**
 * Returns why no server starts in a home that lost its data folder and the command to type, or null when the folder
 * exists or never did.
 */
export function lostDataFolder(home: string): string | null {
  try {
    return existsSync(swapFileOf(home)) || hasEntries(dataFolderOf(home)) ? null : lostWords(home);
  } catch {
    // The folder belongs to another user, so it exists.
    return null;
  }
}

/** Returns why the coordinator could not start its embedded server, as far as can be seen without starting it, or null. */
export function embeddedFault(home: string): string | null {
  const lost = lostDataFolder(home);
  if (lost !== null || process.getuid?.() !== 0 || !existsSync(home)) return lost;
  try {
    const { uid } = lstatSync(dataFolderOf(home), { throwIfNoEntry: false }) ?? { uid: 0 };
    refuseExchangeable(home);
    // When the server starts, the home itself may be opened to the account.
    refuseClosed(
      isOpenable(home) ? dirname(home) : home,
      isForeignId(uid) ? unknownAccount : { uid, gid: uid },
    );
    return null;
  } catch (error) {
    return wordsOf(error);
  }
}

/** An account that is not chosen yet has at least everybody's rights. */
const unknownAccount = { uid: -1, gid: -1 };

export interface PrepareOptions {
  /** Creates an empty database although the home had one before. */
  readonly anew?: boolean | undefined;
  /** Called with the folder that keeps the original of a data folder from an older version. */
  readonly onKeptAside?: ((folder: string) => void) | undefined;
}

/** Returns a data folder that this build can run, with fresh settings. Creates it if there never was one. */
export async function prepareCluster(home: string, options: PrepareOptions = {}): Promise<Cluster> {
  try {
    const dataFolder = dataFolderOf(home);
    refuseExchangeable(home);
    finishSwap(home);
    if (!hasEntries(dataFolder)) await createCluster(home, dataFolder, options.anew === true);
    checkWhole(dataFolder, home);
    if (!isServed(dataFolder)) await copyForOwnAccount(home, dataFolder, options);
    const account = accountOf(dataFolder);
    passable(home, account);
    const programs = await findPrograms(home, account);
    checkVersion(dataFolder, programs);
    await writeFiles(home, account);
    noteCluster(home, systemIdentifierOf(dataFolder));
    return { dataFolder, logFile: logFileOf(home), account, programs };
  } catch (error) {
    if (error instanceof DatabaseError) throw error;
    throw new DatabaseError(`the embedded Postgres in ${home} cannot be prepared: ${wordsOf(error)}`, {
      cause: error,
    });
  }
}

/** Root creates, gives away and removes folders only on paths that nobody else can redirect. */
export function refuseExchangeable(home: string): void {
  if (process.getuid?.() !== 0) return;
  const folder = firstExchangeable(home);
  if (folder === null) return;
  const { uid } = statSync(folder);
  throw new DatabaseError(
    `${folder} on the way to ${home} can be changed by others than ` +
      `root${uid === 0 ? "" : ` (it belongs to uid ${uid})`}: as root no embedded Postgres is started ` +
      "there; start as that user, or choose another home",
  );
}

export function systemIdentifierOf(dataFolder: string): string | null {
  const file = join(dataFolder, "global/pg_control");
  if (!existsSync(file)) return null;
  const handle = openSync(file, "r");
  try {
    const identifier = Buffer.alloc(8);
    return readSync(handle, identifier) === 8 ? String(identifier.readBigUInt64LE()) : null;
  } finally {
    closeSync(handle);
  }
}

/** Returns the home's real path, or creates it so that the server's account may pass (0711) whatever the umask. */
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
 * Lets the server's account pass through the home, or names the closed folder that is not ours to change. A home closed
 * to everybody (mktemp -d) is opened only to that account's group.
 */
export function passable(home: string, account: ServerAccount): void {
  if (account === null) return;
  if (firstClosedFolder(home, account) === home && isOpenable(home)) {
    chownSync(home, 0, account.gid);
    chmodSync(home, (statSync(home).mode & 0o707) | 0o010);
  }
  refuseClosed(home, account);
}

/** True when root owns the home and its group admits nobody else. */
function isOpenable(home: string): boolean {
  const { uid, gid, mode } = statSync(home);
  return uid === 0 && (gid === 0 || (mode & 0o070) === 0 || ((mode & 0o070) === 0o010 && isForeignId(gid)));
}

function refuseClosed(home: string, account: NonNullable<ServerAccount>): void {
  const closed = firstClosedFolder(home, account);
  if (closed === null) return;
  const who = account === unknownAccount ? "a uid of its own" : `uid ${account.uid}`;
  throw new DatabaseError(
    `the embedded Postgres runs as ${who}, which may not pass ${closed} on the way to ${home}: choose another home, or chmod o+x ${closed}`,
  );
}

/** Checks that the process in the pid file lives, because a killed server leaves the file behind. */
function isServed(dataFolder: string): boolean {
  const file = join(dataFolder, "postmaster.pid");
  if (!existsSync(file)) return false;
  const pid = Number.parseInt(readFileSync(file, "utf8"), 10);
  return pid > 0 && isRunning(pid);
}

function hasEntries(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0;
}

/** The name contains the process id of the folder's creator, so that `removeAbandoned` removes it if that is killed. */
const unfinishedIn = (home: string) =>
  `${dataFolderOf(home)}.new-${process.pid}-${randomBytes(4).toString("hex")}`;

/** Uses UTF8 and C.UTF-8 where available, so that non-ASCII letters count as letters. */
async function createCluster(home: string, dataFolder: string, isAnew: boolean): Promise<void> {
  const lost = isAnew ? null : lostWords(home);
  if (lost !== null) throw new DatabaseError(lost);
  await removeAbandoned(home);
  const unfinished = unfinishedIn(home);
  try {
    const account = makeDataFolder(unfinished, home);
    passable(home, account);
    const { initdb } = await findPrograms(home, account);
    let said = "";
    for (const locale of ["C.UTF-8", "C"]) {
      const options = ["-U", embeddedName, "-A", "trust", "-E", "UTF8", `--locale=${locale}`];
      said = await runInitdb(initdb, options, unfinished, account);
      if (said === "") break;
    }
    const made = join(unfinished, "data");
    if (said === "") {
      writeFileSync(join(made, "postgresql.conf"), "include 'nearcrawl.conf'\n", { flag: "a" });
      renameSync(made, dataFolder);
    } else if (!hasEntries(dataFolder)) {
      throw new DatabaseError(`initdb failed in ${dataFolder}: ${said}`);
    }
  } catch (error) {
    // Another process created the folder first, and may have closed the home to everyone but its server.
    if (!hasEntries(dataFolder)) throw error;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Removes what killed processes left behind. */
async function removeAbandoned(home: string): Promise<void> {
  for (const name of readdirSync(home)) {
    const pid = /^postgres.*\.new-(\d+)/.exec(name)?.[1];
    if (pid === undefined || isRunning(Number(pid))) continue;
    const folder = join(home, name);
    if (process.getuid?.() === 0 && lstatSync(folder).uid === 0) chmodSync(folder, 0o700);
    await removeAsOwner(folder);
  }
}

/** Files that belong to the running server or are recreated at each start. */
const isOfServer = (name: string) => /^(postmaster\.(pid|opts)|socket|nearcrawl\.conf\.new-.*)$/.test(name);

/**
 * Any process under a data folder's account can read its files and act as the server's superuser. A folder that an
 * older version gave to nobody, or that belongs to root, is therefore copied for a separate account, and the original
 * is kept where only root can enter. Handing over the folder itself would include files that processes of nobody hold
 * open. The folder stays where no separate id is possible, because the root of a user namespace lacks it.
 */
async function copyForOwnAccount(
  home: string,
  dataFolder: string,
  { onKeptAside }: PrepareOptions,
): Promise<void> {
  const { uid, ino } = lstatSync(dataFolder);
  if (process.getuid?.() !== 0 || !isForeignId(uid)) return;
  const unfinished = unfinishedIn(home);
  try {
    const account = makeDataFolder(unfinished, home);
    if (account === null || account.uid === uid) return;
    passable(home, account);
    checkVersion(dataFolder, await findPrograms(home, account));
    const made = join(unfinished, "data");
    await copyTree(dataFolder, made, uid, isOfServer);
    giveAll(made, account);
    // Another process may have replaced the folder first.
    if (lstatSync(dataFolder).ino !== ino) return;
    const aside = `${dataFolder}.before-${stampAt(new Date())}`;
    mkdirSync(aside, { mode: 0o700 });
    swapDataFolder(home, { fresh: made, aside: join(aside, "postgres") });
    onKeptAside?.(aside);
  } catch (error) {
    if (lstatSync(dataFolder, { throwIfNoEntry: false })?.ino !== ino) return;
    if (error instanceof DatabaseError && !(error instanceof NotCopied)) throw error;
    throw new DatabaseError(
      `${dataFolder} belongs to uid ${uid}, which other programs may run under, and cannot be copied for an account of its own: ${wordsOf(error)}`,
      { cause: error },
    );
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** No server starts without these, so the folder is not changed when one is missing. */
const parts = ["PG_VERSION", "base", "global/pg_control", "pg_wal", "pg_xact"];

function checkWhole(dataFolder: string, home: string): void {
  const missing = parts.filter((part) => !existsSync(join(dataFolder, part)));
  if (missing.length === 0) return;
  if (missing.length === parts.length) {
    throw new DatabaseError(
      `${dataFolder} holds something, but not a Postgres data folder: choose another home`,
    );
  }
  throw new DatabaseError(
    `${dataFolder} is half a data folder, without ${missing.join(", ")}, and was left as it is: put that back, or restore a backup (${restoreCommandOf(home)})`,
  );
}

function checkVersion(dataFolder: string, programs: PostgresPrograms): void {
  const found = readFileSync(join(dataFolder, "PG_VERSION"), "utf8").trim();
  if (found === String(programs.majorVersion)) return;
  throw new DatabaseError(
    `${dataFolder} was made by Postgres ${found}, this build brings Postgres ` +
      `${programs.majorVersion}: use the build that made it, or dump and load the data with that ` +
      "version's pg_dump, or choose another home",
  );
}

/**
 * A socket's path may have 103 bytes (sun_path of macOS; Linux has 107), of which the file name takes 14. If the home's
 * path is longer, the socket goes to a folder in /tmp named after home and account.
 */
function socketFolderOf(home: string, account: ServerAccount): string {
  const beside = join(dataFolderOf(home), "socket");
  if (Buffer.byteLength(beside) <= 88) return beside;
  return `/tmp/nearcrawl-${shortHash(`${home} ${account?.uid}`)}`;
}

function checkSocketFolder(folder: string, account: ServerAccount): void {
  const found = lstatSync(folder);
  const expected = account?.uid ?? process.getuid?.() ?? found.uid;
  if (found.uid === expected && found.isDirectory() && (found.mode & 0o077) === 0) return;
  throw new DatabaseError(`the socket's folder ${folder} must be a folder of uid ${expected} with mode 0700`);
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Writes the socket's folder and settings, and rotates the log at 10 MB. */
async function writeFiles(home: string, account: ServerAccount): Promise<void> {
  const dataFolder = dataFolderOf(home);
  const socketFolder = socketFolderOf(home, account);
  await asAccount(
    account,
    `cd -- "$1" && mkdir -p -m 700 -- "$2" && cat >nearcrawl.conf.new-$$ && mv -f nearcrawl.conf.new-$$ nearcrawl.conf &&
     { [ "$(wc -c <server.log || echo 0)" -le 10000000 ] || mv -f server.log server.log.1; } 2>/dev/null && : >>server.log`,
    [dataFolder, socketFolder],
    settingsText(dataFolder, socketFolder),
  );
  checkSocketFolder(socketFolder, account);
}

/** Settings for a small machine. Durability stays on, so that an acknowledged result survives a power cut. */
function settingsText(dataFolder: string, socketFolder: string): string {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: "",
    unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: "0700",
    port: "5432",
    // A coordinator holds some twenty connections and a command a few.
    max_connections: "200",
    shared_buffers: `${sharedMegabytes()}MB`,
    work_mem: "8MB",
    fsync: "on",
    synchronous_commit: "on",
    // Allows online backups and standbys (test/bench/results/backup.md shows the cost).
    wal_level: "replica",
    max_wal_senders: "8",
    max_replication_slots: "8",
    // Enough for a standby without a slot that was briefly disconnected.
    wal_keep_size: "512MB",
    // A stalled backup or lost standby loses its log before that log fills the disk.
    max_slot_wal_keep_size: `${slotMegabytes(freeBytesAt(dataFolder))}MB`,
    // The first change of a page after each checkpoint logs the whole page, so checkpoints are rare and scheduled.
    max_wal_size: "4GB",
    checkpoint_timeout: "15min",
    random_page_cost: "1.1",
    timezone: "UTC",
    log_timezone: "UTC",
  };
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'\n`,
  );
  return `# Written by nearcrawl at every start; your own settings go into postgresql.conf, below the include.\n${lines.join("")}`;
}

const gigabyteInMegabytes = 1024;

/** Lets a slot retain log up to a quarter of the free disk, within 1 and 16 GB. */
export function slotMegabytes(freeBytes: number): number {
  const quarter = Math.floor(freeBytes / 4 / megabyte);
  return Math.max(gigabyteInMegabytes, Math.min(16 * gigabyteInMegabytes, quarter));
}

// Sizes the embedded Postgres' page cache according to the memory of the machine or container.

const megabyte = 2 ** 20;

/** Postgres' own default, which works everywhere. */
const leastMegabytes = 128;

/** For more than this, the operating system's cache is as good. */
const mostMegabytes = 1024;

/** Returns an eighth of the memory, for shared_buffers. */
export function sharedMegabytes(memoryBytes: number = memoryOfMachine()): number {
  return Math.max(leastMegabytes, Math.min(mostMegabytes, Math.floor(memoryBytes / 8 / megabyte)));
}

/** A container's limit (cgroups). 0 or an impossibly large number means that there is none. */
function memoryOfMachine(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
