/** `nearcrawl rir plan`: what an import would change. */
import { Command } from "commander";
import { planImport } from "#rir-import/plan";
import { boundedInteger } from "../bounded-number.ts";
import { printAnswer } from "../output.ts";
import { type SourceOptions, sourcesOf, withSources } from "./apply-command.ts";
import { onDatabase, withMigrated } from "./database-options.ts";
import { withProgress } from "./lookup-command.ts";
import { writePlanPage } from "./plan-page.ts";
import { planText } from "./plan-text.ts";

type Options = SourceOptions & { readonly samples: number; readonly page?: string };

const examples = `
Examples:
  nearcrawl rir plan --cache
  nearcrawl rir plan downloads/ --samples 50
  nearcrawl rir plan downloads/ --page differences.html`;

export function planCommand(): Command {
  return onDatabase(withSources(new Command("plan")))
    .description("say what an import would change, and change nothing")
    .option("--samples <n>", "samples of each kind of change", boundedInteger(0, 100_000), 10)
    .option("--page <file>", "write the differences as a page to browse")
    .addHelpText("after", examples)
    .action(async (named: string[], options: Options) => {
      const { samples, page } = options;
      const sources = await sourcesOf(named, options);
      const plan = await withProgress((onProgress) =>
        withMigrated(options, (database) =>
          planImport(database, sources, {
            onProgress,
            samples,
            ...(page && {
              onDifferences: (plan, differences) => writePlanPage(page, plan, differences),
            }),
          }),
        ),
      );
      const written = page ? `\n\nthe differences to browse: ${page}` : "";
      printAnswer(options, plan, planText(plan) + written);
    });
}
