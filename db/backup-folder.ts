/** Where a home's backups are, which there are, and how old the newest is. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { isRunning } from "#core/running-process";
import { type BackupManifest, bytesOf, readManifest } from "./backup-manifest.ts";

/** Unless somebody names another. */
export const backupsFolderOf = (home: string) => join(home, "backups");

// <home>/backups.json: the folders that backups of this home went to, and the last one that was complete.

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
  writeFileSync(unfinished, `${JSON.stringify({ folders: [...folders].slice(0, 100), last }, null, 2)}\n`, {
    mode: 0o600,
  });
  renameSync(unfinished, file);
}

export interface KnownBackup {
  readonly folder: string;
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly verified: Verification | null;
}

/** When, and how: its files held against the manifest, or also started. */
export interface Verification {
  readonly at: string;
  readonly started: boolean;
}

/** The complete ones, newest first, in the folders that backups of this home went to. */
export function listBackups(home: string): KnownBackup[] {
  const folders = new Set([backupsFolderOf(home), ...(readNote(home)?.folders ?? [])]);
  const backups = [...folders].flatMap((folder) => backupsIn(folder));
  return backups.sort((a, b) => (a.manifest.endedAt < b.manifest.endedAt ? 1 : -1));
}

function backupsIn(parent: string): KnownBackup[] {
  const names = existsSync(parent) ? readdirSync(parent) : [];
  return names
    .filter((name) => existsSync(join(parent, name, "backup.json")) && !unfinishedName.test(name))
    .flatMap((name) => {
      const folder = join(parent, name);
      try {
        const manifest = readManifest(folder);
        return [{ folder, manifest, bytes: bytesOf(manifest), verified: readVerification(folder) }];
      } catch {
        // Damaged, or a newer program's: none that this one could restore.
        return [];
      }
    });
}

const unfinishedName = /\.unfinished-(\d+)$/;

/** The oldest beyond `keep` complete ones of that system go. */
export function removeOldBackups(parent: string, keep: number, systemIdentifier: string): string[] {
  const own = backupsIn(parent).filter(({ manifest }) => manifest.systemIdentifier === systemIdentifier);
  const old = own.sort((a, b) => (a.manifest.endedAt < b.manifest.endedAt ? 1 : -1)).slice(keep);
  for (const { folder } of old) {
    // What is killed in the middle of this looks complete no more, and the next backup removes the rest.
    const going = `${folder}.unfinished-${process.pid}`;
    renameSync(folder, going);
    rmSync(going, { recursive: true, force: true });
  }
  return old.map(({ folder }) => folder);
}

/** What backups that were killed left behind. */
export function removeUnfinishedBackups(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = unfinishedName.exec(name)?.[1];
    const path = join(parent, name);
    if (pid !== undefined && isAbandoned(path, Number(pid))) rmSync(path, { recursive: true, force: true });
  }
}

/** Whoever made it is gone. In a container each run may have the same number, so one of ours may be an earlier life's. */
export function isAbandoned(path: string, pid: number): boolean {
  if (pid !== process.pid) return !isRunning(pid);
  return statSync(path).birthtimeMs < Date.now() - process.uptime() * 1000;
}

/**
 * When the newest complete backup of a home ended; null: none was ever made. Where a folder is out of reach (a disk that
 * is not mounted now), what was noted of it counts; where it is there and empty, it does not.
 */
export function lastBackup(home: string): LastBackup | null {
  const note = readNote(home);
  const newest = listBackups(home)[0]?.manifest.endedAt ?? null;
  const noted = note !== null && !existsSync(dirname(note.last.folder)) ? note.last.at : null;
  if (note === null && newest === null) return null;
  const at = [newest, noted]
    .filter((one) => one !== null)
    .sort()
    .at(-1);
  return { at: at === undefined ? null : new Date(at) };
}

export interface LastBackup {
  /** Null: there was one, and it is gone. */
  readonly at: Date | null;
}

// <backup>/verified.json

const verificationSchema = z.object({ at: z.iso.datetime(), started: z.boolean() });

function readVerification(backup: string): Verification | null {
  try {
    return verificationSchema.parse(JSON.parse(readFileSync(join(backup, "verified.json"), "utf8")));
  } catch {
    return null;
  }
}

/** Where the backup's folder cannot be written, nothing is noted. */
export function noteVerification(backup: string, verification: Verification): void {
  try {
    writeFileSync(join(backup, "verified.json"), `${JSON.stringify(verification)}\n`, { mode: 0o600 });
  } catch {}
}
