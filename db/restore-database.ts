/**
 * Replaces a home's data folder with a backup. The backup is copied, checked against its digests and recovered by a
 * separate server before two renames put it in place. The old folder is kept. A failure or kill before the renames
 * leaves the home unchanged.
 *
 * Recovery ends where the backup did (recovery_target = 'immediate'), on a new timeline that neither the backup nor the
 * old folder has used. From this the coordinator learns that its database went back.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseError, NearcrawlError, UsageError } from "#core/errors";
import { bytesText, howMany, instantWords } from "#core/format";
import { isRunning } from "#core/running-process";
import { compareVersions } from "#protocol/release";
import { softwareVersion } from "#protocol/software-version";
import {
  type BackupManifest,
  bytesOf,
  isAbandoned,
  knownCluster,
  listBackups,
  noteCluster,
  readManifest,
  rowsOf,
  stampAt,
} from "./backup-folder.ts";
import { copyFile, freeBytesAt, syncAll, syncPath } from "./copy-files.ts";
import { findPrograms, isForeignId, type ServerAccount } from "./embedded-binaries.ts";
import {
  dataFolderOf,
  finishSwap,
  isBetweenFolders,
  makeHome,
  passable,
  refuseExchangeable,
  restoredFileOf,
  swapDataFolder,
  systemIdentifierOf,
} from "./embedded-cluster.ts";
import { readPidFile, serverIsAlive, stopEmbeddedPostgres } from "./embedded-postgres.ts";
import {
  type CopyOptions,
  damaged,
  layOutBackup,
  recoverLaidOut,
  removeLaidOut,
  sizeFaults,
} from "./recover-backup.ts";
import { ownMigrations, schemaStateOf } from "./schema-state.ts";
import { wordsOf } from "./server-database.ts";

interface RestoreOptions extends CopyOptions {
  /** Confirms that the restore goes ahead despite the concerns of `planRestore`. */
  readonly confirmed?: boolean | undefined;
  readonly onStep?: ((step: RestoreStep) => void) | undefined;
}

/** `recovered` means that the server answers; `swap`, that the old folder is aside and the new one not in place yet. */
export type RestoreStep = "copy" | "recover" | "recovered" | "swap" | "done";

export interface RestorePlan {
  readonly home: string;
  readonly backup: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly replaces: boolean;
  /** Sentences that say why the restore may be a mistake. */
  readonly concerns: readonly string[];
}

interface RestoredDatabase {
  readonly home: string;
  readonly backup: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly seconds: number;
  /** The server's new timeline, which was never used before. */
  readonly timeline: number;
  readonly keptAside: string | null;
}

/** Checks everything that can be checked before changing anything. Throws a UsageError for a refusal. */
export async function planRestore(homeFolder: string, backupFolder: string): Promise<RestorePlan> {
  const [home, backup] = [resolve(homeFolder), resolve(backupFolder)];
  const manifest = readManifest(backup);
  checkIdle(home);
  await checkVersions(home, backup, manifest);
  const faults = sizeFaults(backup, manifest);
  if (faults.length > 0) throw damaged(backup, faults);
  const bytes = bytesOf(manifest);
  checkRoom(home, bytes);
  const dataFolder = dataFolderOf(home);
  return {
    home,
    backup,
    manifest,
    bytes,
    replaces: existsSync(dataFolder) && readdirSync(dataFolder).length > 0,
    concerns: concernsAbout(home, manifest),
  };
}

