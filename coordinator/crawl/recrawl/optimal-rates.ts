/**
 * Computes how often to fetch each page so that the sum of importance times freshness is greatest, given a total and
 * limits per page and host: water-filling (Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, "Tractable
 * near-optimal policies for crawling", PNAS 115(32), 2018; importance and politeness as in A. Kolobov, Y. Peres, C.
 * Lu, E. Horvitz, "Staying up to date with online content changes using reinforcement learning for scheduling",
 * NeurIPS 2019). Unlike theirs, fetches of a page are evenly spaced (`freshnessOf`).
 *
 * At the optimum one more fetch of any page adds the same (the multiplier), except for pages at a limit. The sum of
 * rates falls as the multiplier rises; bracketed Newton steps find it in a few O(n) passes. A host over its limit
 * gets a larger multiplier of its own.
 */
import { changesPerFetchAt, rateAtMultiplier } from "./recrawl-plan.ts";

export interface PagesToRefresh {
  /** Estimated rate; 0 for pages that never change and need no repeat. All arrays have one entry per page. */
  readonly changesPerDay: Float64Array;
  readonly importance: Float64Array;
  readonly mostPerDay: Float64Array;
  /** Minimum rate, so that changes are noticed even if none are expected. Default: 0. */
  readonly leastPerDay?: Float64Array;
  readonly hosts?: HostBounds;
}

interface HostBounds {
  readonly hostOf: Uint32Array;
  readonly mostPerDay: Float64Array;
}

interface RefreshPlan {
  readonly ratesPerDay: Float64Array;
  /** What one more fetch per day adds to the sum of importance times freshness; 0 if every page is at its maximum. */
  readonly multiplier: number;
  /** The multiplier of each host; larger than `multiplier` if the host is at its limit. */
  readonly hostMultipliers: Float64Array;
}

/**
 * The rates sum to `totalPerDay`, or to less if every page or host is at its maximum. Minimum rates must fit the
 * limits of pages and hosts and the total.
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

/** If no hosts are given, all pages form one group. */
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

/** Where pages jump from no fetches to some, interpolates between two neighbouring multipliers, so that the total is met. */
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
  /** Derivative of the rate by the multiplier's logarithm. It is at most 0. */
  slope: number;
}

/** The rates are `shareOfLow` of those at `low` plus the rest of those at `high`. Usually `low` equals `high`. */
interface Multiplier {
  readonly low: number;
  readonly high: number;
  readonly shareOfLow: number;
}

const smallest = 1e-300;
const largest = 1e300;

/**
 * Finds the multiplier at which the rates sum to the total; 0 if the sum stays below it for any multiplier. The sum
 * falls about as a power of the multiplier, so Newton steps are taken on the logarithms, within a narrowing bracket.
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
    // If Newton's step leaves the bracket, a wide bracket is narrowed by a fixed step, a narrow one by half.
    if (newton > low && newton < high) at = newton;
    else if (high - low < 100) at = (low + high) / 2;
    else at = rate > wanted ? Math.min(at + 3, (at + high) / 2) : Math.max(at - 3, (at + low) / 2);
  }
  // Here the sum jumps over the total, so the result mixes the two sides of the jump.
  const [lowAt, highAt] = [Math.exp(low), Math.exp(high)];
  const lowRate = sumAt(lowAt).rate;
  return { low: lowAt, high: highAt, shareOfLow: (wanted - highRate) / (lowRate - highRate) };
}
