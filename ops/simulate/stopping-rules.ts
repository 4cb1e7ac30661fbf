/**
 * What probing costs against what it saves: the risk of a round is how much slower the chosen crawler is than the
 * best, plus λ ms for each probe. That is the functional of cost-aware best-arm identification (Harding and
 * Kandasamy, arXiv 2505.20583: simple regret plus a cost per sample).
 *
 * Here are the references that a policy's risk is held against. Three of them keep its order of asking and only
 * stop elsewhere; the last knows nothing but how far each crawler is from everything.
 */
import type { AskingOrder } from "#coordinator/delegation/simulation/run";

/** Mean over the rounds, in ms. */
export interface Risk {
  readonly excessMs: number;
  readonly probes: number;
  /** Their sum, a probe at λ. */
  readonly riskMs: number;
}

/** One round as a rule ended it. */
interface EndedRound {
  readonly excessMs: number;
  readonly probes: number;
}

export function riskOf(rounds: readonly EndedRound[], lambdaMs: number): Risk {
  const count = Math.max(1, rounds.length);
  const excessMs = rounds.reduce((sum, round) => sum + round.excessMs, 0) / count;
  const probes = rounds.reduce((sum, round) => sum + round.probes, 0) / count;
  return { excessMs, probes, riskMs: excessMs + lambdaMs * probes };
}

/** The round as it is after so many probes of its order, or after all where the order is shorter. */
export function stoppedAfter({ rttsMs, bestRttMs }: AskingOrder, probes: number): EndedRound {
  const asked = rttsMs.slice(0, probes);
  return { excessMs: Math.min(...asked) - bestRttMs, probes: asked.length };
}

/** Where the policy itself stopped. */
export const ownStop = (order: AskingOrder): EndedRound => stoppedAfter(order, order.asked);

/**
 * The stop with the least risk that this order has, known afterwards. A delegation is measured, so at least one
 * crawler is asked. No rule that asks in this order, whatever it knows, has a lower risk.
 */
export function hindsightStop({ rttsMs, bestRttMs }: AskingOrder, lambdaMs: number): EndedRound {
  let best: EndedRound | null = null;
  rttsMs.forEach((rttMs, position) => {
    // Where this answer is not the fastest so far, an earlier stop has less of both.
    const stop = { excessMs: rttMs - bestRttMs, probes: position + 1 };
    if (best === null || costOf(stop, lambdaMs) < costOf(best, lambdaMs)) best = stop;
  });
  return best ?? { excessMs: 0, probes: 0 };
}

const costOf = ({ excessMs, probes }: EndedRound, lambdaMs: number) => excessMs + lambdaMs * probes;

export interface FixedStop extends Risk {
  /** Probes of every round. */
  readonly stopAfter: number;
}

/** The best number of probes for all rounds alike, known afterwards. */
export function bestFixedStop(
  orders: readonly AskingOrder[],
  of: { readonly lambdaMs: number; readonly most: number },
): FixedStop {
  const stops = Array.from({ length: of.most }, (_, index): FixedStop => {
    const rounds = orders.map((order) => stoppedAfter(order, index + 1));
    return { ...riskOf(rounds, of.lambdaMs), stopAfter: index + 1 };
  });
  return stops.reduce((best, one) => (one.riskMs < best.riskMs ? one : best));
}

/**
 * Whether to follow an order further so that the two references above can be told: to the longest fixed stop, and
 * beyond it for as long as another probe could still pay.
 */
export function canStillPay(order: AskingOrder, of: { lambdaMs: number; mostFixed: number }): boolean {
  const { rttsMs } = order;
  if (rttsMs.length < of.mostFixed) return true;
  return of.lambdaMs * (rttsMs.length + 1) < costOf(hindsightStop(order, of.lambdaMs), of.lambdaMs);
}

/**
 * The best that can be done by somebody who knows each crawler's RTTs to all targets as a distribution, and takes
 * the crawlers for independent of each other: no tree, no triangles, no past subnets. Each crawler has a
 * reservation value z with E[max(0, z − RTT)] = λ; they are asked from the least z up, until the fastest answer is
 * no slower than the next z (Weitzman, "Optimal search for the best alternative", Econometrica 47, 1979). The
 * distributions are those of the very targets, which flatters it.
 */
export function independentSearch(rows: readonly ArrayLike<number>[], lambdaMs: number): EndedRound[] {
  const crawlers = rows[0]?.length ?? 0;
  const reserved = Array.from({ length: crawlers }, (_, index) => ({
    index,
    valueMs: reservationValue(
      rows.map((row) => row[index]!),
      lambdaMs,
    ),
  })).sort((a, b) => a.valueMs - b.valueMs);
  return rows.map((row) => {
    let fastestMs = Number.POSITIVE_INFINITY;
    let probes = 0;
    for (const { index, valueMs } of reserved) {
      if (fastestMs <= valueMs) break;
      fastestMs = Math.min(fastestMs, row[index]!);
      probes += 1;
    }
    return { excessMs: fastestMs - smallest(row), probes };
  });
}

/** The z at which the mean of max(0, z − RTT) is λ: linear between the sorted RTTs. */
export function reservationValue(rttsMs: readonly number[], lambdaMs: number): number {
  const sorted = rttsMs.toSorted((a, b) => a - b);
  const wantedMs = lambdaMs * sorted.length;
  let sumMs = 0;
  for (let below = 1; below < sorted.length; below++) {
    sumMs += sorted[below - 1]!;
    if (below * sorted[below]! - sumMs >= wantedMs) return (wantedMs + sumMs) / below;
  }
  return (wantedMs + sumMs + (sorted.at(-1) ?? 0)) / Math.max(1, sorted.length);
}

function smallest(values: ArrayLike<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) least = Math.min(least, values[index]!);
  return least;
}