/** Throws what `planRestore` throws, a UsageError when not confirmed, and a DatabaseError when the restore fails. */
export async function restoreDatabase(
  homeFolder: string,
  backupFolder: string,
  options: RestoreOptions = {},
): Promise<RestoredDatabase> {
  const startedMs = performance.now();
  const plan = await planRestore(homeFolder, backupFolder);
  if (plan.concerns.length > 0 && options.confirmed !== true)
    throw new UsageError(`not restored: ${plan.concerns.join(" ")} Say --yes if that is meant.`);
  const { backup, manifest, bytes } = plan;
  const home = makeHome(plan.home);
  refuseExchangeable(home);
  await removeUnfinished(home);
  const aside = join(home, `restore.new-${process.pid}`);
  try {
    options.onStep?.("copy");
    const laidOut = await layOutBackup(backup, manifest, aside, { ...options, accountOfHome: home });
    await takeHistories(home, laidOut.folder, manifest);
    noteRestore(laidOut.folder, { backup, manifest });
    options.onStep?.("recover");
    const account = accountBefore(home) ?? laidOut.account;
    passable(home, account);
    const { timeline } = await recoverLaidOut({ ...laidOut, account }, options.signal);
    options.onStep?.("recovered");
    await stopEmbeddedPostgres(aside);
    await syncFolder(dataFolderOf(aside));
    const keptAside = swapIn(home, aside, options);
    noteCluster(home, manifest.systemIdentifier);
    await syncPath(home);
    options.onStep?.("done");
    const seconds = (performance.now() - startedMs) / 1000;
    return { home, backup, manifest, bytes, seconds, timeline, keptAside };
  } catch (error) {
    if (error instanceof NearcrawlError || options.signal?.aborted) throw error;
    const state = isBetweenFolders(home)
      ? "is between the two: the next start, or restore, finishes it"
      : "is as it was";
    throw new DatabaseError(`the restore failed, and ${home} ${state}: ${wordsOf(error)}`, { cause: error });
  } finally {
    if (!isBetweenFolders(home)) await removeLaidOut(aside);
  }
}

function checkIdle(home: string): void {
  if (serverIsAlive(home)) {
    throw new UsageError(
      `the embedded server of ${home} runs (process ${readPidFile(home)?.pid}): stop the coordinator, then nearcrawl database stop, then restore`,
    );
  }
  refuseWhileCoordinatorRuns(home);
}

export function refuseWhileCoordinatorRuns(home: string): void {
  const pid = runningCoordinator(home);
  if (pid !== null) throw new UsageError(`a coordinator runs on ${home} (process ${pid}): stop it first`);
}

/** Reads the process id that `nearcrawl up` or `coordinator` noted at its start. The id may have been reused since. */
function runningCoordinator(home: string): number | null {
  try {
    const { pid } = JSON.parse(readFileSync(join(home, "current-run.json"), "utf8")) as { pid: number };
    if (pid === process.pid || !isRunning(pid)) return null;
    return isNearcrawl(pid) ? pid : null;
  } catch {
    return null;
  }
}

/** Assumes that the process is ours when its command line cannot be read (no /proc). */
function isNearcrawl(pid: number): boolean {
  try {
    return /nearcrawl|ops\/cli\/main/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
  } catch {
    return true;
  }
}

async function checkVersions(home: string, backup: string, manifest: BackupManifest): Promise<void> {
  const { majorVersion } = await findPrograms(home, null);
  if (manifest.postgresVersion !== majorVersion) {
    throw new UsageError(
      `${backup} is of Postgres ${manifest.postgresVersion}, and this program brings Postgres ` +
        `${majorVersion}: restore it with a program that brings ${manifest.postgresVersion}`,
    );
  }
  if (compareVersions(manifest.programVersion, softwareVersion) > 0) {
    throw new UsageError(
      `${backup} was made by Nearcrawl ${manifest.programVersion}, and this is ${softwareVersion}: restore it with that version or a newer one`,
    );
  }
  for (const { name, migrations } of manifest.schemas) {
    const { fault } = schemaStateOf(migrations, ownMigrations());
    if (fault !== null) throw new UsageError(`${backup}: schema ${name} ${fault}`);
  }
}

function checkRoom(home: string, bytes: number): void {
  let folder = home;
  while (!existsSync(folder)) folder = join(folder, "..");
  const free = freeBytesAt(folder);
  if (free >= bytes) return;
  throw new UsageError(
    `${folder} has ${bytesText(free)} free, and the restored database takes ${bytesText(bytes)} beside what is there: make room first`,
  );
}

function concernsAbout(home: string, manifest: BackupManifest): string[] {
  const dataFolder = dataFolderOf(home);
  const concerns: string[] = [];
  const found = systemIdentifierOf(dataFolder) ?? knownCluster(home);
  if (found !== null && found !== manifest.systemIdentifier) {
    concerns.push(
      `The backup is of another database (system ${manifest.systemIdentifier}) than the one of ${home} (system ${found}).`,
    );
  }
  const restored = readRestored(dataFolder);
  if (restored?.backupId === manifest.backupId) {
    concerns.push(
      `This backup was restored here already, at ${instantWords(restored.restoredAt)}; what was done since then would be put aside.`,
    );
  }
  const fuller = listBackups(home).find((one) => heldBy(one.manifest) * leastShare > heldBy(manifest));
  if (fuller !== undefined) {
    concerns.push(
      `The backup holds ${heldWords(manifest)}, and ${fuller.folder} ${heldWords(fuller.manifest)}.`,
    );
  }
  return concerns;
}

