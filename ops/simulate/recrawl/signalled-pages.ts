/**
 * Recrawls of single pages whose changes are signalled, well or badly: one page is fetched every turn, so that the total
 * rate is the same and constant whatever is preferred; but for the live rules, whose fetches are counted. The model is that of Busa-Fekete et al. (arXiv 2502.02430), with pages
 * as the coordinator has them: rates spread log-normally, importance by back-links, hosts of ten pages. Time is in days and
 * counted exactly: a copy is current until the first change after its fetch, wherever that falls between two turns.
 *
 * fixed           the page that was fetched longest ago
 * groups          five groups of pages, at intervals as their mean changes: what iir and icr begin with, at this total
 * optimal         even distances at the rates of coordinator/recrawl/optimal-rates; what is due longest is fetched
 * greedy          the page of which a fetch adds most (crawl-value.ts), deaf to signals
 * ncis            the same with signals, whose quality is known: the paper's GREEDY-NCIS
 * optimal-learnt  the rule of the live strategy: a plan a day gives the multiplier, and each page a wait, by rates that are
 *                 learnt from visits. A page is fetched when it is due, and the next plan corrected by how many were
 */
import {
  addSums,
  likelyChangesPerDay,
  noVisits,
  type VisitSums,
  visitSums,
} from "#coordinator/recrawl/change-rate";
import { type CapacityInput, nextCapacity } from "#coordinator/recrawl/make-plan";
import { optimalPlan, optimalRates } from "#coordinator/recrawl/optimal-rates";
import {
  fixedPlan,
  freshnessOf,
  type PlanInForce,
  plannedIntervalSeconds,
} from "#coordinator/recrawl/recrawl-plan";
import { SeededRandom } from "../../world/seeded-random.ts";
import { believed, SignalledWaits, type SignalQuality, signalStep } from "./crawl-value.ts";

export const signalStrategies = ["fixed", "groups", "optimal", "greedy", "ncis", "optimal-learnt"] as const;
export type SignalStrategy = (typeof signalStrategies)[number];

export interface SignalScenario {
  readonly seed: number;
  readonly pages: number;
  /** Fetches in all. */
  readonly turns: number;
  /** Of all pages, for each change of one. */
  readonly fetchesPerChange: number;
  /** Of the signals. With no recall, as many false ones come as with all of it. */
  readonly quality: SignalQuality;
}

export const defaultSignalScenario: Omit<SignalScenario, "quality"> = {
  seed: 1,
  pages: 400,
  turns: 60_000,
  fetchesPerChange: 1,
};

/** 0, 50 and 90 % of the changes signalled; 0, 10 and 50 % of the signals false. */
export const signalQualities: readonly SignalQuality[] = [0, 0.5, 0.9].flatMap((recall) =>
  [0, 0.1, 0.5].map((falseShare) => ({ recall, falseShare })),
);

export interface SignalFigures {
  readonly strategy: SignalStrategy;
  /** Share of time in which copies are current, by importance; from a quarter of the run on. */
  readonly freshness: number;
  /** Of each page. */
  readonly fetches: Uint32Array;
  /** On each day that was measured. */
  readonly fetchesOfDay: readonly number[];
}

/** Of the change rates, as `nearcrawl bench recrawl` has them: between hosts and between the pages of one together. */
const rateSpread = 1.28;

const warmUp = 0.25;

export interface SignalWorld {
  readonly scenario: SignalScenario;
  readonly changesPerDay: Float64Array;
  readonly importance: Float64Array;
  readonly fetchesPerDay: number;
  readonly events: Events;
}

/** In order of time. */
interface Events {
  readonly days: Float64Array;
  readonly page: Uint32Array;
  readonly isChange: Uint8Array;
  readonly isSignal: Uint8Array;
}

/** A change once a day on the average over all pages. */
export function signalWorld(scenario: SignalScenario): SignalWorld {
  const { seed, pages, turns, fetchesPerChange } = scenario;
  const random = new SeededRandom(seed);
  const drawn = Float64Array.from({ length: pages }, () => Math.exp(rateSpread * random.normal()));
  const mean = drawn.reduce((sum, rate) => sum + rate, 0) / pages;
  const changesPerDay = drawn.map((rate) => rate / mean);
  const importance = Float64Array.from(
    { length: pages },
    () => 1 + Math.log2(1 + Math.floor((1 - random.next()) ** -1 - 1)),
  );
  const fetchesPerDay = pages * fetchesPerChange;
  const events = eventsOf(scenario, changesPerDay, turns / fetchesPerDay);
  return { scenario, changesPerDay, importance, fetchesPerDay, events };
}

