/**
 * Load on the crawlers, moved until nobody has more than its capacity at the least cost: successive shortest
 * paths with prices (Jewell 1958; Edmonds and Karp 1972) on a graph of the N crawlers and one more node, `room`,
 * for what the fleet could still carry.
 *
 * Every crawler has a price (ms). A subnet lies where cost + price is least; so whatever the prices are, no circle
 * of exchanges saves anything, and the placement is the cheapest for the loads that result. What remains to do is
 * to get the loads right: nobody over capacity, and whoever has room at the price of room. Each step finds the
 * cheapest way from a crawler with too much to one with too little (Dijkstra over `cost + price` differences, which
 * are never negative), hands load along it and adjusts the prices. It ends exact from any prices to start with;
 * good ones, from a sample or from before a change, only make it short.
 */
import { CandidateArcs, ExchangeRates, maxBases, usualBreadth } from "./candidate-arcs.ts";
import { Holdings } from "./packed-subnets.ts";
import type { FlowProblem } from "./problem.ts";
import { type Way, WayFinder } from "./shortest-path.ts";

export class CrawlerFlow {
  readonly holdings: Holdings;
  readonly arcs: CandidateArcs;
  /** Price of each crawler in ms; the last is that of room. */
  readonly prices: Float64Array;
  /** Load of each crawler. */
  readonly loads: Float64Array;
  /** How many ways load was handed along. */
  steps = 0;
  readonly #problem: FlowProblem;
  readonly #size: number;
  readonly #rates: ExchangeRates;
  readonly #finder: WayFinder;
  /** Too much (positive) or too little per crawler, and of room. */
  readonly #excess: Float64Array;
  /** What of a crawler's load counts as carried: all but its excess. */
  readonly #carried: Float64Array;
  readonly #dust: number;
  readonly #slackMs: number;

