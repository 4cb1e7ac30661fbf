/**
 * Set up for each test file, before its own hooks: what files that share a process would otherwise hand on. Folders go
 * after the file's own hooks, when all that works in one has ended. A command's exit code is each test's own: a test
 * begins without one, and none becomes the run's. A file that leaves another umask behind fails.
 */
import { afterAll, beforeEach } from "vitest";
import { removeTemporaryFolders } from "./temporary-folder.ts";

const umask = process.umask();

beforeEach(forgetExitCode);
afterAll(() => {
  forgetExitCode();
  removeTemporaryFolders();
  const left = process.umask(umask);
  if (left !== umask) throw new Error(`the umask was ${umask.toString(8)}, and is ${left.toString(8)} now`);
});

function forgetExitCode(): void {
  process.exitCode = undefined;
}
