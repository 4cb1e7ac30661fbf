/** Finds a home's backups and their age. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { wordsOf } from "./server-database.ts";

/** Names such as `2026-03-01T12-00-00Z` sort by time and are valid on every file system. */
export const stampAt = (at: Date) => `${at.toISOString().slice(0, 19).replaceAll(":", "-")}Z`;

export const backupsFolderOf = (home: string) => join(home, "backups");

// <home>/backups.json lists the folders of this home's backups and the last complete one.

const noteSchema = z.object({
  folders: z.array(z.string()).max(1000),
  last: z.object({ folder: z.string(), at: z.iso.datetime() }),
});

const noteFileOf = (home: string) => join(home, "backups.json");

function readNote(home: string): z.infer<typeof noteSchema> | null {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(noteFileOf(home), "utf8")));
  } catch {
    return null;
  }
}

export function noteBackup(home: string, last: { readonly folder: string; readonly at: string }): void {
  const folders = new Set([dirname(last.folder), ...(readNote(home)?.folders ?? [])]);
  const file = noteFileOf(home);
  const unfinished = `${file}.new-${process.pid}`;
  // The mode lets other users read the age of the last backup.
  writeFileSync(unfinished, `${JSON.stringify({ folders: [...folders].slice(0, 100), last }, null, 2)}\n`, {
    mode: 0o644,
  });
  renameSync(unfinished, file);
}

export interface KnownBackup {
  readonly folder: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly verified: Verification | null;
}

/** When the files were compared with the manifest, and whether a server was also started on a copy. */
interface Verification {
  readonly at: string;
  readonly started: boolean;
}

/** Lists complete backups, the newest first. Those of an empty database come last, because nobody wants them back. */
export function listBackups(home: string): KnownBackup[] {
  const folders = new Set([backupsFolderOf(home), ...(readNote(home)?.folders ?? [])]);
  const backups = [...folders].flatMap((folder) => backupsIn(folder));
  backups.sort(newestFirst());
  const isEmpty = ({ manifest }: KnownBackup) => holdsNothing(manifest);
  return [...backups.filter((one) => !isEmpty(one)), ...backups.filter(isEmpty)];
}

/**
 * Backups dated in the future come last. A clock that was ahead made them, so they must neither count as the newest nor
 * cause the removal of newer ones (`removeOldBackups`).
 */
function newestFirst(nowMs = Date.now()): (a: KnownBackup, b: KnownBackup) => number {
  const isLater = ({ manifest }: KnownBackup) => Number(Date.parse(manifest.endedAt) > nowMs + clocksApartMs);
  return (a, b) => isLater(a) - isLater(b) || (a.manifest.endedAt < b.manifest.endedAt ? 1 : -1);
}

const clocksApartMs = 600_000;

function backupsIn(parent: string): KnownBackup[] {
  const names = namesIn(parent);
  return names
    .filter((name) => existsSync(manifestFileOf(join(parent, name))) && !unfinishedName.test(name))
    .flatMap((name) => {
      const folder = join(parent, name);
      try {
        const manifest = readManifest(folder);
        return [{ folder, manifest, bytes: bytesOf(manifest), verified: readVerification(folder) }];
      } catch {
        // The backup is damaged or from a newer program, so this program cannot restore it.
        return [];
      }
    });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const unfinishedName = /\.unfinished-(\d+)$/;

export function removeOldBackups(parent: string, keep: number, systemIdentifier: string): string[] {
  const own = backupsIn(parent).filter(({ manifest }) => manifest.systemIdentifier === systemIdentifier);
  const old = own.sort(newestFirst()).slice(keep);
  for (const { folder } of old) {
    // If the process is killed after the rename, the backup no longer looks complete, and the next backup removes the
    // rest.
    const going = `${folder}.unfinished-${process.pid}`;
    renameSync(folder, going);
    rmSync(going, { recursive: true, force: true });
  }
  return old.map(({ folder }) => folder);
}

export function removeUnfinishedBackups(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = unfinishedName.exec(name)?.[1];
    const path = join(parent, name);
    if (pid !== undefined && isAbandoned(path, Number(pid))) rmSync(path, { recursive: true, force: true });
  }
}

