/**
 * The policies, and one round whichever of them runs it. A new policy is a file beside these and a line in the list; settings,
 * commands, simulations and the evaluation take names and words from here.
 */
import type { CrawlerId } from "#core/ids";
import { exhaustivePolicy } from "./exhaustive.ts";
import { ipmicraPolicy } from "./ipmicra.ts";
import { nearestPolicy } from "./nearest.ts";
import { randomPolicy } from "./random.ts";
import type { DelegationPolicy, Observation, RoundInput, RoundState, RoundStep } from "./round.ts";

/** From the least exact to the most. */
export const delegationPolicies = [randomPolicy, ipmicraPolicy, nearestPolicy, exhaustivePolicy] as const;

export type PolicyName = (typeof delegationPolicies)[number]["name"];

export const policyNames: readonly PolicyName[] = delegationPolicies.map(({ name }) => name);

/** The round of one subnet; its state is the policy's own. */
export interface ProbeRound {
  readonly policy: PolicyName;
  readonly state: RoundState;
}

const policyOf = new Map<PolicyName, DelegationPolicy<RoundState>>(
  delegationPolicies.map((policy) => [policy.name, policy]),
);

export const usesEarlierRounds = (policy: PolicyName): boolean => policyOf.get(policy)!.usesEarlierRounds;

export function startRound(policy: PolicyName, input: RoundInput): ProbeRound {
  return { policy, state: policyOf.get(policy)!.start(input) };
}

/** What to do next. Asking again without a new observation gives the same step. */
export function nextStep({ policy, state }: ProbeRound): RoundStep {
  return policyOf.get(policy)!.step(state);
}

/** The round with a crawler's answer in it. */
export function observe(
  { policy, state }: ProbeRound,
  crawlerId: CrawlerId,
  observation: Observation,
): ProbeRound {
  return { policy, state: policyOf.get(policy)!.observe(state, crawlerId, observation) };
}

/** Adds what a finished round measured to what its policy learns from; policies that do not learn RTTs take nothing. */
export function learnFromRound({ policy, state }: ProbeRound): void {
  policyOf.get(policy)!.learn?.(state);
}
