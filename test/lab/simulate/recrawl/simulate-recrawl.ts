/** Runs one strategy through a scenario, for the paper's tables 1 to 4 and figures 4 and 5. */

import { optimalPlan } from "#coordinator/crawl/recrawl/optimal-rates";
import {
  iteratedCapacity,
  iteratedInterval,
  type Reassignment,
} from "#coordinator/crawl/recrawl/priority-groups";
import { SeededRandom } from "#ops/world/seeded-random";
import { ChannelManager, currentShare } from "./channel-manager.ts";
import { CrawlerFleet, type TaskCounts } from "./crawler-fleet.ts";
import { type RecrawlWorld, recrawlWorld } from "./recrawl-world.ts";
import { type RecrawlScenario, type StrategyName, weightOf } from "./scenario.ts";

export interface GroupFigures {
  /** 4 for the most urgent of five. */
  readonly rank: number;
  readonly channels: number;
  readonly submitted: number;
  readonly updates: number;
  /** Steps between two submissions of a channel; null: none was submitted. */
  readonly intervalSteps: number | null;
  /** Updates divided by changes. */
  readonly quality: number;
  /** Share of its pages whose copy is current, mean over time. */
  readonly freshness: number;
}

export interface RecrawlFigures {
  readonly strategy: StrategyName;
  readonly groups: readonly GroupFigures[];
  readonly counts: TaskCounts & { readonly submitted: number; readonly underWay: number };
  readonly meanIntervalSteps: number;
  readonly successRate: number;
  /** Equation 5, with the weights 2^rank and with 1. */
  readonly weightedQuality: number;
  readonly quality: number;
  /** Means over channels, weighted by 2^rank and unweighted. */
  readonly weightedFreshness: number;
  readonly freshness: number;
  readonly onlineCrawlers: number;
  readonly busyShare: number;
  readonly queuedPerCrawler: number;
  readonly reassignments: number;
}

interface RecrawlRun {
  readonly strategy: StrategyName;
  readonly scenario: RecrawlScenario;
  readonly world?: RecrawlWorld;
  readonly onProgress?: (step: number) => void;
  /** After each step; for tests. */
  readonly onStep?: (fleet: CrawlerFleet, step: number) => void;
}

export function simulateRecrawl(run: RecrawlRun): RecrawlFigures {
  const { scenario, onProgress, onStep } = run;
  const world = run.world ?? recrawlWorld(scenario);
  const random = new SeededRandom(scenario.seed + 1);
  const manager = new ChannelManager(scenario, world, random);
  const fleet = new CrawlerFleet(scenario, world, {
    random: new SeededRandom(scenario.seed + 2),
    onUpdate: (update) => manager.noteUpdate(update),
  });
  const afterStep = strategyOf(run.strategy, { scenario, world, manager, fleet, random });
  const sums = { waiting: 0, running: 0, reassignments: 0 };
  for (let step = 0; step < scenario.steps; step += 1) {
    fleet.advance(step);
    manager.submitDue(step, (channel, limit) => fleet.submit(channel, limit, step));
    if (afterStep(step)) sums.reassignments += 1;
    sums.waiting += fleet.waiting;
    sums.running += fleet.running;
    if (step % 500 === 0) onProgress?.(step);
    onStep?.(fleet, step);
  }
  return {
    strategy: run.strategy,
    ...qualities(groupFigures(scenario, world, manager)),
    ...fleetFigures(scenario, manager, fleet),
    busyShare: sums.running / (fleet.crawlerSteps * scenario.threads),
    queuedPerCrawler: sums.waiting / fleet.crawlerSteps,
    reassignments: sums.reassignments,
  };
}

function fleetFigures(scenario: RecrawlScenario, manager: ChannelManager, fleet: CrawlerFleet) {
  const submitted = sum(manager.submitted);
  const atLeastOne = Math.max(1, submitted);
  return {
    counts: { ...fleet.counts, submitted, underWay: fleet.waiting + fleet.running },
    meanIntervalSteps: (scenario.channels * scenario.steps) / atLeastOne,
    successRate: fleet.counts.updated / atLeastOne,
    onlineCrawlers: fleet.crawlerSteps / scenario.steps,
  };
}

