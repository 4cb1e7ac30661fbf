/** random: any candidate, without a probe, as UCYMicra did (paper section 2.1); the lower yardstick. */
import { priorOf } from "../prior.ts";
import {
  type DelegationPolicy,
  decidedAtOnce,
  decidedFor,
  openState,
  type RoundState,
  withObservation,
} from "./round.ts";

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
