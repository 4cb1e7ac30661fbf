/** `nearcrawl rir apply`: makes the sources the tree in force. */
import { Command } from "commander";
import { applyImport } from "#rir-import/apply";
import { printAnswer } from "../output.ts";
import { onDatabase, withMigrated } from "./database-options.ts";
import { appliedText } from "./plan-text.ts";
import { type SourceOptions, sourcesOf, withSources } from "./source-arguments.ts";
import { withProgress } from "./with-progress.ts";

const help = `
Subnets that stay keep their id and delegation; \`rir rollback\` undoes it. Interrupted at any moment, the old
tree serves on, and the next apply clears away what was left.

Examples:
  nearcrawl rir apply --cache
  nearcrawl rir apply downloads/`;

export function applyCommand(): Command {
  return onDatabase(withSources(new Command("apply")))
    .description("make the sources the tree in force, in one transaction; coordinators go on serving")
    .addHelpText("after", help)
    .action(async (named: string[], options: SourceOptions) => {
      const sources = await sourcesOf(named, options);
      const applied = await withProgress((onProgress) =>
        withMigrated(options, (database) => applyImport(database, sources, { onProgress })),
      );
      printAnswer(options, applied, appliedText(applied));
    });
}
