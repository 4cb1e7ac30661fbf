/**
 * Set up for each test file, before its own hooks: what files that share a process would otherwise hand on. Folders go
 * after the file's own hooks, when all that works in one has ended. A command's exit code is each test's own: a test
 * begins without one, and none becomes the run's.
 */
import { afterAll, beforeEach } from "vitest";
import { removeTemporaryFolders } from "./temporary-folder.ts";

beforeEach(forgetExitCode);
afterAll(() => {
  forgetExitCode();
  removeTemporaryFolders();
});

function forgetExitCode(): void {
  process.exitCode = undefined;
}
