/** `nearcrawl estimate`: what crawling a whole web takes, by Anansi's feasibility study and by what this crawl measures. */
import { Command, Option } from "commander";
import {
  assumptionFaults,
  type CrawlAssumptions,
  comparePeaks,
  estimateCrawl,
  thesisAssumptions,
} from "#coordinator/overview/estimate";
import { measureCrawl } from "#coordinator/overview/overview-reads";
import { UsageError } from "#core/errors";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { type EstimateAnswer, estimateText, type MeasuredAnswer } from "../estimate/estimate-text.ts";
import { withMeasures } from "../estimate/with-measures.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";

interface EstimateOptions extends DatabaseOptions {
  readonly pages: number;
  readonly outDegree: number;
  readonly months: number;
  readonly alpha: number;
  readonly urlBytes: number;
  readonly replication: number;
  readonly headSeconds: number;
  readonly templateBytes: number;
  readonly headerBytes: number;
  readonly compression: number;
  readonly rankedPerSecond: number;
  readonly measured?: boolean;
}

const help = `
Every default is the thesis' ("Anansi", chapter 5). One crawler's rate is one page in out-degree x HEAD seconds, as
there; with --measured it is what this crawl's crawlers do, and so are links, bytes and storage, in a column of their own.
--measured reads a running or past crawl's database; without it nothing is opened.

Examples:
  nearcrawl estimate
  nearcrawl estimate --pages 50e9 --months 1 --head-seconds 0.02
  nearcrawl estimate --measured --json

Exit codes: 0 done, 1 failed, 2 wrong usage or assumptions that contradict each other, 3 nothing was measured yet.
`;

export function estimateCommand(): Command {
  const command = withDatabaseOptions(new Command("estimate"))
    .description("what crawling a whole web takes: crawlers, bandwidth, storage, ranking, the pending list")
    .option("--measured", "beside it, with what this crawl has measured")
    .addHelpText("after", help)
    .action(async (options: EstimateOptions) => await estimate(options));
  for (const option of assumptionOptions()) command.addOption(option);
  return command;
}

function assumptionOptions(): Option[] {
  const given = thesisAssumptions;
  const option = (flags: string, words: string, value: number) =>
    new Option(flags, words).default(value).argParser(positive);
  return [
    option("--pages <n>", "N, pages of the web", given.pages),
    option("--out-degree <s>", "S, links on a page", given.outDegree),
    option("--months <m>", "of 30 days", given.months),
    option("--alpha <share>", "α, of the fetches those of new pages", given.newShare),
    option("--url-bytes <n>", "of one URL, stored and sent", given.urlBytes),
    option("--replication <n>", "copies of what is stored", given.replication),
    option("--head-seconds <s>", "of one link's HEAD request", given.headSeconds),
    option("--template-bytes <n>", "down with every page", given.templateBytes),
    option("--header-bytes <n>", "of a transfer, each way", given.headerBytes),
    option("--compression <ratio>", "original size over compressed size", given.compression),
    option("--ranked-per-second <n>", "URLs that are ranked a second", given.rankedPerSecond),
  ];
}

/** Zero and less are no numbers to divide by; what goes beyond is no web. */
const positive = boundedNumber(1e-9, 1e18);

async function estimate(options: EstimateOptions): Promise<void> {
  const assumptions = assumptionsOf(options);
  refuseFaults(assumptions);
  const measured = options.measured ? await measuredAnswer(options, assumptions) : null;
  const answer: EstimateAnswer = {
    assumptions,
    estimate: estimateCrawl(assumptions),
    table53: comparePeaks(),
    measured,
  };
  printAnswer(options, answer, estimateText(answer));
  if (measured !== null && measured.measures.pages === 0) process.exitCode = exitCodes.notFound;
}

function assumptionsOf(options: EstimateOptions): CrawlAssumptions {
  const { pages, outDegree, months, alpha: newShare, urlBytes, replication } = options;
  const { headSeconds, templateBytes, headerBytes, compression, rankedPerSecond } = options;
  const sizes = { pages, outDegree, months, newShare, urlBytes, replication };
  return { ...sizes, headSeconds, templateBytes, headerBytes, compression, rankedPerSecond };
}

function refuseFaults(assumptions: CrawlAssumptions): void {
  const faults = assumptionFaults(assumptions);
  if (faults.length > 0) throw new UsageError(faults.join("; "));
}

async function measuredAnswer(options: EstimateOptions, given: CrawlAssumptions): Promise<MeasuredAnswer> {
  const measures = await readDatabase(commandContext(options), async ({ pool }) => await measureCrawl(pool));
  return withMeasures(given, measures);
}
