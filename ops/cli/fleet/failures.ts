/** `nearcrawl fleet failures`: fetches that failed, whose fault it was, and the latest with words. */
import { Command, Option } from "commander";
import type { Blame, FailureLine, FailureShares } from "#coordinator/fleet/fleet-api";
import { failureShares, latestFailures } from "#coordinator/overview/failure-reads";
import { createReports } from "#coordinator/who/reads";
import type { ChartHistory } from "#core/chart-history";
import { leastSamples, percentText } from "#core/format";
import { blames } from "#protocol/result";
import { boundedInteger } from "../bounded-number.ts";
import { askedRange, type RangeOptions, withHistory, withRange } from "../history-text.ts";
import { formatTable, printable } from "../output.ts";
import { withDatabaseOptions } from "../read-database.ts";
import { checkedName, printWatched, type WatchedOptions, withWatch } from "./watched.ts";

interface FailuresOptions extends WatchedOptions, RangeOptions {
  readonly blame?: Blame;
  readonly crawler?: string;
  readonly host?: string;
  readonly hours: string;
  readonly most: number;
}

export interface Failures {
  readonly shares: FailureShares;
  readonly latest: readonly FailureLine[];
  readonly history?: ChartHistory;
}

const hourMs = 3_600_000;

export function failuresCommand(): Command {
  return withRange(withWatch(withDatabaseOptions(new Command("failures"))))
    .description("failed fetches: shares by blame and crawler, and the latest with reasons")
    .addOption(new Option("--blame <side>", "the fault of this side only").choices([...blames]))
    .option("--crawler <name>", "of this crawler only (the latest)", checkedName)
    .option("--host <host>", "of this host only (the latest)")
    .addOption(new Option("--hours <n>", "how far back").choices(["1", "24"]).default("24"))
    .option("--most <n>", "how many of the latest to list", boundedInteger(1, 1000), 30)
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n\nExamples:\n  nearcrawl fleet failures --blame network\n  nearcrawl fleet failures --crawler athens --hours 1 --watch",
    )
    .action(async (options: FailuresOptions) => {
      const { blame, crawler, host, hours, most } = options;
      const query = {
        ...(blame === undefined ? {} : { blame }),
        ...(crawler === undefined ? {} : { crawler }),
        ...(host === undefined ? {} : { host }),
      };
      await printWatched(
        options,
        async ({ pool }): Promise<Failures> => {
          const now = new Date();
          const since = new Date(now.getTime() - Number(hours) * hourMs);
          const range = askedRange(options, now);
          const [shares, history, latest] = await Promise.all([
            failureShares(pool, since),
            range === null ? null : createReports(pool, () => performance.now()).charts("failures", range),
            latestFailures(pool, { ...query, since, most }),
          ]);
          return { shares, latest, ...(history === null ? {} : { history }) };
        },
        (failures) => withHistory(failuresText(failures), failures.history),
      );
    });
}

export function failuresText({ shares, latest }: Failures): string {
  if (shares.fetches === 0) return "nothing was fetched in this time";
  const table = formatTable(
    [
      { title: "crawler" },
      { title: "fetches", align: "right" },
      ...blames.map((blame) => ({ title: blame, align: "right" as const })),
    ],
    [{ crawler: "all", fetches: shares.fetches, failures: shares.failures }, ...shares.byCrawler].map(
      (line) => [
        line.crawler,
        String(line.fetches),
        ...blames.map((blame) => shareText(line.failures[blame], line.fetches)),
      ],
    ),
  );
  return `${table}\n\n${latestText(latest)}`;
}

function latestText(latest: readonly FailureLine[]): string {
  if (latest.length === 0) return "nothing failed";
  return formatTable(
    [
      { title: "at (UTC)" },
      { title: "crawler" },
      { title: "fault of" },
      { title: "url" },
      { title: "reason" },
    ],
    latest.map(({ at, crawler, blame, url, host, words }) => [
      ...[at.toISOString().slice(0, 19).replace("T", " "), crawler ?? "(removed)", blame],
      ...[
        printable(url ?? host ?? "no longer known", 120),
        printable(words ?? "it was fetched again since", 160),
      ],
    ]),
  );
}

const shareText = (count: number, of: number) =>
  count === 0 || of < leastSamples ? String(count) : `${count} = ${percentText(count / of)}`;