function eventsOf({ seed, quality }: SignalScenario, changesPerDay: Float64Array, days: number): Events {
  const random = new SeededRandom(seed + 1);
  const { recall, falseShare } = quality;
  const falsePerChange = ((recall === 0 ? 1 : recall) * falseShare) / (1 - falseShare);
  const all: { at: number; page: number; isChange: number; isSignal: number }[] = [];
  changesPerDay.forEach((rate, page) => {
    for (let at = random.exponential(1 / rate); at < days; at += random.exponential(1 / rate))
      all.push({ at, page, isChange: 1, isSignal: random.chance(recall) ? 1 : 0 });
    const falseRate = rate * falsePerChange;
    if (falseRate > 0)
      for (let at = random.exponential(1 / falseRate); at < days; at += random.exponential(1 / falseRate))
        all.push({ at, page, isChange: 0, isSignal: 1 });
  });
  all.sort((a, b) => a.at - b.at);
  return {
    days: Float64Array.from(all, ({ at }) => at),
    page: Uint32Array.from(all, ({ page }) => page),
    isChange: Uint8Array.from(all, ({ isChange }) => isChange),
    isSignal: Uint8Array.from(all, ({ isSignal }) => isSignal),
  };
}

/** What a strategy sees of a fetch. */
interface Visit {
  readonly page: number;
  readonly now: number;
  /** Days since the one before. */
  readonly elapsed: number;
  readonly signals: number;
  readonly hasChanged: boolean;
}

/** What a strategy may look at. */
interface Pages {
  readonly lastFetch: Float64Array;
  /** Since then. */
  readonly signals: Uint32Array;
}

interface Strategy {
  /** Whether a turn has as many fetches as it chooses, and not one. */
  readonly isFree?: boolean;
  /** The page that is fetched; -1: none is due. */
  choose(now: number, pages: Pages): number;
  noteVisit?(visit: Visit): void;
}

export function simulateSignals(strategy: SignalStrategy, world: SignalWorld): SignalFigures {
  const { scenario, events, importance, fetchesPerDay } = world;
  const pages = {
    lastFetch: new Float64Array(scenario.pages),
    signals: new Uint32Array(scenario.pages),
  };
  const fetches = new Uint32Array(scenario.pages);
  const ofDay = new Array<number>(Math.ceil(scenario.turns / fetchesPerDay)).fill(0);
  const staleFrom = new Float64Array(scenario.pages).fill(Infinity);
  const from = (warmUp * scenario.turns) / fetchesPerDay;
  const until = scenario.turns / fetchesPerDay;
  const chosen = strategyOf(strategy, world);
  let [fresh, next] = [0, 0];
  const count = (page: number, to: number) => {
    const end = Math.min(to, staleFrom[page]!);
    fresh += importance[page]! * Math.max(0, end - Math.max(from, pages.lastFetch[page]!));
  };
  for (let turn = 1; turn <= scenario.turns; turn++) {
    const now = turn / fetchesPerDay;
    for (; next < events.days.length && events.days[next]! <= now; next++) {
      const page = events.page[next]!;
      if (events.isChange[next] === 1) staleFrom[page] = Math.min(staleFrom[page]!, events.days[next]!);
      if (events.isSignal[next] === 0) continue;
      pages.signals[page]! += 1;
    }
    for (let page = chosen.choose(now, pages); page >= 0; page = chosen.choose(now, pages)) {
      count(page, now);
      const elapsed = now - pages.lastFetch[page]!;
      const visit = {
        page,
        now,
        elapsed,
        signals: pages.signals[page]!,
        hasChanged: staleFrom[page]! <= now,
      };
      fetches[page]! += 1;
      ofDay[Math.ceil(now) - 1]! += 1;
      pages.lastFetch[page] = now;
      pages.signals[page] = 0;
      staleFrom[page] = Infinity;
      chosen.noteVisit?.(visit);
      if (chosen.isFree !== true) break;
    }
  }
  for (let page = 0; page < scenario.pages; page++) count(page, until);
  const all = importance.reduce((sum, weight) => sum + weight, 0);
  const fetchesOfDay = ofDay.slice(Math.ceil(from), Math.floor(until));
  return { strategy, freshness: fresh / all / (until - from), fetches, fetchesOfDay };
}

/**
 * What the best choice comes to where fetches need not wait for their turns, and the quality of the signals is known: the
 * continuous optimum that GREEDY-NCIS is to come near.
 */
