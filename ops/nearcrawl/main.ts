#!/usr/bin/env node
/** The `nearcrawl` command: picks the sub-command, turns errors into one line and an exit code. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { ConfigError, NearcrawlError, SourceFileError, UsageError } from "#core/errors";
import { exitCodes } from "./command-context.ts";

async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("nearcrawl")
    .description("A location-aware web crawler: every page is fetched by the nearest crawler.")
    .version(version())
    .showHelpAfterError("(nearcrawl --help lists the commands)")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage or input, 3 nothing found, 130 interrupted.\n",
    )
    .exitOverride();
  for (const load of commands) program.addCommand(await load());
  program.commands.forEach(overrideExit);
  await program.parseAsync([...argv]);
}

const commands: readonly (() => Promise<Command>)[] = [];

function overrideExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(overrideExit);
}

function version(): string {
  for (const path of ["../../package.json", "../../../package.json"]) {
    try {
      return (JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string })
        .version;
    } catch {}
  }
  return "unknown";
}

try {
  await main(process.argv);
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  } else if (
    error instanceof ConfigError ||
    error instanceof UsageError ||
    error instanceof SourceFileError
  ) {
    process.stderr.write(`nearcrawl: ${error.message}\n`);
    process.exitCode = exitCodes.usage;
  } else if (error instanceof NearcrawlError) {
    process.stderr.write(`nearcrawl: ${error.message}\n`);
    process.exitCode = exitCodes.failed;
  } else {
    process.stderr.write(
      `nearcrawl: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = exitCodes.failed;
  }
}
