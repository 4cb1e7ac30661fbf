/**
 * Recovers a backup beside everything else: its files are copied into a separate home, checked against the manifest
 * meanwhile, and recovered there by that home's server.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { DatabaseError, UsageError } from "#core/errors";
import type { CopyProgress } from "./backup-database.ts";
import { type BackupManifest, bytesOf, dataOf } from "./backup-manifest.ts";
import { copyFile, forEach } from "./copy-files.ts";
import {
  asAccount,
  giveAll,
  makeDataFolder,
  removeAsOwner,
  type ServerAccount,
} from "./embedded-binaries.ts";
import { dataFolderOf } from "./embedded-cluster.ts";
import { type EmbeddedServer, startEmbeddedPostgres, stopEmbeddedPostgres } from "./embedded-postgres.ts";

export interface CopyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
}

/** Lists missing files and wrong sizes, from the folder's metadata alone. */
export function sizeFaults(backup: string, { files }: BackupManifest): string[] {
  return files.flatMap(({ path, bytes }) => {
    const found = statSync(join(dataOf(backup), path), { throwIfNoEntry: false });
    if (found === undefined) return [`${path} is missing`];
    return found.size === bytes ? [] : [`${path} has ${found.size} bytes in place of ${bytes}`];
  });
}

/** Checks every file against the manifest while copying it into `to` (null copies nothing). Reports all faults. */
export async function digestFaults(
  backup: string,
  manifest: BackupManifest,
  to: string | null,
  { signal, onProgress }: CopyOptions,
): Promise<string[]> {
  const totalBytes = bytesOf(manifest);
  const faults: string[] = [];
  let bytes = 0;
  const onBytes = (more: number) => {
    bytes += more;
    onProgress?.({ bytes, totalBytes });
  };
  await forEach(manifest.files, async ({ path, sha256 }) => {
    const target = to === null ? null : join(to, path);
    const found = await copyFile(join(dataOf(backup), path), target, { signal, onBytes });
    if (found === null) faults.push(`${path} is missing`);
    else if (found.sha256 !== sha256) faults.push(`${path} has another content than it had`);
  });
  return faults.sort();
}

const faultsShown = 5;

/** Builds a UsageError with the first faults. */
export function damaged(backup: string, faults: readonly string[]): UsageError {
  const more = faults.length > faultsShown ? `\n  and ${faults.length - faultsShown} more` : "";
  return new UsageError(
    `${backup} is cut short or damaged, and is not restored:\n  ${faults.slice(0, faultsShown).join("\n  ")}${more}`,
  );
}

interface LaidOut {
  readonly home: string;
  /** The data folder, still ours and closed to everybody else. */
  readonly folder: string;
  /** The folder's future owner. */
  readonly account: ServerAccount;
}

/**
 * Creates `home` with the backup's files in its data folder, and an unused account for them (`accountOfHome`: the home
 * that the account is for). Only root can enter until `recoverLaidOut`.
 */
export async function layOutBackup(
  backup: string,
  manifest: BackupManifest,
  home: string,
  options: CopyOptions & { readonly accountOfHome?: string },
): Promise<LaidOut> {
  const account = makeDataFolder(home, options.accountOfHome ?? home);
  const folder = dataFolderOf(home);
  renameSync(join(home, "data"), folder);
  for (const path of manifest.folders) mkdirSync(join(folder, path), { recursive: true, mode: 0o700 });
  const faults = await digestFaults(backup, manifest, folder, options);
  if (faults.length > 0) throw damaged(backup, faults);
  return { home, folder, account };
}

/** Replaying the log may take this long. */
const recoveryDeadlineMs = 6 * 3_600_000;

interface RecoveredServer {
  readonly server: EmbeddedServer;
  readonly timeline: number;
}

/** Overrides every other setting of the data folder during recovery. */
const recoverySettings = [
  // The needed log is in pg_wal and nowhere else.
  "restore_command = 'false'",
  "recovery_target = 'immediate'",
  "recovery_target_action = 'promote'",
  "recovery_target_timeline = 'current'",
  // Clients must wait meanwhile.
  "hot_standby = off",
  // A trial must not write to the archive of the original.
  "archive_mode = off",
];

/**
 * Gives the folder to its account permanently and runs it until `stopRecovered`. Throws a DatabaseError with the
 * server's message.
 */
export async function recoverLaidOut(
  { home, folder, account }: LaidOut,
  signal?: AbortSignal,
): Promise<RecoveredServer> {
  const settings = join(folder, "postgresql.auto.conf");
  const before = existsSync(settings) ? readFileSync(settings, "utf8") : "";
  writeFileSync(settings, `${before}\n${recoverySettings.join("\n")}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "recovery.signal"), "", { mode: 0o600 });
  giveAll(folder, account);
  if (account !== null) chmodSync(home, 0o711);
  const server = await startEmbeddedPostgres(home, { withinMs: recoveryDeadlineMs, signal });
  await asAccount(account, 'cat >"$1"', [settings], before);
  return { server, timeline: await timelineOf(server.url) };
}

async function timelineOf(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ recovering: boolean; timeline: number }>(
      `select pg_is_in_recovery() as recovering,
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`,
    );
    if (rows[0]!.recovering) throw new DatabaseError("the backup is still being recovered");
    return rows[0]!.timeline;
  } finally {
    await client.end();
  }
}

export async function removeLaidOut(home: string): Promise<void> {
  await stopEmbeddedPostgres(home);
  const socketFolder = socketFolderOutside(home);
  await removeAsOwner(dataFolderOf(home));
  rmSync(home, { recursive: true, force: true });
  if (socketFolder !== null) await removeAsOwner(socketFolder);
}

/** A long home path has its socket elsewhere (embedded-cluster.ts). */
function socketFolderOutside(home: string): string | null {
  const file = join(dataFolderOf(home), "nearcrawl.conf");
  if (!existsSync(file)) return null;
  const folder = /^unix_socket_directories = '"(\/tmp\/nearcrawl-[0-9a-f]{16})"'$/m.exec(
    readFileSync(file, "utf8"),
  )?.[1];
  return folder ?? null;
}
