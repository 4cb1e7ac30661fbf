/** Runs the quick benches on this checkout, optionally in turns with another commit, and prints the comparison. */
import { formatTable } from "#ops/cli/output";
import type { Figure } from "../figure.ts";
import { type Compared, compareFigures, type Lone } from "./compare-figures.ts";
import { type TwoCheckouts, withCommit, withoutCommit } from "./other-checkout.ts";
import { type BenchRun, type Checkout, runBench } from "./run-bench.ts";

export interface QuickBench {
  /** NAME of test/lab/NAME.bench.ts. */
  readonly name: string;
  readonly args: readonly string[];
  /** It runs the programs in dist/. */
  readonly isBuilt?: true;
}

/**
 * The benches of `npm run bench -- all`: one for each thing that must not become slower unnoticed, in a form of well under a
 * minute. Their figures are for comparing two commits; results/*.md have those of the full runs.
 */
export const quickBenches: readonly QuickBench[] = [
  { name: "crawl", args: ["real", "made", "short"] },
  { name: "ingest", args: ["20000", "5"] },
  { name: "delegation", args: ["nearest", "200"] },
  { name: "search", args: ["--pages", "3000", "--questions", "500"] },
  { name: "start", args: ["--rounds", "3"], isBuilt: true },
  { name: "ip-tree", args: ["20260301", "0.05"] },
];

interface Measuring {
  readonly root: string;
  readonly quick: readonly QuickBench[];
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export type BenchComparison = { readonly bench: string } & (
  | {
      readonly type: "compared";
      readonly figures: readonly (Compared | Lone)[];
    }
  /** `side`: where it failed and is not run again. */
  | { readonly type: "failed"; readonly side: "there" | "here"; readonly words: string }
);

export async function compareWith(
  commit: string,
  rounds: number,
  { root, quick, say, signal }: Measuring,
): Promise<readonly BenchComparison[]> {
  const build = quick.some(({ isBuilt }) => isBuilt);
  return await withCommit({ root, commit, build, say }, async (checkouts) => {
    const all: BenchComparison[] = [];
    for (const bench of quick) all.push(await compareOne(checkouts, bench, { rounds, say, signal }));
    return all;
  });
}

interface Turns extends Pick<Measuring, "say" | "signal"> {
  readonly rounds: number;
}

async function compareOne(
  checkouts: TwoCheckouts,
  bench: QuickBench,
  { rounds, say, signal }: Turns,
): Promise<BenchComparison> {
  const measured = { there: [] as (readonly Figure[])[], here: [] as (readonly Figure[])[] };
  for (let round = 1; round <= rounds; round++) {
    for (const side of inTurn(round)) {
      say(`${bench.name}, round ${round} of ${rounds}, ${side}`);
      const run = await runBench(checkouts[side], bench, signal);
      if (run.type === "failed") return { bench: bench.name, type: "failed", side, words: run.words };
      measured[side].push(run.figures);
    }
  }
  return {
    ...{ bench: bench.name, type: "compared" },
    figures: compareFigures(measured.there, measured.here),
  };
}

/** The first bench finds the machine as the previous one left it. */
function inTurn(round: number): readonly ("there" | "here")[] {
  return round % 2 === 1 ? ["there", "here"] : ["here", "there"];
}

export interface BenchFigures {
  readonly bench: string;
  readonly run: BenchRun;
}

/** Each once, on this checkout only. */
export async function measureHere({ root, quick, say, signal }: Measuring): Promise<readonly BenchFigures[]> {
  const build = quick.some(({ isBuilt }) => isBuilt);
  return await withoutCommit({ root, build, say }, async (checkout: Checkout) => {
    const all: BenchFigures[] = [];
    for (const bench of quick) {
      say(bench.name);
      all.push({ bench: bench.name, run: await runBench(checkout, bench, signal) });
    }
    return all;
  });
}

export const exitCodes = { done: 0, worse: 1, usage: 2, failed: 3, interrupted: 130 } as const;

export function comparisonCode(all: readonly BenchComparison[]): number {
  if (all.some(isWorse)) return exitCodes.worse;
  return all.some((one) => one.type === "failed" && one.side === "here") ? exitCodes.failed : exitCodes.done;
}

function isWorse(one: BenchComparison): boolean {
  return one.type === "compared" && one.figures.some((figure) => "mark" in figure && figure.mark === "worse");
}

const right = { align: "right" } as const;

export function figuresText(all: readonly BenchFigures[]): string {
  const rows = all.flatMap(({ bench, run: one }) =>
    one.type === "measured"
      ? one.figures.map(({ name, value, unit }) => [bench, name, shown(value), unit])
      : [[bench, `failed: ${one.words}`]],
  );
  const columns = [{ title: "bench" }, { title: "figure" }, { title: "value", ...right }, { title: "unit" }];
  return `${formatTable(columns, rows)}\n`;
}

export function comparisonText(
  all: readonly BenchComparison[],
  { commit, rounds }: { readonly commit: string; readonly rounds: number },
): string {
  const rows = all.flatMap((one) =>
    one.type === "failed"
      ? [[one.bench, one.side === "here" ? `failed: ${one.words}` : `cannot be compared: ${one.words}`]]
      : one.figures.map((figure) => [one.bench, ...cells(figure)]),
  );
  const columns = [
    { title: "bench" },
    { title: "figure" },
    { title: "unit" },
    { title: "there", ...right },
    { title: "here", ...right },
    { title: "here / there", ...right },
    { title: "rounds" },
    { title: "" },
  ];
  return [
    `this checkout beside ${commit.slice(0, 8)}, medians of ${rounds} rounds in turns`,
    "",
    formatTable(columns, rows),
    "",
  ].join("\n");
}

function cells(figure: Compared | Lone): readonly string[] {
  const { name, unit } = figure;
  if ("only" in figure) {
    const value = shown(figure.value);
    return figure.only === "here" ? [name, unit, "", value] : [name, unit, value];
  }
  const [least, most] = figure.ratios.map((ratio) => ratio.toFixed(2));
  const ratio = figure.ratio.toFixed(2);
  return [name, unit, shown(figure.there), shown(figure.here), ratio, `${least} to ${most}`, figure.mark];
}

/** Three significant digits. */
function shown(value: number): string {
  if (value === 0 || value >= 100) return Math.round(value).toLocaleString("en-GB");
  return value.toPrecision(3);
}
