/** Where a home's backups are, which there are, and how old the newest is. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { isRunning } from "#core/running-process";
import {
  type BackupManifest,
  bytesOf,
  holdsNothing,
  manifestFileOf,
  readManifest,
} from "./backup-manifest.ts";

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
  // Others may look how old the last one is.
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

/** When, and how: its files held against the manifest, or also started. */
interface Verification {
  readonly at: string;
  readonly started: boolean;
}

/**
 * The complete ones in the folders that backups of this home went to, newest first; but those of an empty database come after
 * all others, for nobody wants them back.
 */
export function listBackups(home: string): KnownBackup[] {
  const folders = new Set([backupsFolderOf(home), ...(readNote(home)?.folders ?? [])]);
  const backups = [...folders].flatMap((folder) => backupsIn(folder));
  backups.sort(newestFirst());
  const isEmpty = ({ manifest }: KnownBackup) => holdsNothing(manifest);
  return [...backups.filter((one) => !isEmpty(one)), ...backups.filter(isEmpty)];
}

/**
 * Those whose time is yet to come stand last: a clock that was ahead made them, and they must neither pass for the newest for as
 * long as it was ahead, nor make those that are newest go (`removeOldBackups`).
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
        // Damaged, or a newer program's: none that this one could restore.
        return [];
      }
    });
}

/** None where it is not there, or not for this user. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const unfinishedName = /\.unfinished-(\d+)$/;

/** The oldest beyond `keep` complete ones of that system go. */
export function removeOldBackups(parent: string, keep: number, systemIdentifier: string): string[] {
  const own = backupsIn(parent).filter(({ manifest }) => manifest.systemIdentifier === systemIdentifier);
  const old = own.sort(newestFirst()).slice(keep);
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
  return statSync(path).mtimeMs < Date.now() - process.uptime() * 1000;
}

interface LastBackup {
  /** When it ended; null: there was one, and there is none any more. */
  readonly at: Date | null;
}

/**
 * The newest complete backup of a home; null: none was ever made. Where what was noted is out of reach (a disk that is not
 * mounted now, a folder of another user's), the note counts; where it is gone, the newest of the others does.
 */
export function lastBackup(home: string): LastBackup | null {
  const last = readNote(home)?.last;
  if (last !== undefined && !isGone(last.folder)) return { at: new Date(last.at) };
  const newest = listBackups(home)[0]?.manifest.endedAt;
  if (newest !== undefined) return { at: new Date(newest) };
  return last === undefined ? null : { at: null };
}

/** The folder that it was in is there, and it is not. */
function isGone(backup: string): boolean {
  return canRead(dirname(backup)) && !existsSync(manifestFileOf(backup));
}

function canRead(folder: string): boolean {
  try {
    readdirSync(folder);
    return true;
  } catch {
    return false;
  }
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
