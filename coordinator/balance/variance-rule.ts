/**
 * The paper's rule (section 4.4): an overloaded crawler gives up the subnets with the lowest variance in their
 * probing results, each to its next-best available crawler. A low variance means that the probed crawlers are
 * about equally far, so that another one does nearly as well.
 *
 * Filled in where the paper is silent: a subnet that fewer than two crawlers measured has no variance and goes
 * last; "next-best" is the lowest RTT, measured or predicted, among crawlers with room for the whole subnet, in
 * pages and in bytes; where nobody has room, the subnet stays, except that a departed crawler keeps nothing.
 */

import { PackedSubnets } from "./packed-subnets.ts";
import {
  type BalanceInput,
  type BalanceSubnet,
  checkInput,
  type Move,
  noHysteresis,
  overloads,
} from "./plan.ts";
import { burdenOf, plannedCapacities } from "./problem.ts";

export function planByVarianceRule(input: BalanceInput): Move[] {
  checkInput(input);
  const over = overloads(input);
  if (over.length === 0) return [];
  const relief = new VarianceRelief(input);
  const subnetsOf = new Map(over.map(({ crawlerId }) => [crawlerId, [] as BalanceSubnet[]]));
  for (const subnet of input.subnets) subnetsOf.get(subnet.crawlerId)?.push(subnet);
  return over.flatMap(({ crawlerId }) =>
    relief.movesFrom(lowestVarianceFirst(subnetsOf.get(crawlerId) ?? [])),
  );
}

/** Population variance of the probing results, in ms²; infinite when there are fewer than two. */
export function probingVariance({ rttMs }: BalanceSubnet): number {
  if (rttMs.size < 2) return Number.POSITIVE_INFINITY;
  let [sum, squares] = [0, 0];
  for (const rtt of rttMs.values()) sum += rtt;
  const mean = sum / rttMs.size;
  for (const rtt of rttMs.values()) squares += (rtt - mean) ** 2;
  return squares / rttMs.size;
}

function lowestVarianceFirst(subnets: readonly BalanceSubnet[]): BalanceSubnet[] {
  const varied = subnets.map((subnet) => ({ subnet, variance: probingVariance(subnet) }));
  varied.sort((a, b) =>
    a.variance === b.variance ? a.subnet.subnetId - b.subnet.subnetId : a.variance - b.variance,
  );
  return varied.map(({ subnet }) => subnet);
}

class VarianceRelief {
  readonly #subnets: PackedSubnets;
  readonly #capacityPages: Float64Array;
  readonly #roomPages: Float64Array;
  readonly #roomBytes: Float64Array;
  readonly #rttsMs: Float64Array;

  constructor({ crawlers, subnets, crawlerRttMs }: BalanceInput) {
    this.#subnets = new PackedSubnets(crawlerRttMs);
    for (const { crawlerId } of crawlers) this.#subnets.rtts.indexOf(crawlerId);
    for (const subnet of subnets) this.#subnets.put(subnet);
    const listed = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler]));
    const burden = burdenOf(this.#subnets, listed);
    const { pages, bytes } = plannedCapacities(burden, noHysteresis);
    this.#capacityPages = pages;
    this.#roomPages = pages.map((capacity, index) => capacity - burden.pages[index]!);
    this.#roomBytes = bytes.map((capacity, index) => capacity - burden.bytes[index]!);
    this.#rttsMs = new Float64Array(pages.length);
  }

  /** Moves away one crawler's subnets, in this order, until it is over no longer; from a departed one all of them. */
  movesFrom(subnets: readonly BalanceSubnet[]): Move[] {
    const moves: Move[] = [];
    for (const { subnetId } of subnets) {
      const row = this.#subnets.rowOf(subnetId)!;
      const from = this.#subnets.ownerOf(row);
      const departed = this.#capacityPages[from] === 0;
      if (!departed && this.#roomPages[from]! >= 0 && this.#roomBytes[from]! >= 0) break;
      if (!departed && this.#subnets.pagesOf(row) === 0) continue;
      const to = this.#nextBest(row, departed);
      if (to >= 0) moves.push(this.#moved(row, to));
    }
    return moves;
  }

  /** With room; for a subnet that cannot stay, else the one with the most of it; -1 when there is none. */
  #nextBest(row: number, mustLeave: boolean): number {
    const from = this.#subnets.ownerOf(row);
    const [pages, bytes] = [this.#subnets.pagesOf(row), this.#subnets.bytesOf(row)];
    this.#subnets.rtts.rttsInto(row, this.#rttsMs);
    let [best, roomiest] = [-1, -1];
    for (let crawler = 0; crawler < this.#rttsMs.length; crawler++) {
      if (crawler === from || this.#capacityPages[crawler] === 0) continue;
      if (roomiest < 0 || this.#roomPages[crawler]! > this.#roomPages[roomiest]!) roomiest = crawler;
      if (this.#roomPages[crawler]! < pages || this.#roomBytes[crawler]! < bytes) continue;
      if (best < 0 || this.#rttsMs[crawler]! < this.#rttsMs[best]!) best = crawler;
    }
    return best < 0 && mustLeave ? roomiest : best;
  }

  #moved(row: number, to: number): Move {
    const { rtts } = this.#subnets;
    const from = this.#subnets.ownerOf(row);
    for (const [crawler, sign] of [
      [from, 1],
      [to, -1],
    ] as const) {
      this.#roomPages[crawler]! += sign * this.#subnets.pagesOf(row);
      this.#roomBytes[crawler]! += sign * this.#subnets.bytesOf(row);
    }
    return {
      subnetId: this.#subnets.idOf(row),
      from: rtts.crawlerIds[from]!,
      to: rtts.crawlerIds[to]!,
      ...rtts.difference(row, from, to),
    };
  }
}
