/**
 * Iterated capacity reassignment, ICR (Xu et al., NPC 2010, section 3.2): the initial intervals of all groups are
 * stretched by one factor θ, so that the recrawls planned take as many task threads as the updates did of late.
 *
 * With ω(j) the multiple from group j's initial interval to that of group j + 1, Δt the first group's initial interval
 * and t the channels' mean download times, equation 4 is
 *
 *     θ = Σ_k ( Σ_PGP(k) t / Π_{j<k} ω(j) ) / ( Δt · history(Σ λ·t) )
 *
 * and group k's interval is Π_{j<k} ω(j) · θ · Δt. Since Δt · Π_{j<k} ω(j) is group k's initial interval, ω itself is
 * not needed: θ is the threads that the initial intervals ask for, by the threads that the updates took.
 *
 * Equations 3 and 4 add "Π_{j=0}^{S-1} ω_j = 1", which would let intervals that grow from group to group shrink again;
 * read as the convention that the empty product, that of group 0, is 1. "The record of each channel's previous
 * L updates" is those since the last reassignment (λ = 1 / hInterval), of which the trigger ensures enough. A channel
 * that never had an update has no download time: it is in neither sum.
 */
import { checkPriorities, type PriorityLimits } from "./check-priorities.ts";
import { type EncouragementInput, encourage } from "./encouragement.ts";
import type { GroupRecord, Reassignment } from "./priority-groups.ts";

export interface IteratedCapacityInput extends EncouragementInput {
  /** The intervals from the change rates alone, most urgent group first. */
  readonly initialIntervalSeconds: readonly number[];
  /** The intervals in force; they stay where nothing has been downloaded yet. */
  readonly intervalSeconds: readonly number[];
  readonly limits: PriorityLimits;
}

/** The groups' next intervals; call it when `isReassignmentDue` says so, with records since the last call. */
export function iteratedCapacity(input: IteratedCapacityInput): Reassignment {
  const theta = capacityFactor(input.groups, input.initialIntervalSeconds);
  const stretched =
    theta === null ? input.intervalSeconds : input.initialIntervalSeconds.map((seconds) => seconds * theta);
  const { intervalSeconds, successRates } = encourage(stretched, input);
  return { intervalSeconds: checkPriorities(intervalSeconds, input.limits), successRates };
}

/** θ of equation 4; above 1 the fleet is too small for the initial intervals. Null: there is no history yet. */
export function capacityFactor(
  groups: readonly GroupRecord[],
  initialIntervalSeconds: readonly number[],
): number | null {
  let asked = 0;
  let had = 0;
  for (const [index, { downloadSeconds, busyThreads }] of groups.entries()) {
    asked += downloadSeconds / initialIntervalSeconds[index]!;
    had += busyThreads;
  }
  return asked > 0 && had > 0 ? asked / had : null;
}
