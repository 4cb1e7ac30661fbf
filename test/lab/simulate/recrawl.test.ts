/** The recrawl simulation on some hundred channels: what holds in any run, and which way the strategies go. */
import { describe, expect, it } from "vitest";
import { SeededRandom } from "#ops/world/seeded-random";
import { CrawlerFleet } from "./recrawl/crawler-fleet.ts";
import { recrawlTables } from "./recrawl/recrawl-report.ts";
import { nearestCrawlers, recrawlWorld, replicatedNodes } from "./recrawl/recrawl-world.ts";
import {
  type CaseName,
  cases,
  defaultScenario,
  type RecrawlScenario,
  type StrategyName,
} from "./recrawl/scenario.ts";
import { type RecrawlFigures, simulateRecrawl } from "./recrawl/simulate-recrawl.ts";

const small = (name: CaseName): RecrawlScenario => ({
  ...defaultScenario,
  seed: 5,
  channels: 400,
  steps: 12_000,
  crawlers: cases[name] / 40,
});
const worlds = { REC: recrawlWorld(small("REC")), RUC: recrawlWorld(small("RUC")) };
const runs = new Map<string, RecrawlFigures>();
function runOf(name: CaseName, strategy: StrategyName): RecrawlFigures {
  const key = `${name} ${strategy}`;
  const run = runs.get(key) ?? simulateRecrawl({ strategy, scenario: small(name), world: worlds[name] });
  runs.set(key, run);
  return run;
}

describe("a simulated fleet", () => {
  it.each(["fixed", "iir", "icr", "optimal"] as const)("ends every task once, under %s", (strategy) => {
    const { counts } = runOf("REC", strategy);

    const { updated, lost, cancelled, refused, underWay, submitted } = counts;
    expect(updated + lost + cancelled + refused + underWay).toBe(submitted);
    expect(Math.min(updated, lost, cancelled)).toBeGreaterThan(0);
  });

  it("never has more than five threads at a crawler, and nothing at one that left", () => {
    const scenario = { ...small("REC"), steps: 2500 };
    let most = 0;
    const look = (fleet: CrawlerFleet) => {
      let tasks = 0;
      for (let crawler = 0; crawler < scenario.crawlers; crawler += 1) {
        const { running, waiting, online } = fleet.load(crawler);
        most = Math.max(most, running);
        tasks += running + waiting;
        if (!online && running + waiting > 0) throw new Error(`crawler ${crawler} left with tasks`);
        if (waiting > 0 && running < scenario.threads) throw new Error(`crawler ${crawler} idles`);
      }
      if (tasks !== fleet.running + fleet.waiting) throw new Error("a task is nowhere");
    };

    simulateRecrawl({ strategy: "fixed", scenario, world: worlds.REC, onStep: look });

    expect(most).toBe(5);
  });

  it("gives a task to the nearest with a thread free, else with room in its queue, else with the shortest one", () => {
    // One page of the channel takes 1, 2 and 3 steps from crawlers 2, 0 and 1, which have a thread each.
    const scenario = { ...small("REC"), crawlers: 3, threads: 1, queueLength: 2 };
    const world = {
      ...{ group: Uint8Array.of(0), pages: Float64Array.of(1), neighbours: 3 },
      ...{ nearest: Int32Array.of(2, 0, 1), pageSeconds: Float32Array.of(60, 120, 180) },
    };
    const ended: number[] = [];
    const fleet = new CrawlerFleet(scenario, world, {
      random: new SeededRandom(1),
      onUpdate: ({ downloadSteps }) => ended.push(downloadSteps),
    });
    const waiting = () => [2, 0, 1].map((crawler) => fleet.load(crawler).waiting);
    const submit = (tasks: number) => {
      for (let task = 0; task < tasks; task += 1) fleet.submit(0, 100, 0);
    };

    submit(3);
    const free = [fleet.running, ...waiting()];
    submit(3);
    const room = waiting();
    submit(4);
    const full = waiting();
    for (const step of [0, 1, 2, 3]) fleet.advance(step);

    expect(free).toEqual([3, 0, 0, 0]);
    expect(room).toEqual([2, 1, 0]);
    expect(full).toEqual([3, 2, 2]);
    expect(ended.toSorted()).toEqual([1, 1, 1, 2, 3]);
  });

  it.each([
    ["all give notice, nothing is lost", 1],
    ["none does, nothing is handed on", 0],
  ] as const)("where of the crawlers that leave %s", (_name, notifiedShare) => {
    let unnotified = 0;
    const scenario = { ...small("REC"), steps: 2500, notifiedShare };

    const { counts } = simulateRecrawl({
      ...{ strategy: "fixed", scenario, world: worlds.REC },
      onStep: (fleet) => {
        unnotified = fleet.unnotified;
      },
    });

    expect(counts.lost > 0).toBe(notifiedShare === 0);
    expect(counts.migrated > 0).toBe(notifiedShare === 1);
    expect(unnotified > 0).toBe(notifiedShare === 0);
  });

  it("does the same for the same seed, and something else for another", () => {
    const scenario = { ...small("RUC"), steps: 2000 };
    const run = (seed: number) => simulateRecrawl({ strategy: "icr", scenario: { ...scenario, seed } });

    const first = run(5);

    expect(run(5)).toEqual(first);
    expect(run(6)).not.toEqual(first);
  });
});

