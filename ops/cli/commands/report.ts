/** `nearcrawl report`: what the crawl comes to, as tables: coverage, organisations, subnets, crawlers, placement. */
import { Command } from "commander";
import { readCoverageQuestion } from "#coordinator/reports/coverage";
import {
  columnText,
  comparedWords,
  countryColumns,
  coverageLead,
  crawlersLead,
  dayColumns,
  farColumns,
  languageColumns,
  missedColumns,
  organisationColumns,
  organisationsLead,
  placementColumns,
  placementLead,
  type ReportColumn,
  subnetsLead,
} from "#coordinator/reports/report-columns";
import {
  coverageReport,
  crawlersReport,
  organisationsReport,
  placementReport,
  type ReportReads,
  readCrawl,
  subnetsReport,
} from "#coordinator/reports/reports";
import type { CoverageReport } from "#coordinator/reports/reports-api";
import { reportCsv } from "#coordinator/reports/reports-page";
import { createReportReads } from "#coordinator/reports/start";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { csvText } from "#coordinator/web/html";
import { UsageError } from "#core/errors";
import { timeRange } from "#core/time-range";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface ReportOptions extends DatabaseOptions {
  readonly csv?: boolean;
  readonly day?: string;
  readonly country?: string;
  readonly language?: string;
  readonly range?: string;
  /** Places. */
  readonly most?: number;
}

interface Report {
  readonly answer: unknown;
  /** False: there is nothing to show yet. */
  readonly hasLines: boolean;
  readonly csv: string;
  readonly text: string;
}

export function reportCommand(): Command {
  const command = new Command("report").description(
    "what the crawl comes to: coverage, organisations, subnets, crawlers, placement",
  );
  command.addCommand(
    report("coverage", "coverage by country and language, over time", coverage)
      .option("--day <day>", "as of this day, such as 2026-03-01 (default: the latest)")
      .option("--country <code>", "only hosts of this country, such as DE")
      .option("--language <code>", "only hosts of this language, such as de")
      .option("--range <range>", "days over which it is shown: 7d, 30d, 90d, 1y", "90d"),
  );
  command.addCommand(report("organisations", "which organisation has how much of the crawl", organisations));
  command.addCommand(report("subnets", "which subnets are served badly, and what would help", subnets));
  command.addCommand(report("crawlers", "which crawlers would be missed most", crawlers));
  command.addCommand(
    report(
      "placement",
      "where the next crawlers should stand: the same as nearcrawl fleet advise",
      placement,
    ),
  );
  return command.addHelpText(
    "after",
    "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is nothing to report yet.\nThe same as pages: /reports/coverage, /reports/organisations and so on.\n\nExamples:\n  nearcrawl report coverage --country DE\n  nearcrawl report subnets --csv > subnets.csv",
  );
}

/** `nearcrawl fleet advise`, for whoever looks for it among the crawlers. */
export function adviseCommand(): Command {
  return report("placement", "where the next crawlers should stand, and what each would save", placement)
    .name("advise")
    .option(
      "--most <n>",
      "so many places at most, each beside those before it (1 to 20, which the page has)",
      boundedInteger(1, 20),
      5,
    );
}

type MakeReport = (reads: ReportReads, options: ReportOptions, now: Date) => Promise<Report>;

function report(name: string, description: string, make: MakeReport): Command {
  return withDatabaseOptions(new Command(name))
    .description(description)
    .option("--csv", "as CSV")
    .addHelpText(
      "after",
      `\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is nothing to report yet.\nThe same as a page: /reports/${name}`,
    )
    .action(async (options: ReportOptions) => {
      if (options.csv && options.json) throw new UsageError("--csv and --json exclude each other");
      const { answer, hasLines, csv, text } = await readDatabase(
        commandContext(options),
        async ({ pool }) => {
          const { settings } = knownPolicies(await createPolicyStore(pool).read());
          const reads = createReportReads(pool, () => settings.recrawl.intervalHours / 24);
          return await make(reads, options, new Date());
        },
      );
      if (options.csv) process.stdout.write(csv);
      else printAnswer(options, answer, text);
      if (!hasLines) process.exitCode = exitCodes.notFound;
    });
}

