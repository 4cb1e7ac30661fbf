/** `nearcrawl alerts`: what needs attention now; its exit code tells scripts. */
import { Command } from "commander";
import { showAlerts } from "#coordinator/flows/show-alerts";
import { createReports } from "#coordinator/postgres/reports/reports";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { alertsText } from "../overview/overview-text.ts";
import { readDatabase } from "../read-database.ts";

export function alertsCommand(): Command {
  return withDatabaseOptions(new Command("alerts"))
    .description("what needs attention now, and what to do")
    .addHelpText(
      "after",
      "\nExit codes: 0 nothing needs attention, 1 failed, 2 wrong usage, 4 there are alerts.\nThe runbook (monitoring) has a section for each name.\n\nExample:\n  nearcrawl alerts --json || mail -s nearcrawl ops@example.org",
    )
    .action(async (options: DatabaseOptions) => {
      const list = await readDatabase(commandContext(options), async ({ pool }) => {
        const reads = createReports(pool, () => performance.now());
        return await showAlerts(reads, new Date());
      });
      printAnswer(options, list, alertsText(list.alerts));
      if (list.alerts.length > 0) process.exitCode = exitCodes.alerts;
    });
}
