/**
 * Recovers a backup apart from the home in use: its files are copied into a separate home, checked against the manifest
 * while being copied, and recovered by that home's server.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client } from "pg";
import { DatabaseError, UsageError } from "#core/errors";
import { bytesText } from "#core/format";
import type { CopyProgress } from "./backup-database.ts";
import { type BackupManifest, bytesOf, dataOf, noteVerification, readManifest } from "./backup-folder.ts";
import { copyFile, forEach, freeBytesAt } from "./copy-files.ts";
import {
  asAccount,
  giveAll,
  makeDataFolder,
  removeAsOwner,
  type ServerAccount,
} from "./embedded-binaries.ts";
import { dataFolderOf } from "./embedded-cluster.ts";
import { type EmbeddedServer, startEmbeddedPostgres, stopEmbeddedPostgres } from "./embedded-postgres.ts";
import { wordsOf } from "./server-database.ts";

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

/** Checks every file against the manifest while copying it into `to`. Only checks when `to` is null. Reports all faults. */
async function digestFaults(
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

/** Returns a UsageError that lists the first faults. */
export function damaged(backup: string, faults: readonly string[]): UsageError {
  const more = faults.length > faultsShown ? `\n  and ${faults.length - faultsShown} more` : "";
  return new UsageError(
    `${backup} is cut short or damaged, and is not restored:\n  ${faults.slice(0, faultsShown).join("\n  ")}${more}`,
  );
}

interface LaidOut {
  readonly home: string;
  /** The data folder, which is still ours and closed to all other users. */
  readonly folder: string;
  /** The folder's future owner. */
  readonly account: ServerAccount;
}

/**
 * Creates `home` with the backup's files in its data folder, and chooses an unused account for them (`accountOfHome` is
 * the home that the account is for). Only root can enter the folder until `recoverLaidOut`.
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

/** The limit for replaying the log. */
const recoveryDeadlineMs = 6 * 3_600_000;

interface RecoveredServer {
  readonly server: EmbeddedServer;
  readonly timeline: number;
}

/** Overrides every other setting of the data folder during recovery. */
const recoverySettings = [
  // All the log needed is in pg_wal.
  "restore_command = 'false'",
  "recovery_target = 'immediate'",
  "recovery_target_action = 'promote'",
  "recovery_target_timeline = 'current'",
  // Clients must wait until recovery ends.
  "hot_standby = off",
  // A trial must not write to the original's archive.
  "archive_mode = off",
];

/**
 * Makes the account the folder's permanent owner and starts the server, which runs until `stopRecovered` is called. Throws a
 * DatabaseError with the server's message.
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

/** If the home's path is long, the socket is elsewhere (embedded-cluster.ts). */
function socketFolderOutside(home: string): string | null {
  const file = join(dataFolderOf(home), "nearcrawl.conf");
  if (!existsSync(file)) return null;
  const folder = /^unix_socket_directories = '"(\/tmp\/nearcrawl-[0-9a-f]{16})"'$/m.exec(
    readFileSync(file, "utf8"),
  )?.[1];
  return folder ?? null;
}

// Checks a backup against its manifest and, if requested, starts a server on a copy and examines its content.

interface VerifiedBackup {
  readonly folder: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly faults: readonly string[];
}

/** Throws a UsageError when there is no backup at all. */
export async function verifyBackup(backupFolder: string, options: CopyOptions = {}): Promise<VerifiedBackup> {
  const folder = resolve(backupFolder);
  const manifest = readManifest(folder);
  const short = sizeFaults(folder, manifest);
  const faults = short.length > 0 ? short : await digestFaults(folder, manifest, null, options);
  if (faults.length === 0) noteVerification(folder, { at: new Date().toISOString(), started: false });
  return { folder, manifest, bytes: bytesOf(manifest), faults };
}

interface TriedBackup {
  readonly folder: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly seconds: number;
  readonly schemas: readonly SchemaContents[];
  readonly indexes: number;
  /** Findings as `index: words`. The list is empty when all indexes are intact. */
  readonly faults: readonly string[];
}

interface SchemaContents {
  readonly name: string;
  readonly migrations: number;
  readonly newestMigration: string | null;
  /** Null when the schema lacks the table. */
  readonly pages: number | null;
  readonly crawlers: number | null;
  readonly optOuts: number | null;
  /** The time of the latest fetch or audit entry, or null. */
  readonly lastChangeAt: string | null;
}

/** Restores into a temporary folder, starts a server there, examines it and then removes everything. */
export async function tryBackup(backupFolder: string, options: CopyOptions = {}): Promise<TriedBackup> {
  const startedMs = performance.now();
  const folder = resolve(backupFolder);
  const manifest = readManifest(folder);
  const bytes = bytesOf(manifest);
  const short = sizeFaults(folder, manifest);
  if (short.length > 0) throw damaged(folder, short);
  checkRoom(bytes);
  const around = realpathSync(mkdtempSync(join(tmpdir(), "nearcrawl-verify-")));
  // The server's account must pass this folder.
  chmodSync(around, 0o711);
  const home = join(around, "home");
  try {
    const laidOut = await layOutBackup(folder, manifest, home, options);
    const { server } = await recoverLaidOut(laidOut, options.signal);
    const seconds = (performance.now() - startedMs) / 1000;
    const looked = await lookInside(server.url);
    if (looked.faults.length === 0) noteVerification(folder, { at: new Date().toISOString(), started: true });
    return { folder, manifest, bytes, seconds, ...looked };
  } finally {
    await removeLaidOut(home);
    rmSync(around, { recursive: true, force: true });
  }
}

function checkRoom(bytes: number): void {
  const free = freeBytesAt(tmpdir());
  if (free >= bytes) return;
  throw new UsageError(
    `${tmpdir()} has ${bytesText(free)} free, and trying the backup takes ${bytesText(bytes)}: name another folder in TMPDIR`,
  );
}

async function lookInside(url: string): Promise<Pick<TriedBackup, "schemas" | "indexes" | "faults">> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `select n.nspname as name
       from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
       where c.relname = 'migration' and c.relkind = 'r'
       order by 1`,
    );
    const schemas: SchemaContents[] = [];
    for (const { name } of rows) schemas.push(await contentsOf(client, name));
    return { schemas, ...(await checkIndexes(client)) };
  } finally {
    await client.end();
  }
}

