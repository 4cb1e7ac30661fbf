/** Runs one of the Postgres programs to its end, under the server's account. */
import { execFile } from "node:child_process";
import type { ServerAccount } from "./embedded-account.ts";

/** Longer than pg_ctl's own patience. */
const deadlineMs = 180_000;

/** Nothing of the caller's: PGDATA, PGPORT and the like change nothing, and the folder can be reached by every account. */
export const programEnvironment = { cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } } as const;

/**
 * Exit code and everything printed; a program that cannot be started has exit code -1 and the reason as
 * output.
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
      { ...programEnvironment, timeout: deadlineMs, ...account },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        const printed = `${stdout}${stderr}`.trim();
        resolve({ exitCode, output: printed === "" && error !== null ? error.message : printed });
      },
    );
  });
}
