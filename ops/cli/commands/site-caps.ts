/** `nearcrawl site-caps`: sites that operators have slowed down. */
import { Command } from "commander";
import {
  capChange,
  capRemoval,
  type ListedCap,
  mostWords,
  readDelayMs,
  readSite,
} from "#coordinator/site-caps/site-cap";
import { createSiteCapStore } from "#coordinator/site-caps/site-cap-store";
import { UsageError } from "#core/errors";
import { instantWords } from "#core/format";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface SetOptions extends DatabaseOptions {
  readonly seconds: string;
  readonly words: string;
}

export function siteCapsCommand(): Command {
  const command = new Command("site-caps")
    .description("sites that are crawled more slowly than they would be: list, set, remove")
    .addHelpText(
      "after",
      "\nA cap is the least time between two requests to each host of a site. Robots.txt, the site's answers and the usual pace hold beside it: the slowest does. It holds from the next lease of each host on; after its removal a crawler that was told it keeps to it until it reads the site's robots.txt again, within a day.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no such cap.\n\nExamples:\n  nearcrawl queue --in-hand\n  nearcrawl site-caps set example.org --seconds 10 --words 'asked for by its webmaster'\n  nearcrawl site-caps remove example.org",
    );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description("every cap, with the known hosts that it holds for")
      .action(async (options: DatabaseOptions) => {
        const caps = await readDatabase(
          commandContext(options),
          async ({ pool }) => await createSiteCapStore(pool).list(),
        );
        printAnswer(options, caps, siteCapsText(caps));
        if (caps.length === 0) process.exitCode = exitCodes.notFound;
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("set"))
      .argument("<site>", "a host's name; it holds for all names below it, too")
      .requiredOption("--seconds <n>", "least time between two requests to one host")
      .option("--words <text>", "why, for the record", "")
      .description("keep a site's requests so far apart; a cap that there is takes the new value")
      .action(async (site: string, options: SetOptions) => await set(site, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("remove"))
      .argument("<site>", "as listed")
      .description("let it be crawled at its usual pace again")
      .action(async (site: string, options: DatabaseOptions) => await remove(site, options)),
  );
  return command;
}

async function set(given: string, options: SetOptions): Promise<void> {
  const site = readSite(given);
  const delayMs = readDelayMs(Number(options.seconds));
  if (options.words.length > mostWords)
    throw new UsageError(`--words: ${options.words.length} characters, at most ${mostWords}`);
  const words = options.words.trim();
  const cap = await readDatabase(commandContext(options), async ({ pool }) => {
    const set = await createSiteCapStore(pool).set({
      ...{ site, delayMs, words },
      ...{ setBy: commandActor(), setAt: new Date() },
    });
    await recordCommand(pool, capChange(set));
    return set;
  });
  printAnswer(options, cap, capChange(cap).words);
}

async function remove(given: string, options: DatabaseOptions): Promise<void> {
  const site = readSite(given);
  const removed = await readDatabase(commandContext(options), async ({ pool }) => {
    const cap = await createSiteCapStore(pool).remove(site);
    if (cap !== null) await recordCommand(pool, capRemoval(cap));
    return cap;
  });
  if (removed !== null) return printAnswer(options, removed, capRemoval(removed).words);
  process.stderr.write(`nearcrawl: ${site} has no cap: nearcrawl site-caps list\n`);
  process.exitCode = exitCodes.notFound;
}

export function siteCapsText(caps: readonly ListedCap[]): string {
  if (caps.length === 0) return "no site has a cap";
  return formatTable(
    [
      { title: "site" },
      { title: "s between requests", align: "right" },
      { title: "known hosts", align: "right" },
      { title: "why" },
      { title: "set by" },
      { title: "since" },
    ],
    caps.map(({ site, delayMs, hosts, words, setBy, setAt }) => [
      ...[site, String(delayMs / 1000), hosts.toLocaleString("en-GB"), printable(words, 80), setBy],
      instantWords(setAt.toISOString()),
    ]),
  );
}
