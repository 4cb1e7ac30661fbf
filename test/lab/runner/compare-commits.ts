/** The quick benches on this checkout, and on another commit in turns with it. */
import type { Figure } from "../figure.ts";
import { type Compared, compareFigures, type Lone } from "./compare-figures.ts";
import { type TwoCheckouts, withCommit, withoutCommit } from "./other-checkout.ts";
import type { QuickBench } from "./quick-benches.ts";
import { type BenchRun, type Checkout, runBench } from "./run-bench.ts";

interface Measuring {
  readonly root: string;
  readonly quick: readonly QuickBench[];
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export type BenchComparison = { readonly bench: string } & (
  | {
      readonly type: "compared";
      /** The other commit was measured by its own bench: ours does not run on it. */
      readonly byItsOwn: boolean;
      readonly figures: readonly (Compared | Lone)[];
    }
  /** `side`: where it failed, for good: it is not run again. */
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
  { here, there, thereByItself }: TwoCheckouts,
  bench: QuickBench,
  { rounds, say, signal }: Turns,
): Promise<BenchComparison> {
  const measured = { there: [] as (readonly Figure[])[], here: [] as (readonly Figure[])[] };
  let other = there;
  const takeTurn = async (side: "there" | "here", round: number): Promise<BenchRun> => {
    say(`${bench.name}, round ${round} of ${rounds}, ${side}`);
    return await runBench(side === "here" ? here : other, bench, signal);
  };
  for (let round = 1; round <= rounds; round++) {
    for (const side of inTurn(round)) {
      let run = await takeTurn(side, round);
      if (run.type === "failed" && side === "there" && round === 1 && other === there) {
        say(`${bench.name}: this checkout's bench does not run there: ${run.words}`);
        other = thereByItself;
        const byItself = await takeTurn(side, round);
        // Why ours does not run says more than that it has none.
        if (byItself.type === "measured") run = byItself;
      }
      if (run.type === "failed") return { bench: bench.name, type: "failed", side, words: run.words };
      measured[side].push(run.figures);
    }
  }
  const figures = compareFigures(measured.there, measured.here);
  return { bench: bench.name, type: "compared", byItsOwn: other === thereByItself, figures };
}

/** Whichever is first finds the machine as the one before left it. */
function inTurn(round: number): readonly ("there" | "here")[] {
  return round % 2 === 1 ? ["there", "here"] : ["here", "there"];
}

export interface BenchFigures {
  readonly bench: string;
  readonly run: BenchRun;
}

/** Each once, this checkout alone. */
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
