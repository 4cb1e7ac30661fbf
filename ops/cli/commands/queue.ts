/** `nearcrawl queue`: what is due and not being fetched, and why. */
import { Command, Option } from "commander";
import type { Pool } from "pg";
import {
  type QueueAges,
  type WaitingHost,
  type WaitReason,
  waitReasons,
} from "#coordinator/overview/overview-types";
import { spanOrDash, waitReasonWords, waitWords } from "#coordinator/overview/overview-words";
import { createReports } from "#coordinator/who/reads";
import { whenWords } from "#core/format";
import { boundedInteger } from "../bounded-number.ts";
import { exitCodes } from "../command-context.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { formatTable, printable } from "../output.ts";
import { withDatabaseOptions } from "../read-database.ts";

interface QueueOptions extends WatchedOptions {
  readonly reason?: WaitReason;
  readonly limit: number;
}

export function queueCommand(): Command {
  return withWatch(withDatabaseOptions(new Command("queue")))
    .description("hosts that are due and not being fetched: how long they have waited, and for what")
    .addOption(new Option("--reason <reason>", "only those that wait for this").choices([...waitReasons]))
    .option("--limit <n>", "hosts at most, the longest waiting first", boundedInteger(1, 1000), 20)
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing waits.\n\nExample:\n  nearcrawl queue --reason no-delegation",
    )
    .action(async (options: QueueOptions) => await queue(options));
}

async function queue(options: QueueOptions): Promise<void> {
  const { reason = null, limit } = options;
  const read = async (pool: Pool) => {
    const now = new Date();
    const reads = createReports(pool, () => performance.now());
    const [ages, hosts] = await Promise.all([
      reads.queueAges(now),
      reads.longestWaiting({ reason, most: limit }, now),
    ]);
    if (!options.watch && hosts.length === 0) process.exitCode = exitCodes.notFound;
    return { at: now.toISOString(), reason, ages, hosts };
  };
  await printWatched(options, read, ({ at, ages, hosts }) => queueText({ ages, hosts, now: new Date(at) }));
}

export function queueText(answer: {
  readonly ages: QueueAges;
  readonly hosts: readonly WaitingHost[];
  readonly now: Date;
}): string {
  const { ages, hosts, now } = answer;
  if (hosts.length === 0) return ages.hosts === 0 ? "nothing that is due waits" : "no host waits for this";
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
  return `${ageTable}\n\n${hostTable}`;
}

const right = (title: string) => ({ title, align: "right" as const });
