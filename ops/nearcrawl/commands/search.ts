/** `nearcrawl search`: the pages that hold these words. */
import { Command } from "commander";
import { type SearchAnswer, type SearchOptions, searchPages } from "#coordinator/flows/search-pages";
import { createReports } from "#coordinator/postgres/reports/reports";
import { UsageError } from "#core/errors";
import { type ContextOptions, commandContext, exitCodes } from "../command-context.ts";
import { printJson } from "../output.ts";
import { printable } from "../printable.ts";
import { readDatabase } from "../read-database.ts";

interface SearchCommandOptions extends ContextOptions {
  readonly json?: boolean;
  readonly limit: string;
  readonly offset: string;
  readonly language?: string;
  readonly host?: string;
}

export function searchCommand(): Command {
  return new Command("search")
    .description("search the crawled pages")
    .argument("<words...>", 'words; "quoted phrases", or, -not')
    .option("--limit <n>", "results at most, up to 100", "10")
    .option("--offset <n>", "leave out the first N results, up to 1000", "0")
    .option("--language <code>", "only pages in this language, such as en")
    .option("--host <host>", "only pages of this host")
    .option("--json", "print for programs")
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema")
    .addHelpText(
      "after",
      "\nExample:\n  nearcrawl search harbour -ferry --language en\n\nExit code 3 when no page matches.",
    )
    .action((words: string[], options: SearchCommandOptions) => search(words.join(" "), options));
}

async function search(words: string, options: SearchCommandOptions): Promise<void> {
  const asked: SearchOptions = {
    limit: wholeNumber("--limit", options.limit, 100),
    offset: wholeNumber("--offset", options.offset, 1000),
    ...(options.language === undefined ? {} : { language: languageCode(options.language) }),
    ...(options.host === undefined ? {} : { host: options.host }),
  };
  const answer = await readDatabase(commandContext(options), ({ pool }) =>
    searchPages(
      createReports(pool, () => performance.now()),
      words,
      asked,
    ),
  );
  if (options.json) printJson(answer);
  else process.stdout.write(`${searchText(answer)}\n`);
  if (answer.pages.length === 0) process.exitCode = exitCodes.notFound;
}

export function searchText(answer: SearchAnswer): string {
  if (answer.note !== null) return answer.note;
  const count = `${answer.more ? "more than " : ""}${answer.total} ${answer.total === 1 ? "page" : "pages"}`;
  const results = answer.pages.map((page, index) =>
    [
      printable(`${answer.offset + index + 1}. ${page.title || "(no title)"}`, 150),
      printable(`   ${page.url}`, 300),
      printable(`   ${page.snippet.map((part) => part.text).join("")}`, 300),
    ].join("\n"),
  );
  return [...results, count].join("\n\n");
}

function wholeNumber(option: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new UsageError(`${option} ${text}: must be a whole number up to ${most}`);
}

function languageCode(text: string): string {
  if (/^[a-zA-Z]{2,3}$/.test(text)) return text;
  throw new UsageError(`--language ${text}: must be a code of two or three letters, such as en`);
}
