/**
 * At the start: what the latest rounds measured is learned again from the database, as if they had just run, so
 * that the first decisions after a restart are as good as the last ones before it.
 */

import type { DelegationStore, MeasuredRound } from "./delegation.ts";
import { learnFromRound, observe, startRound } from "./policies/policies.ts";
import { defaultParameters } from "./policies/round.ts";
import type { CoordinatorState } from "./state.ts";

/** As many as tell the fleet's surroundings; more would only replace the earlier ones. */
const roundsRead = 2000;

/** Needs the tree, the delegations and the crawlers' RTTs in the state; returns how many rounds it learned from. */
export async function relearnRtts(ports: {
  readonly delegations: Pick<DelegationStore, "latestRounds">;
  readonly state: CoordinatorState;
}): Promise<number> {
  const rounds = await ports.delegations.latestRounds(roundsRead);
  return rounds.filter((round) => relearn(round, ports.state)).length;
}

function relearn({ subnetId, method, probes }: MeasuredRound, state: CoordinatorState): boolean {
  const placement = state.placementOf(subnetId);
  if (placement === null) return false;
  let round = startRound("nearest", {
    placement,
    fleet: state.fleetOf(state.crawlers.map(({ crawlerId }) => crawlerId)),
    knowledge: state.knowledge,
    learned: state.learnedRtts(method),
    parameters: defaultParameters,
  });
  for (const { crawlerId, rttMs } of probes) round = observe(round, crawlerId, { rttMs });
  learnFromRound(round);
  return true;
}
