/** `nearcrawl overview`: the state of the whole crawl, as the page that operators keep open. */

import { Command, Option } from "commander";
import type { Pool } from "pg";
import { coordinatorRuns } from "#coordinator/crawlers/coordinator-presence-store";
import { nearlyBestMs } from "#coordinator/delegation/accuracy";
import { nothingDueReason } from "#coordinator/frontier/hand-out-tasks";
import type { Alert } from "#coordinator/overview/alert-rules";
import { allIsWell } from "#coordinator/overview/alerts-page";
import { type FleetLine, type Overview, showOverview } from "#coordinator/overview/overview";
import {
  blames,
  blameWords,
  spanOrDash,
  timesSmaller,
  waitReasonWords,
} from "#coordinator/overview/overview-words";
import type { SpanFigures } from "#coordinator/overview/queue-api";
import { createReports } from "#coordinator/who/reads";
import {
  bytesText,
  howMany,
  instantWords,
  leastSamples,
  percentText,
  rttText,
  sampledShare,
  whenWords,
} from "#core/format";
import { type RangeName, rangeNames, timeRange } from "#core/time-range";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { historyText } from "../history-text.ts";
import {
  type Column,
  formatTable,
  paint,
  printAnswer,
  printable,
  type Style,
  stateStyle,
} from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { watchAnswer } from "../watch-answer.ts";

interface OverviewOptions extends DatabaseOptions {
  readonly range: RangeName;
  readonly watch?: boolean;
  readonly every: number;
}

export function overviewCommand(): Command {
  return withDatabaseOptions(new Command("overview"))
    .description("the state of the whole crawl: alerts, figures, what waits, what fails, the crawlers")
    .addOption(new Option("--range <span>", "of the history").choices([...rangeNames]).default("1h"))
    .option("--watch", "again and again, until Ctrl-C (exit code 130)")
    .option("--every <seconds>", "how often with --watch", boundedInteger(1, 3600), 2)
    .addHelpText(
      "after",
      "\nTold from the database, so it works on any machine that reaches it, and without a coordinator.\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n\nExamples:\n  nearcrawl overview --watch\n  nearcrawl overview --range 24h --json",
    )
    .action(async (options: OverviewOptions) => await overview(options));
}

async function overview(options: OverviewOptions): Promise<void> {
  await readDatabase(commandContext(options), async ({ pool }) => {
    const read = overviewOf(pool, options.range);
    if (!options.watch) {
      const answer = await read();
      return printAnswer(options, answer, overviewText(answer));
    }
    const text = async () => (options.json ? JSON.stringify(await read()) : overviewText(await read()));
    await watchAnswer(text, { everySeconds: options.every });
  });
}

/** One connection and what is kept of costly answers, however often it is asked. */
function overviewOf(pool: Pool, name: RangeName): () => Promise<Overview> {
  const reads = createReports(pool, () => performance.now());
  return async () => {
    const runs = await coordinatorRuns(pool);
    const now = new Date();
    const range = timeRange((key) => (key === "range" ? name : ""), now);
    return await showOverview(reads, null, { range, now, runs });
  };
}

// The overview as a page of a terminal: what needs attention first, then figures, what waits, what fails, the fleet.

/** Crawlers listed; `nearcrawl fleet list` has all. */
const fleetShown = 25;

export function overviewText(overview: Overview): string {
  return [
    `${paint("strong", "Nearcrawl")} · ${overview.phase} · ${howMany(overview.sessions, "crawler")} connected · ${instantWords(overview.at)}`,
    alertsText(overview.alerts),
    figuresText(overview),
    historyText(overview.history),
    queueText(overview),
    errorsText(overview),
    fleetText(overview),
  ].join("\n\n");
}

/** One line when there is none. */
export function alertsText(alerts: readonly Alert[]): string {
  if (alerts.length === 0) return paint("good", allIsWell);
  return alerts.map(alertText).join("\n");
}

export function severityStyle(severity: Alert["severity"]): Style {
  return severity === "critical" ? "bad" : severity === "warning" ? "warm" : "soft";
}

function alertText({ severity, words, advice, name }: Alert): string {
  const style: Style = severityStyle(severity);
  return `${paint(style, severity.padEnd(8))}  ${printable(words, 400)}\n          ${paint("soft", `${advice} (${name})`)}`;
}

