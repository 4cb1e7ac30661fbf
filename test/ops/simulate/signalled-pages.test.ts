/** Recrawls of pages whose changes are signalled: what holds in any run, and what signals are good for. */
import { describe, expect, it } from "vitest";
import { recrawlCommand } from "#ops/cli/simulate/recrawl-command";
import { signalTables } from "#ops/cli/simulate/recrawl-report";
import { drawSignals } from "#ops/evaluate/figures/recrawl-signals";
import {
  bestFreshness,
  compareSignals,
  defaultSignalScenario,
  type SignalFigures,
  type SignalStrategy,
  type SignalWorld,
  signalStrategies,
  signalWorld,
  simulateSignals,
} from "#ops/simulate/recrawl/signalled-pages";

const small = { ...defaultSignalScenario, seed: 4, pages: 150, turns: 15_000 };
const worldOf = (recall: number, falseShare: number) =>
  signalWorld({ ...small, quality: { recall, falseShare } });
const right = worldOf(0.9, 0.1);
const noisy = worldOf(0.9, 0.5);
const useless = worldOf(0, 0.5);
const runs = new Map<SignalWorld, Map<SignalStrategy, SignalFigures>>();
function runOf(world: SignalWorld, strategy: SignalStrategy): SignalFigures {
  const known = runs.get(world) ?? new Map<SignalStrategy, SignalFigures>();
  const run = known.get(strategy) ?? simulateSignals(strategy, world);
  runs.set(world, known.set(strategy, run));
  return run;
}
const freshness = (world: SignalWorld, strategy: SignalStrategy) => runOf(world, strategy).freshness;
const sum = (values: Iterable<number>) => [...values].reduce((all, value) => all + value, 0);

describe("the total rate", () => {
  it.each(["fixed", "optimal", "greedy", "ncis"] as const)("is one fetch a turn under %s", (strategy) => {
    const { fetches, fetchesOfDay } = runOf(right, strategy);

    expect(sum(fetches)).toBe(small.turns);
    expect(new Set(fetchesOfDay)).toEqual(new Set([small.pages]));
  });

  it("is that of the plan under the live rules, on the average, however good the signals are", () => {
    for (const world of [right, noisy, useless]) {
      const { fetchesOfDay } = runOf(world, "optimal-learnt");
      const mean = sum(fetchesOfDay) / fetchesOfDay.length;

      expect(Math.abs(mean / small.pages - 1)).toBeLessThan(0.02);
      expect(Math.max(...fetchesOfDay) / small.pages).toBeLessThan(1.4);
    }
  });
});

describe("freshness", () => {
  it("comes to the continuous optimum under ncis, with any signals, and under greedy to that without any", () => {
    for (const world of [right, noisy, useless])
      expect(Math.abs(freshness(world, "ncis") - bestFreshness(world))).toBeLessThan(0.015);
    expect(Math.abs(freshness(right, "greedy") - freshness(right, "optimal"))).toBeLessThan(0.01);
    expect(freshness(right, "optimal")).toBeGreaterThan(freshness(right, "fixed"));
  });

  it("gains much by right signals, less by noisy ones, and loses nothing by useless ones", () => {
    const gain = (world: SignalWorld) => freshness(world, "ncis") - freshness(world, "greedy");

    expect(gain(right)).toBeGreaterThan(0.12);
    expect(gain(noisy)).toBeGreaterThan(0.08);
    expect(gain(noisy)).toBeLessThan(gain(right));
    expect(gain(useless)).toBe(0);
  });
});

it("does the same for the same seed, and something else for another", () => {
  const again = signalWorld({ ...small, quality: right.scenario.quality });
  const other = signalWorld({ ...small, seed: 5, quality: right.scenario.quality });

  expect(simulateSignals("ncis", again)).toEqual(runOf(right, "ncis"));
  expect(simulateSignals("ncis", other).freshness).not.toBe(freshness(right, "ncis"));
});

it("is told as tables and as a picture", () => {
  const scenario = { ...small, pages: 50, turns: 500, quality: { recall: 0.5, falseShare: 0.1 } };
  const comparison = compareSignals(scenario, { strategies: signalStrategies, seeds: 2 });

  const text = signalTables([comparison], { pages: 50, seed: 4, seeds: 2 });
  const svg = drawSignals([comparison, { ...comparison, quality: { recall: 0.9, falseShare: 0.1 } }]);

  expect(text).toContain("50 pages, 500 fetches, seeds 4 to 5");
  expect(text).toMatch(/^ +50 % +10 % +\d\d\.\d ±\d/m);
  expect(comparison.strategies.find(({ strategy }) => strategy === "optimal")!.ofOptimal).toBe(1);
  expect(svg).toContain("ncis, 10 % of the signals false");
  expect(svg.match(/class="line[ "]/g)?.length).toBeGreaterThanOrEqual(2);
});

it.each([
  [["--strategy", "ncis"], "without --signals there are fixed, iir, icr, optimal"],
  [["--signals", "0.5/0.1", "--strategy", "iir"], "with --signals there are fixed, groups"],
])("the command refuses %j", async (options, reason) => {
  await expect(recrawlCommand().parseAsync(options, { from: "user" })).rejects.toThrow(reason);
});

it.each(["0.5", "1.1/0", "0.5/1", "0.5/0.1/2", "/", "a/b"])(
  "%j is no quality of signals",
  async (quality) => {
    const command = recrawlCommand()
      .exitOverride()
      .configureOutput({ writeErr: () => {} });

    await expect(command.parseAsync(["--signals", quality], { from: "user" })).rejects.toThrow("no quality");
  },
);
