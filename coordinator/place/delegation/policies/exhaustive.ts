/** exhaustive: every candidate probes and the fastest takes the subnet (paper section 3); the upper yardstick. */
import { priorOf } from "../prior.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  openState,
  probeStep,
  type RoundInput,
  type RoundState,
  type RoundStep,
  rttAt,
  withObservation,
} from "./round.ts";

export const exhaustivePolicy = {
  name: "exhaustive",
  words: "every candidate probes, and the fastest takes the subnet",
  usesEarlierRounds: false,
  start(input: RoundInput): RoundState {
    return openState("exhaustive", input, priorOf(input.placement, input.fleet, input.knowledge));
  },
  step(state: RoundState): RoundStep {
    const atOnce = decidedAtOnce(state);
    if (atOnce) return atOnce;
    const next = state.fleet.candidates[firstUnasked(state)];
    if (next !== undefined) return probeStep(state, next);
    const fastest = fastestIndex(state);
    if (fastest < 0) return decidedByPrior(state);
    const rttMs = rttAt(state, fastest)!;
    return decidedFor(state, fastest, {
      type: "fastest-of-all",
      thresholdMs: null,
      rttMs,
      ...askedCrawlers(state),
    });
  },
  observe: withObservation,
} as const satisfies DelegationPolicy<RoundState>;

/** The first candidate not asked yet; the number of candidates when all were. */
function firstUnasked(state: RoundState): number {
  const asked = new Set(state.probes.map((probe) => probe.crawlerId));
  const index = state.fleet.candidates.findIndex((crawlerId) => !asked.has(crawlerId));
  return index < 0 ? state.fleet.candidates.length : index;
}
