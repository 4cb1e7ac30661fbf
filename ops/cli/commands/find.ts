/** `nearcrawl find`: pages, crawlers, hosts, settings and actions by a part of their name. */
import { Command } from "commander";
import { type FindAnswer, find, questionFault } from "#coordinator/find/find";
import { kindNames } from "#coordinator/find/find-page";
import { createFindReads } from "#coordinator/find/find-reads";
import { scopes } from "#core/actor";
import { UsageError } from "#core/errors";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export function findCommand(): Command {
  return withDatabaseOptions(new Command("find"))
    .description("find a page, crawler, host, setting or action by a part of its name")
    .argument("<words...>", "part of a name, a host, an address, a range or a URL")
    .addHelpText(
      "after",
      "\nExamples:\n  nearcrawl find amsterdam\n  nearcrawl find probe pace\n  nearcrawl find example.org --json\n\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing was found.\nThe same as a page: /find?q=…",
    )
    .action((words: string[], options: DatabaseOptions) => findByName(words.join(" "), options));
}

async function findByName(question: string, options: DatabaseOptions): Promise<void> {
  const fault = questionFault(question);
  if (fault !== null) throw new UsageError(fault);
  // Whoever reaches the database may open everything.
  const actor = { name: "command", role: "operator", scopes, crawlers: [] } as const;
  const answer = await readDatabase(
    commandContext(options),
    async ({ pool }) => await find(question, actor, createFindReads(pool)),
  );
  printAnswer(options, answer, findText(answer));
  if (!answer.results.some(({ kind }) => kind !== "action")) process.exitCode = exitCodes.notFound;
}

export function findText({ results, more, note }: FindAnswer): string {
  const rows = results.map(({ kind, title, words, href }) => [
    ...[kindNames[kind], printable(title, 200), printable(words, 200), href],
  ]);
  const table = formatTable(
    [{ title: "Kind" }, { title: "Name" }, { title: "What it is" }, { title: "Page" }],
    rows,
  );
  const further = more.map(
    (kind) => `There are more ${kindNames[kind].toLowerCase()}; type more of the name.`,
  );
  return [table, ...further, ...(note === null ? [] : [note])].join("\n");
}