export function bestFreshness(world: SignalWorld): number {
  const { changesPerDay, importance, fetchesPerDay, scenario } = world;
  const quality = believed(scenario.quality);
  const all = importance.reduce((sum, weight) => sum + weight, 0);
  const weighed = (freshOf: (page: number) => number) =>
    importance.reduce((sum, weight, page) => sum + weight * freshOf(page), 0) / all;
  if (quality === null) {
    const { ratesPerDay } = optimalPlan(knownPages(world), fetchesPerDay);
    return weighed((page) => freshnessOf(ratesPerDay[page]!, changesPerDay[page]!));
  }
  const waits = new SignalledWaits(quality);
  const cycleOf = (page: number, multiplier: number) => {
    const wait = waits.waitAt((multiplier * changesPerDay[page]!) / importance[page]!);
    return wait === Infinity ? { length: Infinity, fresh: 0 } : waits.cycleAt(wait);
  };
  // The rates fall as the multiplier grows: halving its logarithm finds where they come to the total.
  let [low, high] = [-30, 30];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    const rate = changesPerDay.reduce(
      (sum, changes, page) => sum + changes / cycleOf(page, Math.exp(middle)).length,
      0,
    );
    if (rate > fetchesPerDay) low = middle;
    else high = middle;
  }
  return weighed((page) => {
    const { length, fresh } = cycleOf(page, Math.exp(high));
    return fresh / length;
  });
}

export interface SignalComparison {
  readonly quality: SignalQuality;
  readonly fetches: number;
  /** Means over the seeds. */
  readonly best: number;
  readonly strategies: readonly {
    readonly strategy: SignalStrategy;
    readonly freshness: number;
    readonly least: number;
    readonly most: number;
    /** Of the freshness of *optimal* with the same seeds; null: it did not run. */
    readonly ofOptimal: number | null;
    /** Of the planned fetches a day: on the average, and on the busiest day. */
    readonly fetched: number;
    readonly busiest: number;
  }[];
}

