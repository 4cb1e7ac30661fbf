/** The recrawl simulation on some hundred channels: invariants of every run, and the effects of the strategies. */
import { describe, expect, it } from "vitest";
import { SeededRandom } from "#ops/world/seeded-random";
import { CrawlerFleet } from "./recrawl/crawler-fleet.ts";
import { recrawlTables } from "./recrawl/recrawl-report.ts";
import { recrawlWorld } from "./recrawl/recrawl-world.ts";
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

  it("never has more than five threads at a crawler, and no task at a departed one", () => {
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

  it("gives a task to the nearest with a free thread, else with room in its queue, else with the shortest queue", () => {
    // The channel's page takes 1, 2 and 3 steps from crawlers 2, 0 and 1, which have one thread each.
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
});

describe("the strategies", () => {
  it.each(["iir", "icr"] as const)(
    "%s submits less to a fleet that is too small, and more tasks succeed",
    (name) => {
      const adapted = runOf("REC", name);
      const fixed = runOf("REC", "fixed");

      expect(adapted.counts.submitted).toBeLessThan(fixed.counts.submitted);
      expect(adapted.successRate).toBeGreaterThan(fixed.successRate);
      expect(adapted.queuedPerCrawler).toBeLessThan(fixed.queuedPerCrawler);
      expect(adapted.reassignments).toBeGreaterThan(1);
    },
  );

  it.each(["REC", "RUC"] as const)("optimal has the best weighted freshness under %s", (name) => {
    const others = (["fixed", "iir", "icr"] as const).map(
      (strategy) => runOf(name, strategy).weightedFreshness,
    );

    expect(runOf(name, "optimal").weightedFreshness).toBeGreaterThan(Math.max(...others));
  });
});

describe("the report", () => {
  const report = (strategies: readonly StrategyName[]) =>
    recrawlTables({
      case: "REC",
      scenario: small("REC"),
      figures: strategies.map((strategy) => runOf("REC", strategy)),
    });

  it("has the paper's figures in brackets, scaled to its channels and steps", () => {
    const text = report(["fixed", "icr", "optimal"]);

    // 8.030 million of 16,000 channels and 100,000 steps: for 400 and 12,000, 24.1 thousand.
    expect(text).toMatch(/^total +24\.\d \(24\.1\)/m);
    expect(text).toMatch(/^of FIXED's +1\.000 \(1\.000\) +\d\.\d{3} \(0\.518\) +\d\.\d{3}$/m);
  });
});
