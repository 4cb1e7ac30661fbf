/**
 * Writes the small private files in a crawler's home. Only their owner can read them. They are flushed to disk (O_SYNC, and
 * fsync of the folder) and then renamed into place, so that no crash leaves a partial file.
 */

import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import type { z } from "zod";
import { ConfigError } from "#core/errors";

/** This program never writes a longer file, so a longer one is rejected. */
const maxFileBytes = 64 * 1024;

/** Returns null if the file is missing. If its content is invalid, throws a ConfigError that says what to do. */
export function readPrivateJson<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
  ifDamaged: string,
): z.infer<Schema> | null {
  const text = textOf(path);
  if (text === null) return null;
  const checked = schema.safeParse(jsonOf(text, path, ifDamaged));
  if (checked.success) return checked.data;
  const [fault] = checked.error.issues;
  throw damaged(path, `${fault?.path.join(".") || "content"}: ${fault?.message}`, ifDamaged);
}

export function writePrivateJson(path: string, value: unknown): void {
  const draft = writeDraft(path, value);
  renameSync(draft, path);
  syncFolder(path);
}

/** Returns false, and changes nothing, if the file already exists. */
export function createPrivateJson(path: string, value: unknown): boolean {
  const draft = writeDraft(path, value);
  try {
    linkSync(draft, path);
    syncFolder(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDraft(path: string, value: unknown): string {
  const draft = `${path}.${process.pid}.new`;
  rmSync(draft, { force: true });
  const file = openSync(draft, flushedWrite | constants.O_EXCL, 0o600);
  try {
    writeSync(file, `${JSON.stringify(value, null, 2)}\n`);
  } finally {
    closeSync(file);
  }
  return draft;
}

/**
 * The rename is durable only once the folder is flushed. In the supervisor's sandbox, where fsync is forbidden, the system
 * flushes the folder within seconds.
 */
function syncFolder(path: string): void {
  if (!maySync) return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function textOf(path: string): string | null {
  try {
    const { size } = statSync(path);
    if (size > maxFileBytes) throw new ConfigError([`${path}: ${size} bytes are more than it ever has`]);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new ConfigError([`${path}: cannot be read (${message})`]);
  }
}

function jsonOf(text: string, path: string, ifDamaged: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(path, "this is no whole JSON file", ifDamaged);
  }
}

const damaged = (path: string, fault: string, ifDamaged: string) =>
  new ConfigError([`${path}: ${fault}. It is left as it is. ${ifDamaged}`]);

// Writes data that must be on disk before the caller continues. Node's permission model denies fsync, fdatasync and fchmod
// (since the releases of January 2026). Files are therefore opened with O_SYNC (POSIX open), with which each write returns
// only when the data is on disk.

export const flushedWrite: number =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_SYNC;

/** Node defines `process.permission` only while the permission model is active, which forbids fsync. */
export const maySync: boolean = !("permission" in process);

export function writeFlushed(path: string, text: string): void {
  const file = openSync(path, flushedWrite, 0o600);
  try {
    writeSync(file, text);
  } finally {
    closeSync(file);
  }
}