function figuresText({ totals, rates, lastDay, accuracy }: Overview): string {
  const about = totals.isEstimate ? "about " : "";
  const lines: readonly (readonly [string, string])[] = [
    ["pages", `${about}${count(totals.pages)} of ${howMany(totals.hostsResolved, "host")}`],
    [
      "a minute",
      `${rates.pagesPerMinute} pages, ${bytesText(Math.round(rates.fetchedBytesPerMinute))}, ${rates.probesPerMinute} probes`,
    ],
    [
      "subnets",
      `${about}${count(totals.subnetsDelegated)} delegated, ${count(totals.subnetsWaiting)} wait, mean RTT ${rttText(totals.meanRttMs)}`,
    ],
    [
      "shipped",
      `${timesSmaller(lastDay)} in 24 hours (${bytesText(lastDay.shippedBytes)} of ${bytesText(lastDay.fetchedBytes)})`,
    ],
    [
      "accuracy",
      accuracy.share === null
        ? "no subnet has been sampled"
        : accuracy.samples < leastSamples
          ? sampledShare(accuracy.nearlyBest, accuracy.samples)
          : `${percentText(accuracy.share)} within ${nearlyBestMs} ms of the nearest (${percentText(accuracy.low)} to ${percentText(accuracy.high)}, ${howMany(accuracy.samples, "sample")})`,
    ],
    ["URLs", `${count(totals.urls)} known, ${count(totals.urlsPending)} never fetched yet`],
  ];
  return lines.map(([name, words]) => `${paint("soft", name.padEnd(10))}${words}`).join("\n");
}

const numeric = (title: string): Column => ({ title, align: "right" });

function queueText({ queue }: Overview): string {
  if (queue.hosts === 0) return "No host is due.";
  const row = (name: string, age: (typeof queue.reasons)[number] | typeof queue) => [
    name,
    `${queue.isEstimate ? "~" : ""}${count(age.hosts)}`,
    spanOrDash(age.medianSeconds),
    spanOrDash(age.p95Seconds),
    spanOrDash(age.oldestSeconds),
  ];
  return formatTable(
    [{ title: "hosts that wait for" }, ...["hosts", "median", "95 % <", "longest"].map(numeric)],
    [...queue.reasons.map((line) => row(waitReasonWords[line.reason], line)), row("all that is due", queue)],
  );
}

function errorsText({ lastHour, lastDay }: Overview): string {
  const cells = ({ failures, fetches }: SpanFigures, blame: (typeof blames)[number]) => [
    count(failures[blame]),
    sampledShare(failures[blame], fetches),
  ];
  return formatTable(
    [{ title: "failed, to blame" }, ...["last hour", "share", "24 hours", "share"].map(numeric)],
    blames.map((blame) => [blameWords[blame], ...cells(lastHour, blame), ...cells(lastDay, blame)]),
  );
}

function fleetText({ fleet, at }: Overview): string {
  if (fleet.length === 0) return "No crawler is registered yet: nearcrawl fleet invite --name NAME";
  const shown = [...fleet].sort(byNeedOfALook).slice(0, fleetShown);
  const table = formatTable(
    [
      ...[{ title: "crawler" }, { title: "state", style: stateStyle }],
      ...["subnets", "RTT", "pages", "shipped", "leases"].map(numeric),
      ...[{ title: "place" }, { title: "" }],
    ],
    shown.map((crawler) => [
      ...[
        crawler.name,
        crawler.state,
        count(crawler.subnets),
        rttText(crawler.meanRttMs),
        count(crawler.pages),
      ],
      timesSmaller({ fetchedBytes: crawler.bodyBytes, shippedBytes: crawler.shippedBytes }),
      ...[count(crawler.openLeases), printable(crawler.place ?? "", 30), printable(noteOf(crawler, at), 80)],
    ]),
  );
  const more = fleet.length - shown.length;
  return more > 0 ? `${table}\nand ${more} more: nearcrawl fleet list` : table;
}

function noteOf(crawler: FleetLine, at: string): string {
  if (crawler.state === "offline") {
    const seen =
      crawler.lastSeenAt === null
        ? "has not connected yet"
        : `seen ${whenWords(crawler.lastSeenAt, new Date(at))}`;
    return `${crawler.offlineReason ?? ""}${crawler.offlineReason ? ", " : ""}${seen}`;
  }
  return crawler.holdingBack.join("; ");
}

function byNeedOfALook(a: FleetLine, b: FleetLine): number {
  const need = ({ state, holdingBack }: FleetLine) =>
    state !== "online" ? 0 : holdingBack.some((words) => words !== nothingDueReason) ? 1 : 2;
  return need(a) - need(b) || b.subnets - a.subnets || (a.name < b.name ? -1 : 1);
}

const count = (value: number) => value.toLocaleString("en-GB");
