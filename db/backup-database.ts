/**
 * Backs up the embedded server online with Postgres' low-level API ("Making a Base Backup Using the Low Level API"),
 * because the bundled programs lack pg_basebackup. The data folder's files are copied between pg_backup_start and
 * pg_backup_stop. The write-ahead log of that period, copied afterwards, makes them consistent as of the stop.
 * basebackup.c lists what is left out.
 *
 * A temporary replication slot retains that log, and backup mode belongs to the session. Both therefore end with the
 * connection, whatever happens to this process. An unfinished backup has another name and is renamed once everything is
 * on disk.
 */
import { randomUUID } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import type { PoolClient } from "pg";
import { DatabaseError, NearcrawlError, UsageError } from "#core/errors";
import { bytesText } from "#core/format";
import { softwareVersion } from "#protocol/software-version";
import {
  type BackedUpFile,
  type BackedUpSchema,
  type BackupManifest,
  backupFormat,
  backupsFolderOf,
  bytesOf,
  dataOf,
  manifestFileOf,
  noteBackup,
  removeOldBackups,
  removeUnfinishedBackups,
  stampAt,
} from "./backup-folder.ts";
import { openDatabase } from "./connect.ts";
import { copyFile, forEach, freeBytesAt, syncAll, syncPath } from "./copy-files.ts";
import { dataFolderOf, restoredFileOf } from "./embedded-cluster.ts";
import { ranMigrations } from "./schema-state.ts";
import { type Database, wordsOf } from "./server-database.ts";
import { estimatedRows, totalBytes } from "./table-sizes.ts";

interface BackupOptions {
  readonly folder?: string | undefined;
  /** How many complete backups of this database to keep there, including this one. Default: all. */
  readonly keep?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface Backup {
  readonly folder: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly seconds: number;
  readonly removed: readonly string[];
}

/** Throws a UsageError before it changes anything, or a DatabaseError when the backup fails, which leaves nothing behind. */
export async function backupDatabase(homeFolder: string, options: BackupOptions = {}): Promise<Backup> {
  const startedMs = performance.now();
  if (!existsSync(join(dataFolderOf(homeFolder), "PG_VERSION"))) {
    throw new UsageError(`there is no embedded database in ${homeFolder}: nothing to back up`);
  }
  const home = realpathSync(homeFolder);
  const parent = backupsFolder(home, options.folder);
  removeUnfinishedBackups(parent);
  const unfinished = join(parent, `${stampAt(new Date())}.unfinished-${process.pid}`);
  const { folder, manifest } = await placed(home, parent, unfinished, options);
  const bytes = bytesOf(manifest);
  const seconds = (performance.now() - startedMs) / 1000;
  try {
    noteBackup(home, { folder, at: manifest.endedAt });
    const { keep } = options;
    const removed = keep === undefined ? [] : removeOldBackups(parent, keep, manifest.systemIdentifier);
    return { folder, manifest, bytes, seconds, removed };
  } catch (error) {
    throw new DatabaseError(`${folder} is complete, but older ones could not be seen to: ${wordsOf(error)}`, {
      cause: error,
    });
  }
}

/** Afterwards the backup is complete under its final name, or nothing of it remains. */
async function placed(
  home: string,
  parent: string,
  unfinished: string,
  options: BackupOptions,
): Promise<Pick<Backup, "folder" | "manifest">> {
  try {
    const manifest = await takeBackup(home, unfinished, options);
    const folder = freeName(join(parent, stampAt(new Date(manifest.endedAt))));
    renameSync(unfinished, folder);
    await syncPath(parent);
    return { folder, manifest };
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (error instanceof NearcrawlError || options.signal?.aborted) throw error;
    throw new DatabaseError(`the backup failed, and nothing of it was kept: ${wordsOf(error)}`, {
      cause: error,
    });
  }
}

/** Picks another name when a backup ended in the same second. */
function freeName(folder: string): string {
  let name = folder;
  for (let number = 2; existsSync(name); number++) name = `${folder}-${number}`;
  return name;
}

function backupsFolder(home: string, named: string | undefined): string {
  const folder = resolve(named ?? backupsFolderOf(home));
  if (existsSync(manifestFileOf(folder))) {
    throw new UsageError(`${folder} is a backup itself: name the folder that backups go to`);
  }
  const inside = relative(dataFolderOf(home), folder);
  if (inside !== ".." && !inside.startsWith(`..${sep}`)) {
    throw new UsageError(`${folder} lies in the data folder that is backed up: name another`);
  }
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`${folder} cannot be made: ${wordsOf(error)}`, { cause: error });
  }
  return folder;
}

