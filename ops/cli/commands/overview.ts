/** `nearcrawl overview`: the state of the whole crawl, as the page that operators keep open. */
import { Command, Option } from "commander";
import { type Overview, showOverview } from "#coordinator/overview/overview";
import { type HistoryRange, historyRangeNames } from "#coordinator/overview/overview-types";
import { createReports } from "#coordinator/who/reads";
import type { Database } from "#db/server-database";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { printAnswer } from "../output.ts";
import { overviewText } from "../overview/overview-text.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { watchAnswer } from "../watch-answer.ts";

interface OverviewOptions extends DatabaseOptions {
  readonly range: HistoryRange;
  readonly watch?: boolean;
  readonly every: number;
}

export function overviewCommand(): Command {
  return withDatabaseOptions(new Command("overview"))
    .description("the state of the whole crawl: alerts, figures, what waits, what fails, the crawlers")
    .addOption(new Option("--range <span>", "of the history").choices([...historyRangeNames]).default("1h"))
    .option("--watch", "again and again, until Ctrl-C (exit code 130)")
    .option("--every <seconds>", "how often with --watch", boundedInteger(1, 3600), 2)
    .addHelpText(
      "after",
      "\nTold from the database, so it works on any machine that reaches it, and without a coordinator.\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n\nExamples:\n  nearcrawl overview --watch\n  nearcrawl overview --range 24h --json",
    )
    .action(async (options: OverviewOptions) => await overview(options));
}

async function overview(options: OverviewOptions): Promise<void> {
  await readDatabase(commandContext(options), async (database) => {
    const read = overviewOf(database, options.range);
    if (!options.watch) {
      const answer = await read();
      return printAnswer(options, answer, overviewText(answer));
    }
    const text = async () => (options.json ? JSON.stringify(await read()) : overviewText(await read()));
    await watchAnswer(text, { everySeconds: options.every });
  });
}

/** One connection and what is kept of costly answers, however often it is asked. */
function overviewOf({ pool }: Database, range: HistoryRange): () => Promise<Overview> {
  const reads = createReports(pool, () => performance.now());
  return async () => await showOverview(reads, null, { rates: null, range, now: new Date() });
}
