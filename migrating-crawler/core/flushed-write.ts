/**
 * Writes data that must be on disk before it counts. Node's permission model denies fsync, fdatasync and fchmod (since
 * the releases of January 2026), so files are opened with O_SYNC (POSIX open), which makes each write return only when
 * the disk has the data.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs";

export const flushedWrite: number =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_SYNC;

/** Node defines `process.permission` only when the permission model is active, which forbids fsync. */
export const maySync: boolean = !("permission" in process);

export function writeFlushed(path: string, text: string): void {
  const file = openSync(path, flushedWrite, 0o600);
  try {
    writeSync(file, text);
  } finally {
    closeSync(file);
  }
}