async function takeBackup(home: string, folder: string, options: BackupOptions): Promise<BackupManifest> {
  const database = await openDatabase({ databaseUrl: null, home, schema: "public", maxConnections: 1 });
  let client: PoolClient | null = null;
  try {
    client = await database.pool.connect();
    await checkServer(client);
    const entries = await entriesOf(dataFolderOf(home));
    checkRoom(folder, entries);
    return await copyBetween(client, home, folder, entries, options);
  } catch (error) {
    client?.release(true);
    client = null;
    throw await withReason(error, database);
  } finally {
    // Closing the session ends its slot and its backup mode.
    client?.release(true);
    await database.close();
  }
}

/** A running server that ended our connection did so to end the backup's slot. It has no other reason to end one. */
async function withReason(error: unknown, { pool }: Database): Promise<unknown> {
  if ((error as { code?: unknown }).code !== "57P01") return error;
  const answers = await pool.query("select").then(
    () => true,
    () => false,
  );
  if (!answers) return error;
  return new DatabaseError(
    "the backup failed, and nothing of it was kept: while it was taken, the server wrote more of its " +
      "log than it may hold back (max_slot_wal_keep_size), and let go of it; back up in a quieter " +
      "hour, make room on its disk, or raise that in postgresql.conf",
    { cause: error },
  );
}

async function checkServer(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ level: string; standby: boolean; tablespaces: string[] }>(
    `select current_setting('wal_level') as level, pg_is_in_recovery() as standby,
       array(select spcname::text from pg_tablespace where spcname not in ('pg_default', 'pg_global')) as tablespaces`,
  );
  const { level, standby, tablespaces } = rows[0]!;
  if (standby) throw new UsageError("this server is a standby: back up the one that it follows");
  if (level === "minimal") {
    throw new UsageError(
      "the server still runs with wal_level = minimal, as an older version started it: stop it once " +
        "(the coordinator, then nearcrawl database stop) and start it again, or take the setting out of " +
        "its postgresql.conf",
    );
  }
  if (tablespaces.length > 0) {
    throw new UsageError(`tablespaces (${tablespaces.join(", ")}) are not backed up: use pgBackRest`);
  }
}

interface DataEntries {
  readonly folders: readonly string[];
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
}

/** These folders' contents matter only to the running server. */
const emptied = new Set([
  ...["pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"],
  // Log segments are copied last, as far as needed.
  "pg_wal",
]);

const leftOut = [
  /^postmaster\.(pid|opts)$/,
  /^(backup_label|tablespace_map|backup_manifest)(\.old)?$/,
  /^(recovery|standby)\.signal$/,
  /^(current_logfiles|server\.log).*$/,
  /^(.*\.new-\d+|postgresql\.auto\.conf\.tmp|socket)$/,
];

const leftOutAnywhere = /^(pgsql_tmp.*|pg_internal\.init.*)$/;

/** Names of session tables, such as `t4_12345`. */
const temporary = /^t\d+_\d+/;

const controlFile = "global/pg_control";

async function entriesOf(dataFolder: string): Promise<DataEntries> {
  const folders: string[] = ["pg_wal/archive_status", "pg_wal/summaries"];
  const files: { path: string; bytes: number }[] = [];
  const read = async (under: string): Promise<void> => {
    const entries = await readdir(join(dataFolder, under), { withFileTypes: true }).catch(ifGone);
    const names = new Set(entries?.map(({ name }) => name));
    for (const entry of entries ?? []) {
      const path = under === "" ? entry.name : `${under}/${entry.name}`;
      if (
        (under === "" && leftOut.some((names) => names.test(entry.name))) ||
        leftOutAnywhere.test(entry.name)
      )
        continue;
      // pg_wal may be a link to another disk.
      if (entry.isDirectory() || path === "pg_wal") {
        folders.push(path);
        if (!emptied.has(path)) await read(path);
      } else if (entry.isFile() && !isOfSession(under, entry.name) && !isUnlogged(under, entry.name, names)) {
        const bytes = (await stat(join(dataFolder, path)).catch(ifGone))?.size;
        if (bytes !== undefined) files.push({ path, bytes });
      }
    }
  };
  await read("");
  return {
    folders: folders.sort(),
    files: files.filter(({ path }) => path !== controlFile && path !== restoredFileOf("")),
  };
}