async function contentsOf(client: Client, name: string): Promise<SchemaContents> {
  const schema = client.escapeIdentifier(name);
  const isThere = async (table: string) => {
    const { rows } = await client.query("select to_regclass($1) is not null as there", [
      `${schema}.${table}`,
    ]);
    return rows[0].there as boolean;
  };
  const countOf = async (table: string): Promise<number | null> => {
    if (!(await isThere(table))) return null;
    const { rows } = await client.query(`select count(*)::float8 as rows from ${schema}.${table}`);
    return rows[0].rows as number;
  };
  const { rows: migrations } = await client.query<{ name: string }>(
    `select name from ${schema}.migration order by id`,
  );
  const latest: Date[] = [];
  for (const [table, column] of [
    ["page_fetch", "fetched_at"],
    ["audit_entry", "at"],
  ]) {
    if (!(await isThere(table as string))) continue;
    const { rows } = await client.query(`select max(${column}) as at from ${schema}.${table}`);
    if (rows[0].at !== null) latest.push(rows[0].at as Date);
  }
  return {
    name,
    migrations: migrations.length,
    newestMigration: migrations.at(-1)?.name ?? null,
    pages: await countOf("page"),
    crawlers: await countOf("crawler"),
    optOuts: await countOf("opt_out"),
    lastChangeAt: latest.sort((a, b) => b.getTime() - a.getTime())[0]?.toISOString() ?? null,
  };
}

/** Uses the extension amcheck for B-trees and GIN. Reading the indexes also checks the checksums of their pages. */
async function checkIndexes(client: Client): Promise<Pick<TriedBackup, "indexes" | "faults">> {
  await client.query("create extension if not exists amcheck");
  const { rows } = await client.query<{ oid: number; name: string; method: "btree" | "gin" }>(
    `select c.oid::int8 as oid, c.oid::regclass::text as name, a.amname as method
     from pg_index i
     join pg_class c on c.oid = i.indexrelid
     join pg_am a on a.oid = c.relam
     where c.relkind = 'i' and a.amname in ('btree', 'gin') and i.indisvalid and c.relpersistence = 'p'
     order by c.oid`,
  );
  const faults: string[] = [];
  for (const { oid, name, method } of rows) {
    const check =
      method === "btree" ? "bt_index_check($1::oid::regclass)" : "gin_index_check($1::oid::regclass)";
    try {
      await client.query(`select ${check}`, [oid]);
    } catch (error) {
      faults.push(`${name}: ${wordsOf(error)}`);
    }
  }
  return { indexes: rows.length, faults };
}
