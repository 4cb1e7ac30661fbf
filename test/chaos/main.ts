/** The long run: npm run chaos. See `--help` below. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { formatTable, printJson } from "#ops/cli/output";
import type { Verdict } from "./checks.ts";
import type { Programs } from "./fleet.ts";
import { drawPlan, type FaultKind, faultKinds } from "./plan.ts";
import { type ChaosOutcome, type ChaosRun, runChaos } from "./run-chaos.ts";

const exitCodes = { held: 0, failed: 1, usage: 2, interrupted: 130 } as const;

class Interrupted extends Error {}

/** Ctrl-C: ends the run, removes the disks, and reports the findings so far. */
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => stopping.abort(new Interrupted("interrupted")));

const helpText = `
The emulated Internet, an embedded Postgres, coordinators and crawlers as processes of their own; for so many minutes they
are killed, stopped, cut off and slowed down, and their disks are filled, as the seed says. Then all is put right, the fleet
comes to rest, and what the tables, the sites' logs and the disks say is held against each other. The same seed draws the
same faults at the same times.

Examples:
  npm run chaos -- --minutes 10 --seed 7
  npm run chaos -- --minutes 10 --seeds 1..10                 # a night
  npm run chaos -- --minutes 360 --faults 0                   # a soak
  npm run chaos -- --minutes 2 --kinds kill-database,fill-database-disk --keep

Disks are filled where this process may mount a file system in memory; elsewhere files are kept from growing. Linux only.
Exit codes: 0 everything held for every seed; 1 a check failed, or a run could not be brought to its end; 2 wrong usage;
130 interrupted.
`;

interface Options {
  readonly minutes: string;
  readonly seed?: string;
  readonly seeds?: string;
  readonly crawlers: string;
  readonly coordinators: string;
  readonly kinds?: string;
  readonly faults: string;
  readonly json?: boolean;
  readonly keep?: boolean;
}

const program = new Command("npm run chaos --")
  .description("break things at random while a fleet crawls, and check what is left")
  .option("--minutes <n>", "how long things are broken, for each seed", "10")
  .option("--seed <n>", "which plan (default: one by the clock, printed)")
  .option("--seeds <a..b>", "one run after the other, from the first seed to the last")
  .option("--crawlers <n>", "crawlers, 2 to 30", "5")
  .option("--coordinators <n>", "coordinators, 1 to 4", "2")
  .option("--kinds <names>", `faults, with commas between them (default all: ${faultKinds.join(", ")})`)
  .option("--faults <n>", "a minute, 0 to 60; 0: nothing is broken, and processes must not grow", "8")
  .option("--keep", "keep the folder of a run that failed: database, logs, spools")
  .option("--json", "print the outcomes for programs; progress goes to standard error")
  .addHelpText("after", helpText)
  .showHelpAfterError("(--help shows how it is used)")
  .exitOverride((error) => process.exit(error.exitCode === 0 ? exitCodes.held : exitCodes.usage))
  .action(run);

async function run(options: Options): Promise<void> {
  const asked = askedFor(options);
  if (process.platform !== "linux")
    throw new UsageError("chaos runs on Linux alone: it looks for processes in /proc");
  const say = (line: string) => void (options.json ? process.stderr : process.stdout).write(`${line}\n`);
  const root = join(import.meta.dirname, "../..");
  execFileSync(process.execPath, [join(root, "ops/build.mjs"), "--unchecked"], { stdio: "ignore" });
  const programs = {
    command: join(root, "dist/ops/cli/main.js"),
    crawler: join(root, "dist/migrating-crawler/main.js"),
  };
  const outcomes: ChaosOutcome[] = [];
  const keepsDisks = options.keep ?? false;
  for (const seed of asked.seeds) {
    const folder = mkdtempSync(join(tmpdir(), "nearcrawl-chaos-"));
    const outcome = await oneRun({ ...asked.size, seed, keepsDisks }, programs, { folder, say });
    const failed = outcome === null ? [] : failedOf(outcome);
    if (outcome !== null) {
      outcomes.push(outcome);
      if (!options.json) say(outcomeText(outcome));
    }
    if (failed.length > 0 && keepsDisks) say(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
    if (failed.length > 0) process.exitCode = exitCodes.failed;
    if (outcome === null) process.exitCode = exitCodes.interrupted;
    if (outcome === null) break;
  }
  if (options.json) printJson(outcomes);
  else if (outcomes.length > 1) say(summaryText(outcomes));
}

/** Null: it was interrupted. An aborted run counts as failed; the following runs continue. */
async function oneRun(
  asked: ChaosRun,
  programs: Programs,
  { folder, say }: { readonly folder: string; readonly say: (line: string) => void },
): Promise<ChaosOutcome | null> {
  try {
    return await runChaos(asked, programs, folder, say, stopping.signal);
  } catch (error) {
    if (error instanceof Interrupted) return null;
    const words = "the run comes to its end";
    const rows = [{ error: (error as Error).stack ?? String(error) }];
    return {
      ...{
        seed: asked.seed,
        plan: drawPlan(asked),
        faults: [],
        restedMs: 0,
        seconds: 0,
        disks: "limited",
      },
      verdicts: [{ check: "run", words, rows, skipped: null }],
      figures: { urls: 0, fetches: 0, requests: 0 },
    };
  }
}

function askedFor(options: Options) {
  const minutes = Number(options.minutes);
  if (!(minutes > 0 && minutes <= 1440))
    throw new UsageError(`--minutes ${options.minutes}: must be more than 0 and at most 1440`);
  const size = {
    ...{ crawlers: whole("crawlers", options.crawlers, [2, 30]), floorMs: 1000, leaseSeconds: 30 },
    ...{
      coordinators: whole("coordinators", options.coordinators, [1, 4]),
      concurrentHosts: 2,
      urlsPerLease: 4,
      fetchesBefore: 0,
    },
    sites: Math.ceil(20 + 50 * Math.min(minutes, 60)),
    ...{
      lengthMs: minutes * 60_000,
      faultsPerMinute: whole("faults", options.faults, [0, 60]),
      stillMs: 240_000,
      settleSeconds: 3,
      addressRestSeconds: 1,
      changeEveryMs: 60_000,
      wantedAgain: 12,
    },
    ...(options.kinds === undefined ? {} : { kinds: kindsIn(options.kinds) }),
  };
  return { size, seeds: seedsOf(options) };
}

function whole(name: string, text: string, [least, most]: readonly [number, number]): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new UsageError(`--${name} ${text}: must be a whole number from ${least} to ${most}`);
}

