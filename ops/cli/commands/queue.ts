/** `nearcrawl queue`: what is due and not being fetched, and why. */

import { Command, Option } from "commander";
import { spanOrDash, waitReasonWords, waitWords } from "#coordinator/overview/overview-words";
import {
  type GatedHosts,
  type HostsInHand,
  type InHandSort,
  inHandSorts,
  type QueueAges,
  type WaitingHost,
  type WaitReason,
  waitReasons,
} from "#coordinator/overview/queue-api";
import { paceLimitWords } from "#coordinator/overview/verdict";
import { createReports } from "#coordinator/who/reads";
import { howMany, whenWords } from "#core/format";
import type { Database } from "#db/server-database";
import { gateName } from "#protocol/bot-gate";
import { boundedInteger } from "../bounded-number.ts";
import { exitCodes } from "../exit-codes.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { askedRange, type RangeOptions, withHistory, withRange } from "../history-text.ts";
import { formatTable, printable } from "../output.ts";
import { withDatabaseOptions } from "../read-database.ts";

interface QueueOptions extends WatchedOptions, RangeOptions {
  readonly inHand?: boolean;
  readonly sort: InHandSort;
  readonly reason?: WaitReason;
  readonly limit: number;
}

export function queueCommand(): Command {
  return withRange(withWatch(withDatabaseOptions(new Command("queue"))))
    .description("hosts that are due and not being fetched: how long they have waited, and for what")
    .addOption(new Option("--reason <reason>", "only those that wait for this").choices([...waitReasons]))
    .option("--in-hand", "instead, the hosts that are being crawled now: by whom and how fast")
    .addOption(
      new Option("--sort <order>", "of --in-hand, which come first")
        .choices([...inHandSorts])
        .default("rate"),
    )
    .option(
      "--limit <n>",
      "hosts at most, the longest waiting first, or as --sort says",
      boundedInteger(1, 1000),
      20,
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing waits, or is in hand.\nThe first line is what the crawl is limited by: what is in the way of the most hosts, waiting or in hand. Sites are slowed down with nearcrawl site-caps.\n\nExamples:\n  nearcrawl queue --reason no-delegation\n  nearcrawl queue --in-hand --sort open",
    )
    .action(async (options: QueueOptions) => await queue(options));
}

async function queue(options: QueueOptions): Promise<void> {
  const { reason = null, limit, sort } = options;
  if (options.inHand) {
    const read = async ({ pool }: Database) => {
      const answer = await createReports(pool, () => performance.now()).hostsInHand(
        { sort, most: limit },
        new Date(),
      );
      if (!options.watch && answer.hosts === 0) process.exitCode = exitCodes.notFound;
      return answer;
    };
    return await printWatched(options, read, inHandText);
  }
  const read = async ({ pool }: Database) => {
    const now = new Date();
    const reads = createReports(pool, () => performance.now());
    const range = askedRange(options, now);
    const [ages, gated, history, hosts] = await Promise.all([
      reads.queueAges(now),
      reads.gatedHosts(now),
      range === null ? null : reads.charts("queue", range),
      reads.longestWaiting({ reason, most: limit }, now),
    ]);
    if (!options.watch && hosts.length === 0 && gated.hosts === 0) process.exitCode = exitCodes.notFound;
    const answer = { at: now.toISOString(), reason, ages, hosts, gated };
    return history === null ? answer : { ...answer, history };
  };
  await printWatched(options, read, ({ at, ages, hosts, gated, ...more }) =>
    withHistory(
      queueText({ ages, hosts, gated, now: new Date(at) }),
      "history" in more ? more.history : null,
    ),
  );
}

export function queueText(answer: {
  readonly ages: QueueAges;
  readonly hosts: readonly WaitingHost[];
  readonly gated: GatedHosts;
  readonly now: Date;
}): string {
  const { ages, hosts, gated, now } = answer;
  const { limitedBy, words } = ages.verdict;
  const verdict = limitedBy === "nothing-due" ? "" : `${words}\n`;
  if (hosts.length === 0)
    return `${verdict}${ages.hosts === 0 ? "nothing that is due waits" : "no host waits for this"}${gatedText(gated, now)}`;
  const ageTable = formatTable(
    [{ title: "hosts that wait for" }, ...["hosts", "median", "95 % <", "longest"].map(right)],
    ages.reasons.map((age) => [
      waitReasonWords[age.reason],
      `${ages.isEstimate ? "~" : ""}${age.hosts.toLocaleString("en-GB")}`,
      ...[spanOrDash(age.medianSeconds), spanOrDash(age.p95Seconds), spanOrDash(age.oldestSeconds)],
    ]),
  );
  const hostTable = formatTable(
    [{ title: "host" }, { title: "due" }, { title: "why it waits" }, { title: "subnet" }],
    hosts.map((host) => [
      ...[printable(host.host, 80), whenWords(host.dueAt, now), printable(waitWords(host, now), 120)],
      host.range ?? "",
    ]),
  );
  return `${verdict}\n${ageTable}\n\n${hostTable}${gatedText(gated, now)}`;
}

/** Hosts that rest, and so are not among those that wait. */
function gatedText({ hosts, providers, longest }: GatedHosts, now: Date): string {
  if (hosts === 0) return "";
  const by = providers.map(
    ({ provider, hosts: own }) => `${gateName(provider)} ${own.toLocaleString("en-GB")}`,
  );
  const table = formatTable(
    [{ title: "host" }, { title: "bot gate" }, { title: "since" }, right("tries"), { title: "next try" }],
    longest.map((one) => [
      ...[printable(one.host, 80), printable(gateName(one.provider), 40), whenWords(one.since, now)],
      ...[String(one.tries), one.nextTryAt === null ? "" : whenWords(one.nextTryAt, now)],
    ]),
  );
  return `\n\n${howMany(hosts, "host")} behind bot gates (${printable(by.join(", "), 200)}), of which these for longest:\n${table}`;
}

export function inHandText({ at, hosts, shown }: HostsInHand): string {
  if (hosts === 0) return "no host is being crawled";
  const table = formatTable(
    [
      ...[{ title: "host" }, { title: "crawler" }, right("URLs/min"), right("done"), right("to do")],
      ...[{ title: "held back by" }, { title: "since" }],
    ],
    shown.map((one) => [
      ...[printable(one.host, 80), one.crawler, one.urlsPerMinute.toFixed(1)],
      ...[String(one.urls - one.openUrls), String(one.openUrls)],
      `${paceLimitWords[one.limit]}${one.delayMs === null ? "" : `, ${one.delayMs / 1000} s`}`,
      whenWords(one.since, new Date(at)),
    ]),
  );
  const more = hosts > shown.length ? `\n\n${shown.length} of ${hosts.toLocaleString("en-GB")} hosts` : "";
  return `${table}${more}`;
}

const right = (title: string) => ({ title, align: "right" as const });
