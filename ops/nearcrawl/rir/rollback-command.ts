/** `nearcrawl rir rollback`: undoes imports, the newest first. */
import { Command } from "commander";
import { rollbackImport } from "#rir-import/rollback";
import { boundedInteger } from "../bounded-integer.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./database-options.ts";
import { rolledBackText } from "./plan-text.ts";

const help = `
Exit code 2 when there are not so many imports; then nothing is undone.

Examples:
  nearcrawl rir rollback
  nearcrawl rir rollback 2`;

export function rollbackCommand(): Command {
  return onDatabase(new Command("rollback"))
    .description("undo the newest imports: the tree and its delegations are as before them")
    .argument("[n]", "how many", boundedInteger(1, 1000), 1)
    .addHelpText("after", help)
    .action(async (imports: number, options: DatabaseOptions) => {
      const rolledBack = await withMigrated(options, (database) => rollbackImport(database, imports));
      printAnswer(options, rolledBack, rolledBackText(rolledBack));
    });
}