function seedsOf({ seed, seeds }: Options): readonly number[] {
  const most = 2 ** 31 - 1;
  if (seeds === undefined)
    return [seed === undefined ? Date.now() % 1_000_000 : whole("seed", seed, [0, most])];
  if (seed !== undefined) throw new UsageError("--seed and --seeds: one of the two");
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(seeds) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === undefined || first > last || last > most || last - first >= 1000)
    throw new UsageError(
      `--seeds ${seeds}: must be two whole numbers in order, such as 1..10, at most a thousand seeds`,
    );
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function kindsIn(text: string): readonly FaultKind[] {
  return text.split(",").map((name) => {
    const kind = faultKinds.find((one) => one === name.trim());
    if (kind === undefined) throw new UsageError(`--kinds: "${name}" is none of ${faultKinds.join(", ")}`);
    return kind;
  });
}

const failedOf = ({ verdicts }: ChaosOutcome): readonly Verdict[] =>
  verdicts.filter(({ rows }) => rows.length > 0);

const shownRows = 5;

function outcomeText(outcome: ChaosOutcome): string {
  const { seed, faults, verdicts, figures, restedMs } = outcome;
  const kinds = faultKinds.filter((kind) => faults.some((fault) => fault.kind === kind));
  const faultRows = kinds.map((kind) => {
    const some = faults.filter((fault) => fault.kind === kind);
    const seconds = some.reduce((sum, { lastedMs }) => sum + lastedMs, 0) / 1000;
    return [kind, String(some.length), seconds.toFixed(1)];
  });
  const checkRows = verdicts.map(({ check, words, rows, skipped }) => [
    check,
    skipped !== null ? "not looked at" : rows.length === 0 ? "holds" : `FAILS (${rows.length})`,
    skipped ?? words,
  ]);
  const details = failedOf(outcome).flatMap(({ check, words, rows }) => [
    `\n${check}: ${words}`,
    ...rows.slice(0, shownRows).map((row) => `  ${JSON.stringify(row)}`),
    ...(rows.length > shownRows ? [`  and ${rows.length - shownRows} more`] : []),
  ]);
  const right = { align: "right" } as const;
  return [
    "",
    formatTable(
      [{ title: "fault" }, { title: "times", ...right }, { title: "seconds", ...right }],
      faultRows,
    ),
    "",
    formatTable([{ title: "check" }, { title: "" }, { title: "what holds" }], checkRows),
    ...details,
    "",
    `seed ${seed}: ${faults.length} faults, ${figures.urls} URLs, ${figures.fetches} fetches of ${figures.requests} ` +
      `requests, at rest after ${(restedMs / 1000).toFixed(0)} s; ${resultWords(outcome)}`,
  ].join("\n");
}

const resultWords = (outcome: ChaosOutcome): string => {
  const failed = failedOf(outcome);
  return failed.length === 0 ? "everything holds" : `FAILED: ${failed.map(({ check }) => check).join(", ")}`;
};

function summaryText(outcomes: readonly ChaosOutcome[]): string {
  const rows = outcomes.map((outcome) => [
    String(outcome.seed),
    String(outcome.faults.length),
    String(outcome.figures.fetches),
    (outcome.restedMs / 1000).toFixed(0),
    resultWords(outcome),
  ]);
  const right = { align: "right" } as const;
  const columns = ["seed", "faults", "fetches", "rest, s"].map((title) => ({ title, ...right }));
  return `\n${formatTable([...columns, { title: "result" }], rows)}`;
}

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(
    `chaos: ${error instanceof UsageError ? error.message : ((error as Error).stack ?? String(error))}\n`,
  );
  process.exitCode = error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
}
// Handles that a server left open must not keep the process running.
process.exit();
