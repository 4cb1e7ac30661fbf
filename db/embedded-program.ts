/** Runs one of the Postgres programs to its end, under the server's account. */
import { execFile } from "node:child_process";
import type { ServerAccount } from "./embedded-account.ts";

/** Longer than pg_ctl's own patience. */
const deadlineMs = 180_000;

/**
 * Exit code and everything printed; a program that cannot be started has exit code -1 and the reason as
 * output. The environment is empty, so that PGDATA, PGPORT and the like of the caller change nothing.
 */
export async function runProgram(
  program: string,
  options: readonly string[],
  account: ServerAccount,
): Promise<{ exitCode: number; output: string }> {
  return await new Promise((resolve) => {
    execFile(
      program,
      [...options],
      { cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C" }, timeout: deadlineMs, ...account },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        const printed = `${stdout}${stderr}`.trim();
        resolve({ exitCode, output: printed === "" && error !== null ? error.message : printed });
      },
    );
  });
}
