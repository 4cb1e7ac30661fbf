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
 * Memory: about 300 bytes a subnet, of which a third are its few measurements, at 200 crawlers and a million subnets.
 */
import type { CrawlerId, SubnetId } from "../ids.ts";
import type { CrawlerFlow } from "./crawler-flow.ts";
import { type BalanceSettings, defaultBalanceSettings, leaveCostMs, loadClass } from "./hysteresis.ts";
import { PackedSubnets } from "./packed-subnets.ts";
import { type BalanceCrawler, type BalanceSubnet, checkInput, checkNumber, type Move } from "./plan.ts";
import { burdenOf, plannedCapacities, wholeUnits } from "./planned-capacities.ts";
import type { CrawlerRtt } from "./rtt-table.ts";
import { settledFlow, solveFlow } from "./solve-flow.ts";
import { type WantedProbe, wantedProbes } from "./wanted-probes.ts";
import { type PlacementProblem, placeWhole } from "./whole-placement.ts";

/** All optional: what did not change is left out. Unknown subnets in `loads`, `made` and `measured` are passed over. */
export interface BalanceChanges {
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

export type SubnetLoad = Pick<BalanceSubnet, "subnetId" | "loadPagesPerDay" | "loadBytesPerDay">;

export interface MeasuredPair {
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

/** Share of new measurements from which predictions are learned anew. */
const relearnShare = 0.01;

export class BalancePlanner {
  readonly #settings: BalanceSettings;
  readonly #crawlerRttMs: CrawlerRtt;
  #subnets: PackedSubnets;
  readonly #capacities = new Map<CrawlerId, BalanceCrawler>();
  #flow: CrawlerFlow | null = null;
  #problem: PlacementProblem | null = null;
  /** Shared with the problem; the values change, the arrays stay. */
  #limits = { flow: new Float64Array(0), pages: new Float64Array(0), bytes: new Float64Array(0) };
  #unlearned = 0;

  constructor(crawlerRttMs: CrawlerRtt, settings: BalanceSettings = defaultBalanceSettings) {
    this.#crawlerRttMs = crawlerRttMs;
    this.#settings = settings;
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
    if (![...this.#capacities.values()].some(({ capacityPagesPerDay }) => capacityPagesPerDay > 0))
      return { moves: [], probes: [] };
    this.#renew();
    this.#setLimits();
    this.#settle();
    const places = placeWhole(this.#problem!, this.#flow!);
    return {
      moves: this.#movesTo(places),
      probes: wantedProbes({ subnets: this.#subnets, flow: this.#flow!, places }),
    };
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
    if (this.#flow === null) this.#problem = this.#newProblem();
  }

  #isFlowOf(crawlers: number): boolean {
    return this.#flow !== null && this.#limits.flow.length === crawlers;
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

  #newProblem(): PlacementProblem {
    const subnets = this.#subnets;
    const crawlers = subnets.rtts.crawlerIds.length;
    const settings = this.#settings;
    this.#limits = {
      flow: new Float64Array(crawlers),
      pages: new Float64Array(crawlers),
      bytes: new Float64Array(crawlers),
    };
    return {
      capacities: this.#limits.flow,
      capacityPages: this.#limits.pages,
      capacityBytes: this.#limits.bytes,
      get subnets() {
        return subnets.rows;
      },
      isGone: (row) => subnets.isDead(row),
      loadOf: (row) => subnets.pagesOf(row),
      bytesOf: (row) => subnets.bytesOf(row),
      ownerOf: (row) => subnets.ownerOf(row),
      costsInto: (row, costs) => {
        subnets.rtts.rttsInto(row, costs);
        const leaving = leaveCostMs(subnets.pagesOf(row), settings);
        const owner = subnets.ownerOf(row);
        for (let crawler = 0; crawler < costs.length; crawler++)
          if (crawler !== owner) costs[crawler]! += leaving;
      },
    };
  }

  #setLimits(): void {
    const burden = burdenOf(this.#subnets, this.#capacities);
    const { pages, bytes, flow } = plannedCapacities(burden, this.#settings);
    const unit = this.#commonLoad();
    this.#limits.pages.set(pages);
    this.#limits.bytes.set(bytes);
    this.#limits.flow.set(unit === null ? flow : wholeUnits(flow, unit.pages, unit.subnets));
    if (unit !== null && unit.pages > 0)
      this.#limits.pages.forEach((capacity, index) => {
        // Where whole subnets had to be rounded up, so is what the placement keeps to.
        this.#limits.pages[index] = Math.max(capacity, this.#limits.flow[index]!);
      });
  }

  /** The load that all subnets have, with their number; null when they differ. */
  #commonLoad(): { readonly pages: number; readonly subnets: number } | null {
    let pages = Number.NaN;
    for (const row of this.#subnets.living()) {
      if (Number.isNaN(pages)) pages = this.#subnets.pagesOf(row);
      else if (this.#subnets.pagesOf(row) !== pages) return null;
    }
    return pages > 0 ? { pages, subnets: this.#subnets.alive } : null;
  }

  #settle(): void {
    const problem = this.#problem!;
    if (this.#flow === null) this.#flow = solveFlow(problem);
    else if (!(this.#flow.settle() && this.#flow.isProven)) {
      this.#flow = settledFlow(problem, this.#flow.prices, 2 * this.#flow.arcs.reachMs);
    }
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

function checkChanges({ crawlers = [], subnets = [], loads = [], measured = [] }: BalanceChanges): void {
  checkInput({ crawlers, subnets });
  for (const { subnetId, loadPagesPerDay, loadBytesPerDay = 0 } of loads) {
    checkNumber(loadPagesPerDay, () => `load of subnet ${subnetId}`);
    checkNumber(loadBytesPerDay, () => `load in bytes of subnet ${subnetId}`);
  }
  for (const { subnetId, crawlerId, rttMs } of measured)
    checkNumber(rttMs, () => `RTT of crawler ${crawlerId} to subnet ${subnetId}`);
}
