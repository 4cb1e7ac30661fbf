/**
 * Plans for a fleet that changes: it is told what changed, and goes on from the plan it had. What it plans costs the
 * same as a plan from scratch would; a few changes take milliseconds where that takes seconds.
 *
 *   note(changes) ──► plan() ──► moves to make, pairs worth probing ──► note({ made, measured }) ──► plan() …
 *
 * Loads, capacities, subnets that come and go, owners and single measurements are small changes. A crawler that was
 * never named before, or measurements enough to learn the predictions anew (1 % of all), make the next plan one from
 * scratch.
 *
 * Memory: 300 to 500 bytes a subnet, at 200 crawlers and at 1,000, nearly half of it what was measured (test/bench/results/balance.md).
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { type CrawlerFlow, proveFlow, settledFlow, solveFlow } from "./crawler-flow.ts";
import { PackedSubnets } from "./packed-subnets.ts";
import type { PlacementProblem } from "./placed-loads.ts";
import {
  type BalanceCrawler,
  type BalanceSettings,
  type BalanceSubnet,
  checkInput,
  checkNumber,
  defaultBalanceSettings,
  leaveCostMs,
  loadClass,
  type Move,
} from "./plan.ts";
import { type Burden, burdenOf, type LikelyInto, plannedCapacities, wholeUnits } from "./problem.ts";
import type { CrawlerRtt, LikelyCrawlers, RttTable } from "./rtt-table.ts";
import { type WantedProbe, wantedProbes } from "./wanted-probes.ts";
import { placeWhole } from "./whole-placement.ts";

/** All optional: what did not change is left out. Unknown subnets in `loads`, `made` and `measured` are passed over. */
interface BalanceChanges {
  /** New, or with another capacity. One of capacity 0 departs. */
  readonly crawlers?: readonly BalanceCrawler[];
  /** New, or to be replaced by what is said here. */
  readonly subnets?: readonly BalanceSubnet[];
  readonly gone?: readonly SubnetId[];
  readonly loads?: readonly SubnetLoad[];
  /** Who crawls a subnet now: moves that were made, by a plan or by anybody. */
  readonly made?: readonly { readonly subnetId: SubnetId; readonly to: CrawlerId }[];
  readonly measured?: readonly MeasuredPair[];
}

type SubnetLoad = Pick<BalanceSubnet, "subnetId" | "loadPagesPerDay" | "loadBytesPerDay">;

interface MeasuredPair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

export interface BalancePlan {
  /** In the order of the subnets' rows; none while no crawler has any capacity. */
  readonly moves: readonly Move[];
  /** Pairs whose RTT is only predicted and worth measuring before moving, the most worth first. */
  readonly probes: readonly WantedProbe[];
}

/**
 * Up to so many pairs of crawler and subnet the plan is the cheapest there is; beyond, the cheapest in which every subnet
 * has one of its likely crawlers, which is a part of the work and cost 0.0 to 0.2 % more
 * in the benches (test/bench/results/balance.md): 200 crawlers and 125,000 subnets are planned exactly in 3 s.
 */
const mostExactPairs = 25_000_000;

/** Share of new measurements from which predictions are learned anew. */
const relearnShare = 0.01;

/** Put on top of what is only predicted where measurements alone are to count. */
const unmeasuredMs = 1_000;

const leastMeasuredReachMs = 5;

export class BalancePlanner {
  readonly #settings: BalanceSettings;
  readonly #crawlerRttMs: CrawlerRtt;
  readonly #exactPairs: number;
  #subnets: PackedSubnets;
  readonly #capacities = new Map<CrawlerId, BalanceCrawler>();
  #flow: CrawlerFlow | null = null;
  #problem: PlanningProblem | null = null;
  #unlearned = 0;
  #turn = 0;

  constructor(
    crawlerRttMs: CrawlerRtt,
    settings: BalanceSettings = defaultBalanceSettings,
    exactPairs: number = mostExactPairs,
  ) {
    this.#crawlerRttMs = crawlerRttMs;
    this.#settings = settings;
    this.#exactPairs = exactPairs;
    this.#subnets = new PackedSubnets(crawlerRttMs);
  }

