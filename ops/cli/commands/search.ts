/** `nearcrawl search`: the pages that hold these words. */
import { Command } from "commander";
import { answersText } from "#coordinator/results/stated-uses";
import { operatorHelp, readOperators } from "#coordinator/search/operators";
import {
  filterFault,
  maxSearchLimit,
  maxSearchOffset,
  type SearchOptions,
  wordsFault,
} from "#coordinator/search/query";
import { searchPages } from "#coordinator/search/search";
import { type FoundPage, facetNames, type SearchAnswer } from "#coordinator/search/search-answer";
import { createReports } from "#coordinator/who/reads";
import { UsageError } from "#core/errors";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { exportCommand } from "../search/export-command.ts";

interface SearchCommandOptions extends DatabaseOptions, Omit<SearchOptions, "limit" | "offset"> {
  readonly limit: string;
  readonly offset: string;
}

const operatorLines = operatorHelp.map(([typed, words]) => `  ${typed.padEnd(24)}${words}`).join("\n");

export function searchCommand(): Command {
  const command = new Command("search")
    .description("search the crawled pages; export the index to a search engine")
    // What stands after export is export's.
    .enablePositionalOptions()
    .argument("<words...>", 'words; "quoted phrases", or, -not; filters such as site:example.org')
    .option("--limit <n>", `results at most, up to ${maxSearchLimit}`, "10")
    .option("--offset <n>", `leave out the first N results, up to ${maxSearchOffset}`, "0")
    .option("--language <code>", "only pages in this language, such as en")
    .option("--host <host>", "only pages of this host and of those below it")
    .option(
      "--exclude-host <hosts>",
      "no pages of these hosts, with commas between them, and of those below them",
    )
    .option("--title <words>", "only pages whose title has these words")
    .option("--type <type>", "only pages of this type: html or text")
    .option("--country <code>", "only pages of hosts that lie in this country, such as DE")
    .option("--crawler <name>", "only pages that this crawler fetched")
    .option(
      "--from <day>",
      "published (or fetched, where a page does not say) on this day or later, such as 2026-03-01",
    )
    .option("--to <day>", "on this day or earlier")
    .option(
      "--preference <use=answer>",
      "only pages of which the site states this, such as ai-train=denied; ai-train=unstated where it states nothing",
    )
    .option("--sort <order>", "relevance or date", "relevance")
    .option("--explain", "say why each result stands where it does");
  return withDatabaseOptions(command)
    .addHelpText(
      "after",
      `\nExamples:\n  nearcrawl search harbour -ferry --language en\n  nearcrawl search '"harbour wall"' --host example.org --sort date\n  nearcrawl search ferry site:example.org after:2026-01-01\n\nFilters among the words:\n${operatorLines}\n\nExit code 3 when no page matches.`,
    )
    .action((words: string[], options: SearchCommandOptions) => search(words.join(" "), options))
    .addCommand(exportCommand());
}

async function search(words: string, options: SearchCommandOptions): Promise<void> {
  const { limit, offset, ...others } = options;
  const asked: SearchOptions = {
    ...others,
    limit: wholeNumber("--limit", limit, maxSearchLimit),
    offset: wholeNumber("--offset", offset, maxSearchOffset),
  };
  const fault = filterFault(asked);
  if (fault !== null) throw new UsageError(`--${fault}`);
  const typed = wordsFault(words) ?? readOperators(words, asked);
  if (typeof typed === "string") throw new UsageError(typed);
  const answer = await readDatabase(commandContext(options), ({ pool }) =>
    searchPages(
      createReports(pool, () => performance.now()),
      typed.words,
      typed.options,
      new Date(),
    ),
  );
  printAnswer(options, answer, searchText(answer));
  if (answer.pages.length === 0) process.exitCode = exitCodes.notFound;
}

function wholeNumber(option: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new UsageError(`${option} ${text}: must be a whole number up to ${most}`);
}

// An answer of the search as people read it in a terminal.

function searchText(answer: SearchAnswer): string {
  const idea = answer.didYouMean === null ? [] : [printable(`Did you mean: ${answer.didYouMean}`)];
  const note = answer.note === null ? [] : [answer.note];
  if (answer.note !== null && answer.pages.length === 0) return answer.note;
  const results = answer.pages.map((page, index) => resultText(page, answer.offset + index + 1));
  return [...idea, ...results, [countText(answer), ...facetLines(answer)].join("\n"), ...note].join("\n\n");
}

function countText({ more, total }: SearchAnswer): string {
  return `${more ? "at least " : ""}${total} ${total === 1 ? "page" : "pages"}`;
}

function resultText(page: FoundPage, number: number): string {
  const day = (iso: string) => iso.slice(0, 10);
  const facts = [
    page.publishedAt === null ? null : `published ${day(page.publishedAt)}`,
    `fetched ${day(page.fetchedAt)}${page.crawler === null ? "" : ` by ${page.crawler}`}`,
    page.language,
    page.country,
    answersText(page.uses) === "" ? null : `states ${answersText(page.uses)}`,
    page.alike > 0 ? `${page.alike} more with nearly the same text` : null,
  ].filter((fact) => fact !== null);
  return [
    printable(`${number}. ${page.title || "(no title)"}`, 150),
    printable(`   ${page.url}`, 300),
    printable(`   ${page.snippet.map((part) => part.text).join("")}`, 300),
    printable(`   ${facts.join(" · ")}`, 300),
    ...(page.reasons ?? []).map(
      ({ points, most, words }) =>
        `   ${points.toFixed(1).padStart(5)} of ${String(most).padStart(2)}  ${printable(words)}`,
    ),
    ...(page.reasons === null ? [] : [`   ${page.rank.toFixed(1).padStart(5)} points`]),
  ].join("\n");
}

/** Values that the results can be narrowed by, where there is more than one. */
function facetLines({ facets }: SearchAnswer): string[] {
  return facetNames.flatMap((name) => {
    const values = facets[name];
    if (values.length < 2) return [];
    return [printable(`${name}: ${values.map(({ value, pages }) => `${value} ${pages}`).join(", ")}`, 200)];
  });
}
