/** `nearcrawl rir status`: what the tree in force was made from. */
import { Command } from "commander";
import { registryStatus } from "#rir-import/status";
import { exitCodes } from "../command-context.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./database-options.ts";
import { statusText } from "./plan-text.ts";

export function statusCommand(): Command {
  return onDatabase(new Command("status"))
    .description("what the tree in force was made from, and how old that is")
    .addHelpText("after", "\nExit code 3 before the first import.\n\nExample:\n  nearcrawl rir status --json")
    .action(async (options: DatabaseOptions) => {
      const status = await withMigrated(options, (database) => registryStatus(database, new Date()));
      printAnswer(options, status, statusText(status));
      if (status.generation === null) process.exitCode = exitCodes.notFound;
    });
}