/** Leaves out counts that a manifest of an older program lacks. */
function heldBy(manifest: BackupManifest): number {
  const { pages, optOuts } = rowsOf(manifest);
  return pages === null ? Number.NaN : pages + (optOuts ?? 0);
}

function heldWords(manifest: BackupManifest): string {
  const { pages, optOuts } = rowsOf(manifest);
  return `${howMany(pages ?? 0, "page")} and ${howMany(optOuts ?? 0, "opt-out")}`;
}

/** An earlier backup of a growing crawl contains less. Below this share, it is another crawl's backup or an accident. */
const leastShare = 0.1;

interface RestoredFrom {
  readonly backupId: string;
  readonly backup: string;
  readonly endedAt: string;
  readonly restoredAt: string;
}

function readRestored(dataFolder: string): RestoredFrom | null {
  try {
    return JSON.parse(readFileSync(restoredFileOf(dataFolder), "utf8")) as RestoredFrom;
  } catch {
    return null;
  }
}

function noteRestore(
  dataFolder: string,
  { backup, manifest }: Pick<RestorePlan, "backup" | "manifest">,
): void {
  const { backupId, endedAt } = manifest;
  const restored: RestoredFrom = { backupId, backup, endedAt, restoredAt: new Date().toISOString() };
  const file = restoredFileOf(dataFolder);
  writeFileSync(file, `${JSON.stringify(restored)}\n`, { mode: 0o600 });
}

/**
 * Returns the owner of the existing data folder if root may continue to use it. Returns null when the owner is the user
 * or a shared account.
 */
function accountBefore(home: string): ServerAccount {
  const found = lstatSync(dataFolderOf(home), { throwIfNoEntry: false });
  if (process.getuid?.() !== 0 || found === undefined || isForeignId(found.uid)) return null;
  return { uid: found.uid, gid: found.gid };
}

/** Reserves the timelines that the folder used after the backup, so that their numbers are not used again. */
async function takeHistories(home: string, to: string, manifest: BackupManifest): Promise<void> {
  const before = dataFolderOf(home);
  const from = join(before, "pg_wal");
  if (systemIdentifierOf(before) !== manifest.systemIdentifier || !existsSync(from)) return;
  const owner = lstatSync(before).uid;
  for (const name of readdirSync(from).filter((one) => /^[0-9A-F]{8}\.history$/.test(one))) {
    if (!existsSync(join(to, "pg_wal", name)))
      await copyFile(join(from, name), join(to, "pg_wal", name), { owner });
  }
}

async function syncFolder(folder: string): Promise<void> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  await syncAll([...paths, folder]);
}

function swapIn(home: string, aside: string, { onStep, signal }: RestoreOptions): string | null {
  signal?.throwIfAborted();
  // Somebody may have started the server during the recovery.
  checkIdle(home);
  const dataFolder = dataFolderOf(home);
  const kept = existsSync(dataFolder) ? freeName(`${dataFolder}.before-${stampAt(new Date())}`) : null;
  swapDataFolder(home, { fresh: dataFolderOf(aside), aside: kept }, () => onStep?.("swap"));
  return kept;
}

function freeName(folder: string): string {
  let name = folder;
  for (let number = 2; existsSync(name); number++) name = `${folder}-${number}`;
  return name;
}

const unfinishedName = /^restore\.new-(\d+)$/;

/** Completes or removes what killed restores left behind. */
async function removeUnfinished(home: string): Promise<void> {
  finishSwap(home);
  for (const name of readdirSync(home)) {
    const pid = unfinishedName.exec(name)?.[1];
    if (pid === undefined) continue;
    const path = join(home, name);
    if (!isAbandoned(path, Number(pid)))
      throw new UsageError(`another restore into ${home} is under way (process ${pid}): wait for it`);
    await removeLaidOut(path);
  }
}