  /** Throws a RangeError, and takes nothing in, where a number is not one of zero or more or an id comes twice. */
  note(changes: BalanceChanges): void {
    checkChanges(changes);
    for (const crawler of changes.crawlers ?? []) this.#noteCrawler(crawler);
    for (const subnetId of changes.gone ?? []) this.#remove(subnetId);
    for (const subnet of changes.subnets ?? []) this.#put(subnet);
    for (const load of changes.loads ?? []) this.#noteLoad(load);
    for (const { subnetId, to } of changes.made ?? []) this.#change(subnetId, { crawlerId: to });
    for (const { subnetId, crawlerId, rttMs } of changes.measured ?? [])
      this.#change(subnetId, { measured: [crawlerId, rttMs] });
  }

  plan(): BalancePlan {
    if (!this.#canPlan()) return { moves: [], probes: [] };
    const flow = this.#settledFlow();
    const places = placeWhole(this.#problem!, flow);
    return {
      moves: this.#movesTo(places),
      probes: wantedProbes({
        subnets: this.#subnets,
        problem: this.#problem!,
        prices: flow.prices,
        places,
        turn: this.#turn++,
      }),
    };
  }

  /**
   * Moves that rely on measurements alone, as far as anybody who measured a subnet has room: for when no more is
   * going to be probed. The plan to go on from stays as it was.
   */
  planMeasured(): readonly Move[] {
    if (!this.#canPlan()) return [];
    const flow = this.#settledFlow();
    const problem = onMeasured(this.#problem!, this.#subnets.rtts);
    const reachMs = Math.max(flow.arcs.reachMs, leastMeasuredReachMs);
    const moves = this.#movesTo(placeWhole(problem, settledFlow(problem, flow.prices, reachMs)));
    return moves.filter(({ predicted }) => !predicted);
  }

  /** `note`, then `plan`. */
  update(changes: BalanceChanges): BalancePlan {
    this.note(changes);
    return this.plan();
  }

  #noteCrawler(crawler: BalanceCrawler): void {
    this.#subnets.rtts.indexOf(crawler.crawlerId);
    this.#capacities.set(crawler.crawlerId, crawler);
  }

  #put(subnet: BalanceSubnet): void {
    const before = this.#subnets.rowOf(subnet.subnetId);
    if (before !== undefined) this.#flow?.remove(before);
    const row = this.#subnets.put(subnet);
    this.#unlearned += subnet.rttMs.size;
    if (this.#isFlowOf(this.#subnets.rtts.crawlerIds.length)) this.#flow?.add(row);
    else this.#flow = null;
  }

  #remove(subnetId: SubnetId): void {
    const row = this.#subnets.rowOf(subnetId);
    if (row === undefined) return;
    this.#flow?.remove(row);
    this.#subnets.remove(subnetId);
  }

  #noteLoad({ subnetId, loadPagesPerDay, loadBytesPerDay = 0 }: SubnetLoad): void {
    const row = this.#subnets.rowOf(subnetId);
    if (row === undefined) return;
    const isOtherClass = loadClass(loadPagesPerDay) !== loadClass(this.#subnets.pagesOf(row));
    const set = () => this.#subnets.setLoad(row, loadPagesPerDay, loadBytesPerDay);
    if (isOtherClass) {
      this.#put({ ...this.#subnets.unpacked(row, {}), loadPagesPerDay, loadBytesPerDay });
    } else if (this.#flow) this.#flow.reload(row, set);
    else set();
  }

  #change(
    subnetId: SubnetId,
    changes: { crawlerId?: CrawlerId; measured?: readonly [CrawlerId, number] },
  ): void {
    const row = this.#subnets.rowOf(subnetId);
    if (row === undefined) return;
    const before = this.#unlearned;
    this.#put(this.#subnets.unpacked(row, changes));
    this.#unlearned = before + (changes.measured ? 1 : 0);
  }

  /** Throws away what no longer fits: a flow without the newest crawlers, predictions that missed much, dead rows. */
  #renew(): void {
    const { rtts } = this.#subnets;
    if (this.#subnets.rows > 2 * this.#subnets.alive + 1_000) this.#compact();
    if (!this.#isFlowOf(rtts.crawlerIds.length)) this.#flow = null;
    if (this.#unlearned > relearnShare * rtts.learnedFrom) {
      this.#subnets.rtts.learn(this.#subnets.living());
      this.#unlearned = 0;
      this.#flow = null;
    }
    if (this.#flow !== null) return;
    const isLarge = rtts.crawlerIds.length * this.#subnets.alive > this.#exactPairs;
    this.#problem = new PlanningProblem(this.#subnets, { settings: this.#settings, isLarge });
  }

  #isFlowOf(crawlers: number): boolean {
    return this.#flow !== null && this.#problem?.capacities.length === crawlers;
  }

  #compact(): void {
    const packed = new PackedSubnets(this.#crawlerRttMs);
    for (const crawlerId of this.#subnets.rtts.crawlerIds) packed.rtts.indexOf(crawlerId);
    for (const row of this.#subnets.living()) packed.put(this.#subnets.unpacked(row, {}));
    packed.rtts.learn(packed.living());
    this.#subnets = packed;
    this.#unlearned = 0;
    this.#flow = null;
  }

  #settledFlow(): CrawlerFlow {
    this.#renew();
    const problem = this.#problem!;
    problem.setLimits(this.#capacities, this.#flow);
    if (this.#flow === null) this.#flow = solveFlow(problem);
    else if (!proveFlow(this.#flow, problem))
      this.#flow = settledFlow(problem, this.#flow.prices, this.#flow.arcs.reachMs);
    return this.#flow;
  }

  #canPlan(): boolean {
    return [...this.#capacities.values()].some(({ capacityPagesPerDay }) => capacityPagesPerDay > 0);
  }

  #movesTo(places: Int32Array): Move[] {
    const moves: Move[] = [];
    const { rtts } = this.#subnets;
    for (const row of this.#subnets.living()) {
      const [from, to] = [this.#subnets.ownerOf(row), places[row]!];
      if (from === to) continue;
      moves.push({
        subnetId: this.#subnets.idOf(row),
        from: rtts.crawlerIds[from]!,
        to: rtts.crawlerIds[to]!,
        ...rtts.difference(row, from, to),
      });
    }
    return moves;
  }
}

/** The same problem, in which whoever did not measure a subnet is far away. */
function onMeasured(problem: PlanningProblem, rtts: RttTable): PlacementProblem {
  return {
    capacities: problem.capacities,
    capacityPages: problem.capacityPages,
    capacityBytes: problem.capacityBytes,
    subnets: problem.subnets,
    isGone: (row) => problem.isGone(row),
    loadOf: (row) => problem.loadOf(row),
    bytesOf: (row) => problem.bytesOf(row),
    ownerOf: (row) => problem.ownerOf(row),
    costsInto: (row, costs) => {
      problem.costsInto(row, costs);
      for (let crawler = 0; crawler < costs.length; crawler++)
        if (!rtts.isMeasured(row, crawler)) costs[crawler]! += unmeasuredMs;
    },
    likelyInto:
      problem.likelyInto &&
      ((row, breadth, into) => {
        problem.likelyInto!(row, breadth, into);
        for (let at = 0; at < into.count; at++)
          if (!rtts.isMeasured(row, into.crawlers[at]!)) into.costsMs[at]! += unmeasuredMs;
      }),
  };
}

function checkChanges({ crawlers = [], subnets = [], loads = [], measured = [] }: BalanceChanges): void {
  checkInput({ crawlers, subnets });
  for (const { subnetId, loadPagesPerDay, loadBytesPerDay = 0 } of loads) {
    checkNumber(loadPagesPerDay, () => `load of subnet ${subnetId}`);
    checkNumber(loadBytesPerDay, () => `load in bytes of subnet ${subnetId}`);
  }
  for (const { subnetId, crawlerId, rttMs } of measured)
    checkNumber(rttMs, () => `RTT of crawler ${crawlerId} to subnet ${subnetId}`);
}

// The placement problem that a planner keeps solving: its subnets seen with what moving costs them, and limits that
// follow loads and capacities.
//
// A subnet with more load than any crawler may carry is pinned: moving it relieves nobody, so it stays where it is
// and takes up its crawler's room.

/** What is left of a capacity that a pinned subnet uses up: nothing fits, but the crawler has not departed. */
const usedUpShare = 1e-9;

class PlanningProblem implements PlacementProblem {
  /** Arrays stay; `setLimits` changes what is in them. */
  readonly capacities: Float64Array;
  readonly capacityPages: Float64Array;
  readonly capacityBytes: Float64Array;
  readonly likelyInto: LikelyInto | undefined;
  readonly #subnets: PackedSubnets;
  readonly #settings: BalanceSettings;
  #pinned = new Set<number>();

  constructor(
    subnets: PackedSubnets,
    { settings, isLarge }: { readonly settings: BalanceSettings; readonly isLarge: boolean },
  ) {
    const crawlers = subnets.rtts.crawlerIds.length;
    this.#subnets = subnets;
    this.#settings = settings;
    this.capacities = new Float64Array(crawlers);
    this.capacityPages = new Float64Array(crawlers);
    this.capacityBytes = new Float64Array(crawlers);
    this.likelyInto = isLarge ? (row, breadth, into) => this.#likelyInto(row, breadth, into) : undefined;
  }

  get subnets(): number {
    return this.#subnets.rows;
  }

  isGone(row: number): boolean {
    return this.#subnets.isDead(row);
  }

  loadOf(row: number): number {
    return this.#pinned.has(row) ? 0 : this.#subnets.pagesOf(row);
  }

  bytesOf(row: number): number {
    return this.#pinned.has(row) ? 0 : this.#subnets.bytesOf(row);
  }

  ownerOf(row: number): number {
    return this.#subnets.ownerOf(row);
  }

  costsInto(row: number, costs: Float64Array): void {
    this.#subnets.rtts.rttsInto(row, costs);
    const leaving = leaveCostMs(this.#subnets.pagesOf(row), this.#settings);
    const owner = this.#subnets.ownerOf(row);
    const stay = costs[owner]!;
    for (let crawler = 0; crawler < costs.length; crawler++) costs[crawler]! += leaving;
    costs[owner] = stay;
  }

  /** Its owner is always among them: whether it measured it or not, the subnet may stay. */
  #likelyInto(row: number, breadth: number, into: LikelyCrawlers): void {
    const { rtts } = this.#subnets;
    rtts.likelyInto(row, breadth, into);
    const leaving = leaveCostMs(this.#subnets.pagesOf(row), this.#settings);
    const owner = this.#subnets.ownerOf(row);
    for (let at = 0; at < into.count; at++) if (into.crawlers[at] !== owner) into.costsMs[at]! += leaving;
    if (!into.has(owner)) into.put(owner, rtts.rttMs(row, owner));
  }

  /** To be called before each plan. The flow, if there is one, is told of the loads that change by it. */
  setLimits(listed: ReadonlyMap<CrawlerId, BalanceCrawler>, flow: CrawlerFlow | null): void {
    const burden = burdenOf(this.#subnets, listed);
    this.#pin(plannedCapacities(burden, this.#settings).pages, flow);
    for (const row of this.#pinned) this.#takeUp(burden, row);
    const { pages, bytes, flow: flowPages } = plannedCapacities(burden, this.#settings);
    this.capacityPages.set(pages);
    this.capacityBytes.set(bytes);
    this.capacities.set(flowPages);
    this.#roundToWholeSubnets();
  }

  #pin(pages: Float64Array, flow: CrawlerFlow | null): void {
    const most = pages.reduce((largest, capacity) => Math.max(largest, capacity), 0);
    const pinned = new Set<number>();
    for (const row of this.#subnets.living()) if (this.#subnets.pagesOf(row) > most) pinned.add(row);
    const before = this.#pinned;
    for (const row of new Set([...before, ...pinned])) {
      if (before.has(row) === pinned.has(row)) continue;
      const toggle = () => (pinned.has(row) ? this.#pinned.add(row) : this.#pinned.delete(row));
      if (flow && !this.isGone(row)) flow.reload(row, toggle);
      else toggle();
    }
  }

  #takeUp(burden: Burden, row: number): void {
    const owner = this.#subnets.ownerOf(row);
    const capacity = burden.capacityPages[owner]!;
    burden.pages[owner]! -= this.#subnets.pagesOf(row);
    burden.bytes[owner]! -= this.#subnets.bytesOf(row);
    burden.capacityPages[owner] = Math.max(usedUpShare * capacity, capacity - this.#subnets.pagesOf(row));
  }

  /** With equal loads; where whole subnets had to be rounded up, so is what the placement keeps to. */
  #roundToWholeSubnets(): void {
    let unit = Number.NaN;
    for (const row of this.#subnets.living()) {
      if (Number.isNaN(unit)) unit = this.loadOf(row);
      else if (this.loadOf(row) !== unit) return;
    }
    if (!(unit > 0)) return;
    this.capacities.set(wholeUnits(this.capacities, unit, this.#subnets.alive));
    this.capacityPages.forEach((capacity, crawler) => {
      this.capacityPages[crawler] = Math.max(capacity, this.capacities[crawler]!);
    });
  }
}
