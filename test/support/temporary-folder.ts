/**
 * Folders for tests. They are gone after the last test of the file that asked, whatever became of it: see
 * every-file.ts, which every test file begins with (vitest.config.ts).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let made: string[] = [];

/** A new folder in the run's temporary folder; `prefix`: the beginning of its name, which tells who made it. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  made.push(folder);
  return folder;
}

/** All that were made since the last call. What runs in one has had its end by now, or is about to: it is asked again. */
export function removeTemporaryFolders(): void {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  made = [];
}