async function coverage(reads: ReportReads, options: ReportOptions, now: Date): Promise<Report> {
  const given: Readonly<Record<string, string | undefined>> = {
    ...{ day: options.day, country: options.country, language: options.language, range: options.range },
  };
  const question = readCoverageQuestion((name) => given[name] ?? "");
  if (typeof question === "string") throw new UsageError(question);
  const { since, until, said } = timeRange((name) => given[name] ?? "", now, "90d");
  if (said !== null) throw new UsageError(`--range: ${said}`);
  const answer = await coverageReport(reads, { ...question, since, until }, now);
  return {
    answer,
    hasLines: answer.day !== null,
    csv: csvText(reportCsv(countryColumns, answer.countries)),
    text: paragraphs(
      coverageLead(answer) + (answer.day === null ? coverageStep : `\n${countedText(answer)}`),
      table(countryColumns, answer.countries),
      table(languageColumns, answer.languages),
      table(dayColumns, answer.days),
    ),
  };
}

const coverageStep = " A running coordinator counts once an hour, first when its list of sites is complete.";

async function organisations(reads: ReportReads, _options: ReportOptions, now: Date): Promise<Report> {
  const answer = await organisationsReport(reads, now);
  return linesOf(answer, organisationColumns, organisationsLead(answer));
}

async function subnets(reads: ReportReads, _options: ReportOptions, now: Date): Promise<Report> {
  const answer = await subnetsReport(await readCrawl(reads), reads, now);
  const words = comparedWords(answer.compared);
  const hasLines = answer.compared.subnets > 0;
  return { ...linesOf(answer, farColumns, `${subnetsLead(answer)}\n${words}`), hasLines };
}

async function crawlers(reads: ReportReads, _options: ReportOptions, now: Date): Promise<Report> {
  const answer = crawlersReport(await readCrawl(reads), now);
  return linesOf(answer, missedColumns, `${crawlersLead(answer)}\n${comparedWords(answer.compared)}`);
}

async function placement(reads: ReportReads, { most }: ReportOptions, now: Date): Promise<Report> {
  const answer = await placementReport(await readCrawl(reads), reads, {
    now,
    ...(most === undefined ? {} : { most }),
  });
  return linesOf(answer, placementColumns, placementLead(answer));
}

function linesOf<Line>(
  answer: { readonly lines: readonly Line[] },
  columns: readonly ReportColumn<Line>[],
  lead: string,
): Report {
  const { lines } = answer;
  return {
    answer,
    hasLines: lines.length > 0,
    csv: csvText(reportCsv(columns, lines)),
    text: paragraphs(lead, table(columns, lines)),
  };
}

const linesPrinted = 40;

/** Empty without lines. */
function table<Line>(columns: readonly ReportColumn<Line>[], lines: readonly Line[]): string {
  if (lines.length === 0) return "";
  const shown = columns.filter(({ title }) => title !== undefined);
  const text = formatTable(
    shown.map(({ title = "", isNumber }) => ({ title, ...(isNumber ? { align: "right" as const } : {}) })),
    lines
      .slice(0, linesPrinted)
      .map((line) => shown.map((column) => printable(columnText(column, line), 120))),
  );
  const more = lines.length - linesPrinted;
  return more > 0 ? `${text}\nand ${more} more: --json and --csv have them` : text;
}

/** Of the first, names of crawlers and holders are part. */
function paragraphs(lead: string, ...tables: readonly string[]): string {
  const words = lead.split("\n").map((line) => printable(line));
  return [words.join("\n"), ...tables].filter((part) => part !== "").join("\n\n");
}

/** What was crawled since then is not in it. */
function countedText({ day, countedAt }: CoverageReport): string {
  if (countedAt === null) return `As of ${day}.`;
  return `As of ${day}, counted at ${countedAt.toISOString().slice(11, 16)} UTC; it is counted once an hour.`;
}
