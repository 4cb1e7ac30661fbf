/** How a failing command ends: one line on standard error, and an exit code that says who must act. */
import { CommanderError } from "commander";
import { ConfigError, NearcrawlError, SourceFileError, UsageError } from "#core/errors";
import { exitCodes } from "./exit-codes.ts";

/** Unexpected errors are printed with their stack. Commander has printed its own, and `--help` is no error. */
export function tellFailure(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    return;
  }
  process.stderr.write(`nearcrawl: ${wordsOf(error)}\n`);
  process.exitCode = isUsers(error) ? exitCodes.usage : exitCodes.failed;
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof NearcrawlError ? error.message : (error.stack ?? error.message);
}

/** The user's command line, settings or file is at fault. */
const isUsers = (error: unknown): boolean =>
  [ConfigError, UsageError, SourceFileError].some((kind) => error instanceof kind);
