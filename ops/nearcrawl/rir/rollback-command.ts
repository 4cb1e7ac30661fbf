/** `nearcrawl rir rollback`: undoes imports, the newest first. */
import { Command } from "commander";
import { type RolledBack, rollbackImport } from "#rir-import/rollback";
import { boundedInteger } from "../bounded-integer.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./database-options.ts";
import { recordRegistryChange } from "./job-asker.ts";
import { endWithCoordinator } from "./job-steps.ts";
import { rolledBackText } from "./plan-text.ts";

type Options = DatabaseOptions & { readonly inForce?: number };

const help = `
Exit code 2 when there are not so many imports, or when another generation is in force than --in-force says; then
nothing is undone.

Examples:
  nearcrawl rir rollback
  nearcrawl rir rollback 2
  nearcrawl rir rollback --in-force 12`;

export function rollbackCommand(): Command {
  return onDatabase(new Command("rollback"))
    .description("undo the newest imports: the tree and its delegations are as before them")
    .argument("[n]", "how many", boundedInteger(1, 1000), 1)
    .option(
      "--in-force <generation>",
      "only while this one is in force: asked twice, it is done once",
      boundedInteger(1, 2_147_483_647),
    )
    .addHelpText("after", help)
    .action(async (imports: number, options: Options) => {
      endWithCoordinator();
      const rolledBack = await withMigrated(options, async (database) => {
        const rolledBack = await rollbackImport(database, imports, options.inForce ?? null);
        await recordRegistryChange(database.pool, changeOf(rolledBack));
        return rolledBack;
      });
      printAnswer(options, rolledBack, rolledBackText(rolledBack));
    });
}

function changeOf({ rolledBack, generation, undone }: RolledBack) {
  const now = generation === null ? "the tree is empty" : `generation ${generation} is in force again`;
  return {
    action: "registry-rolled-back",
    target: `registry generation ${rolledBack[0]}`,
    words: `rolled back ${rolledBack.map((one) => `generation ${one}`).join(", ")}; ${now}`,
    before: { generation: rolledBack[0] },
    after: { generation, rolledBack, undone },
  };
}
