/**
 * Computes how often to fetch each page so that the sum of importance times freshness is greatest, given a total and
 * limits per page and host: water-filling (Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, "Tractable
 * near-optimal policies for crawling", PNAS 115(32), 2018; importance and politeness as in A. Kolobov, Y. Peres, C.
 * Lu, E. Horvitz, "Staying up to date with online content changes using reinforcement learning for scheduling",
 * NeurIPS 2019). Unlike theirs, fetches of a page are evenly spaced (`freshnessOf`).
 *
 * At the optimum one more fetch adds the same everywhere (the multiplier), except for pages at a limit. The sum of
 * rates falls with the multiplier, which bracketed Newton steps find in a few O(n) passes. A host over its limit gets a
 * larger multiplier of its own.
 */
import { changesPerFetchAt, rateAtMultiplier } from "./recrawl-plan.ts";

export interface PagesToRefresh {
  /** Estimated; 0 for pages that never change and need no repeat. All arrays have one entry per page. */
  readonly changesPerDay: Float64Array;
  readonly importance: Float64Array;
  readonly mostPerDay: Float64Array;
  /** Minimum rate, to notice changes after all; 0 when absent. */
  readonly leastPerDay?: Float64Array;
  readonly hosts?: HostBounds;
}

interface HostBounds {
  readonly hostOf: Uint32Array;
  readonly mostPerDay: Float64Array;
}

interface RefreshPlan {
  readonly ratesPerDay: Float64Array;
  /** What one more fetch a day adds to the sum of importance times freshness; 0 when every page is at its maximum. */
  readonly multiplier: number;
  /** Per given host; larger than `multiplier` where the host is at its limit. */
  readonly hostMultipliers: Float64Array;
}

/**
 * The rates sum to `totalPerDay`, or to less when every page or host is at its maximum. Requires that minimum rates
 * fit the limits of pages, hosts and the total.
 */
export function optimalPlan(pages: PagesToRefresh, totalPerDay: number): RefreshPlan {
  if (!(totalPerDay > 0 && totalPerDay < Infinity))
    throw new RangeError(`fetches per day in all: ${totalPerDay} is not a positive number`);
  const groups = groupsOf(pages);
  const all = solveMultiplier((at) => total(pages, groups, at), totalPerDay, 1);
  const multipliers = groups.map((group) => groupMultiplier(pages, group, all));
  const ratesPerDay = new Float64Array(pages.changesPerDay.length);
  groups.forEach((group, index) => {
    for (const page of group.pages) ratesPerDay[page] = mixedRate(pages, page, multipliers[index]!);
  });
  const hostMultipliers = Float64Array.from(pages.hosts ? multipliers : [], ({ high }) => high);
  return { ratesPerDay, multiplier: all.high, hostMultipliers };
}

interface Group {
  readonly pages: Uint32Array;
  readonly most: number;
}

/** Without hosts, all pages are one group. */
function groupsOf({ changesPerDay, hosts }: PagesToRefresh): Group[] {
  if (!hosts) return [{ pages: Uint32Array.from(changesPerDay.keys()), most: Infinity }];
  const starts = new Uint32Array(hosts.mostPerDay.length + 1);
  for (const host of hosts.hostOf) starts[host + 1]!++;
  for (let host = 1; host < starts.length; host++) starts[host]! += starts[host - 1]!;
  const next = starts.slice();
  const sorted = new Uint32Array(hosts.hostOf.length);
  hosts.hostOf.forEach((host, page) => {
    sorted[next[host]!++] = page;
  });
  return Array.from(hosts.mostPerDay, (most, host) => ({
    pages: sorted.subarray(starts[host]!, starts[host + 1]!),
    most,
  }));
}

function total(pages: PagesToRefresh, groups: readonly Group[], multiplier: number): RateSum {
  const all = { rate: 0, slope: 0 };
  for (const group of groups) {
    const { rate, slope } = groupSum(pages, group, multiplier);
    all.rate += Math.min(rate, group.most);
    if (rate < group.most) all.slope += slope;
  }
  return all;
}