/** Every strategy in the same worlds, of seeds in a row. */
export function compareSignals(
  scenario: SignalScenario,
  { strategies, seeds }: { readonly strategies: readonly SignalStrategy[]; readonly seeds: number },
): SignalComparison {
  const worlds = Array.from({ length: seeds }, (_, at) =>
    signalWorld({ ...scenario, seed: scenario.seed + at }),
  );
  const found = strategies.map((strategy) => ({
    strategy,
    runs: worlds.map((world) => simulateSignals(strategy, world)),
  }));
  const planned = worlds[0]!.fetchesPerDay;
  const freshnessOfAll = (runs: readonly SignalFigures[]) => mean(runs.map(({ freshness }) => freshness));
  const optimal = found.find(({ strategy }) => strategy === "optimal");
  return {
    quality: scenario.quality,
    fetches: scenario.turns,
    best: mean(worlds.map(bestFreshness)),
    strategies: found.map(({ strategy, runs }) => ({
      strategy,
      freshness: freshnessOfAll(runs),
      least: Math.min(...runs.map(({ freshness }) => freshness)),
      most: Math.max(...runs.map(({ freshness }) => freshness)),
      ofOptimal: optimal === undefined ? null : freshnessOfAll(runs) / freshnessOfAll(optimal.runs),
      fetched: mean(runs.flatMap(({ fetchesOfDay }) => fetchesOfDay)) / planned,
      busiest: Math.max(...runs.flatMap(({ fetchesOfDay }) => fetchesOfDay)) / planned,
    })),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function strategyOf(name: SignalStrategy, world: SignalWorld): Strategy {
  switch (name) {
    case "fixed":
      return { choose: (_now, { lastFetch }) => least(lastFetch) };
    case "groups":
      return atRates(groupRates(world), world);
    case "optimal":
      return atRates(optimalRates(knownPages(world), world.fetchesPerDay), world);
    case "greedy":
      return greedy(world, null);
    case "ncis":
      return greedy(world, world.scenario.quality);
    case "optimal-learnt":
      return new Learnt(world);
  }
}

function least(values: Float64Array): number {
  let at = 0;
  for (let page = 1; page < values.length; page++) if (values[page]! < values[at]!) at = page;
  return at;
}

function knownPages({ changesPerDay, importance }: SignalWorld) {
  return { changesPerDay, importance, mostPerDay: new Float64Array(changesPerDay.length).fill(Infinity) };
}

const groupCount = 5;

function groupRates({ changesPerDay, fetchesPerDay }: SignalWorld): Float64Array {
  const byRate = [...changesPerDay.keys()].sort((a, b) => changesPerDay[b]! - changesPerDay[a]!);
  const size = Math.ceil(byRate.length / groupCount);
  const rates = new Float64Array(byRate.length);
  for (let first = 0; first < byRate.length; first += size) {
    const group = byRate.slice(first, first + size);
    const mean = group.reduce((sum, page) => sum + changesPerDay[page]!, 0) / group.length;
    for (const page of group) rates[page] = mean;
  }
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  return rates.map((rate) => (rate * fetchesPerDay) / total);
}

function atRates(ratesPerDay: Float64Array, { scenario }: SignalWorld): Strategy {
  const random = new SeededRandom(scenario.seed + 2);
  const due = ratesPerDay.map((rate) => random.next() / rate);
  return {
    choose: () => least(due),
    noteVisit: ({ page, now }) => {
      // On its own clock: one that was late is not late ever after.
      due[page] = Math.max(due[page]!, now - 1 / ratesPerDay[page]!) + 1 / ratesPerDay[page]!;
    },
  };
}

function greedy({ changesPerDay, importance }: SignalWorld, known: SignalQuality | null): Strategy {
  const quality = known && believed(known);
  const waits = quality && new SignalledWaits(quality);
  const step = signalStep(quality);
  return {
    choose: (now, { lastFetch, signals }) => {
      let [best, most] = [0, -1];
      for (let page = 0; page < lastFetch.length; page++) {
        const wait = (now - lastFetch[page]!) * changesPerDay[page]! + signals[page]! * step;
        const share = waits === null ? 1 - (1 + wait) * Math.exp(-wait) : waits.valueAt(wait);
        const value = (importance[page]! / changesPerDay[page]!) * share;
        if (value > most) [best, most] = [page, value];
      }
      return best;
    },
  };
}

/** As in a fleet: plans of what was learnt, and intervals of what is planned. */
class Learnt implements Strategy {
  readonly #world: SignalWorld;
  readonly #due: Float64Array;
  readonly #sums: VisitSums[];
  readonly #rates: Float64Array;
  readonly isFree = true;
  #plan: PlanInForce;
  #nextPlan = 0;
  #fetched = 0;
  #capacity: CapacityInput["before"] = null;

  constructor(world: SignalWorld) {
    const { pages, seed } = world.scenario;
    const random = new SeededRandom(seed + 2);
    this.#world = world;
    this.#due = Float64Array.from({ length: pages }, () => (random.next() * pages) / world.fetchesPerDay);
    this.#sums = Array.from({ length: pages }, () => noVisits);
    this.#rates = new Float64Array(pages).fill(usualRate);
    const bounds = { leastPerDay: 1 / 60, mostPerDay: 24, visitsPerChange: 10 };
    this.#plan = { ...fixedPlan, strategy: "optimal", bounds };
  }

  choose(now: number): number {
    if (now >= this.#nextPlan) this.#makePlan(now);
    const page = least(this.#due);
    return this.#due[page]! <= now ? page : -1;
  }

  noteVisit({ page, now, elapsed, hasChanged }: Visit): void {
    this.#fetched += 1;
    const elapsedSeconds = elapsed * 86_400;
    const visit = { elapsedSeconds, plannedSeconds: elapsedSeconds, hasChanged, lastChangeSecondsAgo: null };
    this.#sums[page] = addSums(this.#sums[page]!, visitSums(visit) ?? noVisits);
    this.#rates[page] = likelyChangesPerDay(this.#sums[page]!, usualRate);
    this.#due[page] = now + this.#interval(page);
  }

  #interval(page: number): number {
    const [changesPerDay, importance] = [this.#rates[page]!, this.#world.importance[page]!];
    const known = { changesPerDay, importance, group: null, hostMultiplier: null };
    const planned = plannedIntervalSeconds(known, this.#plan);
    return planned === null ? this.#rates.length / this.#world.fetchesPerDay : planned / 86_400;
  }

  #makePlan(now: number): void {
    const { importance, fetchesPerDay } = this.#world;
    const measured = { windowDays: 1, sinceLastDays: 1, again: this.#fetched, first: 0, lateShare: 0 };
    const meanDays = importance.length / fetchesPerDay;
    const { correction } = nextCapacity({
      ...{ before: this.#capacity, allowedPerDay: fetchesPerDay, measured, encourageRate: 0.9 },
      isSettled: now > 2 * meanDays,
    });
    this.#capacity = { capacityPerDay: fetchesPerDay, correction, totalPerDay: fetchesPerDay };
    this.#fetched = 0;
    const { multiplier } = optimalPlan(
      {
        ...{ changesPerDay: this.#rates, importance },
        mostPerDay: this.#rates.map((rate) => Math.min(24, 10 * rate)),
        leastPerDay: new Float64Array(importance.length).fill(this.#plan.bounds.leastPerDay),
      },
      fetchesPerDay * correction,
    );
    this.#plan = { ...this.#plan, multiplier };
    this.#nextPlan = now + 1;
  }
}

/** What a page is thought to change until it was seen. */
const usualRate = 0.5;
