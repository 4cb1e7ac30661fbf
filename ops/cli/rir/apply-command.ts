/** `nearcrawl rir plan`, `apply`, `rollback` and `rollforward`: show an import's changes, put it in force, and undo or redo it. */
import { Command, Option } from "commander";
import { rollbackConfirmation, rollbackPreview } from "#coordinator/run/registry/registry-view";
import { LosesFacts, RemovesInUse, UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { type AppliedImport, applyImport } from "#rir-import/apply";
import { goingWords, inUseOfRollback, isMuchInUse } from "#rir-import/database/subnets-in-use";
import { cachedSourceFiles } from "#rir-import/download/cache-manifest";
import { fingerprintForm, planImport } from "#rir-import/plan";
import type { SourcePath } from "#rir-import/read/open-source";
import type { SubnetsInUse } from "#rir-import/read/status-api";
import { type RolledBack, type RolledForward, rollbackImport, rollForward } from "#rir-import/rollback";
import { registryOverview } from "#rir-import/status";
import { type ConfirmOptions, confirmedByTyping, type Deed, yesOption } from "../confirm-by-typing.ts";
import { boundedInteger } from "../options.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { cacheFolderOf, withMigrated } from "./cache-options.ts";
import { endWithCoordinator, recordRegistryChange, withProgress } from "./job-steps.ts";
import { appliedText, planText, rolledBackText, rolledForwardText } from "./plan-text.ts";

type ApplyOptions = SourceOptions & {
  readonly planned?: string;
  readonly yesRemove?: number;
  readonly yesLose?: number;
  readonly yesMoved?: readonly string[];
};

const applyHelp = `
Subnets that stay keep their id and delegation; \`rir rollback\` undoes it. Interrupted at any moment, the old
tree serves on, and the next apply clears away what was left.

With --planned, and the fingerprint that \`rir plan\` ends with, exactly that plan is applied: files that changed
since, or another generation in force, stop the import with exit code 2, and nothing is changed.

More than 5 % of the subnets in use (delegated, or with hosts in the frontier) go only with --yes-remove and their number,
which \`rir plan\` and the refusal say; without it exit code 2, and nothing is changed. That an import was refused is in the audit
log, and an alert.

Where networks publish that their ranges lie (geofeeds, the clouds' lists) is imported with the rest. A list that moves more
than 30 % of its ranges to other places at once is held back, and what is in force goes on, until --yes-moved names its source or
what is in force is older by a quarter.

Examples:
  nearcrawl rir apply --cache
  nearcrawl rir apply downloads/
  nearcrawl rir apply --cache --planned 12-9f86d081884c7d659a2feaa0c55ad015`;

export function applyCommand(): Command {
  return withDatabaseOptions(withSources(new Command("apply")))
    .description("make the sources the tree in force, in one transaction; coordinators go on serving")
    .option("--planned <fingerprint>", "apply this plan and nothing else")
    .addOption(yesRemoveOption())
    .addOption(yesLoseOption())
    .addOption(yesMovedOption())
    .addHelpText("after", applyHelp)
    .action(async (named: string[], options: ApplyOptions) => {
      const { planned } = options;
      if (planned !== undefined && !fingerprintForm.test(planned)) {
        throw new UsageError(
          `--planned ${planned.slice(0, 80)}: copy the fingerprint that rir plan ends with`,
        );
      }
      const sources = await sourcesOf(named, options);
      const applied = await withProgress((onProgress) =>
        withMigrated(options, async (database) => {
          const applied = await applyImport(database, sources, {
            onProgress,
            ...(planned && { planned }),
            removeInUse: options.yesRemove ?? null,
            yesMoved: options.yesMoved ?? [],
            loseFacts: options.yesLose ?? null,
          }).catch(async (error: unknown) => {
            if (error instanceof RemovesInUse || error instanceof LosesFacts)
              await recordRegistryChange(database.pool, refusalOf(error));
            throw error;
          });
          if (applied.isNew) await recordRegistryChange(database.pool, appliedChange(applied));
          return applied;
        }),
      );
      printAnswer(options, applied, appliedText(applied));
    });
}

const yesRemoveOption = () =>
  new Option(
    "--yes-remove <n>",
    "so many subnets in use are meant to go: their exact number, where they are more than 5 %",
  ).argParser(boundedInteger(1, 2_147_483_647));

const yesLoseOption = () =>
  new Option(
    "--yes-lose <n>",
    "so many holders, countries and published ranges in all are meant to be lost: their exact number, where they are suspiciously many",
  ).argParser(boundedInteger(1, 2_147_483_647));

const yesMovedOption = () =>
  new Option("--yes-moved <source...>", "published lists that may move most of their ranges: aws, or all");
const refusalOf = ({ message }: RemovesInUse | LosesFacts) => ({
  action: "registry-refused",
  target: "registry import",
  words: `an import was refused: ${message}`,
});

function appliedChange({ plan, generation }: AppliedImport) {
  const { added, returned, removed, changed, moved } = plan.changes;
  return {
    action: "registry-applied",
    target: `registry generation ${generation}`,
    words:
      `an import was applied: ${added + returned} subnets added, ${removed} removed, ${changed} ` +
      `changed, ${moved} moved; generation ${generation} is in force`,
    before: { generation: plan.generation },
    after: { generation, files: plan.files.map(({ file }) => file) },
  };
}

// The files of an import: named individually, or those that `nearcrawl rir fetch` downloaded.

interface SourceOptions extends DatabaseOptions {
  /** `true` means the default folder. */
  readonly cache?: string | true;
}

function withSources(command: Command): Command {
  return command
    .argument("[source...]", "files or folders: all of them, every time; what they do not hold is removed")
    .option("--cache [folder]", "what `rir fetch` brought (default: registry-cache in the home folder)");
}

/** Throws a UsageError unless either files or the cache are given. */
export async function sourcesOf(
  sources: readonly string[],
  options: SourceOptions,
): Promise<readonly SourcePath[]> {
  if (options.cache === undefined) {
    if (sources.length > 0) return sources;
    throw new UsageError("name the files to import, or --cache for those that `nearcrawl rir fetch` brought");
  }
  if (sources.length > 0) throw new UsageError("name files or --cache, not both");
  const folder = cacheFolderOf({
    ...(options.home && { home: options.home }),
    ...(options.cache !== true && { cache: options.cache }),
  });
  const files = await cachedSourceFiles(folder);
  if (files.length === 0) throw new UsageError(`${folder} holds no fetched files: nearcrawl rir fetch`);
  return files;
}

type PlanOptions = SourceOptions & {
  readonly samples: number;
  readonly yesMoved?: readonly string[];
};

const planExamples = `
Examples:
  nearcrawl rir plan --cache
  nearcrawl rir plan downloads/ --samples 50`;

export function planCommand(): Command {
  return withDatabaseOptions(withSources(new Command("plan")))
    .description("say what an import would change, and change nothing")
    .option("--samples <n>", "samples of each kind of change", boundedInteger(0, 100_000), 10)
    .addOption(yesMovedOption())
    .addHelpText("after", planExamples)
    .action(async (named: string[], options: PlanOptions) => {
      const sources = await sourcesOf(named, options);
      const plan = await withProgress((onProgress) =>
        withMigrated(options, (database) =>
          planImport(database, sources, {
            onProgress,
            samples: options.samples,
            yesMoved: options.yesMoved ?? [],
          }),
        ),
      );
      printAnswer(options, plan, planText(plan));
    });
}

// `nearcrawl rir rollback` and `rollforward`: undo imports, the newest first, and reapply them.

type RollbackOptions = DatabaseOptions &
  ConfirmOptions & { readonly inForce?: number; readonly toEmpty?: boolean; readonly yesRemove?: number };

const rollbackHelp = `
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
    .addHelpText("after", rollbackHelp)
    .action(async (imports: number, options: RollbackOptions) => {
      // On a terminal the user may type the number.
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
        await recordRegistryChange(database.pool, rolledBackChange(rolledBack));
        return rolledBack;
      });
      printAnswer(options, rolledBack, rolledBackText(rolledBack));
    });
}

/** An empty `typed` means that there is nothing to roll back. */
async function deedOf(
  imports: number,
  options: RollbackOptions,
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

function rolledBackChange({ rolledBack, generation, undone }: RolledBack) {
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