function groupSum(pages: PagesToRefresh, group: Group, multiplier: number): RateSum {
  const sum = { rate: 0, slope: 0 };
  for (const page of group.pages) addPage(pages, page, multiplier, sum);
  return sum;
}

function addPage(pages: PagesToRefresh, page: number, multiplier: number, sum: RateSum): void {
  const changes = pages.changesPerDay[page]!;
  const least = pages.leastPerDay?.[page] ?? 0;
  const share = (multiplier * changes) / pages.importance[page]!;
  if (!(changes > 0) || !(share < 1)) {
    sum.rate += least;
    return;
  }
  const x = changesPerFetchAt(share);
  const rate = changes / x;
  const most = pages.mostPerDay[page]!;
  if (rate >= most) sum.rate += most;
  else if (rate <= least) sum.rate += least;
  else {
    sum.rate += rate;
    // d rate / d ln(multiplier) = −λ/x² · share/(x e^(−x))
    sum.slope -= ((changes / (x * x)) * share) / (x * Math.exp(-x));
  }
}

function rateOf(pages: PagesToRefresh, page: number, multiplier: number): number {
  const rate = rateAtMultiplier(pages.changesPerDay[page]!, pages.importance[page]!, multiplier);
  return Math.min(pages.mostPerDay[page]!, Math.max(pages.leastPerDay?.[page] ?? 0, rate));
}

/** Interpolates between two neighbouring multipliers where pages jump from no fetches, so that the total is met. */
function mixedRate(pages: PagesToRefresh, page: number, { low, high, shareOfLow }: Multiplier): number {
  const rate = rateOf(pages, page, high);
  return low === high ? rate : rate + shareOfLow * (rateOf(pages, page, low) - rate);
}

function groupMultiplier(pages: PagesToRefresh, group: Group, all: Multiplier): Multiplier {
  if (group.most === Infinity || groupSum(pages, group, all.low).rate <= group.most) return all;
  return solveMultiplier((at) => groupSum(pages, group, at), group.most, all.high);
}

interface RateSum {
  rate: number;
  /** Derivative of the rate by the multiplier's logarithm: at most 0. */
  slope: number;
}

/** The rates are `shareOfLow` of those at `low` and the rest of those at `high`; both are usually equal. */
interface Multiplier {
  readonly low: number;
  readonly high: number;
  readonly shareOfLow: number;
}

const smallest = 1e-300;
const largest = 1e300;

/**
 * Finds the multiplier at which rates sum to the total; 0 when the sum stays below it for any multiplier. The sum falls
 * about as a power of the multiplier, so it takes Newton steps on the logarithms, within a narrowing bracket.
 */
function solveMultiplier(sumAt: (multiplier: number) => RateSum, wanted: number, start: number): Multiplier {
  if (sumAt(smallest).rate <= wanted) return { low: 0, high: 0, shareOfLow: 0 };
  let [low, high, highRate] = [Math.log(smallest), Math.log(largest), 0];
  let at = Math.log(Math.min(largest, Math.max(smallest, start)));
  for (let step = 0; step < 200 && high - low > 1e-14 * (1 + Math.abs(at)); step++) {
    const { rate, slope } = sumAt(Math.exp(at));
    if (Math.abs(rate - wanted) <= 1e-10 * wanted)
      return { low: Math.exp(at), high: Math.exp(at), shareOfLow: 0 };
    if (rate > wanted) low = at;
    else [high, highRate] = [at, rate];
    const newton = at + (Math.log(wanted / rate) * rate) / slope;
    // Where Newton's step leaves it, a wide bracket is narrowed by steps rather than halves.
    if (newton > low && newton < high) at = newton;
    else if (high - low < 100) at = (low + high) / 2;
    else at = rate > wanted ? Math.min(at + 3, (at + high) / 2) : Math.max(at - 3, (at + low) / 2);
  }
  // The sum jumps over the total, so it takes a part of either side.
  const [lowAt, highAt] = [Math.exp(low), Math.exp(high)];
  const lowRate = sumAt(lowAt).rate;
  return { low: lowAt, high: highAt, shareOfLow: (wanted - highRate) / (lowRate - highRate) };
}