const isOfSession = (under: string, name: string) => under.startsWith("base/") && temporary.test(name);

/** Recovery recreates an unlogged table empty from its init fork. */
function isUnlogged(under: string, name: string, names: ReadonlySet<string>): boolean {
  const [, relation] = /^(\d+)(?:_(?:fsm|vm))?(?:\.\d+)?$/.exec(name) ?? [];
  return relation !== undefined && under.startsWith("base/") && names.has(`${relation}_init`);
}

function ifGone(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== "ENOENT") throw error;
}

/** Minimum room for the log written during the backup, whose size is unknown in advance. */
const leastLogBytes = 64 * 2 ** 20;

function checkRoom(folder: string, { files }: DataEntries): void {
  const parent = join(folder, "..");
  const wanted = files.reduce((sum, { bytes }) => sum + bytes, leastLogBytes);
  const free = freeBytesAt(parent);
  if (free >= wanted) return;
  throw new UsageError(
    `${parent} has ${bytesText(free)} free, and the backup takes about ${bytesText(wanted)}: make room, or name a folder on another disk`,
  );
}

async function copyBetween(
  client: PoolClient,
  home: string,
  folder: string,
  { folders, files: listed }: DataEntries,
  { signal, onProgress }: BackupOptions,
): Promise<BackupManifest> {
  const [from, to] = [dataFolderOf(home), dataOf(folder)];
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const path of folders) mkdirSync(join(to, path), { recursive: true, mode: 0o700 });
  const totalBytes = listed.reduce((sum, { bytes }) => sum + bytes, 0);
  let bytes = 0;
  const onBytes = (more: number) => {
    bytes += more;
    onProgress?.({ bytes, totalBytes: Math.max(bytes, totalBytes) });
  };
  const files: BackedUpFile[] = [];
  const owner = process.getuid?.() === 0 ? lstatSync(from).uid : undefined;
  const copy = async (path: string, source = join(from, path)): Promise<boolean> => {
    const copied = await copyFile(source, join(to, path), { signal, onBytes, owner });
    if (copied !== null) files.push({ path, ...copied });
    return copied !== null;
  };

  const beganAt = new Date().toISOString();
  const started = await startBackup(client);
  await forEach(listed, async ({ path }) => void (await copy(path)));
  await copyControlFile(copy, join(from, controlFile), signal);
  const schemas = await schemasOf(client);
  const stopped = await stopBackup(client);
  const endedAt = new Date().toISOString();
  writeFileSync(join(to, "backup_label"), stopped.label, { mode: 0o600, flag: "wx" });
  const label = await copyFile(join(to, "backup_label"), null);
  if (label !== null) files.push({ path: "backup_label", ...label });
  await copyLog(client, started, stopped.lsn, copy, join(from, "pg_wal"));

  const manifest: BackupManifest = {
    format: backupFormat,
    backupId: randomUUID(),
    programVersion: softwareVersion,
    postgresVersion: started.postgresVersion,
    systemIdentifier: started.systemIdentifier,
    timeline: started.timeline,
    startLsn: started.lsn,
    stopLsn: stopped.lsn,
    beganAt,
    endedAt,
    schemas,
    folders: [...folders],
    files,
  };
  await syncAll(
    [...files.map(({ path }) => join(to, path)), ...folders.map((path) => join(to, path))],
    signal,
  );
  writeFileSync(manifestFileOf(folder), `${JSON.stringify(manifest, null, 1)}\n`, {
    mode: 0o600,
    flag: "wx",
  });
  await syncAll([to, manifestFileOf(folder), folder], signal);
  return manifest;
}

interface StartedBackup {
  readonly lsn: string;
  readonly timeline: number;
  readonly systemIdentifier: string;
  readonly postgresVersion: number;
  readonly segmentBytes: number;
}

async function startBackup(client: PoolClient): Promise<StartedBackup> {
  // Retains the log from the previous checkpoint on, which is older than the start of the backup.
  await client.query(
    "select pg_create_physical_replication_slot('nearcrawl_backup_' || pg_backend_pid(), true, true)",
  );
  const { rows } = await client.query<Omit<StartedBackup, "timeline"> & { segment: string }>(
    `with started as materialized (select pg_backup_start('nearcrawl', fast => true) as lsn)
     select lsn::text as lsn, pg_walfile_name(lsn) as segment,
       (select system_identifier::text from pg_control_system()) as "systemIdentifier",
       current_setting('server_version_num')::int / 10000 as "postgresVersion",
       (select setting::int from pg_settings where name = 'wal_segment_size') as "segmentBytes"
     from started`,
  );
  const { segment, ...started } = rows[0]!;
  return { ...started, timeline: Number.parseInt(segment.slice(0, 8), 16) };
}

