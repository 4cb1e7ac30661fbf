/** `nearcrawl accuracy`: how near the delegations are, by samples that every crawler measured. */
import { Command } from "commander";
import {
  type AccuracyEstimate,
  type AccuracySampleEntry,
  accuracyEstimate,
} from "#coordinator/delegation/accuracy";
import { createReports } from "#coordinator/who/reads";
import { howMany, leastSamples, percentText, rttText, whenWords } from "#core/format";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { askedRange, type RangeOptions, withHistory, withRange } from "../history-text.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface AccuracyOptions extends DatabaseOptions, RangeOptions {
  readonly far?: boolean;
  readonly limit: number;
}

export function accuracyCommand(): Command {
  return withRange(withDatabaseOptions(new Command("accuracy")))
    .description("how near the delegations are: sampled subnets whose crawler is within 5 ms of the nearest")
    .option("--far", "list only those that are farther off")
    .option("--limit <n>", "samples at most, the latest first", boundedInteger(1, 1000), 20)
    .addHelpText("after", "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing was sampled yet.")
    .action(async (options: AccuracyOptions) => await accuracy(options));
}

async function accuracy(options: AccuracyOptions): Promise<void> {
  const now = new Date();
  const farOnly = options.far === true;
  const range = askedRange(options, now);
  const { counts, samples, history } = await readDatabase(commandContext(options), async ({ pool }) => {
    const reads = createReports(pool, () => performance.now());
    const [told, list, past] = await Promise.all([
      reads.accuracyCounts(now),
      reads.accuracySamples({ most: options.limit, farOnly }, now),
      range === null ? null : reads.charts("accuracy", range),
    ]);
    return { counts: told, samples: list, history: past };
  });
  const estimate = accuracyEstimate(counts);
  const answer = {
    at: now.toISOString(),
    estimate,
    farOnly,
    samples,
    ...(history === null ? {} : { history }),
  };
  printAnswer(options, answer, withHistory(accuracyText(estimate, samples, now), history));
  if (estimate.samples === 0) process.exitCode = exitCodes.notFound;
}

export function accuracyText(
  estimate: AccuracyEstimate,
  samples: readonly AccuracySampleEntry[],
  now: Date,
): string {
  const { share, low, high, withinMs, days } = estimate;
  if (share === null) return `no subnet was sampled in the last ${days} days`;
  const near = `within ${withinMs} ms of the nearest crawler`;
  const line =
    estimate.samples < leastSamples
      ? `too few yet (${estimate.samples} of ${leastSamples}): ${estimate.nearlyBest} of ${howMany(estimate.samples, "sample")} in ${days} days ${near}`
      : `${percentText(share)} ${near}, between ${percentText(low)} and ${percentText(high)} (Wilson, 95 %), by ${howMany(estimate.samples, "sample")} in ${days} days`;
  if (samples.length === 0) return line;
  const table = formatTable(
    [
      ...[
        { title: "subnet" },
        { title: "host" },
        { title: "crawler" },
        { title: "RTT", align: "right" as const },
      ],
      ...[
        { title: "nearest" },
        { title: "RTT", align: "right" as const },
        { title: "answers" },
        { title: "when" },
      ],
    ],
    samples.map((one) => [
      ...[one.range, printable(one.targetHost, 60), one.owner, rttText(one.ownerRttMs), one.best ?? "nobody"],
      ...[rttText(one.bestRttMs), `${one.answered} of ${one.asked}`, whenWords(one.sampledAt, now)],
    ]),
  );
  return `${line}\n\n${table}`;
}