function groupFigures(
  scenario: RecrawlScenario,
  world: RecrawlWorld,
  manager: ChannelManager,
): GroupFigures[] {
  const { changeMinutes, steps } = scenario;
  return changeMinutes.map((minutes, group) => {
    const totals = { channels: 0, submitted: 0, updates: 0, freshness: 0 };
    world.group.forEach((of, channel) => {
      if (of !== group) return;
      totals.channels += 1;
      totals.submitted += manager.submitted[channel]!;
      totals.updates += manager.updates[channel]!;
      totals.freshness += manager.freshness(channel);
    });
    const { channels, submitted, updates, freshness } = totals;
    return {
      rank: changeMinutes.length - 1 - group,
      channels,
      submitted,
      updates,
      intervalSteps: submitted > 0 ? (channels * steps) / submitted : null,
      quality: channels > 0 ? (updates * minutes) / (channels * steps) : 0,
      freshness: channels > 0 ? freshness / channels : 0,
    };
  });
}

function qualities(groups: GroupFigures[]) {
  const all = groups.reduce((count, { channels }) => count + channels, 0);
  const weight = (group: number) => weightOf(group, groups.length) * groups[group]!.channels;
  const weights = groups.reduce((total, _, group) => total + weight(group), 0);
  const mean = (of: (figures: GroupFigures) => number, weigh: (group: number) => number, by: number) =>
    groups.reduce((total, figures, group) => total + of(figures) * weigh(group), 0) / by;
  const plain = (group: number) => groups[group]!.channels;
  return {
    groups,
    weightedQuality: mean(({ quality }) => quality, weight, all),
    quality: mean(({ quality }) => quality, plain, all),
    weightedFreshness: mean(({ freshness }) => freshness, weight, weights),
    freshness: mean(({ freshness }) => freshness, plain, all),
  };
}

function sum(values: Int32Array): number {
  return values.reduce((total, value) => total + value, 0);
}

// Recrawl rates that make weighted freshness greatest under the capacity that the fleet shows (core/recrawl/
// optimal-rates.ts): what is shared out is not fetches but task threads, since a channel of 100,000 pages takes one
// for a day and a channel of 100 for a minute.
//
// A download of d minutes survives its crawler's departures with e^(-h·d), h being how often a crawler leaves
// without notice; an update therefore takes (e^(hd) - 1)/h thread minutes on average, lost attempts included, and
// e^(hd) attempts. Freshness depends on the ratio of updates to changes alone, so that rates of thread minutes take the
// place of rates of updates where each channel's change rate is multiplied with its cost. Importance is 2^rank,
// times the share of pages that are still current when a download ends. Politeness: one task of a channel at a time.

/** Steps between two measurements of the fleet. */
const everySteps = 500;

/** Share of the threads that is planned for; beyond it, tasks wait in queues of crawlers that happen to be full. */
const plannedShare = 0.95;

/** A download that needs more attempts than this is not tried. */
const mostAttempts = 20;

class OptimalStrategy {
  readonly #parts: StrategyParts;
  #seen = { crawlerSteps: 0, unnotified: 0, step: 0 };

  constructor(parts: StrategyParts) {
    this.#parts = parts;
  }

  afterStep(step: number): boolean {
    if (step === 0 || step % everySteps !== 0) return false;
    const { manager, random } = this.#parts;
    const intervals = this.#intervals(step);
    manager.reassign((channel) => intervals[channel]!, step, random);
    return true;
  }