async function stopBackup(client: PoolClient): Promise<{ lsn: string; label: string }> {
  const { rows } = await client.query<{ lsn: string; label: string }>(
    "select lsn::text as lsn, labelfile as label from pg_backup_stop(wait_for_archive => false)",
  );
  return rows[0]!;
}

/** The server may write this file at any time. Two equal readings in a row mean that it was read completely. */
async function copyControlFile(
  copy: (path: string) => Promise<boolean>,
  source: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const [before, after] = [
      await copyFile(source, null, { signal }),
      await copyFile(source, null, { signal }),
    ];
    if (before !== null && before.sha256 === after?.sha256) break;
  }
  await copy(controlFile);
}

async function copyLog(
  client: PoolClient,
  { lsn, segmentBytes }: StartedBackup,
  stopLsn: string,
  copy: (path: string, source: string) => Promise<boolean>,
  logFolder: string,
): Promise<void> {
  for (const name of readdirSync(logFolder).filter((one) => /^[0-9A-F]{8}\.history$/.test(one)))
    await copy(`pg_wal/${name}`, join(logFolder, name));
  // A position on a segment's border belongs to the previous segment.
  const { rows } = await client.query<{ name: string }>(
    `select distinct pg_walfile_name(least($1::pg_lsn + step * $3::numeric, $2::pg_lsn)) as name
     from generate_series(0, ceil(($2::pg_lsn - $1::pg_lsn) / $3)) step
     order by 1`,
    [lsn, stopLsn, segmentBytes],
  );
  for (const { name } of rows) {
    if (await copy(`pg_wal/${name}`, join(logFolder, name))) continue;
    throw new DatabaseError(
      `the backup failed, and nothing of it was kept: ${name} of the server's log is gone`,
    );
  }
}

/** Lists the schemas that migrations made in the embedded server's database. */
async function schemasOf(client: PoolClient): Promise<BackedUpSchema[]> {
  const { rows } = await client.query<SchemaTables>(
    `select n.nspname as name, to_regclass(quote_ident(n.nspname) || '.database_epoch') is not null as epochs,
       to_regclass(quote_ident(n.nspname) || '.journal_entry') is not null as journal,
       to_regclass(quote_ident(n.nspname) || '.page') is not null as pages,
       to_regclass(quote_ident(n.nspname) || '.opt_out') is not null as "optOuts"
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     where c.relname = 'migration' and c.relkind = 'r'
     order by 1`,
  );
  const schemas: BackedUpSchema[] = [];
  for (const { name, epochs, journal, pages, optOuts } of rows) {
    const schema = client.escapeIdentifier(name);
    const one = async (sql: string) =>
      (await client.query<{ value: string | null }>(sql)).rows[0]?.value ?? null;
    const migrations = await ranMigrations(client, name);
    schemas.push({
      name,
      newestMigration:
        migrations
          .map(({ name }) => name)
          .sort()
          .at(-1) ?? null,
      migrations,
      epoch: epochs ? await one(`select max(epoch)::text as value from ${schema}.database_epoch`) : null,
      journalEntry: journal
        ? await one(`select max(entry_number)::text as value from ${schema}.journal_entry`)
        : null,
      databaseId: epochs
        ? await one(
            `select database_id::text as value from ${schema}.database_epoch order by epoch desc limit 1`,
          )
        : null,
      pages: pages ? await pagesIn(client, `${schema}.page`) : null,
      optOuts: optOuts ? Number(await one(`select count(*)::text as value from ${schema}.opt_out`)) : null,
    });
  }
  return schemas;
}

interface SchemaTables {
  readonly name: string;
  readonly epochs: boolean;
  readonly journal: boolean;
  readonly pages: boolean;
  readonly optOuts: boolean;
}

/** Counting the rows of a larger table would delay the backup. */
const mostCountedBytes = 256 * 2 ** 20;

async function pagesIn(client: PoolClient, table: string): Promise<number> {
  const estimate = Math.round(await estimatedRows(client, table));
  if (estimate > 0 && (await totalBytes(client, table)) > mostCountedBytes) return estimate;
  const { rows } = await client.query<{ pages: number }>(`select count(*)::float8 as pages from ${table}`);
  return rows[0]!.pages;
}
