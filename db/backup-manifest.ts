/**
 * A backup is a folder with the data folder's files in `data/` and `backup.json`, which is written last and lists each
 * file with size and digest. A folder without it is not a backup.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { wordsOf } from "./server-database.ts";

export const backupFormat = 1;

const path = z
  .string()
  .min(1)
  .max(1000)
  .refine((text) => !text.startsWith("/") && !text.split("/").includes(".."), "leads out of the backup");

const lsn = z.string().regex(/^[0-9A-F]+\/[0-9A-F]+$/);

const manifestSchema = z.object({
  format: z.literal(backupFormat),
  /** Tells whether two restores came from one backup. */
  backupId: z.uuid(),
  programVersion: z.string().min(1).max(100),
  postgresVersion: z.int().positive(),
  /** Identifies the server since its initdb; a 64-bit number. */
  systemIdentifier: z.string().regex(/^\d{1,20}$/),
  timeline: z.int().positive(),
  startLsn: lsn,
  stopLsn: lsn,
  beganAt: z.iso.datetime(),
  /** The backup contains everything committed until then. */
  endedAt: z.iso.datetime(),
  schemas: z.array(
    z.object({
      name: z.string(),
      newestMigration: z.string().nullable(),
      /** In the order of execution, with the version of the program that ran each, or null when unknown. */
      migrations: z.array(z.object({ name: z.string(), version: z.string().nullable() })),
      /** The position of the journal outside the database, if any: later entries are replayed after a restore. */
      epoch: z.string().nullable(),
      journalEntry: z.string().nullable(),
      /** Distinguish databases, and a crawl from an empty one; null for older programs or missing tables. */
      databaseId: z.uuid().nullable().default(null),
      /** An estimate by Postgres for a large table. */
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

/** Returns true for a new database, in which nothing was crawled or opted out. */
export function holdsNothing(manifest: Pick<BackupManifest, "schemas">): boolean {
  const { pages, optOuts } = rowsOf(manifest);
  return pages === 0 && (optOuts ?? 0) === 0;
}

/** Throws a UsageError that says why this is no complete backup that this program can read. */
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
