/** Lists of the fleet that can be looked at again and again. */

import { type Command, InvalidArgumentError } from "commander";
import type { Database } from "#db/server-database";
import { crawlerName } from "#protocol/invitation";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase } from "../read-database.ts";
import { watchAnswer } from "../watch-answer.ts";

export interface WatchedOptions extends DatabaseOptions {
  readonly watch?: boolean;
  readonly every: number;
}

export function withWatch(command: Command): Command {
  return command
    .option("--watch", "repeat until Ctrl-C (exit code 130)")
    .option("--every <seconds>", "how often with --watch", boundedInteger(1, 3600), 5);
}

/** Over the connections of one opening, however often it is asked. */
export async function printWatched<Answer>(
  options: WatchedOptions,
  read: (database: Database) => Promise<Answer>,
  textOf: (answer: Answer) => string,
): Promise<void> {
  await readDatabase(commandContext(options), async (database) => {
    const ask = async () => await read(database);
    if (!options.watch) {
      const answer = await ask();
      return printAnswer(options, answer, textOf(answer));
    }
    const text = async () => (options.json ? JSON.stringify(await ask()) : textOf(await ask()));
    await watchAnswer(text, { everySeconds: options.every });
  });
}

// What the commands on crawlers' identities share: how names are checked, and what they say of a name that nobody has.

/** For commander. */
export function checkedName(text: string): string {
  if (crawlerName.safeParse(text).success) return text;
  throw new InvalidArgumentError(
    "a crawler's name is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit",
  );
}

export function nobodyOfThatName(name: string): void {
  process.stderr.write(`nearcrawl: there is no crawler "${name.slice(0, 100)}": nearcrawl fleet list\n`);
  process.exitCode = exitCodes.notFound;
}
