/**
 * Which RTTs are worth measuring before subnets move: those that a move would rely on, and those that may well show
 * a cheaper place. At the plan's prices a crawler's RTT and price together compare with those of the place planned;
 * from the prediction and how far off it may be follows what a probe is expected to save (the same question that
 * `nearest` asks when it delegates).
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { usualBreadth } from "./candidate-arcs.ts";
import type { PackedSubnets } from "./packed-subnets.ts";
import type { FlowProblem } from "./problem.ts";
import { LikelyCrawlers, type RttTable } from "./rtt-table.ts";

/**
 * What a probe of a subnet with the mean load has to be expected to save, in ms per page; of one with twice the load
 * half as much. test/bench/results/balance.md says what other values come to.
 */
const probeWorthMs = 2;
/** Twice the usual spread of predictions. */
const tooFarMs = 50;
/** At most so many are asked for at once. */
const maxProbes = 10_000;
/** So many subnets that stay are looked at for one plan, every one of which has to be compared with all crawlers. */
const maxLookedAt = 20_000;

export interface WantedProbe {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  /** Ms × pages a day that it is expected to save; infinite where a planned move relies on it. */
  readonly expectedGain: number;
}

interface PlannedPlaces {
  readonly subnets: PackedSubnets;
  readonly problem: FlowProblem;
  /** Of each crawler, in ms. */
  readonly prices: Float64Array;
  readonly places: Int32Array;
  /** Plans made before: where more subnets are there than one plan looks at, it goes on where the last one ended. */
  readonly turn: number;
}

/** At most one per subnet, the most worth first. */
export function wantedProbes(plan: PlannedPlaces): WantedProbe[] {
  const { subnets } = plan;
  const wanted: WantedProbe[] = [];
  const settled: number[] = [];
  let pages = 0;
  for (const row of subnets.living()) {
    pages += subnets.pagesOf(row);
    const to = plan.places[row]!;
    if (to === subnets.ownerOf(row) || subnets.rtts.isMeasured(row, to)) settled.push(row);
    else wanted.push(probeOf(subnets, row, { crawler: to, expectedGain: Number.POSITIVE_INFINITY }));
  }
  const leastGain = (probeWorthMs * pages) / Math.max(1, subnets.alive);
  if (wanted.length < maxProbes) wanted.push(...hopefulProbes(inTurn(settled, plan.turn), plan, leastGain));
  wanted.sort((a, b) =>
    a.expectedGain === b.expectedGain ? a.subnetId - b.subnetId : b.expectedGain - a.expectedGain,
  );
  return wanted.slice(0, maxProbes);
}

function inTurn(rows: readonly number[], turn: number): readonly number[] {
  if (rows.length <= maxLookedAt) return rows;
  const start = (turn * maxLookedAt) % rows.length;
  return [...rows.slice(start), ...rows.slice(0, start)].slice(0, maxLookedAt);
}

function hopefulProbes(rows: readonly number[], plan: PlannedPlaces, leastGain: number): WantedProbe[] {
  const { subnets, prices } = plan;
  const likely = new LikelyCrawlers();
  const wanted: WantedProbe[] = [];
  for (const row of rows) {
    if (subnets.pagesOf(row) === 0) continue;
    compare(row, plan.places[row]!, { problem: plan.problem, likely });
    const { crawler, gainMs } = bestGain(row, plan.places[row]!, { likely, prices, rtts: subnets.rtts });
    const expectedGain = gainMs * subnets.pagesOf(row);
    if (gainMs > 0 && expectedGain >= leastGain)
      wanted.push(probeOf(subnets, row, { crawler, expectedGain }));
  }
  return wanted;
}

function probeOf(
  subnets: PackedSubnets,
  row: number,
  { crawler, expectedGain }: { readonly crawler: number; readonly expectedGain: number },
): WantedProbe {
  return { subnetId: subnets.idOf(row), crawlerId: subnets.rtts.crawlerIds[crawler]!, expectedGain };
}

/** With the likely crawlers; with all where the problem names none, or where the subnet was placed beyond them. */
function compare(
  row: number,
  place: number,
  { problem, likely }: { readonly problem: FlowProblem; readonly likely: LikelyCrawlers },
): void {
  problem.likelyInto?.(row, usualBreadth, likely);
  if (problem.likelyInto === undefined || !likely.has(place))
    likely.putAll(problem.capacities.length, (costsMs) => problem.costsInto(row, costsMs));
}

/** Who else is expected to save the most, moving included. */
function bestGain(
  row: number,
  place: number,
  { likely, prices, rtts }: { likely: LikelyCrawlers; prices: Float64Array; rtts: RttTable },
): { readonly crawler: number; readonly gainMs: number } {
  const { count, crawlers, costsMs } = likely;
  const here = likely.costAt(place) + prices[place]!;
  let best = { crawler: -1, gainMs: 0 };
  for (let at = 0; at < count; at++) {
    const crawler = crawlers[at]!;
    const limitMs = here - prices[crawler]!;
    // From so far above the limit hardly anything is expected; most end here.
    if (costsMs[at]! > limitMs + tooFarMs || rtts.isMeasured(row, crawler)) continue;
    const gainMs = expectedGainMs(limitMs, costsMs[at]!, rtts.spreadMs(row, crawler));
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
