/** `nearcrawl rir rollback` and `rollforward`: undo imports, newest first, and reapply them. */
import { Command } from "commander";
import { rollbackConfirmation, rollbackPreview } from "#coordinator/run/registry/registry-view";
import { howMany } from "#core/format";
import { goingWords, inUseOfRollback, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { SubnetsInUse } from "#rir-import/read/status-api";
import { type RolledBack, type RolledForward, rollbackImport, rollForward } from "#rir-import/rollback";
import { registryOverview } from "#rir-import/status";
import { boundedInteger } from "../bounded-number.ts";
import { type ConfirmOptions, confirmedByTyping, type Deed, yesOption } from "../confirm-by-typing.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { yesRemoveOption } from "./apply-command.ts";
import { withMigrated } from "./cache-options.ts";
import { endWithCoordinator, recordRegistryChange } from "./job-steps.ts";
import { rolledBackText, rolledForwardText } from "./plan-text.ts";

type Options = DatabaseOptions &
  ConfirmOptions & { readonly inForce?: number; readonly toEmpty?: boolean; readonly yesRemove?: number };

const help = `
Exit code 2 when there are fewer imports, when another generation is in force than --in-force says, or when the
first import would go without --to-empty, or more than 5 % of the subnets in use (delegated, or with hosts in the frontier)
without --yes-remove and their number, which the refusal says; then nothing is undone. \`rir rollforward\` puts back in force what was undone.

Examples:
  nearcrawl rir rollback
  nearcrawl rir rollback 2
  nearcrawl rir rollback --in-force 12
  nearcrawl rir rollback --yes-remove 1204`;

export function rollbackCommand(): Command {
  return withDatabaseOptions(new Command("rollback"))
    .description("undo the newest imports: the tree and its delegations are as before them")
    .argument("[n]", "how many", boundedInteger(1, 1000), 1)
    .option(
      "--in-force <generation>",
      "only while this one is in force: asked twice, it is done once",
      boundedInteger(1, 2_147_483_647),
    )
    .option(
      "--to-empty",
      "the first import, too: no registry is in force then, and no subnet but the two roots of the address space",
    )
    .addOption(yesRemoveOption())
    .addOption(yesOption())
    .addHelpText("after", help)
    .action(async (imports: number, options: Options) => {
      // On a terminal the number may be typed.
      let removeInUse = options.yesRemove ?? null;
      const deed = async () => {
        const { inUse, ...deed } = await deedOf(imports, options);
        if (inUse !== null && isMuchInUse(inUse)) removeInUse ??= inUse.going;
        return deed.typed === "" ? null : deed;
      };
      if (!(await confirmedByTyping(options, deed))) return;
      endWithCoordinator();
      const rolledBack = await withMigrated(options, async (database) => {
        const rolledBack = await rollbackImport(database, imports, {
          expectedGeneration: options.inForce ?? null,
          toEmpty: options.toEmpty ?? false,
          removeInUse,
        });
        await recordRegistryChange(database.pool, changeOf(rolledBack));
        return rolledBack;
      });
      printAnswer(options, rolledBack, rolledBackText(rolledBack));
    });
}

/** With an empty `typed` there is nothing to roll back. */
async function deedOf(
  imports: number,
  options: Options,
): Promise<Deed & { readonly inUse: SubnetsInUse | null }> {
  const { history, inUse } = await withMigrated(options, async (database) => ({
    ...(await registryOverview(database, new Date())),
    inUse: await inUseOfRollback(database.pool, imports),
  }));
  const undone = rollbackPreview(history, imports);
  if (undone === null) return { follows: "", typed: "", asked: "", inUse: null };
  const { generation, becomes, removed, broughtBack, restored } = undone;
  const after = becomes === null ? "no registry is in force" : `generation ${becomes} is in force again`;
  const isMuch = isMuchInUse(inUse) && options.yesRemove === undefined;
  const typed = isMuch ? String(inUse.going) : rollbackConfirmation(generation);
  return {
    follows:
      `After it ${after}: ${howMany(removed, "subnet")} go, among them ${goingWords(inUse)}; ` +
      `${broughtBack.toLocaleString("en-GB")} come back, ${restored.toLocaleString("en-GB")} are ` +
      "as they were; delegations come back with their subnets. nearcrawl rir rollforward undoes " +
      "it, as long as nothing else is applied.",
    ...{ typed, asked: isMuch ? `how many subnets in use go (${typed})` : `“${typed}”`, inUse },
  };
}

function changeOf({ rolledBack, generation, undone }: RolledBack) {
  const now = generation === null ? "no registry is in force" : `generation ${generation} is in force again`;
  return {
    action: "registry-rolled-back",
    target: `registry generation ${rolledBack[0]}`,
    words: `rolled back ${rolledBack.map((one) => `generation ${one}`).join(", ")}; ${now}`,
    before: { generation: rolledBack[0] },
    after: { generation, rolledBack, undone },
  };
}

const forwardHelp = `
Only the tree that the generation was applied to leads on to it: where another one is in force, it says which. Exit code 2
when there is nothing to put back.

Examples:
  nearcrawl rir rollforward
  nearcrawl rir rollforward 12`;

export function rollforwardCommand(): Command {
  return withDatabaseOptions(new Command("rollforward"))
    .description("put an import that was rolled back in force again, with its delegations")
    .argument(
      "[generation]",
      "which one (default: the one that was rolled back last)",
      boundedInteger(1, 2_147_483_647),
    )
    .addHelpText("after", forwardHelp)
    .action(async (generation: number | undefined, options: DatabaseOptions) => {
      endWithCoordinator();
      const forward = await withMigrated(options, async (database) => {
        const forward = await rollForward(database, generation ?? null);
        await recordRegistryChange(database.pool, forwardChange(forward));
        return forward;
      });
      printAnswer(options, forward, rolledForwardText(forward));
    });
}

function forwardChange({ generation, redone }: RolledForward) {
  return {
    action: "registry-rolled-forward",
    target: `registry generation ${generation}`,
    words: `generation ${generation} is in force again`,
    after: { generation, redone },
  };
}
