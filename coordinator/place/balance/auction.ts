/**
 * Assigns subnets so that no crawler exceeds its capacity, at nearly the least cost: a reversed auction (Bertsekas 1988, "The
 * auction algorithm: a distributed relaxation method for the assignment problem"). Every crawler has a price (ms per page),
 * initially 0, and a subnet goes where cost + price is least. An overloaded crawler hands over the subnets that lose least
 * elsewhere, and its price rises to the loss of the next one. So free capacity costs nothing, and with equal loads the result
 * is within a thousandth of a ms per page of the cheapest.
 *
 * With unequal loads, fitting everything is bin packing, which is NP-hard. The auction may leave unused capacity, or an
 * overload of less than one subnet. Single moves and exchanges repair what they can.
 */

/**
 * Minimum price step (ms). When many subnets are equally near to two full crawlers, prices would creep, so the step doubles
 * after every few looks at each subnet.
 */
const leastStepMs = 1e-3;
const looksToDouble = 10;

/** Maximum looks at each subnet. When loads do not fit, prices would otherwise rise for ever. */
const mostLooks = 200;

/** Maximum rounds of moves and exchanges. Two or three are usual. */
const mostRounds = 10;

/** Maximum subnet pairs per round of exchanges. */
const mostPairs = 1_000_000;

/** Smaller savings are rounding (ms × pages). */
const leastSaving = 1e-6;

export interface AuctionInput {
  readonly capacityPages: Float64Array;
  readonly capacityBytes: Float64Array;
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
  /** The eligible crawlers of each subnet, and the cost of a page at each (ms). */
  readonly crawlers: readonly (readonly number[])[];
  readonly costsMs: readonly (readonly number[])[];
}

export class Auction {
  readonly places: Int32Array;
  readonly prices: Float64Array;
  readonly #input: AuctionInput;
  readonly #members: number[][];
  readonly #roomPages: Float64Array;
  readonly #roomBytes: Float64Array;
  /** Rounding error of sums. Smaller excesses are ignored. */
  readonly #grainPages: number;
  readonly #grainBytes: number;

  constructor(input: AuctionInput) {
    this.#input = input;
    this.prices = new Float64Array(input.capacityPages.length);
    this.places = new Int32Array(input.pages.length).fill(-1);
    this.#members = Array.from(input.capacityPages, () => []);
    this.#roomPages = input.capacityPages.slice();
    this.#roomBytes = input.capacityBytes.slice();
    this.#grainPages = grainOf(input.capacityPages);
    this.#grainBytes = grainOf(input.capacityBytes);
  }

