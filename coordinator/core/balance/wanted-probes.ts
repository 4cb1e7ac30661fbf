/**
 * Which RTTs are worth measuring before subnets move: those that a move would rely on, and those that may well show
 * a cheaper place. At the plan's prices a crawler's RTT and price together compare with those of the place planned;
 * from the prediction and how far off it may be follows what a probe is expected to save (the same question that
 * `nearest` asks when it delegates).
 */
import type { CrawlerId, SubnetId } from "../ids.ts";
import type { CrawlerFlow } from "./crawler-flow.ts";
import type { PackedSubnets } from "./packed-subnets.ts";

/**
 * What a probe of a subnet with the mean load has to be expected to save, in ms per page; of one with twice the load
 * half as much. test/bench/results/balance.md says what other values come to.
 */
export const probeWorthMs = 2;
/** Twice the usual spread of predictions. */
const tooFarMs = 50;
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
  readonly flow: CrawlerFlow;
  readonly places: Int32Array;
}

/** At most one per subnet, the most worth first. */
export function wantedProbes(plan: PlannedPlaces): WantedProbe[] {
  const { subnets } = plan;
  let pages = 0;
  for (const row of subnets.living()) pages += subnets.pagesOf(row);
  const leastGain = (probeWorthMs * pages) / Math.max(1, subnets.alive);
  const wanted: WantedProbe[] = [];
  for (const row of subnets.living()) {
    const probe = probeFor(row, plan, leastGain);
    if (probe !== null) wanted.push(probe);
  }
  wanted.sort((a, b) =>
    a.expectedGain === b.expectedGain ? a.subnetId - b.subnetId : b.expectedGain - a.expectedGain,
  );
  return wanted.slice(0, maxProbes);
}

function probeFor(row: number, plan: PlannedPlaces, leastGain: number): WantedProbe | null {
  const { subnets, places } = plan;
  const wanted = (crawler: number, expectedGain: number) => ({
    subnetId: subnets.idOf(row),
    crawlerId: subnets.rtts.crawlerIds[crawler]!,
    expectedGain,
  });
  const to = places[row]!;
  if (to !== subnets.ownerOf(row) && !subnets.rtts.isMeasured(row, to))
    return wanted(to, Number.POSITIVE_INFINITY);
  const { crawler, gainMs } = bestGain(row, plan);
  const gain = gainMs * subnets.pagesOf(row);
  return gain > 0 && gain >= leastGain ? wanted(crawler, gain) : null;
}

/** Among the candidates of the flow: whoever is further than its reach is hardly expected to save anything. */
function bestGain(row: number, { subnets, flow, places }: PlannedPlaces) {
  const { starts, ends, crawlers, costs } = flow.arcs;
  const here = flow.arcs.costAt(row, places[row]!) + flow.prices[places[row]!]!;
  let best = { crawler: -1, gainMs: 0 };
  for (let at = starts[row]!; at < ends[row]!; at++) {
    const crawler = crawlers[at]!;
    const limitMs = here - flow.prices[crawler]!;
    // From so far above the limit hardly anything is expected; most candidates end here.
    if (costs[at]! > limitMs + tooFarMs || subnets.rtts.isMeasured(row, crawler)) continue;
    const gainMs = expectedGainMs(limitMs, costs[at]!, subnets.rtts.spreadMs(row, crawler));
    if (gainMs > best.gainMs) best = { crawler, gainMs };
  }
  return best;
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
