/** The door to the policies: one round, whichever policy runs it. */
import type { CrawlerId } from "#core/ids";
import { type IpmicraState, ipmicraPolicy } from "./ipmicra.ts";
import { learnFromNearest, type NearestState, nearestPolicy } from "./nearest.ts";
import { exhaustivePolicy } from "./policy-exhaustive.ts";
import { type RandomState, randomPolicy } from "./policy-random.ts";
import type { Observation, PolicyName, RoundInput, RoundState, RoundStep } from "./round.ts";

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