  #intervals(step: number): Float64Array {
    const { scenario, world } = this.#parts;
    const { changeMinutes } = scenario;
    const { threads, hazard } = this.#measured(step);
    const minutes = this.#downloadMinutes();
    const attempts = minutes.map((taken) => Math.exp(hazard * taken));
    const cost = minutes.map((taken) => (hazard > 0 ? Math.expm1(hazard * taken) / hazard : taken));
    const theta = (channel: number) => changeMinutes[world.group[channel]!]!;
    const busy = optimalPlan(
      {
        changesPerDay: cost.map((minutesEach, channel) => Math.min(1e300, minutesEach / theta(channel))),
        importance: minutes.map((taken, channel) =>
          attempts[channel]! > mostAttempts
            ? 0
            : weightOf(world.group[channel]!, changeMinutes.length) * currentShare(taken / theta(channel)),
        ),
        mostPerDay: cost.map(
          (minutesEach, channel) => minutesEach / (minutes[channel]! * attempts[channel]!),
        ),
      },
      plannedShare * threads,
    ).ratesPerDay;
    return busy.map((share, channel) => cost[channel]! / (share * attempts[channel]!));
  }

  /** Mean threads since the last measurement, and departures without notice per crawler and step since the start. */
  #measured(step: number): { readonly threads: number; readonly hazard: number } {
    const { crawlerSteps, unnotified } = this.#parts.fleet;
    const online = (crawlerSteps - this.#seen.crawlerSteps) / (step - this.#seen.step);
    this.#seen = { crawlerSteps, unnotified, step };
    return {
      threads: Math.max(1, online) * this.#parts.scenario.threads,
      hazard: unnotified / Math.max(1, crawlerSteps),
    };
  }

  /** Of a channel with updates, their mean; of others, pages (known from earlier crawls) times the fleet's mean per page. */
  #downloadMinutes(): Float64Array {
    const { manager, world } = this.#parts;
    let taken = 0;
    let pages = 0;
    manager.updates.forEach((count, channel) => {
      taken += manager.downloadSteps[channel]!;
      pages += count * world.pages[channel]!;
    });
    const perPage = pages > 0 ? taken / pages : 1 / 60;
    return world.pages.map((count, channel) =>
      manager.updates[channel]! > 0
        ? manager.downloadSteps[channel]! / manager.updates[channel]!
        : Math.max(1, count * perPage),
    );
  }
}

// The strategies that a recrawl simulation compares: FIXED, IIR and ICR as the coordinator runs them (crawl/recrawl), on the
// simulated manager's records, and "optimal" (recrawl/optimal-rates).

interface StrategyParts {
  readonly scenario: RecrawlScenario;
  readonly world: RecrawlWorld;
  readonly manager: ChannelManager;
  readonly fleet: CrawlerFleet;
  readonly random: SeededRandom;
}

/** Called after each step; true: it has reassigned the intervals. */
type Strategy = (step: number) => boolean;

function strategyOf(name: StrategyName, parts: StrategyParts): Strategy {
  switch (name) {
    case "fixed":
      return () => false;
    case "iir":
    case "icr":
      return adaptive(name, parts);
    case "optimal": {
      const optimal = new OptimalStrategy(parts);
      return (step) => optimal.afterStep(step);
    }
  }
}

/** The records are in steps of a minute; the strategies accept any unit. */
function adaptive(name: "iir" | "icr", { scenario, world, manager, random }: StrategyParts): Strategy {
  const { changeMinutes, encourageRate } = scenario;
  let now: Reassignment = {
    intervalSeconds: changeMinutes,
    successRates: changeMinutes.map(() => 0),
  };
  return (step) => {
    if (!manager.isReassignmentDue) return false;
    const input = {
      groups: manager.groupRecords(now.intervalSeconds),
      intervalSeconds: now.intervalSeconds,
      lastSuccessRates: now.successRates,
      encourageRate,
      limits: scenario,
    };
    now =
      name === "iir"
        ? iteratedInterval(input)
        : iteratedCapacity({ ...input, initialIntervalSeconds: changeMinutes });
    manager.forget();
    manager.reassign((channel) => now.intervalSeconds[world.group[channel]!]!, step, random);
    return true;
  };
}
