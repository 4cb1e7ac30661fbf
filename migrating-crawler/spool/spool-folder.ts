/** Manages the spool's folder: its owner (a lock file names the process), its UUID and its files. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { writeFlushed } from "../core/private-file.ts";

interface SpoolFolder {
  readonly id: string;
  readonly files: readonly string[];
}

/** Creates the folder if necessary. Throws UsageError if another process owns it or it is not writable. */
export function openSpoolFolder(folder: string): SpoolFolder {
  try {
    mkdirSync(folder, { recursive: true });
    takeLock(join(folder, "lock"));
    const names = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && isSegment(entry.name))
      .map((entry) => entry.name);
    return { id: readOrMakeId(join(folder, "id")), files: names.sort().map((name) => join(folder, name)) };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const words = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${folder}: the spool cannot be opened: ${words}`, { cause: error });
  }
}

export function leaveSpoolFolder(folder: string): void {
  try {
    unlinkSync(join(folder, "lock"));
  } catch {
    // The lock stays and names a process that will have ended, which is equivalent to no lock.
  }
}

export function spoolHolder(home: string): number | null {
  try {
    const holder = Number(readFileSync(join(home, "spool", "lock"), "utf8"));
    return isRunning(holder) ? holder : null;
  } catch {
    return null;
  }
}

export const isSegment = (name: string): boolean => /^results-\d{16}\.log$/.test(name);

export function segmentFile(folder: string, firstSequence: number): string {
  return join(folder, `results-${String(firstSequence).padStart(16, "0")}.log`);
}

export function firstSequenceOf(file: string): number {
  return Number(/(\d{16})\.log$/.exec(file)![1]);
}

function readOrMakeId(file: string): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (/^[0-9a-f-]{36}$/.test(id)) return id;
  } catch {
    // There is no id yet, because the spool is new.
  }
  const id = randomUUID();
  writeFlushed(`${file}.new`, `${id}\n`);
  renameSync(`${file}.new`, file);
  return id;
}

/** A lock whose process no longer runs is void. */
function takeLock(file: string): void {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return;
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
  const holder = Number(readFileSync(file, "utf8"));
  if (holder !== process.pid && isRunning(holder)) {
    throw new UsageError(`${file}: the spool is in use by process ${holder}`);
  }
  writeFileSync(file, String(process.pid));
}
