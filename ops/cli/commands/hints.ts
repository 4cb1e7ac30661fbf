/** `nearcrawl hints`: what sites and hubs said had changed, how much of it was heard, and how often they were right. */
import { Command } from "commander";
import { hearingWords, statesOfFeeds } from "#coordinator/hints/hint";
import { createHintReads } from "#coordinator/hints/hint-reads";
import { type HintsAnswer, hintsAnswer } from "#coordinator/hints/routes";
import { whenWords } from "#core/format";
import type { Database } from "#db/server-database";
import { boundedInteger } from "../bounded-number.ts";
import { exitCodes } from "../exit-codes.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { formatTable, printable } from "../output.ts";
import { withDatabaseOptions } from "../read-database.ts";

interface HintsOptions extends WatchedOptions {
  readonly limit: number;
}

export function hintsCommand(): Command {
  return withWatch(withDatabaseOptions(new Command("hints")))
    .description(
      "what sites (IndexNow) and hubs (WebSub) reported as changed, by host, and how often they were right",
    )
    .option("--limit <n>", "hosts at most, the latest first", boundedInteger(1, 1000), 50)
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 no hints yet, 130 interrupted.\n\nExamples:\n  nearcrawl hints\n  nearcrawl policy set hints.perHostAndDay=50\n  nearcrawl who www.example.org    # its keys and feeds",
    )
    .action(async (options: HintsOptions) => await hints(options));
}

async function hints(options: HintsOptions): Promise<void> {
  const read = async ({ pool }: Database) => {
    const answer = await hintsAnswer(createHintReads(pool), options.limit, new Date());
    if (!options.watch && answer.hosts.length === 0) process.exitCode = exitCodes.notFound;
    return answer;
  };
  await printWatched(options, read, hintsText);
}

export function hintsText({ hosts, feeds, now }: HintsAnswer): string {
  const below = `Feeds that name a hub: ${statesOfFeeds(feeds)}.`;
  if (hosts.length === 0) return `No hints yet. Sites send them to /indexnow.\n\n${below}`;
  const right = (title: string) => ({ title, align: "right" as const });
  const figure = (many: number) => many.toLocaleString("en-GB");
  const table = formatTable(
    [
      { title: "host" },
      { title: "source" },
      ...["received", "accepted", "right", "wrong", "skipped", "waiting"].map(right),
      { title: "limit" },
      { title: "last" },
    ],
    hosts.map((one) => [
      printable(one.host, 60),
      one.source,
      ...[one.received, one.taken, one.right, one.wrong, one.dropped, one.waiting].map(figure),
      hearingWords(one),
      whenWords(one.lastAt, new Date(now)),
    ]),
  );
  return `${table}\n\n${below}`;
}
