/**
 * The placement problem that a planner keeps solving: its subnets seen with what moving costs them, and limits that
 * follow loads and capacities.
 *
 * A subnet with more load than any crawler may carry is pinned: moving it relieves nobody, so it stays where it is
 * and takes up its crawler's room.
 */
import type { CrawlerId } from "#core/ids";
import type { CrawlerFlow } from "./crawler-flow.ts";
import type { PackedSubnets } from "./packed-subnets.ts";
import type { PlacementProblem } from "./placed-loads.ts";
import { type BalanceCrawler, type BalanceSettings, leaveCostMs } from "./plan.ts";
import { type Burden, burdenOf, plannedCapacities, wholeUnits } from "./problem.ts";

/** What is left of a capacity that a pinned subnet uses up: nothing fits, but the crawler has not departed. */
const usedUpShare = 1e-9;

export class PlanningProblem implements PlacementProblem {
  /** Arrays stay; `setLimits` changes what is in them. */
  readonly capacities: Float64Array;
  readonly capacityPages: Float64Array;
  readonly capacityBytes: Float64Array;
  readonly #subnets: PackedSubnets;
  readonly #settings: BalanceSettings;
  #pinned = new Set<number>();

  constructor(subnets: PackedSubnets, settings: BalanceSettings) {
    const crawlers = subnets.rtts.crawlerIds.length;
    this.#subnets = subnets;
    this.#settings = settings;
    this.capacities = new Float64Array(crawlers);
    this.capacityPages = new Float64Array(crawlers);
    this.capacityBytes = new Float64Array(crawlers);
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
