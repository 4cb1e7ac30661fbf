/** Checks a backup against its manifest and, if asked, starts it and looks inside. */
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client } from "pg";
import { UsageError } from "#core/errors";
import { bytesText } from "#core/format";
import { noteVerification } from "./backup-folder.ts";
import { type BackupManifest, bytesOf, readManifest } from "./backup-manifest.ts";
import { freeBytesAt } from "./copy-files.ts";
import {
  type CopyOptions,
  damaged,
  digestFaults,
  layOutBackup,
  recoverLaidOut,
  removeLaidOut,
  sizeFaults,
} from "./recover-backup.ts";
import { wordsOf } from "./server-database.ts";

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
  /** Findings as `index: words`; empty when all are intact. */
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
  /** The latest fetch or audit entry, or null. */
  readonly lastChangeAt: string | null;
}

/** Restores into a temporary folder, starts a server there, examines it and removes everything. */
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

/** Uses the extension amcheck for B-trees and GIN; reading them also checks their pages' checksums. */
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
