/** `nearcrawl simulate pace`: what limiters of the usual kinds make of our pace, and our pace of them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, Option } from "commander";
import { UsageError } from "#core/errors";
import { drawPace } from "../../evaluate/figures/pace.ts";
import { type LimiterKind, limiterKinds, limiterWords } from "../../simulate/pace/limiters.ts";
import {
  type Controller,
  controllers,
  type PaceOutcome,
  simulatePace,
} from "../../simulate/pace/simulate-pace.ts";
import { seedsFrom } from "../../simulate/repeat-policies.ts";
import { boundedInteger, listOf } from "../bounded-number.ts";
import { formatTable, printAnswer } from "../output.ts";
import { workProgress } from "./work-progress.ts";

interface PaceOptions {
  readonly limiter: readonly LimiterKind[];
  readonly controller: readonly Controller[];
  readonly hours: number;
  readonly floorMs: number;
  readonly fastestMs?: number;
  readonly factor: number;
  readonly seed: number;
  readonly seeds: number;
  readonly pictures?: string;
  readonly json?: boolean;
}

/** Of several seeds; with an even number the lower of the middle two. */
export interface MedianAndSpread {
  readonly median: number | null;
  readonly least: number | null;
  readonly most: number | null;
}

type Figure = Exclude<keyof PaceOutcome, "perHour">;
const figures = [
  ...(["asked", "refused", "refusedLate", "bannedHours", "askedOverloaded"] as const),
  ...(["share", "shareLate", "settledAfterHours"] as const),
] satisfies readonly Figure[];

export interface PaceFigures extends Readonly<Record<(typeof figures)[number], MedianAndSpread>> {
  readonly limiter: LimiterKind;
  readonly controller: Controller;
}

const help = `
A host that always has a page to be fetched is asked for a day. What it allows is drawn by seed: 4 to 40 requests per
minute in the long run, bursts of 5 to 60, windows of a minute, ten or an hour, queues of 5 to 20, bans of an hour after 3 to 6
refusals within ten minutes; half of the limiters state Retry-After, half of the bans keep silent. "earlier" is the pace before
decision 0032, "tolerated" the one of today.

Refused: 429, 503, or no answer; in brackets the least and the most of the seeds. Got through: of what limiter and settings
allow together. Settled: until half an hour began in which 70 % of that got through with one refusal at most.

Examples:
  nearcrawl simulate pace --seeds 25 --pictures .
  nearcrawl simulate pace --limiter ban-list --hours 72
  nearcrawl simulate pace --limiter none,token-bucket --fastest-ms 250 --factor 0

Exit codes: 0 done, 2 wrong usage.
`;

export function paceCommand(): Command {
  const whole = (flags: string, words: string, [value, least, most]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, most));
  return new Command("pace")
    .description("ask sites that limit their visitors, and compare what is refused and what gets through")
    .addOption(
      new Option("--limiter <names>", `${limiterKinds.join(", ")}; several separated by commas`)
        .default(limiterKinds, "all")
        .argParser(listOf(limiterKinds)),
    )
    .addOption(
      new Option("--controller <names>", `${controllers.join(", ")}, or both separated by a comma`)
        .default(controllers, "both")
        .argParser(listOf(controllers)),
    )
    .addOption(whole("--hours <n>", "of asking", [24, 1, 720]))
    .addOption(whole("--floor-ms <n>", "as politenessFloorMs", [1000, 50, 3_600_000]))
    .option("--fastest-ms <n>", "as politenessFastestMs; not set: the floor", boundedInteger(50, 3_600_000))
    .addOption(whole("--factor <n>", "as responseTimeFactor", [5, 0, 1000]))
    .addOption(whole("--seed <number>", "which sites", [1, 0, 0xffff_ffff]))
    .addOption(whole("--seeds <n>", "number of sites of each kind, from --seed on", [11, 1, 1000]))
    .option("--pictures <folder>", "write pace.svg there: what got through over the time, of the first seed")
    .option("--json", "print JSON: a list with one object per limiter and controller")
    .addHelpText("after", help)
    .action(runPace);
}

function runPace(options: PaceOptions): void {
  const { floorMs, fastestMs, factor, hours } = options;
  if (fastestMs !== undefined && fastestMs > floorMs)
    throw new UsageError(`--fastest-ms ${fastestMs} is more than --floor-ms ${floorMs}: it can only be less`);
  const settings = { floorMs, ...(fastestMs === undefined ? {} : { fastestMs }), responseTimeFactor: factor };
  const runs = options.limiter.flatMap((kind) =>
    options.controller.map((controller) => ({ kind, controller })),
  );
  const progress = workProgress("days of asking");
  const seeds = seedsFrom(options.seed, options.seeds);
  const outcomes = runs.map(({ kind, controller }, index) =>
    seeds.map((seed, at) => {
      progress.show(limiterWords[kind], index * seeds.length + at, runs.length * seeds.length);
      return simulatePace({ kind, controller, seed, hours, settings });
    }),
  );
  progress.done();
  const answer = runs.map((run, index) => figuresOf(run, outcomes[index]!));
  if (options.pictures !== undefined) {
    const lines = runs.map((run, index) => ({ ...run, perHour: outcomes[index]![0]!.perHour }));
    mkdirSync(options.pictures, { recursive: true });
    writeFileSync(join(options.pictures, "pace.svg"), drawPace(lines));
  }
  printAnswer(options, answer, paceTable(answer));
}

function figuresOf(
  { kind, controller }: { readonly kind: LimiterKind; readonly controller: Controller },
  outcomes: readonly PaceOutcome[],
): PaceFigures {
  const of = (figure: (typeof figures)[number]) => spread(outcomes.map((outcome) => outcome[figure]));
  const entries = figures.map((figure) => [figure, of(figure)] as const);
  return { limiter: kind, controller, ...(Object.fromEntries(entries) as Record<Figure, MedianAndSpread>) };
}

/** Null stands for never, and so for more than any number. */
function spread(values: readonly (number | null)[]): MedianAndSpread {
  const sorted = [...values].sort(
    (a, b) => (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY) || 0,
  );
  const at = (index: number) => {
    const value = sorted[index] ?? null;
    return value === null ? null : Math.round(value * 1e4) / 1e4;
  };
  return { median: at(Math.floor((sorted.length - 1) / 2)), least: at(0), most: at(sorted.length - 1) };
}

function paceTable(answer: readonly PaceFigures[]): string {
  const right = (title: string) => ({ title, align: "right" as const });
  return formatTable(
    [
      { title: "Limiter" },
      { title: "Pace" },
      ...["Refused", "in 2nd half", "Hours banned", "Got through", "in 2nd half", "Settled after"].map(right),
    ],
    answer.map((row) => [
      ...[limiterWords[row.limiter], row.controller],
      ...[spreadText(row.refused, 0), spreadText(row.refusedLate, 0), spreadText(row.bannedHours, 1)],
      ...[spreadText(row.share, 0, " %", 100), spreadText(row.shareLate, 0, " %", 100)],
      spreadText(row.settledAfterHours, 1, " h"),
    ]),
  );
}

function spreadText({ median, least, most }: MedianAndSpread, digits: number, unit = "", times = 1): string {
  const text = (value: number | null) => (value === null ? "never" : (times * value).toFixed(digits));
  const of = text(median);
  const shown = `${of}${median === null ? "" : unit}`;
  return text(least) === text(most) ? shown : `${shown} (${text(least)} to ${text(most)})`;
}