/**
 * Returns whether the process that created the path is gone. In a container every run may have the same process id, so
 * a path with our own id may come from an earlier run.
 */
export function isAbandoned(path: string, pid: number): boolean {
  if (pid !== process.pid) return !isRunning(pid);
  return statSync(path).mtimeMs < Date.now() - process.uptime() * 1000;
}

interface LastBackup {
  readonly at: Date | null;
}

/**
 * Returns the newest complete backup, or null when none was ever made. When the noted one is out of reach (an unmounted
 * disk, another user's folder), returns the note. When it is gone, returns the newest other backup.
 */
export function lastBackup(home: string): LastBackup | null {
  const last = readNote(home)?.last;
  if (last !== undefined && !isGone(last.folder)) return { at: new Date(last.at) };
  const newest = listBackups(home)[0]?.manifest.endedAt;
  if (newest !== undefined) return { at: new Date(newest) };
  return last === undefined ? null : { at: null };
}

function isGone(backup: string): boolean {
  try {
    readdirSync(dirname(backup));
    return !existsSync(manifestFileOf(backup));
  } catch {
    return false;
  }
}

const verificationSchema = z.object({ at: z.iso.datetime(), started: z.boolean() });

function readVerification(backup: string): Verification | null {
  try {
    return verificationSchema.parse(JSON.parse(readFileSync(join(backup, "verified.json"), "utf8")));
  } catch {
    return null;
  }
}

/** Does nothing when the folder is not writable. */
export function noteVerification(backup: string, verification: Verification): void {
  try {
    writeFileSync(join(backup, "verified.json"), `${JSON.stringify(verification)}\n`, { mode: 0o600 });
  } catch {}
}

// <home>/database.json names the home's cluster. This file and others beside the data folder show that a home once had
// a database. When the data folder is gone (an `rm -rf`, an unmounted disk), an empty database in its place would run
// without opt-outs and crawler identities, report that it is ready, and fill the next backups.

const clusterSchema = z.object({ systemIdentifier: z.string().regex(/^\d{1,20}$/) });

const clusterFileOf = (home: string) => join(home, "database.json");

export function knownCluster(home: string): string | null {
  try {
    return clusterSchema.parse(JSON.parse(readFileSync(clusterFileOf(home), "utf8"))).systemIdentifier;
  } catch {
    return null;
  }
}

export function noteCluster(home: string, systemIdentifier: string | null): void {
  if (systemIdentifier === null || knownCluster(home) === systemIdentifier) return;
  const unfinished = `${clusterFileOf(home)}.new-${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify({ systemIdentifier })}\n`, { mode: 0o644 });
  renameSync(unfinished, clusterFileOf(home));
}

/** Returns why no empty database is created in that home and the command to type, or null when it never had a database. */
export function lostWords(home: string): string | null {
  const witnesses = witnessesOf(home);
  if (witnesses.length === 0) return null;
  return (
    `the data folder is gone (${join(home, "postgres")}; by ${witnesses.join(", ")} there was a ` +
    `database). To restore it: ${restoreCommandOf(home)} – to begin with an empty one: nearcrawl ` +
    `database start-over --home ${home}`
  );
}

function witnessesOf(home: string): string[] {
  const names = entriesOf(home);
  const has = (name: string) => names.includes(name);
  return [
    ...["database.json", "backups.json", "current-run.json"].filter(has),
    ...(has("journal") && entriesOf(join(home, "journal")).length > 0 ? ["journal"] : []),
    ...(has("backups") && entriesOf(join(home, "backups")).length > 0 ? ["backups"] : []),
    ...names.filter((name) => name.startsWith("postgres.before-")).slice(0, 1),
  ];
}

function entriesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Returns the command to type, with the first backup that `nearcrawl database backups` lists. */
export function restoreCommandOf(home: string): string {
  const [first] = listBackups(home);
  return first === undefined
    ? `nearcrawl database restore BACKUP --home ${home} (no complete backup is known here)`
    : `nearcrawl database restore ${first.folder} --home ${home}`;
}

// A backup is a folder with the data folder's files in `data/` and a `backup.json`, which is written last and lists
// each file with its size and digest. A folder without a `backup.json` is not a backup.

