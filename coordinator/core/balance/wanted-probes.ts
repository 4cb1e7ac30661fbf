/**
 * Which RTTs are worth measuring before subnets move: those that a move would rely on, and those that may well show
 * a cheaper place. At the plan's prices a crawler's RTT and price together compare with those of the place planned;
 * from the prediction and how far off it may be follows what a probe is expected to save (the same question that
 * `nearest` asks when it delegates).
 */
import type { CrawlerId, SubnetId } from "../ids.ts";
import type { PackedSubnets } from "./packed-subnets.ts";
import type { PlacementProblem } from "./whole-placement.ts";

/**
 * What a probe of a subnet with the mean load has to be expected to save, in ms per page; of one with twice the load
 * half as much. On PlanetLab and generated worlds 4 ms came within 6 % of the plan that knows everything with 12
 * crawlers, at about three probes for every subnet that moves.
 */
export const probeWorthMs = 4;
/** At most so many are asked for at once. */
const maxProbes = 10_000;

export interface WantedProbe {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  /** Ms × pages a day that it is expected to save; infinite where a planned move relies on it. */
  readonly expectedGain: number;
}

interface PlannedPlaces {
  readonly subnets: PackedSubnets;
  readonly problem: PlacementProblem;
  /** Prices of the crawlers and, last, of room (ms). */
  readonly prices: Float64Array;
  readonly places: Int32Array;
}

/** At most one per subnet, the most worth first. */
export function wantedProbes(plan: PlannedPlaces): WantedProbe[] {
  const wanted = [...new ProbeSearch(plan).all()];
  wanted.sort((a, b) =>
    a.expectedGain === b.expectedGain ? a.subnetId - b.subnetId : b.expectedGain - a.expectedGain,
  );
  return wanted.slice(0, maxProbes);
}

class ProbeSearch {
  readonly #plan: PlannedPlaces;
  readonly #costs: Float64Array;
  readonly #spreads: Float64Array;
  readonly #leastPrice: number;
  readonly #leastGain: number;

  constructor(plan: PlannedPlaces) {
    const { problem, prices, subnets } = plan;
    const crawlers = problem.capacities.length;
    this.#plan = plan;
    this.#costs = new Float64Array(crawlers);
    this.#spreads = new Float64Array(crawlers);
    this.#leastPrice = prices.subarray(0, crawlers).reduce((least, price) => Math.min(least, price));
    let pages = 0;
    for (const row of subnets.living()) pages += subnets.pagesOf(row);
    this.#leastGain = (probeWorthMs * pages) / Math.max(1, subnets.alive);
  }

  *all(): Generator<WantedProbe> {
    const { subnets, places } = this.#plan;
    for (const row of subnets.living()) {
      const pages = subnets.pagesOf(row);
      const to = places[row]!;
      if (to !== subnets.ownerOf(row) && !subnets.rtts.isMeasured(row, to)) {
        yield this.#wanted(row, to, Number.POSITIVE_INFINITY);
      } else if (pages > 0 && this.#couldGain(row, pages)) {
        const { crawler, gainMs } = this.#bestGain(row);
        if (gainMs * pages >= this.#leastGain) yield this.#wanted(row, crawler, gainMs * pages);
      }
    }
  }

  #wanted(row: number, crawler: number, expectedGain: number): WantedProbe {
    const { subnets } = this.#plan;
    return { subnetId: subnets.idOf(row), crawlerId: subnets.rtts.crawlerIds[crawler]!, expectedGain };
  }

  /** Nobody is nearer than the nearest that was measured, nor cheaper than the cheapest price: most subnets are settled by that. */
  #couldGain(row: number, pages: number): boolean {
    const { subnets, prices, places } = this.#plan;
    const nearestMs = subnets.rtts.nearestMs(row);
    if (prices[places[row]!]! === this.#leastPrice && subnets.rtts.isNearest(row, places[row]!)) return false;
    subnets.rtts.rttsInto(row, this.#costs);
    const here = this.#costs[places[row]!]! + prices[places[row]!]!;
    return (here - this.#leastPrice - nearestMs) * pages >= this.#leastGain;
  }

  #bestGain(row: number): { readonly crawler: number; readonly gainMs: number } {
    const { subnets, problem, prices, places } = this.#plan;
    problem.costsInto(row, this.#costs);
    subnets.rtts.spreadsInto(row, this.#spreads);
    const here = this.#costs[places[row]!]! + prices[places[row]!]!;
    let [crawler, gainMs] = [-1, 0];
    for (let other = 0; other < this.#costs.length; other++) {
      if (this.#spreads[other] === 0 || problem.capacityPages[other] === 0) continue;
      const gain = expectedGainMs(here - prices[other]!, this.#costs[other]!, this.#spreads[other]!);
      if (gain > gainMs) [crawler, gainMs] = [other, gain];
    }
    return { crawler, gainMs };
  }
}

/** Mean of what a normally distributed RTT falls short of a limit by, counting nothing where it does not. */
export function expectedGainMs(limitMs: number, meanMs: number, spreadMs: number): number {
  const z = (limitMs - meanMs) / spreadMs;
  if (z < -4) return 0;
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  return (limitMs - meanMs) * normalShare(z) + spreadMs * density;
}

/** Share of a normal distribution below z; off by less than 0.0002 (logistic approximation of Bowling et al., 2009). */
function normalShare(z: number): number {
  return 1 / (1 + Math.exp(-1.5976 * z - 0.07056 * z ** 3));
}
