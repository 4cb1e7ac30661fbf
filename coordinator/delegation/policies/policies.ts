/** The door to the policies: one round, whichever policy runs it. */
import type { CrawlerId } from "#core/ids";
import { priorOf } from "../prior.ts";
import { type IpmicraState, ipmicraPolicy } from "./ipmicra.ts";
import { learnFromNearest, type NearestState, nearestPolicy } from "./nearest.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  type Observation,
  openState,
  type PolicyName,
  probeStep,
  type RoundInput,
  type RoundState,
  type RoundStep,
  withObservation,
} from "./round.ts";

export type ProbeRound =
  | { readonly policy: "random"; readonly state: RandomState }
  | { readonly policy: "exhaustive"; readonly state: RoundState }
  | { readonly policy: "ipmicra"; readonly state: IpmicraState }
  | { readonly policy: "nearest"; readonly state: NearestState };

export function startRound(policy: PolicyName, input: RoundInput): ProbeRound {
  switch (policy) {
    case "random":
      return { policy, state: randomPolicy.start(input) };
    case "exhaustive":
      return { policy, state: exhaustivePolicy.start(input) };
    case "ipmicra":
      return { policy, state: ipmicraPolicy.start(input) };
    case "nearest":
      return { policy, state: nearestPolicy.start(input) };
  }
}

/** What to do next. Asking again without a new observation gives the same step. */
export function nextStep(round: ProbeRound): RoundStep {
  switch (round.policy) {
    case "random":
      return randomPolicy.step(round.state);
    case "exhaustive":
      return exhaustivePolicy.step(round.state);
    case "ipmicra":
      return ipmicraPolicy.step(round.state);
    case "nearest":
      return nearestPolicy.step(round.state);
  }
}

/** The round with a crawler's answer in it. */
export function observe(round: ProbeRound, crawlerId: CrawlerId, observation: Observation): ProbeRound {
  switch (round.policy) {
    case "random":
      return { policy: round.policy, state: randomPolicy.observe(round.state, crawlerId, observation) };
    case "exhaustive":
      return { policy: round.policy, state: exhaustivePolicy.observe(round.state, crawlerId, observation) };
    case "ipmicra":
      return { policy: round.policy, state: ipmicraPolicy.observe(round.state, crawlerId, observation) };
    case "nearest":
      return { policy: round.policy, state: nearestPolicy.observe(round.state, crawlerId, observation) };
  }
}

/** Adds what a finished round measured to what its policy learns from; policies that do not learn RTTs take nothing. */
export function learnFromRound(round: ProbeRound): void {
  if (round.policy === "nearest") learnFromNearest(round.state);
}

// exhaustive: every candidate probes, the fastest takes it (paper section 3). The yardstick from above.

const exhaustivePolicy: DelegationPolicy<RoundState> = {
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

// random: any candidate, without a probe, as UCYMicra did (paper section 2.1). The yardstick from below.

interface RandomState extends RoundState {
  readonly draw: number;
}

const randomPolicy: DelegationPolicy<RandomState> = {
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
};
