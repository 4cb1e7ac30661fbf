/**
 * Iterated interval reassignment, IIR (Xu et al., NPC 2010, section 3.1, first pseudocode, there also called
 * InheritedIntervalReassignment): each group's next interval is the mean of what its channels' intervals between
 * updates really were, shortened where the success rate rose, and in order of urgency.
 *
 * Read where the pseudocode says something else than the text: its loop over channels ends at `C = number of
 * channels`, one past the last (each channel counts once here); its counts are never reset (encouragement.ts); and a
 * channel without an update since the last reassignment has no interval (priority-group.ts).
 */
import { checkPriorities, type PriorityLimits } from "./check-priorities.ts";
import { type EncouragementInput, encourage } from "./encouragement.ts";
import type { Reassignment } from "./priority-groups.ts";

export interface IteratedIntervalInput extends EncouragementInput {
  /** The intervals in force, most urgent group first; a group without channels keeps its own. */
  readonly intervalSeconds: readonly number[];
  readonly limits: PriorityLimits;
}

/** The groups' next intervals; call it when `isReassignmentDue` says so, with records since the last call. */
export function iteratedInterval(input: IteratedIntervalInput): Reassignment {
  const measured = input.groups.map(
    ({ hIntervalSeconds }, index) => hIntervalSeconds ?? input.intervalSeconds[index]!,
  );
  const { intervalSeconds, successRates } = encourage(measured, input);
  return { intervalSeconds: checkPriorities(intervalSeconds, input.limits), successRates };
}
