/**
 * Writing what must be on the disk before it counts, also under Node's permission model, which denies fsync,
 * fdatasync and fchmod to a process (since the releases of January 2026). O_SYNC (POSIX open) asks for the same at
 * the opening: each write returns when the disk has it.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs";

/** For `openSync`: a new file, or an old one that is written over. */
export const flushedWrite: number =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_SYNC;

/** False under the permission model: `process.permission` is there only where it is in force. */
export const maySync: boolean = !("permission" in process);

/** A new file, or an old one that is written over. */
export function writeFlushed(path: string, text: string): void {
  const file = openSync(path, flushedWrite, 0o600);
  try {
    writeSync(file, text);
  } finally {
    closeSync(file);
  }
}
