/** `nearcrawl rir history`: what a range was in each generation. */
import { Command } from "commander";
import { type RangeHistory, rangeHistory } from "#rir-import/history";
import { exitCodes } from "../command-context.ts";
import { formatTable, printAnswer } from "../output.ts";
import { printable } from "../printable.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./database-options.ts";

const help = `
Exit code 3 when no subnet ever was or held it.

Example:
  nearcrawl rir history 193.0.0.0/21`;

export function historyCommand(): Command {
  return onDatabase(new Command("history"))
    .description("what a range was in each generation, the newest first")
    .argument("<range>", "a/prefix, 'a - b' or an address")
    .addHelpText("after", help)
    .action(async (range: string, options: DatabaseOptions) => {
      const history = await withMigrated(options, (database) => rangeHistory(database, range));
      printAnswer(options, history, historyText(history));
      if (history.range === null) process.exitCode = exitCodes.notFound;
    });
}

export function historyText({ asked, range, isExact, generations }: RangeHistory): string {
  if (range === null) return `no subnet ever was or held ${asked}`;
  const title = isExact ? range : `no subnet ever was ${asked}; the most specific that holds it, ${range}`;
  const columns = ["generation", "applied", "", "holder", "country", "registry", "name", "under"];
  const rows = generations.map(({ generation, appliedAt, event, state }) => [
    String(generation),
    appliedAt.slice(0, 10),
    event,
    printable([state?.holder, state?.handle && `(${state.handle})`].filter(Boolean).join(" "), 60),
    state?.country ?? "",
    state?.registry ?? "",
    printable(state?.name ?? "", 40),
    state?.under ?? "",
  ]);
  return `${title}\n\n${formatTable(
    columns.map((title) => ({ title })),
    rows,
  )}`;
}
