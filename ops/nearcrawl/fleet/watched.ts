/** Lists of the fleet that can be looked at again and again. */
import type { Command } from "commander";
import type { Pool } from "pg";
import { boundedInteger } from "../bounded-integer.ts";
import { commandContext } from "../command-context.ts";
import type { DatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import { watchAnswer } from "../watch-answer.ts";

export interface WatchedOptions extends DatabaseOptions {
  readonly watch?: boolean;
  readonly every: number;
}

export function withWatch(command: Command): Command {
  return command
    .option("--watch", "again and again, until Ctrl-C (exit code 130)")
    .option("--every <seconds>", "how often with --watch", boundedInteger(1, 3600), 5);
}

/** Over one connection, however often it is asked. */
export async function printWatched<Answer>(
  options: WatchedOptions,
  read: (pool: Pool) => Promise<Answer>,
  textOf: (answer: Answer) => string,
): Promise<void> {
  await readDatabase(commandContext(options), async ({ pool }) => {
    if (!options.watch) {
      const answer = await read(pool);
      return printAnswer(options, answer, textOf(answer));
    }
    const text = async () => (options.json ? JSON.stringify(await read(pool)) : textOf(await read(pool)));
    await watchAnswer(text, { everySeconds: options.every });
  });
}
