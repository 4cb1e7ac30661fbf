/**
 * What keeps subnets from wandering. A move has to pay: leaving its crawler costs a subnet something on top, so that
 * it goes only where it saves more, or where an overload makes it go (and then whichever subnet goes the cheapest).
 * The same holds for the way home when there is room again. Relief has a dead band: it begins when a crawler is over
 * its capacity and goes on until it is a little under, and nobody is filled beyond that mark, so that the noise of
 * loads does not make it begin again the next day.
 */
export interface BalanceSettings {
  /** A move saves at least so much per page: less is within what measurements of the same path differ by. */
  readonly leastSavingMs: number;
  /** And at least so much a day in all: what a probe, a hand-over and cold connections are worth. */
  readonly leastSavingMsPagesPerDay: number;
  /** Relief goes on until this share of the capacity is free. */
  readonly deadBandShare: number;
}

/**
 * Chosen on simulated fortnights (test/bench/results/balance.md): 10 ms and 2 % make a quarter of the moves that planning
 * without hysteresis makes, at pages that are 6 % further away; a larger dead band costs more than it spares. 20 ms × pages a day: about a probe.
 */
export const defaultBalanceSettings: BalanceSettings = {
  leastSavingMs: 10,
  leastSavingMsPagesPerDay: 20,
  deadBandShare: 0.02,
};

/** The cheapest plan, however many moves it takes. */
export const noHysteresis: BalanceSettings = {
  leastSavingMs: 0,
  leastSavingMsPagesPerDay: 0,
  deadBandShare: 0,
};

/** Decides between equals: stay. */
const stayMs = 1e-6;
/** However little load a subnet has, it may move for this. */
const mostLeaveMs = 300;

/**
 * What leaving its crawler costs a subnet, in ms per page. Loads count by powers of two, so that it does not change
 * with every page.
 */
export function leaveCostMs(pagesPerDay: number, settings: BalanceSettings): number {
  const { leastSavingMs, leastSavingMsPagesPerDay } = settings;
  const perPageMs =
    leastSavingMsPagesPerDay === 0 ? 0 : leastSavingMsPagesPerDay / 2 ** loadClass(pagesPerDay);
  return stayMs + Math.min(mostLeaveMs, leastSavingMs + perPageMs);
}

/** Loads of one class cost the same to move. */
export function loadClass(pagesPerDay: number): number {
  return Math.floor(Math.log2(Math.max(pagesPerDay, 2 ** -10)));
}

/** What to plan a crawler with, by its capacity and present load in the same unit. */
export function plannedCapacity(capacity: number, load: number, { deadBandShare }: BalanceSettings): number {
  const mark = (1 - deadBandShare) * capacity;
  return load > capacity ? mark : Math.max(mark, load);
}
