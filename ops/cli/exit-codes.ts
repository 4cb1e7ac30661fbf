/**
 * The exit codes of all commands: 0 done; 1 failed (database, network, a bug); 2 wrong usage, settings or input; 3 what was
 * asked for does not exist (`who` without an answer); 4 something needs attention (`alerts`, `doctor`); 130 interrupted. They stay the
 * same when nobody reads the output any more (`… | head`, migrating-crawler/cli/closed-output.ts).
 */
import { CommanderError } from "commander";
import { ConfigError, NearcrawlError, SourceFileError, UsageError } from "#core/errors";

export const exitCodes = { done: 0, failed: 1, usage: 2, notFound: 3, alerts: 4, interrupted: 130 } as const;

/** For the help of commands whose answer comes from a room. */
export const exitsOfRoom =
  "Exit codes: 0 done, 1 failed, 2 wrong usage or refused, 3 there is nothing of it. No coordinator has to run.";

// A failing command ends with one line on standard error, and an exit code that says who must act.

/** Prints unexpected errors with their stack. Commander has printed its own, and `--help` is not an error. */
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

/** True when the user's command line, settings or file is at fault. */
const isUsers = (error: unknown): boolean =>
  [ConfigError, UsageError, SourceFileError].some((kind) => error instanceof kind);