  run(): void {
    const { pages } = this.#input;
    for (let subnet = 0; subnet < pages.length; subnet++)
      this.#settle(subnet, this.#cheapest(subnet, -1).crawler);
    const waiting = [...this.prices.keys()].filter((crawler) => this.#isOver(crawler));
    const isWaiting = new Set(waiting);
    let looks = 0;
    for (let at = 0; at < waiting.length && looks < mostLooks * pages.length; at++) {
      const crawler = waiting[at]!;
      isWaiting.delete(crawler);
      looks += this.#members[crawler]!.length;
      for (const heir of this.#giveUp(crawler, leastStepMs * 2 ** (looks / (looksToDouble * pages.length)))) {
        if (isWaiting.has(heir) || !this.#isOver(heir)) continue;
        isWaiting.add(heir);
        waiting.push(heir);
      }
    }
    this.#improve();
  }

  get isAnyoneOver(): boolean {
    return this.prices.some((_, crawler) => this.#isOver(crawler));
  }

  /**
   * Hands subnets to other crawlers, the smallest loss first, until the crawler is within its capacity, then raises its
   * price. Returns the crawlers that received subnets.
   */
  #giveUp(crawler: number, stepMs: number): Set<number> {
    const { pages, bytes } = this.#input;
    const offers = this.#members[crawler]!.filter((subnet) => this.places[subnet] === crawler)
      .map((subnet) => ({ subnet, ...this.#cheapest(subnet, crawler) }))
      .map((offer) => ({ ...offer, lossMs: offer.priceMs - this.#costAt(offer.subnet, crawler) }))
      .sort((a, b) => (a.lossMs === b.lossMs ? a.subnet - b.subnet : a.lossMs - b.lossMs));
    const heirs = new Set<number>();
    let highestMs = this.prices[crawler]!;
    for (const { subnet, crawler: heir, lossMs } of offers) {
      if (heir < 0) break;
      highestMs = Math.max(highestMs, lossMs);
      if (!this.#isOver(crawler)) break;
      const relieves =
        (this.#isOverPages(crawler) && pages[subnet]! > 0) ||
        (this.#isOverBytes(crawler) && bytes[subnet]! > 0);
      if (!relieves && this.#input.capacityPages[crawler]! > 0) continue;
      this.#settle(subnet, heir);
      heirs.add(heir);
    }
    this.#members[crawler] = this.#members[crawler]!.filter((subnet) => this.places[subnet] === crawler);
    this.prices[crawler] = highestMs + stepMs;
    return heirs;
  }

  /** The cheapest crawler except `but`. −1 if there is none. */
  #cheapest(subnet: number, but: number): { readonly crawler: number; readonly priceMs: number } {
    const crawlers = this.#input.crawlers[subnet]!;
    const costsMs = this.#input.costsMs[subnet]!;
    let [best, leastMs] = [-1, Number.POSITIVE_INFINITY];
    for (let at = 0; at < crawlers.length; at++) {
      const priceMs = costsMs[at]! + this.prices[crawlers[at]!]!;
      if (crawlers[at] !== but && priceMs < leastMs) [best, leastMs] = [crawlers[at]!, priceMs];
    }
    return { crawler: best, priceMs: leastMs };
  }

  #costAt(subnet: number, crawler: number): number {
    const at = this.#input.crawlers[subnet]!.indexOf(crawler);
    return at < 0 ? Number.POSITIVE_INFINITY : this.#input.costsMs[subnet]![at]!;
  }

  #settle(subnet: number, crawler: number): void {
    this.#leave(subnet);
    this.places[subnet] = crawler;
    this.#members[crawler]!.push(subnet);
    this.#roomPages[crawler]! -= this.#input.pages[subnet]!;
    this.#roomBytes[crawler]! -= this.#input.bytes[subnet]!;
  }

  #leave(subnet: number): void {
    const crawler = this.places[subnet]!;
    if (crawler < 0) return;
    this.places[subnet] = -1;
    this.#roomPages[crawler]! += this.#input.pages[subnet]!;
    this.#roomBytes[crawler]! += this.#input.bytes[subnet]!;
  }

  #isOverPages = (crawler: number) => this.#roomPages[crawler]! < -this.#grainPages;
  #isOverBytes = (crawler: number) => this.#roomBytes[crawler]! < -this.#grainBytes;
  #isOver = (crawler: number) => this.#isOverPages(crawler) || this.#isOverBytes(crawler);

  #hasRoomFor(crawler: number, pages: number, bytes: number): boolean {
    return (
      this.#input.capacityPages[crawler]! > 0 &&
      (pages <= 0 || this.#roomPages[crawler]! - pages >= -this.#grainPages) &&
      (bytes <= 0 || this.#roomBytes[crawler]! - bytes >= -this.#grainBytes)
    );
  }

  // Makes single moves and exchanges that relieve or save, until none does. With equal loads there are none.

  #improve(): void {
    for (let round = 0; round < mostRounds; round++) {
      let changed = 0;
      const wanting: number[] = [];
      for (let subnet = 0; subnet < this.places.length; subnet++) {
        const { to, isWanting } = this.#betterPlace(subnet);
        if (to >= 0) {
          this.#settle(subnet, to);
          changed += 1;
        } else if (isWanting) wanting.push(subnet);
      }
      if (wanting.length * this.places.length <= mostPairs)
        for (const subnet of wanting) if (this.#exchange(subnet)) changed += 1;
      if (changed === 0) return;
    }
  }

  /** The crawler where the subnet saves most or relieves at the least cost. `isWanting` means that a cheaper one had no room. */
  #betterPlace(subnet: number): { readonly to: number; readonly isWanting: boolean } {
    const { pages, bytes, crawlers, costsMs } = this.#input;
    const here = this.places[subnet]!;
    const isOver = this.#isOver(here);
    let leastMs = isOver ? Number.POSITIVE_INFINITY : this.#costAt(subnet, here) - leastSaving;
    let [to, isWanting] = [-1, isOver];
    for (const [at, crawler] of crawlers[subnet]!.entries()) {
      if (crawler === here || costsMs[subnet]![at]! >= leastMs || pages[subnet] === 0) continue;
      isWanting = true;
      if (!this.#hasRoomFor(crawler, pages[subnet]!, bytes[subnet]!)) continue;
      [to, leastMs] = [crawler, costsMs[subnet]![at]!];
    }
    return { to, isWanting };
  }

  /** Exchanges the subnet with the one that saves most. An overloaded crawler also takes a smaller one at the least cost. */
  #exchange(subnet: number): boolean {
    const { pages, bytes } = this.#input;
    const here = this.places[subnet]!;
    const isOver = this.#isOver(here);
    let [best, most] = [-1, isOver ? Number.NEGATIVE_INFINITY : leastSaving];
    for (let partner = 0; partner < this.places.length; partner++) {
      const there = this.places[partner]!;
      if (there === here) continue;
      const morePages = pages[subnet]! - pages[partner]!;
      const moreBytes = bytes[subnet]! - bytes[partner]!;
      if (isOver && !this.#relieves(here, morePages, moreBytes)) continue;
      const saved =
        pages[subnet]! * (this.#costAt(subnet, here) - this.#costAt(subnet, there)) +
        pages[partner]! * (this.#costAt(partner, there) - this.#costAt(partner, here));
      if (saved <= most || !this.#hasRoomFor(there, morePages, moreBytes)) continue;
      if (!isOver && !this.#hasRoomFor(here, -morePages, -moreBytes)) continue;
      [best, most] = [partner, saved];
    }
    if (best < 0) return false;
    const there = this.places[best]!;
    this.#settle(subnet, there);
    this.#settle(best, here);
    return true;
  }

  /** Whether the move reduces an overload without adding to any. */
  #relieves(crawler: number, pages: number, bytes: number): boolean {
    const [overPages, overBytes] = [this.#isOverPages(crawler), this.#isOverBytes(crawler)];
    const fits = (over: boolean, amount: number, hasRoom: boolean) => (over ? amount >= 0 : hasRoom);
    return (
      ((overPages && pages > 0) || (overBytes && bytes > 0)) &&
      fits(overPages, pages, this.#hasRoomFor(crawler, -pages, 0)) &&
      fits(overBytes, bytes, this.#hasRoomFor(crawler, 0, -bytes))
    );
  }
}

/** Rounding error of a sum of loads, far below the smallest relevant load. */
function grainOf(capacities: Float64Array): number {
  const finite = capacities.filter(Number.isFinite);
  return (
    1e-11 *
    Math.max(
      1e-6,
      finite.reduce((sum, capacity) => sum + capacity, 0),
    )
  );
}
