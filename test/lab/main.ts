/** Runs simulations, generators and benches: npm run lab, npm run bench. See `--help` below. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { UsageError } from "#core/errors";
import { formatTable, printJson } from "#ops/cli/output";
import { generateCommand } from "./generate/generate-command.ts";
import {
  compareWith,
  comparisonCode,
  comparisonText,
  exitCodes,
  figuresText,
  measureHere,
  type QuickBench,
  quickBenches,
} from "./runner/compare-commits.ts";
import { commitNamed } from "./runner/other-checkout.ts";
import { benchesCalled, benchNames, runOpenly } from "./runner/run-bench.ts";
import { delegationCommand } from "./simulate/delegation-command.ts";
import { evaluateCommand } from "./simulate/evaluate.ts";
import { orderCommand } from "./simulate/order/order-command.ts";
import { recrawlCommand } from "./simulate/recrawl/recrawl-command.ts";

const programs = Object.fromEntries(
  [delegationCommand, evaluateCommand, orderCommand, recrawlCommand, generateCommand].map((make) => [
    make().name(),
    make,
  ]),
);

const helpText = `npm run lab -- NAME [its arguments]
npm run lab -- all [--against COMMIT] [--rounds 3] [--only NAME,NAME] [--json]
npm run lab -- --list

NAME is a program (${Object.keys(programs).join(", ")}; --help after it says more), a bench of test/lab, or a part of
a name that runs all benches whose names have it. What follows goes to it.

all runs a quick form of the benches that matter to everybody (${quickBenches.map(({ name }) => name).join(", ")}) and prints
their figures. With --against, each runs in turns with the other commit, --rounds times a
side: figure, unit, there, here, ratio here / there of the medians with least and most of the rounds, and a mark:
  worse    by more than 5 %, and every round here is worse than every round there
  worse?   by more than 5 % in the medians, within what the rounds differ by
  better   by more than 5 %, in every round
The other commit is checked out into a temporary folder, with its own packages where its package-lock.json differs, and
measured by the benches of this checkout. What does not run on it cannot be compared, and is said. The folder and its git
worktree are removed in the end, after Ctrl-C too.

Exit codes: 0 done, and nothing is worse; 1 a figure got worse; 2 wrong usage: no such bench, no such commit; 3 a bench
failed in this checkout; 130 interrupted. With NAME: 0 or 1, as the benches ended.
`;

const root = join(import.meta.dirname, "../..");

/** Ctrl-C: what runs is ended, and what was made is removed. */
class Interrupted extends Error {}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  const isSaid = error instanceof UsageError || error instanceof Interrupted;
  console.error(isSaid ? error.message : error);
  process.exitCode = isSaid
    ? exitCodes[error instanceof UsageError ? "usage" : "interrupted"]
    : exitCodes.failed;
}

async function run([word = "", ...args]: readonly string[]): Promise<number> {
  if (word === "--help" || word === "-h") {
    process.stdout.write(helpText);
    return exitCodes.done;
  }
  if (word === "--list") {
    process.stdout.write(listText());
    return exitCodes.done;
  }
  const program = programs[word];
  if (program !== undefined) {
    await program().parseAsync([...args], { from: "user" });
    return exitCodes.done;
  }
  if (word === "") throw new UsageError(`which one? --list names them, --help says more`);
  return word === "all" ? await runAll(args) : await runNamed(word, args);
}

function listText(): string {
  const quick = new Map(quickBenches.map(({ name, args }) => [name, args.join(" ")]));
  const rows = benchNames(import.meta.dirname).map((name) => [
    name,
    quick.has(name) ? `${name} ${quick.get(name)}` : "",
  ]);
  const own = Object.entries(programs).map(([name, make]) => [name, make().description()]);
  const benches = formatTable([{ title: "bench" }, { title: "in all" }], rows);
  return `${formatTable([{ title: "program" }, { title: "" }], own)}\n\n${benches}\n`;
}

/** Until a signal: what the bench has started ends with it, its database's server included. */
function stoppingBySignal(): AbortSignal {
  const stopping = new AbortController();
  for (const by of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(by, () => stopping.abort(new Interrupted("interrupted")));
  return stopping.signal;
}

async function runNamed(word: string, args: readonly string[]): Promise<number> {
  let code: number = exitCodes.done;
  const signal = stoppingBySignal();
  const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-lab-"));
  // Root's servers run as nobody.
  chmodSync(scratch, 0o711);
  try {
    for (const name of benchesCalled(word, benchNames(import.meta.dirname))) {
      console.log(`\n# ${name}.bench.ts`);
      const status = await runOpenly({ root, scratch }, { name, args }, signal);
      if (status !== 0) code = 1;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return code;
}

async function runAll(args: readonly string[]): Promise<number> {
  const { against, rounds, quick, json } = askedFor(args);
  const signal = stoppingBySignal();
  const say = (line: string) => void process.stderr.write(`${line}\n`);
  const measuring = { root, quick, say, signal };
  if (against === undefined) {
    const all = await measureHere(measuring);
    if (json) printJson(all);
    else process.stdout.write(figuresText(all));
    return all.some(({ run: { type } }) => type === "failed") ? exitCodes.failed : exitCodes.done;
  }
  const commit = await commitNamed(root, against);
  const all = await compareWith(commit, rounds, measuring);
  if (json) printJson({ commit, rounds, benches: all });
  else process.stdout.write(comparisonText(all, { commit, rounds }));
  return comparisonCode(all);
}

interface Asked {
  readonly against: string | undefined;
  readonly rounds: number;
  readonly quick: readonly QuickBench[];
  readonly json: boolean;
}

function askedFor(args: readonly string[]): Asked {
  const { against, rounds, only, json } = optionsIn(args);
  const count = Number(rounds);
  if (!Number.isInteger(count) || count < 2 || count > 50)
    throw new UsageError(`--rounds ${rounds}: must be a whole number from 2 to 50`);
  return { against, rounds: count, quick: only === undefined ? quickBenches : namedIn(only), json };
}

function optionsIn(args: readonly string[]) {
  const options = {
    against: { type: "string" },
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
    json: { type: "boolean", default: false },
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
}

function namedIn(only: string): readonly QuickBench[] {
  return only.split(",").map((name) => {
    const bench = quickBenches.find((one) => one.name === name.trim());
    if (bench !== undefined) return bench;
    const names = quickBenches.map((one) => one.name).join(", ");
    throw new UsageError(`--only: "${name}" is none of ${names}`);
  });
}
