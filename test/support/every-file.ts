/**
 * Set-up of every test file, which keeps files of one process apart: temporary folders are removed after the file's own hooks,
 * each test begins without an exit code, and a file that changes the umask fails.
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
