/** `nearcrawl alerts`: what needs attention now; its exit code tells scripts. */
import { Command } from "commander";
import type { Pool } from "pg";
import { showAlerts } from "#coordinator/overview/alert-rules";
import { createReports } from "#coordinator/who/reads";
import { exitCodes } from "../command-context.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { withDatabaseOptions } from "../read-database.ts";
import { alertsText } from "./overview.ts";

export function alertsCommand(): Command {
  return withWatch(withDatabaseOptions(new Command("alerts")))
    .description("what needs attention now, and what to do")
    .addHelpText(
      "after",
      "\nExit codes: 0 nothing needs attention, 1 failed, 2 wrong usage, 4 there are alerts.\nThe runbook (monitoring) has a section for each name.\n\nExample:\n  nearcrawl alerts --json || mail -s nearcrawl ops@example.org",
    )
    .action(async (options: WatchedOptions) => {
      const read = async (pool: Pool) => {
        const list = await showAlerts(
          createReports(pool, () => performance.now()),
          new Date(),
        );
        if (!options.watch && list.alerts.length > 0) process.exitCode = exitCodes.alerts;
        return list;
      };
      await printWatched(options, read, ({ alerts }) => alertsText(alerts));
    });
}