  /** Prices: of each crawler and of room. Reach: how far the candidates of a subnet go; see CandidateArcs. */
  constructor(problem: FlowProblem, start: { readonly prices: Float64Array; readonly reachMs: number }) {
    const size = problem.capacities.length;
    this.#problem = problem;
    this.#size = size;
    this.arcs = new CandidateArcs(start.prices.subarray(0, size), start.reachMs);
    this.prices = start.prices.slice();
    this.loads = new Float64Array(size);
    this.#excess = new Float64Array(size + 1);
    this.#carried = new Float64Array(size);
    this.#dust = dustOf(problem);
    this.#slackMs = problem.likelyInto === undefined ? 0 : slackOfLargeMs;
    this.holdings = new Holdings((subnet) => problem.loadOf(subnet), this.#dust);
    this.#rates = new ExchangeRates(size, this.arcs, this.holdings);
    this.#finder = new WayFinder({
      prices: this.prices,
      rates: this.#rates,
      excess: this.#excess,
      carried: this.#carried,
      capacities: problem.capacities,
      dust: this.#dust,
    });
  }

  /** A subnet that was not there, with an index that was never used; it lies where it is cheapest at the present prices. */
  add(subnet: number): void {
    this.arcs.add(subnet, this.#problem);
    this.#place(subnet);
  }

  /** Chooses candidates for a subnet anew, by the present prices and reach of the arcs. */
  chooseAgain(subnet: number): void {
    this.#takeOut(subnet);
    this.add(subnet);
  }

  #place(subnet: number): void {
    const crawler = this.arcs.cheapest(subnet, this.prices);
    this.holdings.place(subnet, crawler);
    this.loads[crawler]! += this.#problem.loadOf(subnet);
    if (this.#problem.loadOf(subnet) > 0) this.#rates.enter(crawler, subnet);
  }

  remove(subnet: number): void {
    this.#takeOut(subnet);
    this.arcs.free(subnet);
  }

  #takeOut(subnet: number): void {
    for (const [crawler, amount] of this.holdings.remove(subnet)) {
      this.loads[crawler]! -= amount;
      this.#rates.leave(crawler, subnet);
    }
  }

  /** Lets `change` set another load; what the subnet costs stays as it was when it was added. */
  reload(subnet: number, change: () => void): void {
    const crawler = this.holdings.wholeAt(subnet);
    const before = this.#problem.loadOf(subnet);
    if (crawler < 0 || before === 0) {
      this.#takeOut(subnet);
      change();
      this.#place(subnet);
      return;
    }
    change();
    this.loads[crawler]! += this.#problem.loadOf(subnet) - before;
  }

  /**
   * Hands load on until it lies right, whatever was added, removed or changed in the capacities. False when the
   * candidates do not suffice for that: more reach is needed.
   */
  settle(): boolean {
    this.#count();
    for (let from = this.#mostOver(); from >= 0; from = this.#mostOver()) {
      while (this.#excess[from]! > this.#dust) {
        const way = this.#finder.find(from);
        if (way === null) return false;
        this.#handOn(way);
        for (let next = this.#sameWay(way); next !== null; next = this.#sameWay(way)) this.#handOn(next);
      }
    }
    return true;
  }

  /** When `settle` came to no end: the crawlers from which no way led on. */
  get stuck(): ReadonlySet<number> {
    return new Set(this.#finder.reached);
  }

  /**
   * Excess by the prices: who is dearer than room has to be full, who is as dear may have any load up to its
   * capacity, and room takes what is left.
   */
  #count(): void {
    const room = this.prices[this.#size]!;
    let balance = 0;
    for (let crawler = 0; crawler < this.#size; crawler++) {
      const over = this.loads[crawler]! - this.#problem.capacities[crawler]!;
      const mustBeFull = this.prices[crawler]! > room + priceGrainMs;
      const excess = mustBeFull ? over : Math.max(0, over);
      this.#excess[crawler] = excess;
      this.#carried[crawler] = this.loads[crawler]! - excess;
      balance += excess;
    }
    this.#excess[this.#size] = -balance;
  }

  #mostOver(): number {
    let most = -1;
    for (let node = 0; node <= this.#size; node++) {
      if (this.#excess[node]! > Math.max(this.#dust, this.#excess[most] ?? 0)) most = node;
    }
    return most;
  }

  #handOn(way: Way): void {
    const amount = this.#mostAlong(way);
    const { nodes, subnets } = way;
    this.steps++;
    this.#excess[nodes[0]!]! -= amount;
    this.#excess[nodes.at(-1)!]! += amount;
    for (let step = 0; step < subnets.length; step++) {
      const [from, to] = [nodes[step]!, nodes[step + 1]!];
      if (to === this.#size) this.#carried[from]! += amount;
      else if (from === this.#size) this.#carried[to]! -= amount;
      else this.#exchange(subnets[step]!, { from, to, amount });
    }
  }

  /**
   * The same nodes with the subnets that are next to go: of a large fleet, where each of these costs no more than the
   * slack over what the prices say, so that one search serves for many. Null: search again; so too where next to nothing
   * could be handed on, or else parts would go to and fro within the slack.
   */
  #sameWay({ nodes }: Way): Way | null {
    if (this.#slackMs === 0 || !this.#mayGoOn(nodes[0]!, nodes.at(-1)!)) return null;
    const subnets: number[] = [];
    for (let step = 0; step + 1 < nodes.length; step++) {
      const subnet = this.#nextToGo(nodes[step]!, nodes[step + 1]!);
      if (subnet === null || (subnet >= 0 && subnet === subnets.at(-1))) return null;
      subnets.push(subnet);
    }
    const next = { nodes, subnets };
    return this.#mostAlong(next) < worthHandingOn * this.#excess[nodes[0]!]! ? null : next;
  }

  #mayGoOn(from: number, to: number): boolean {
    return this.#excess[from]! > this.#dust && this.#excess[to]! < -this.#dust;
  }

  /** -1: from or to room. */
  #nextToGo(from: number, to: number): number | null {
    if (to === this.#size)
      return this.#problem.capacities[from]! - this.#carried[from]! > this.#dust ? -1 : null;
    if (from === this.#size) return this.#carried[to]! > this.#dust ? -1 : null;
    const ms = this.#rates.leastMs[from * this.#size + to]! + this.prices[to]! - this.prices[from]!;
    const subnet = this.#rates.subnetFor(from, to);
    return ms <= this.#slackMs ? subnet : null;
  }

  #mostAlong({ nodes, subnets }: Way): number {
    let amount = Math.min(this.#excess[nodes[0]!]!, -this.#excess[nodes.at(-1)!]!);
    for (let step = 0; step < subnets.length; step++) {
      const [from, to] = [nodes[step]!, nodes[step + 1]!];
      if (to === this.#size)
        amount = Math.min(amount, this.#problem.capacities[from]! - this.#carried[from]!);
      else if (from === this.#size) amount = Math.min(amount, this.#carried[to]!);
      else amount = Math.min(amount, this.holdings.amountAt(subnets[step]!, from));
    }
    return amount;
  }

  #exchange(subnet: number, move: { from: number; to: number; amount: number }): void {
    const { from, to, amount } = move;
    const isNew = this.holdings.amountAt(subnet, to) <= this.#dust;
    this.holdings.shift(subnet, from, to, amount);
    this.loads[from]! -= amount;
    this.loads[to]! += amount;
    if (this.holdings.amountAt(subnet, from) <= this.#dust) this.#rates.leave(from, subnet);
    if (isNew) this.#rates.enter(to, subnet);
  }
}

/**
 * In a large fleet a page may be so much further away than it has to be. Predictions err by ten times as much; with it
 * a plan of 1,000 crawlers and a million subnets takes a fifth of the searches.
 */
const slackOfLargeMs = 0.1;

/** Of a crawler's excess, what is worth going the same way again for. */
const worthHandingOn = 1e-4;

/** Prices that differ by less are the same: rounding. */
const priceGrainMs = 1e-9;

/** What rounding leaves of a sum of loads; far less than the smallest load that matters. */
function dustOf({ capacities }: FlowProblem): number {
  const total = capacities.reduce((sum, capacity) => sum + capacity, 0);
  return 1e-12 * Math.max(1e-6, total);
}

// Settles a flow and makes sure that what was not among the candidates cannot matter. Where it may, candidates are
// chosen anew at the prices reached, for these subnets alone, and further with every turn; at the latest when
// everybody is a candidate the flow is proven the cheapest over all pairs.

/** Reach grows by this with every turn, and is unlimited from `farMs` on. */
const growth = 2;

const farMs = 1_000;

/** False when the flow has lived through too many changes to go on with: start a new one from its prices. */
export function proveFlow(flow: CrawlerFlow, problem: FlowProblem): boolean {
  const { arcs } = flow;
  const firstReachMs = arcs.reachMs;
  for (;;) {
    const doubtful = flow.settle() ? unproven(flow, problem) : heldBy(flow, problem, flow.stuck);
    if (doubtful.length === 0) break;
    if (arcs.bases >= maxBases) return false;
    arcs.rebase(flow.prices);
    arcs.reachMs = arcs.reachMs >= farMs ? Number.POSITIVE_INFINITY : growth * arcs.reachMs;
    arcs.breadth = Math.min(problem.capacities.length, growth * arcs.breadth);
    for (const subnet of doubtful) flow.chooseAgain(subnet);
  }
  arcs.reachMs = firstReachMs;
  arcs.breadth = usualBreadth;
  return true;
}

function unproven(flow: CrawlerFlow, problem: FlowProblem): number[] {
  const isProven = flow.arcs.proofAt(flow.prices);
  return chosen(problem, (subnet) => !isProven(subnet));
}

function heldBy(flow: CrawlerFlow, problem: FlowProblem, crawlers: ReadonlySet<number>): number[] {
  return chosen(problem, (subnet) => {
    const whole = flow.holdings.wholeAt(subnet);
    if (whole >= 0) return crawlers.has(whole);
    return [...flow.holdings.partsOf(subnet).keys()].some((crawler) => crawlers.has(crawler));
  });
}

function chosen(problem: FlowProblem, isChosen: (subnet: number) => boolean): number[] {
  const found: number[] = [];
  for (let subnet = 0; subnet < problem.subnets; subnet++) {
    if (!problem.isGone(subnet) && isChosen(subnet)) found.push(subnet);
  }
  return found;
}

// Solves a transport problem exactly, a large one by way of samples: prices of a sample of the load are nearly
// those of all of it, so that the next larger problem starts almost solved, with a few candidates per subnet.
// Where these turn out not to suffice, more are chosen for the subnets concerned (`proveFlow`).

/** So many subnets are solved at once, with all crawlers as candidates. */
const wholeAtOnce = 4_000;

/** A sample is smaller than what it stands for by this factor. */
const samplingFactor = 8;

/** Candidates per subnet that the first reach is chosen for. */
const candidatesWanted = 4;

/** A first reach of less than this would be lost in the noise of a sample's prices. */
const leastReachMs = 0.05;

/** Subnets that the first reach is estimated from. */
const reachEstimate = 1_000;

export function solveFlow(problem: FlowProblem): CrawlerFlow {
  return solved(problem).flow;
}

/** `wentMs`: how far prices moved apart from what they were to start with; null when there were none. */
function solved(problem: FlowProblem): { readonly flow: CrawlerFlow; readonly wentMs: number | null } {
  const noPrices = new Float64Array(problem.capacities.length + 1);
  if (problem.subnets <= wholeAtOnce)
    return { flow: settledFlow(problem, noPrices, Number.POSITIVE_INFINITY), wentMs: null };
  const sample = sampleOf(problem, Math.max(wholeAtOnce, Math.floor(problem.subnets / samplingFactor)));
  const before = sample.subnets > 0 ? solved(sample) : null;
  const prices = before?.flow.prices ?? noPrices;
  const wentMs = before?.wentMs ?? null;
  // The error of a sample's prices falls with the square root of its size.
  const reachMs = wentMs === null ? reachFor(problem, prices) : wentMs / Math.sqrt(samplingFactor);
  const flow = settledFlow(problem, prices, Math.max(leastReachMs, reachMs));
  return { flow, wentMs: movedApart(prices, flow.prices) };
}

/** The cheapest flow, from these prices: the crawlers' and, last, that of room. */
export function settledFlow(problem: FlowProblem, prices: Float64Array, reachMs: number): CrawlerFlow {
  const flow = new CrawlerFlow(problem, { prices, reachMs });
  flow.arcs.expect(problem.subnets);
  for (let subnet = 0; subnet < problem.subnets; subnet++) {
    if (!problem.isGone(subnet)) flow.add(subnet);
  }
  return proveFlow(flow, problem) ? flow : settledFlow(problem, flow.prices, Number.POSITIVE_INFINITY);
}

function movedApart(before: Float64Array, after: Float64Array): number {
  const moved = after.map((price, node) => price - before[node]!);
  return (
    moved.reduce((most, one) => Math.max(most, one)) - moved.reduce((least, one) => Math.min(least, one))
  );
}

/** How far from the cheapest the candidates have to go for about `candidatesWanted` of them. */
function reachFor(problem: FlowProblem, prices: Float64Array): number {
  const costs = new Float64Array(problem.capacities.length);
  const stride = Math.max(1, Math.floor(problem.subnets / reachEstimate));
  const beyondMs: number[] = [];
  for (let subnet = 0; subnet < problem.subnets; subnet += stride) {
    problem.costsInto(subnet, costs);
    const sorted = costs.map((cost, crawler) => cost + prices[crawler]!).sort();
    beyondMs.push(sorted[Math.min(candidatesWanted, sorted.length) - 1]! - sorted[0]!);
  }
  beyondMs.sort((a, b) => a - b);
  return Math.max(leastReachMs, beyondMs[beyondMs.length >> 1] ?? 0);
}

/**
 * Every so many pages of load one, in the order of the subnets: a subnet is drawn as often as its load says, and
 * the large ones are all there with nearly their own load.
 */
function sampleOf(problem: FlowProblem, draws: number): FlowProblem {
  const drawn: number[] = [];
  const loads: number[] = [];
  let total = 0;
  for (let subnet = 0; subnet < problem.subnets; subnet++) total += problem.loadOf(subnet);
  const step = total / draws;
  let passed = 0;
  let taken = 0;
  for (let subnet = 0; subnet < problem.subnets && step > 0; subnet++) {
    passed += problem.loadOf(subnet);
    const times = Math.floor(passed / step) - taken;
    if (times <= 0) continue;
    taken += times;
    drawn.push(subnet);
    loads.push(times * step);
  }
  return {
    capacities: problem.capacities,
    subnets: drawn.length,
    isGone: () => false,
    loadOf: (index) => loads[index]!,
    costsInto: (index, costs) => problem.costsInto(drawn[index]!, costs),
    likelyInto:
      problem.likelyInto && ((index, breadth, into) => problem.likelyInto!(drawn[index]!, breadth, into)),
  };
}
