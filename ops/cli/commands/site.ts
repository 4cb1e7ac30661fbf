/** `nearcrawl site`: the hosts that the crawl knows, filtered and sorted; `nearcrawl site HOST`: one of them. */
import { Command, Option } from "commander";
import type { Pool } from "pg";
import { sitesAsCsv } from "#coordinator/sites/sites-export";
import {
  countWords,
  type ListedSite,
  readSitesQuestion,
  type SitesAnswer,
  type SitesParameter,
  type SitesQuestion,
  sinceWords,
  siteSorts,
  siteStates,
  sitesLimit,
  stateWords,
} from "#coordinator/sites/sites-list";
import { everySite, sitesAnswer } from "#coordinator/sites/sites-reads";
import { UsageError } from "#core/errors";
import { bytesText, msText } from "#core/format";
import { readerGone } from "#crawler/cli/closed-output";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { type SiteOptions, showSite, withSiteOptions } from "../show-site.ts";

interface ListOptions extends DatabaseOptions, Partial<Record<Exclude<SitesParameter, "limit">, string>> {
  readonly limit: number;
  readonly csv?: boolean;
}

/** Of --csv, as of /sites.csv. */
const mostInFile = 1_000_000;

export function siteCommand(): Command {
  return withSiteOptions(withDatabaseOptions(new Command("site")))
    .argument("[host]", "one host, in any spelling (default: the list of all)")
    .description("hosts that the crawl knows, filtered and sorted; or one host, a part at a time")
    .option("--host <text>", "whose names begin so")
    .option("--under <domain>", "a domain: its host and all below it")
    .addOption(new Option("--state <state>", "in this state").choices([...siteStates]))
    .option("--crawler <name>", "crawled by this one")
    .option("--language <code>", "whose pages are mostly in it: el")
    .option("--country <code>", "whose subnet is registered there: CY")
    .option("--organisation <name>", "whose subnet it holds: a handle, or a name in full")
    .option("--tld <name>", "of a top-level domain: gr")
    .addOption(new Option("--channel <which>", "with a channel, or without").choices(["with", "without"]))
    .addOption(
      new Option("--sort <by>", "what the list is sorted by").choices([...siteSorts]).default("host"),
    )
    .addOption(
      new Option(
        "--order <direction>",
        "up or down (default: names up, the longest not fetched first, all else the most first)",
      ).choices(["up", "down"]),
    )
    .option("--limit <n>", "sites at most", boundedInteger(1, sitesLimit.most), sitesLimit.usual)
    .option("--csv", "print all that match as CSV, up to 1,000,000")
    .addHelpText(
      "after",
      "\nThe web pages: /sites, /sites/HOST. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no site matches, or the crawl does not know the host.\n\nExamples:\n  nearcrawl site --sort failures\n  nearcrawl site --under example.org --state blocked\n  nearcrawl site --country CY --language el --sort pages --json\n  nearcrawl site --crawler athens --csv > sites.csv\n  nearcrawl site www.example.org\n  nearcrawl site www.example.org --part pages --filter failing\n  nearcrawl site www.example.org --part changes --days 1",
    )
    .action(
      async (host: string | undefined, options: ListOptions & SiteOptions) =>
        await (host === undefined ? listSites(options) : showSite(host, options)),
    );
}

export async function listSites(options: ListOptions): Promise<void> {
  const question = readSitesQuestion((name) => String(options[name] ?? ""));
  if (typeof question === "string") throw new UsageError(question);
  await readDatabase(commandContext(options), async ({ pool }) => {
    const now = new Date();
    if (options.csv) return await printCsv(pool, question, now);
    const answer = await sitesAnswer(pool, question, now);
    printAnswer(options, answer, sitesText(answer));
    if (answer.sites.length === 0) process.exitCode = exitCodes.notFound;
  });
}

async function printCsv(pool: Pool, question: SitesQuestion, now: Date): Promise<void> {
  const gone = readerGone();
  for await (const text of sitesAsCsv(everySite(pool, question, now), mostInFile)) {
    if (gone.aborted) return;
    if (!process.stdout.write(text) && !gone.aborted)
      await new Promise<void>((resolve) => {
        process.stdout.once("drain", resolve);
        gone.addEventListener("abort", () => resolve(), { once: true });
      });
  }
}

export function sitesText(answer: SitesAnswer): string {
  const { sites, at, next, progress } = answer;
  const filling = progress.isFirstRound ? "\nthe list is being filled: some hosts are still missing" : "";
  if (sites.length === 0) return `no site matches${filling}`;
  const table = formatTable(
    [
      ...["host", "state", "crawler", "lang", "country"].map((title) => ({ title })),
      ...["pages", "due URLs", "failed", "of 7 days", "fetched", "added", "RTT", "bytes"].map(right),
    ],
    sites.map((site) => cellsOf(site, at)),
  );
  const more = next === null ? "" : `; more: --after ${next}`;
  return `${table}\n\n${countWords(answer)}${more}${filling}`;
}

function cellsOf(site: ListedSite, at: Date): string[] {
  const { host, crawler, language, country, pages, failures, fetches, fetchedAt, addedAt, rttMs, bytes } =
    site;
  const [state, more] = stateWords(site, at);
  return [
    ...[printable(host, 80), printable(more === null ? state : `${state}: ${more}`, 60)],
    ...[crawler === null ? "not assigned" : printable(crawler, 40), language ?? "–", country ?? "–"],
    ...[grouped(pages), `${site.moreDueUrls ? "over " : ""}${grouped(site.dueUrls)}`],
    ...[fetches === 0 ? "–" : grouped(failures), fetches === 0 ? "–" : grouped(fetches)],
    fetchedAt === null ? "–" : sinceWords(fetchedAt, at, "its crawler's"),
    sinceWords(addedAt, at, "the coordinator's"),
    ...[rttMs === null ? "–" : msText(rttMs), bytesText(bytes)],
  ];
}

const grouped = (count: number) => count.toLocaleString("en-GB");
const right = (title: string) => ({ title, align: "right" as const });
