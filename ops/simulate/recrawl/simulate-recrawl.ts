/** Runs one strategy through a scenario, and says what the paper's tables 1 to 4 and figures 4 and 5 ask for. */
import { SeededRandom } from "#ops/world/seeded-random";
import { ChannelManager } from "./channel-manager.ts";
import { CrawlerFleet, type TaskCounts } from "./crawler-fleet.ts";
import { type RecrawlWorld, recrawlWorld } from "./recrawl-world.ts";
import { type RecrawlScenario, type StrategyName, scenarioFaults, weightOf } from "./scenario.ts";
import { strategyOf } from "./strategies.ts";

export interface GroupFigures {
  /** 4 for the most urgent of five. */
  readonly rank: number;
  readonly channels: number;
  readonly submitted: number;
  readonly updates: number;
  /** Steps between two submissions of a channel; null: none was submitted. */
  readonly intervalSteps: number | null;
  /** Updates by the changes that there were. */
  readonly quality: number;
  /** Share of its pages that are as stored, mean over time. */
  readonly freshness: number;
}

export interface Sample {
  readonly step: number;
  readonly value: number;
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
  /** Means over channels, weighted by 2^rank and not. */
  readonly weightedFreshness: number;
  readonly freshness: number;
  readonly onlineCrawlers: number;
  readonly busyShare: number;
  readonly queuedPerCrawler: number;
  readonly reassignments: number;
  /** Over time: tasks that wait, and downloaded Mbit/s (of tasks that succeeded). */
  readonly queued: readonly Sample[];
  readonly throughputMbps: readonly Sample[];
}

export interface RecrawlRun {
  readonly strategy: StrategyName;
  readonly scenario: RecrawlScenario;
  readonly world?: RecrawlWorld;
  readonly onProgress?: (step: number) => void;
  /** After each step; for tests. */
  readonly onStep?: (fleet: CrawlerFleet, step: number) => void;
}

/** Points of a curve. */
const samples = 90;
const throughputWindows = 18;

/** RangeError: the scenario makes no sense. */
export function simulateRecrawl(run: RecrawlRun): RecrawlFigures {
  const { scenario, onProgress, onStep } = run;
  const faults = scenarioFaults(scenario);
  if (faults.length > 0) throw new RangeError(faults.join("; "));
  const world = run.world ?? recrawlWorld(scenario);
  const random = new SeededRandom(scenario.seed + 1);
  const manager = new ChannelManager(scenario, world, random);
  let pages = 0;
  const fleet = new CrawlerFleet(scenario, world, {
    random: new SeededRandom(scenario.seed + 2),
    onUpdate: (update) => {
      pages += world.pages[update.channel]!;
      manager.noteUpdate(update);
    },
  });
  const afterStep = strategyOf(run.strategy, { scenario, world, manager, fleet, random });
  const sums = { waiting: 0, running: 0, reassignments: 0 };
  const queued: Sample[] = [];
  const throughputMbps: Sample[] = [];
  const every = Math.max(1, Math.floor(scenario.steps / samples));
  const window = Math.max(1, Math.floor(scenario.steps / throughputWindows));
  for (let step = 0; step < scenario.steps; step += 1) {
    fleet.advance(step);
    manager.submitDue(step, (channel, limit) => fleet.submit(channel, limit, step));
    if (afterStep(step)) sums.reassignments += 1;
    sums.waiting += fleet.waiting;
    sums.running += fleet.running;
    if (step % every === 0) queued.push({ step, value: fleet.waiting });
    if ((step + 1) % window === 0) {
      throughputMbps.push({ step: step + 1, value: (pages * scenario.pageBytes * 8) / (window * 60) / 1e6 });
      pages = 0;
    }
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
    queued,
    throughputMbps,
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