export const backupFormat = 1;

const path = z
  .string()
  .min(1)
  .max(1000)
  .refine((text) => !text.startsWith("/") && !text.split("/").includes(".."), "leads out of the backup");

const lsn = z.string().regex(/^[0-9A-F]+\/[0-9A-F]+$/);

const manifestSchema = z.object({
  format: z.literal(backupFormat),
  /** Shows whether two restored databases came from the same backup. */
  backupId: z.uuid(),
  programVersion: z.string().min(1).max(100),
  postgresVersion: z.int().positive(),
  /** Identifies the server since its initdb. A 64-bit number. */
  systemIdentifier: z.string().regex(/^\d{1,20}$/),
  timeline: z.int().positive(),
  startLsn: lsn,
  stopLsn: lsn,
  beganAt: z.iso.datetime(),
  /** The backup contains everything committed until this moment. */
  endedAt: z.iso.datetime(),
  schemas: z.array(
    z.object({
      name: z.string(),
      newestMigration: z.string().nullable(),
      /** In the order of execution, each with the version of the program that ran it, or null when unknown. */
      migrations: z.array(z.object({ name: z.string(), version: z.string().nullable() })),
      /** The position of the journal outside the database, if there is one. A restore replays the entries after it. */
      epoch: z.string().nullable(),
      journalEntry: z.string().nullable(),
      /** These distinguish databases, and a crawl from an empty one. Null for older programs or missing tables. */
      databaseId: z.uuid().nullable().default(null),
      /** For a large table, an estimate by Postgres. */
      pages: z.number().min(0).nullable().default(null),
      optOuts: z.number().min(0).nullable().default(null),
    }),
  ),
  folders: z.array(path),
  files: z.array(z.object({ path, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
});

export type BackupManifest = z.infer<typeof manifestSchema>;
export type BackedUpSchema = BackupManifest["schemas"][number];
export type BackedUpFile = BackupManifest["files"][number];

export const manifestFileOf = (backup: string) => join(backup, "backup.json");
export const dataOf = (backup: string) => join(backup, "data");

export const bytesOf = ({ files }: Pick<BackupManifest, "files">) =>
  files.reduce((sum, { bytes }) => sum + bytes, 0);

interface BackedUpRows {
  readonly pages: number | null;
  readonly optOuts: number | null;
}

export function rowsOf({ schemas }: Pick<BackupManifest, "schemas">): BackedUpRows {
  const sum = (of: (schema: BackedUpSchema) => number | null) => {
    const known = schemas.map(of).filter((rows) => rows !== null);
    return known.length === 0 ? null : known.reduce((all, rows) => all + rows, 0);
  };
  return { pages: sum(({ pages }) => pages), optOuts: sum(({ optOuts }) => optOuts) };
}

/** Returns true for a new database, in which nothing was crawled and nobody opted out. */
export function holdsNothing(manifest: Pick<BackupManifest, "schemas">): boolean {
  const { pages, optOuts } = rowsOf(manifest);
  return pages === 0 && (optOuts ?? 0) === 0;
}

/** Throws a UsageError that says why the folder is not a complete backup that this program can read. */
export function readManifest(backup: string): BackupManifest {
  const file = manifestFileOf(backup);
  const text = textOf(file, backup);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(
      `${file} is cut short or damaged (${wordsOf(error)}): this backup cannot be restored`,
      {
        cause: error,
      },
    );
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === "number" && format > backupFormat) {
    throw new UsageError(
      `${backup} is a backup of format ${format}, this program reads ${backupFormat}: use the program that made it, or a newer one`,
    );
  }
  const checked = manifestSchema.safeParse(value);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw new UsageError(
    `${file} is no manifest of a backup: ${issue?.path.join(".") || "the whole"}: ${issue?.message}`,
  );
}

function textOf(file: string, backup: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      throw new UsageError(`${file} cannot be read: ${wordsOf(error)}`, { cause: error });
    }
    throw new UsageError(
      `${backup} is no complete backup: it has no backup.json, which is written last (nearcrawl database backups lists those there are)`,
      { cause: error },
    );
  }
}
