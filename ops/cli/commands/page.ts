/** `nearcrawl page`: what the index has of one page. */
import { Command } from "commander";
import { maxListOffset, pageFacts } from "#coordinator/search/page-facts";
import { createReports } from "#coordinator/who/reads";
import { UsageError } from "#core/errors";
import { boundedInteger } from "../bounded-integer.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { pageText } from "../page-facts-text.ts";
import { readDatabase } from "../read-database.ts";

interface PageCommandOptions extends DatabaseOptions {
  readonly fetches: number;
  readonly in: number;
  readonly out: number;
}

export function pageCommand(): Command {
  const offset = boundedInteger(0, maxListOffset);
  const command = new Command("page")
    .description("what the index has of a page: facts, fetches, links from and to it")
    .argument("<url>", "its address")
    .option("--fetches <n>", "leave out the latest N fetches", offset, 0)
    .option("--in <n>", "leave out the first N links to it", offset, 0)
    .option("--out <n>", "leave out the first N links on it", offset, 0);
  return withDatabaseOptions(command)
    .addHelpText(
      "after",
      "\nExample:\n  nearcrawl page https://www.example.org/\n\nExit code 3 when the index has no such page, or it must not be shown.",
    )
    .action(async (url: string, options: PageCommandOptions) => await showPage(url, options));
}

async function showPage(url: string, options: PageCommandOptions): Promise<void> {
  const offsets = { fetches: options.fetches, inLinks: options.in, outLinks: options.out };
  const answer = await readDatabase(commandContext(options), async ({ pool }) => {
    const reads = createReports(pool, () => performance.now());
    return await pageFacts(reads, { url, hostHash: "", urlHash: "" }, offsets);
  });
  if (typeof answer === "string") throw new UsageError(answer);
  printAnswer(options, answer, pageText(answer));
  if (!answer.found) process.exitCode = exitCodes.notFound;
}
