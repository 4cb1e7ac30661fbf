/**
 * Two weeks of a fleet whose loads are noisy: every day each subnet's load is drawn anew around its mean and each
 * place has its own week, a plan is made and its moves are carried out. Shows whether subnets wander.
 */

import type { BalanceSettings } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import type { CrawlerId, SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { BalanceWorld } from "./balance-world.ts";

export interface FortnightOptions {
  readonly settings: BalanceSettings;
  readonly seed: number;
  readonly days?: number;
  /** Spread of a subnet's load from day to day (of the logarithm). */
  readonly noise?: number;
}

export interface FortnightFigures {
  /** Moves of the first day, which balances what delegation left. */
  readonly firstMoves: number;
  /** Moves of all days after it. */
  readonly laterMoves: number;
  /** The most that one subnet moved after the first day. */
  readonly mostMoves: number;
  /** Mean over all pages of all days of what their crawler is slower than the nearest, in ms. */
  readonly extraMs: number;
  /** Crawlers over capacity, summed over the days, after the day's plan. */
  readonly overloads: number;
}

export const defaultDays = 14;
/** A crawler of a thousand subnets still varies by more than their independent noise: its region has its own week. */
const regionalNoise = 0.01;
const defaultNoise = 0.1;

export function simulateFortnight(world: BalanceWorld, options: FortnightOptions): FortnightFigures {
  const { settings, seed, days = defaultDays, noise = defaultNoise } = options;
  const { crawlers, subnets, crawlerRttMs } = world.input;
  const random = seededRandom(seed);
  const planner = new BalancePlanner(crawlerRttMs, settings);
  planner.note({ crawlers, subnets });
  const places = new Map<SubnetId, CrawlerId>(subnets.map((one) => [one.subnetId, one.crawlerId]));
  const moveCounts = new Map<SubnetId, number>();
  const run = { firstMoves: 0, laterMoves: 0, extra: 0, pages: 0, overloads: 0 };
  for (let day = 0; day < days; day++) {
    const week = crawlers.map(() => Math.exp(regionalNoise * normal(random)));
    const loads = subnets.map(({ subnetId, crawlerId, loadPagesPerDay }) => ({
      subnetId,
      loadPagesPerDay:
        loadPagesPerDay * week[crawlerId - 1]! * Math.exp(noise * normal(random) - noise ** 2 / 2),
    }));
    const { moves } = planner.update({ loads });
    planner.note({ made: moves });
    for (const { subnetId, to } of moves) {
      places.set(subnetId, to);
      if (day > 0) moveCounts.set(subnetId, (moveCounts.get(subnetId) ?? 0) + 1);
    }
    if (day === 0) run.firstMoves = moves.length;
    else run.laterMoves += moves.length;
    const carried = new Map<CrawlerId, number>();
    for (const { subnetId, loadPagesPerDay } of loads) {
      const crawlerId = places.get(subnetId)!;
      carried.set(crawlerId, (carried.get(crawlerId) ?? 0) + loadPagesPerDay);
      run.pages += loadPagesPerDay;
      run.extra += loadPagesPerDay * (world.rttMs(subnetId, crawlerId) - least(world.rttsOf(subnetId)));
    }
    run.overloads += crawlers.filter(
      ({ crawlerId, capacityPagesPerDay }) =>
        (carried.get(crawlerId) ?? 0) > capacityPagesPerDay * (1 + 1e-9),
    ).length;
  }
  return {
    firstMoves: run.firstMoves,
    laterMoves: run.laterMoves,
    mostMoves: Math.max(0, ...moveCounts.values()),
    extraMs: run.extra / run.pages,
    overloads: run.overloads,
  };
}

/** Normally distributed (Box and Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function least(values: ArrayLike<number>): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) smallest = Math.min(smallest, values[index]!);
  return smallest;
}
