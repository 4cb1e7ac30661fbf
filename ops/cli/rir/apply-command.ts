/** `nearcrawl rir plan` and `rir apply`: what the sources would change, and putting them in force. */

import { Command, Option } from "commander";
import { LosesFacts, RemovesInUse, UsageError } from "#core/errors";
import { type AppliedImport, applyImport } from "#rir-import/apply";
import { cachedSourceFiles } from "#rir-import/download/cache-manifest";
import { fingerprintForm, planImport } from "#rir-import/plan";
import type { SourcePath } from "#rir-import/read/open-source";
import { boundedInteger } from "../bounded-number.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { cacheFolderOf, withMigrated } from "./cache-options.ts";
import { recordRegistryChange } from "./job-steps.ts";
import { appliedText, planText } from "./plan-text.ts";
import { withProgress } from "./progress-text.ts";

type Options = SourceOptions & {
  readonly planned?: string;
  readonly yesRemove?: number;
  readonly yesLose?: number;
  readonly yesMoved?: readonly string[];
};

const help = `
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
    .addHelpText("after", help)
    .action(async (named: string[], options: Options) => {
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
          if (applied.isNew) await recordRegistryChange(database.pool, changeOf(applied));
          return applied;
        }),
      );
      printAnswer(options, applied, appliedText(applied));
    });
}

export const yesRemoveOption = () =>
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

function changeOf({ plan, generation }: AppliedImport) {
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

// The files of an import: named individually, or those of `nearcrawl rir fetch`.

interface SourceOptions extends DatabaseOptions {
  /** True: the usual folder. */
  readonly cache?: string | true;
}

function withSources(command: Command): Command {
  return command
    .argument("[source...]", "files or folders: all of them, every time; what they do not hold is removed")
    .option("--cache [folder]", "what `rir fetch` brought (default: registry-cache in the home folder)");
}

/** Throws a UsageError unless exactly one of files and cache is given. */
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
