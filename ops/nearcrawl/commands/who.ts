/** `nearcrawl who`: who crawls a URL, host, address, range, organisation, and why (not). */
import { Command } from "commander";
import { answerWho } from "#coordinator/flows/answer-who";
import { createNameResolver } from "#coordinator/net/name-resolver";
import { createReports } from "#coordinator/postgres/reports/reports";
import { type ContextOptions, commandContext, exitCodes } from "../command-context.ts";
import { printJson } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import { whoText } from "../who-text.ts";

export function whoCommand(): Command {
  return new Command("who")
    .description("who crawls this, and why (not)?")
    .argument("<question...>", "URL, host, IP address, range, organisation (handle or name) or crawler")
    .option("--json", "print for programs")
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema")
    .addHelpText(
      "after",
      "\nExamples:\n  nearcrawl who https://www.example.org/\n  nearcrawl who 198.51.100.0/24\n  nearcrawl who Example Networks\n\nExit code 3 when nothing is known of it.",
    )
    .action((words: string[], options: ContextOptions & { json?: boolean }) => who(words.join(" "), options));
}

async function who(question: string, options: ContextOptions & { json?: boolean }): Promise<void> {
  const context = commandContext(options);
  const resolver = createNameResolver({ servers: context.currentRun?.resolvers ?? [] });
  const answer = await readDatabase(context, async ({ pool }) => {
    const reads = createReports(pool, () => performance.now());
    return await answerWho(question, { reads, resolver, scope: null }, new Date());
  });
  if (options.json) printJson(answer);
  else process.stdout.write(`${whoText(answer)}\n`);
  if (!answer.found) process.exitCode = exitCodes.notFound;
}
