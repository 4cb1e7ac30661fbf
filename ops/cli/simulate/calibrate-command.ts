/** `nearcrawl simulate calibrate`: how soon a changed route is noticed in fetch times, and how many alarms are false. */
import { Command, InvalidArgumentError, Option } from "commander";
import { defaultRecalibrationRule, type RecalibrationRule } from "#coordinator/delegation/recalibration/rule";
import {
  type CalibrationOptions,
  type CalibrationResult,
  simulateCalibration,
} from "#coordinator/delegation/simulation/calibration";
import { boundedInteger, boundedNumber, milliseconds, share } from "../bounded-number.ts";
import { formatTable, printJson } from "../output.ts";
import { workProgress } from "./work-progress.ts";

interface Change {
  readonly name: string;
  readonly changeFactor: number;
  readonly changeMs: number;
}

interface CalibrateOptions {
  readonly hosts: number;
  readonly days: number;
  readonly fetchesPerDay: number;
  readonly fetchesPerConnection: number;
  readonly noiseMs: number;
  readonly spikes: number;
  readonly loss: number;
  readonly dailyWave: number;
  readonly serverMs: number;
  readonly pageSpread: number;
  readonly change: readonly Change[];
  readonly slowerThanFactor: number;
  readonly timesInARow: number;
  readonly seed: number;
  readonly json?: boolean;
}

interface CalibrateReport extends CalibrationResult {
  readonly change: string;
}

const help = `
One crawler fetches hosts (paths of 4 to 300 ms, median 40) through quiet days, in which every alarm is
false; then the path to a fifth of them changes at one moment, and the last day shows when that is noticed.
"within 10" are the changed hosts with an alarm within 10 of their fetches, "of 10 ms" those of them whose
path became at least 10 ms longer. A false-alarm rate of 1 % is one false alarm in 100 host-days.

Examples:
  nearcrawl simulate calibrate
  nearcrawl simulate calibrate --fetches-per-day 24 --days 30 --spikes 0.01 --loss 0.01 --daily-wave 0.2
  nearcrawl simulate calibrate --server-ms 30 --page-spread 0.5 --change 2,+30 --json

Exit codes: 0 done, 2 wrong usage.
`;

export function calibrateCommand(): Command {
  return addOptions(
    new Command("calibrate").description(
      "how soon recalibration notices a changed route in the times of fetches, and how often it is mistaken",
    ),
  )
    .addHelpText("after", help)
    .action(runCalibrate);
}

function addOptions(command: Command): Command {
  return command
    .addOption(whole("--hosts <n>", "hosts of the crawler", [400, 1, 50_000]))
    .addOption(whole("--days <n>", "quiet days before the change", [5, 1, 365]))
    .addOption(whole("--fetches-per-day <n>", "fetches of each host a day", [240, 1, 86_400]))
    .addOption(
      whole("--fetches-per-connection <n>", "one fetch in this many opens a connection", [10, 1, 1000]),
    )
    .addOption(number("--noise-ms <mean>", "exponential delay of each fetch", 4, milliseconds))
    .addOption(number("--spikes <share>", "share of fetches that take 200 ms more", 0, share))
    .addOption(number("--loss <share>", "share of fetches that take a second more (a packet lost)", 0, share))
    .addOption(number("--daily-wave <share>", "how much longer paths are at their busiest hour", 0, share))
    .addOption(number("--server-ms <median>", "the servers' own time, in first bytes", 0, milliseconds))
    .addOption(
      number(
        "--page-spread <sigma>",
        "its spread from page to page (of the logarithm)",
        0,
        boundedNumber(0, 3),
      ),
    )
    .addOption(
      new Option("--change <list>", "what becomes of the path: times a factor, or +ms; one run each")
        .default(parseChanges("1.3,1.5,2,+30"), "1.3,1.5,2,+30")
        .argParser(parseChanges),
    )
    .addOption(
      number(
        "--slower-than-factor <f>",
        "as in the settings",
        defaultRecalibrationRule.factor,
        boundedNumber(1.05, 100),
      ),
    )
    .addOption(whole("--times-in-a-row <n>", "as in the settings", [defaultRecalibrationRule.inARow, 2, 100]))
    .addOption(whole("--seed <number>", "draws hosts and times", [1, 0, 0xffff_ffff]))
    .option("--json", "print JSON: a list with one object per change");
}

function runCalibrate(options: CalibrateOptions): void {
  const progress = workProgress("days");
  const rule: RecalibrationRule = {
    ...defaultRecalibrationRule,
    factor: options.slowerThanFactor,
    inARow: options.timesInARow,
  };
  const reports = options.change.map((change) => ({
    change: change.name,
    ...simulateCalibration(modelOf(options, change), rule, (day) =>
      progress.show(`path ${change.name}`, day, options.days + 1),
    ),
  }));
  progress.done();
  if (options.json) printJson(reports);
  else process.stdout.write(`${tableOf(reports, options)}\n`);
}

function modelOf(options: CalibrateOptions, { changeFactor, changeMs }: Change): CalibrationOptions {
  const { spikes, loss, hosts, days, fetchesPerDay, noiseMs, dailyWave, serverMs } = options;
  const { pageSpread, fetchesPerConnection, seed } = options;
  const times = { noiseMs, spikeShare: spikes, lossShare: loss, dailyWave, serverMs, pageSpread };
  return { ...times, hosts, days, fetchesPerDay, fetchesPerConnection, changeFactor, changeMs, seed };
}

function tableOf(reports: readonly CalibrateReport[], options: CalibrateOptions): string {
  const { hosts, days, fetchesPerDay, noiseMs } = options;
  const right = ["changed hosts", "median fetches", "p95", "within 10 %", "of 10 ms %"].concat([
    "false alarms",
    "per host-day %",
    "crawler alarms",
    "rounds",
  ]);
  const columns = [{ title: "path" }, ...right.map((title) => ({ title, align: "right" as const }))];
  const rows = reports.map((report) => [
    report.change,
    String(report.changedHosts),
    String(report.medianDelay ?? "–"),
    String(report.p95Delay ?? "–"),
    report.foundWithin10Pct.toFixed(1),
    report.foundWithin10Of10msPct.toFixed(1),
    String(report.falseAlarms),
    report.falseAlarmPct.toFixed(3),
    String(report.crawlerAlarms),
    String(report.rounds),
  ]);
  const title = `${hosts} hosts, ${days} quiet days, ${fetchesPerDay} fetches per day each, noise ${noiseMs} ms`;
  return `${title}\n\n${formatTable(columns, rows)}`;
}

/** Most changes of one call. */
const maxChanges = 20;

function parseChanges(text: string): Change[] {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > maxChanges) throw new InvalidArgumentError(`at most ${maxChanges} changes`);
  return parts.map((part) => {
    const value = Number(part.replace(/^[+×x]/, ""));
    const isMs = part.startsWith("+");
    if (part === "" || !(isMs ? value >= 0 && value <= 10_000 : value >= 1 && value <= 100)) {
      throw new InvalidArgumentError(`"${part.slice(0, 20)}": a factor from 1 to 100, or +ms, is expected`);
    }
    return isMs
      ? { name: `+${value} ms`, changeFactor: 1, changeMs: value }
      : { name: `×${value}`, changeFactor: value, changeMs: 0 };
  });
}

function whole(
  flags: string,
  words: string,
  [value, least, most]: readonly [number, number, number],
): Option {
  return new Option(flags, words).default(value).argParser(boundedInteger(least, most));
}

function number(flags: string, words: string, value: number, parse: (text: string) => number): Option {
  return new Option(flags, words).default(value).argParser(parse);
}
