/** How a command ends that cannot go on: one line on standard error, and an exit code that says whose turn it is. */
import { CommanderError } from "commander";
import { ConfigError, NearcrawlError, SourceFileError, UsageError } from "#core/errors";
import { exitCodes } from "./exit-codes.ts";

/** Errors that nobody foresaw are told with their stack. Commander has told its own, and `--help` is none. */
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

/** What they wrote on the command line, in the settings or in a file is wrong. */
const isUsers = (error: unknown): boolean =>
  [ConfigError, UsageError, SourceFileError].some((kind) => error instanceof kind);
