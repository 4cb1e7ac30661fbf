/** exhaustive: every candidate probes and the fastest takes the subnet (paper section 3). It serves as the upper yardstick. */
import { priorOf } from "../knowledge.ts";
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

/** The first candidate not asked yet, or the number of candidates if all were. */
function firstUnasked(state: RoundState): number {
  const asked = new Set(state.probes.map((probe) => probe.crawlerId));
  const index = state.fleet.candidates.findIndex((crawlerId) => !asked.has(crawlerId));
  return index < 0 ? state.fleet.candidates.length : index;
}

// random: any candidate, without a probe, as UCYMicra did (paper section 2.1). It serves as the lower yardstick.

interface RandomState extends RoundState {
  readonly draw: number;
}

export const randomPolicy = {
  name: "random",
  words: "any candidate takes the subnet, without a probe",
  usesEarlierRounds: false,
  start(input) {
    const prior = priorOf(input.placement, input.fleet, input.knowledge);
    return { ...openState("random", input, prior), draw: input.random ?? 0 };
  },
  step(state) {
    const count = state.fleet.candidates.length;
    const index = Math.min(count - 1, Math.floor(state.draw * count));
    return decidedAtOnce(state) ?? decidedFor(state, index, { type: "random", candidates: count });
  },
  observe: withObservation,
} as const satisfies DelegationPolicy<RandomState>;
