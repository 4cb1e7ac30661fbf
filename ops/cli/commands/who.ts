/** `nearcrawl who`: who crawls a URL, host, address, range, organisation, and why (not). */
import { Command } from "commander";
import { readCoordinatorPlace } from "#coordinator/crawlers/coordinator-presence-store";
import { frontierOrder } from "#coordinator/frontier/order/strategies";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { answerWho } from "#coordinator/who/answer";
import { createReports } from "#coordinator/who/reads";
import { createNameResolver } from "#core/name-resolver";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { whoText } from "../who-text.ts";

export function whoCommand(): Command {
  return withDatabaseOptions(new Command("who"))
    .description("who crawls this, and why (not)?")
    .argument(
      "<question...>",
      "URL, host, IP address, range, organisation (handle or name), country or crawler",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  nearcrawl who https://www.example.org/\n  nearcrawl who 198.51.100.0/24\n  nearcrawl who Example Networks\n  nearcrawl who country:DE\n\nA country, an organisation or a range answers with what lies in its space.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing is known of it.\nThe same as a page: /who?q=…",
    )
    .action((words: string[], options: DatabaseOptions) => who(words.join(" "), options));
}

async function who(question: string, options: DatabaseOptions): Promise<void> {
  const context = commandContext(options);
  const resolver = createNameResolver({ servers: context.currentRun?.resolvers ?? [] });
  const answer = await readDatabase(context, async ({ pool }) => {
    const reads = createReports(pool, () => performance.now());
    // How far the crawl goes, as the coordinator that started last has it, with what operators changed since.
    const { scope, frontier } = knownPolicies(await createPolicyStore(pool).read()).settings;
    const order = frontierOrder(frontier);
    const domainSets = (await readCoordinatorPlace(pool))?.domainSets ?? [];
    return await answerWho(question, { reads, resolver, scope, order, domainSets }, new Date());
  });
  printAnswer(options, answer, whoText(answer));
  if (!answer.found) process.exitCode = exitCodes.notFound;
}