describe("the strategies", () => {
  it("FIXED submits each channel once per change interval", () => {
    for (const [group, { intervalSteps }] of runOf("REC", "fixed").groups.entries())
      expect(intervalSteps! / small("REC").changeMinutes[group]!).toBeCloseTo(1, 1);
  });

  it.each(["iir", "icr"] as const)(
    "%s asks for less where the fleet is too small, and more tasks succeed",
    (name) => {
      const adapted = runOf("REC", name);
      const fixed = runOf("REC", "fixed");

      expect(adapted.counts.submitted).toBeLessThan(fixed.counts.submitted);
      expect(adapted.successRate).toBeGreaterThan(fixed.successRate);
      expect(adapted.queuedPerCrawler).toBeLessThan(fixed.queuedPerCrawler);
      expect(adapted.reassignments).toBeGreaterThan(1);
    },
  );

  it.each(["iir", "icr"] as const)("%s asks for more of twice the crawlers", (name) => {
    expect(runOf("RUC", name).counts.submitted).toBeGreaterThan(1.1 * runOf("REC", name).counts.submitted);
  });

  it.each(["iir", "icr"] as const)("%s keeps the groups in order of urgency", (name) => {
    const intervals = runOf("REC", name).groups.map(({ intervalSteps }) => intervalSteps!);

    expect(intervals).toEqual(intervals.toSorted((a, b) => a - b));
  });

  it("IIR narrows the gaps between the groups, and ICR keeps them", () => {
    const ratio = (name: StrategyName) => {
      const { groups } = runOf("RUC", name);
      return groups[4]!.intervalSteps! / groups[0]!.intervalSteps!;
    };

    expect(ratio("fixed")).toBeCloseTo(16, 0);
    expect(Math.abs(ratio("icr") - 16)).toBeLessThan(4);
    expect(ratio("iir")).toBeLessThan(10);
  });

  it.each(["REC", "RUC"] as const)("optimal has the best weighted freshness under %s", (name) => {
    const others = (["fixed", "iir", "icr"] as const).map(
      (strategy) => runOf(name, strategy).weightedFreshness,
    );

    expect(runOf(name, "optimal").weightedFreshness).toBeGreaterThan(Math.max(...others));
  });
});

describe("the parts", () => {
  it("a page takes two latencies, 200 ms and its bytes by a fifth of the crawler's bandwidth", () => {
    const scenario = { ...small("REC"), channels: 200, crawlers: 20, neighbours: 20 };
    const { latencyMs } = nearestCrawlers(replicatedNodes(scenario, new SeededRandom(scenario.seed)), 20);

    const { pageSeconds } = recrawlWorld(scenario);

    // 16,000 bytes by 512, 1,024 and 2,048 kbit/s, shared by five threads.
    const transfers = pageSeconds.map((seconds, at) => seconds - (2 * latencyMs[at]! + 200) / 1000);
    const levels = [...new Set(transfers.map((seconds) => Math.round(seconds * 1e4)))].toSorted(
      (a, b) => a - b,
    );
    expect(levels).toEqual([3125, 6250, 12_500]);
  });

  it("update quality is equation 5: the mean over channels of updates by changes, times 2^rank", () => {
    const { groups, weightedQuality, quality } = runOf("REC", "icr");
    const mean = (weight: (rank: number) => number) =>
      groups.reduce((sum, group) => sum + weight(group.rank) * group.channels * group.quality, 0) / 400;

    expect(weightedQuality).toBeCloseTo(
      mean((rank) => [1, 2, 4, 8, 16][rank]!),
      12,
    );
    expect(quality).toBeCloseTo(
      mean(() => 1),
      12,
    );
    expect(groups.map(({ rank }) => rank)).toEqual([4, 3, 2, 1, 0]);
  });
});

describe("the report", () => {
  const report = (strategies: readonly StrategyName[]) =>
    recrawlTables({
      case: "REC",
      scenario: small("REC"),
      figures: strategies.map((strategy) => runOf("REC", strategy)),
    });

  it("has the paper's figures in brackets, brought to as many channels and steps", () => {
    const text = report(["fixed", "icr", "optimal"]);

    // 8.030 million of 16,000 channels and 100,000 steps: for 400 and 12,000, 24.1 thousand.
    expect(text).toMatch(/^total +24\.\d \(24\.1\)/m);
    expect(text).toMatch(/^of FIXED's +1\.000 \(1\.000\) +\d\.\d{3} \(0\.518\) +\d\.\d{3}$/m);
  });
});
