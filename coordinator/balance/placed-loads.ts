/** Whole subnets on crawlers while a placement is being made: who is where, and what room that leaves of pages and bytes. */
import type { FlowProblem } from "./problem.ts";

export class PlacedLoads {
  readonly problem: PlacementProblem;
  /** The crawler of each subnet, -1: nowhere. */
  readonly places: Int32Array;
  readonly crawlers: number;
  readonly #roomPages: Float64Array;
  readonly #roomBytes: Float64Array;
  /** Rounding of sums: over by less is not over. */
  readonly #grainPages: number;
  readonly #grainBytes: number;
  readonly #costs: Float64Array;

  constructor(problem: PlacementProblem) {
    this.problem = problem;
    this.crawlers = problem.capacities.length;
    this.places = new Int32Array(problem.subnets).fill(-1);
    this.#roomPages = problem.capacityPages.slice();
    this.#roomBytes = problem.capacityBytes.slice();
    this.#grainPages = grainOf(problem.capacityPages);
    this.#grainBytes = grainOf(problem.capacityBytes);
    this.#costs = new Float64Array(this.crawlers);
  }

  settle(subnet: number, crawler: number): void {
    this.leave(subnet);
    this.places[subnet] = crawler;
    this.#roomPages[crawler]! -= this.problem.loadOf(subnet);
    this.#roomBytes[crawler]! -= this.problem.bytesOf(subnet);
  }

  leave(subnet: number): void {
    const crawler = this.places[subnet]!;
    if (crawler < 0) return;
    this.places[subnet] = -1;
    this.#roomPages[crawler]! += this.problem.loadOf(subnet);
    this.#roomBytes[crawler]! += this.problem.bytesOf(subnet);
  }

  /** The costs (ms) of a subnet at all crawlers; the array is used again by the next call. */
  costsOf(subnet: number): Float64Array {
    this.problem.costsInto(subnet, this.#costs);
    return this.#costs;
  }

  /** A crawler that carries anything at all, and has room for the subnet in both units. */
  hasRoom(crawler: number, subnet: number): boolean {
    return this.hasRoomFor(crawler, this.problem.loadOf(subnet), this.problem.bytesOf(subnet));
  }

  hasRoomFor(crawler: number, pages: number, bytes: number): boolean {
    return (
      this.problem.capacityPages[crawler]! > 0 &&
      this.#roomPages[crawler]! - pages >= -this.#grainPages &&
      this.#roomBytes[crawler]! - bytes >= -this.#grainBytes
    );
  }

  cheapestWithRoom(subnet: number, costs: Float64Array = this.costsOf(subnet)): number | null {
    let best: number | null = null;
    for (let crawler = 0; crawler < this.crawlers; crawler++) {
      if (crawler === this.places[subnet] || !this.hasRoom(crawler, subnet)) continue;
      if (best === null || costs[crawler]! < costs[best]!) best = crawler;
    }
    return best;
  }

  /** Pages and bytes that the crawler has too much of; zero where it has room. */
  overBy(crawler: number): { readonly pages: number; readonly bytes: number } {
    const pages = -this.#roomPages[crawler]!;
    const bytes = -this.#roomBytes[crawler]!;
    return { pages: pages > this.#grainPages ? pages : 0, bytes: bytes > this.#grainBytes ? bytes : 0 };
  }

  isOver(crawler: number): boolean {
    const { pages, bytes } = this.overBy(crawler);
    return pages > 0 || bytes > 0;
  }

  get isAnyoneOver(): boolean {
    for (let crawler = 0; crawler < this.crawlers; crawler++) if (this.isOver(crawler)) return true;
    return false;
  }

  /** The subnets of the crawlers for which `isWanted` holds. */
  membersOf(isWanted: (crawler: number) => boolean): Map<number, number[]> {
    const members = new Map<number, number[]>();
    for (let crawler = 0; crawler < this.crawlers; crawler++) if (isWanted(crawler)) members.set(crawler, []);
    for (let subnet = 0; subnet < this.places.length; subnet++) {
      members.get(this.places[subnet]!)?.push(subnet);
    }
    return members;
  }
}

function grainOf(capacities: Float64Array): number {
  let total = 0;
  for (const capacity of capacities) if (capacity !== Number.POSITIVE_INFINITY) total += capacity;
  return 1e-11 * Math.max(1e-6, total);
}

export interface PlacementProblem extends FlowProblem {
  readonly capacityPages: Float64Array;
  /** Infinite where there is no limit. */
  readonly capacityBytes: Float64Array;
  bytesOf(subnet: number): number;
  /** Where a subnet without load stays, if that crawler carries anything at all. */
  ownerOf(subnet: number): number;
}
