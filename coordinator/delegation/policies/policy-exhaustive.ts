/** exhaustive: every candidate probes, the fastest takes it (paper section 3). The yardstick from above. */

import { priorOf } from "../prior.ts";
import { decidedAtOnce, decidedByPrior, decidedFor } from "./decide.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  fastestIndex,
  openState,
  probeStep,
  type RoundState,
  withObservation,
} from "./round.ts";

export const exhaustivePolicy: DelegationPolicy<RoundState> = {
  start(input) {
    return openState("exhaustive", input, priorOf(input.placement, input.fleet, input.knowledge));
  },
  step(state) {
    const atOnce = decidedAtOnce(state);
    if (atOnce) return atOnce;
    const next = state.fleet.candidates[firstUnasked(state)];
    if (next !== undefined) return probeStep(state, next);
    const fastest = fastestIndex(state);
    if (fastest < 0) return decidedByPrior(state);
    const rttMs = state.rttsMs[fastest]!;
    return decidedFor(state, fastest, {
      type: "fastest-of-all",
      thresholdMs: null,
      rttMs,
      ...askedCrawlers(state),
    });
  },
  observe: withObservation,
};

/** The position of the first candidate not asked yet; the candidates' number when all were. */
function firstUnasked(state: RoundState): number {
  const asked = new Set(state.probes.map((probe) => probe.crawlerId));
  const index = state.fleet.candidates.findIndex((crawlerId) => !asked.has(crawlerId));
  return index < 0 ? state.fleet.candidates.length : index;
}
