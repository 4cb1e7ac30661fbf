/** `nearcrawl fleet log`, `absences` and `moves`: what happened to crawlers, by time. */
import { Command } from "commander";
import type { Absence } from "#coordinator/crawlers/crawler";
import { absencesOf } from "#coordinator/crawlers/crawler-store";
import { type MoveLine, moveList } from "#coordinator/crawlers/move-store";
import type { CrawlerLogPage } from "#coordinator/fleet/crawler-api";
import { crawlerLog } from "#coordinator/fleet/crawler-reads";
import { crawlerNamed } from "#coordinator/who/crawler-reads";
import { spanWords } from "#core/format";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { checkedName, nobodyOfThatName, printWatched, type WatchedOptions, withWatch } from "./watched.ts";

const exits = "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no crawler of that name.";

export function logCommand(): Command {
  return withDatabaseOptions(new Command("log"))
    .argument("<name>", "the crawler's name", checkedName)
    .description(
      "everything recorded about one crawler, the latest first: connections, absences, incidents, moves, keys, releases, changes",
    )
    .option("--page <n>", "of 50 lines each", boundedInteger(1, 200), 1)
    .addHelpText("after", exits)
    .action(async (name: string, options: DatabaseOptions & { readonly page: number }) => {
      const log = await readDatabase(commandContext(options), async ({ pool }) =>
        (await crawlerNamed(pool, name)) === null ? null : await crawlerLog(pool, name, options.page),
      );
      if (log === null) return nobodyOfThatName(name);
      printAnswer(options, { name, ...log }, logText(log));
    });
}

export function logText({ lines, page, more }: CrawlerLogPage): string {
  if (lines.length === 0) return page === 1 ? "nothing recorded yet" : "no more entries";
  const table = formatTable(
    [{ title: "when (UTC)" }, { title: "kind" }, { title: "what" }, { title: "by, or from" }],
    lines.map(({ at, kind, words, by }) => [
      second(at),
      kind,
      printable(words, 300),
      printable(by ?? "", 80),
    ]),
  );
  return more ? `${table}\nThere is more: --page ${page + 1}` : table;
}

export function absencesCommand(): Command {
  return withDatabaseOptions(new Command("absences"))
    .argument("<name>", "the crawler's name", checkedName)
    .description("when a crawler was away, why, and its last message; the latest hundred are kept")
    .addHelpText("after", exits)
    .action(async (name: string, options: DatabaseOptions) => {
      const absences = await readDatabase(commandContext(options), async ({ pool }) =>
        (await crawlerNamed(pool, name)) === null ? null : await absencesOf(pool, name),
      );
      if (absences === null) return nobodyOfThatName(name);
      printAnswer(options, { name, absences }, absencesText(absences));
    });
}

export function absencesText(absences: readonly Absence[]): string {
  if (absences.length === 0) return "it was never away";
  return formatTable(
    [
      { title: "from (UTC)" },
      { title: "to (UTC)" },
      { title: "for", align: "right" },
      { title: "why" },
      { title: "last message" },
    ],
    absences.map(({ since, until, reason, lastWords }) => [
      ...[second(since), second(until), spanWords((until.getTime() - since.getTime()) / 1000)],
      ...[printable(reason, 160), printable(lastWords ?? "", 160)],
    ]),
  );
}

export function movesCommand(): Command {
  return withWatch(withDatabaseOptions(new Command("moves")))
    .description("moves of crawlers to other hosts, the latest first, and how far each is")
    .option("--name <name>", "involving this crawler", checkedName)
    .action(async (options: WatchedOptions & { readonly name?: string }) => {
      await printWatched(options, async ({ pool }) => await moveList(pool, options.name ?? null), movesText);
    });
}

export function movesText(moves: readonly MoveLine[]): string {
  if (moves.length === 0) return "no moves yet: nearcrawl fleet move NAME --to OTHER";
  return formatTable(
    [
      { title: "asked (UTC)" },
      { title: "crawler" },
      { title: "to" },
      { title: "step" },
      { title: "since (UTC)" },
      { title: "sent", align: "right" },
      { title: "" },
    ],
    moves.map((move) => [
      ...[second(move.askedAt), move.name, move.otherName, move.step, second(move.changedAt)],
      ...[move.bytes === 0 ? "" : `${move.sentBytes} of ${move.bytes} bytes`, printable(move.words, 200)],
    ]),
  );
}

const second = (at: Date) => at.toISOString().slice(0, 19).replace("T", " ");
