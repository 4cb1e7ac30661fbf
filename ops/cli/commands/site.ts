/** `nearcrawl site`: one host of the crawl. */
import { Command } from "commander";
import { withDatabaseOptions } from "../read-database.ts";
import { type SiteOptions, showSite, withSiteOptions } from "../show-site.ts";

export function siteCommand(): Command {
  return withDatabaseOptions(
    withSiteOptions(new Command("site").argument("<host>", "its name in any spelling")),
  )
    .description("a host: its crawler, pages, changes, preferences, speed and links")
    .addHelpText(
      "after",
      "\nThe web page: /sites/HOST. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the crawl does not know the host.\n\nExamples:\n  nearcrawl site www.example.org\n  nearcrawl site www.example.org --part pages --filter failing\n  nearcrawl site www.example.org --part changes --days 1",
    )
    .action(async (host: string, options: SiteOptions) => await showSite(host, options));
}
