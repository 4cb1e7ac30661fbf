/**
 * Temporary folders, which every-file.ts removes after the file's last test.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let made: string[] = [];

/** Makes a folder in the run's temporary folder; `prefix` shows which test made it. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  made.push(folder);
  return folder;
}

/** Removes all folders since the last call, with retries while a process in one is ending. */
export function removeTemporaryFolders(): void {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  made = [];
}
