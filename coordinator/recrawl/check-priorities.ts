/**
 * `checkPriorities` of the scale-adaptable recrawl strategies (Xu et al., NPC 2010, section 3.1, second pseudocode):
 * a less urgent group never has a shorter interval than the one before it, and none grows beyond a multiple of it.
 */

/** Bounds on what a group's interval is, measured in the interval of the group before it (the more urgent one). */
export interface PriorityLimits {
  /** σ: what a group gets that would be more urgent than the one before it. At least 1, or it would stay so. */
  readonly smallestMultiple: number;
  /** μ: the most. At least σ, or what the first rule sets the second would undo. */
  readonly biggestMultiple: number;
}

/**
 * The intervals within the limits, most urgent group first, each held against the corrected one before it. As in
 * the paper σ is no minimum: a group at 1.01 times the one before stays there, one at 0.99 times is set to σ times.
 * Nothing limits the first group.
 */
export function checkPriorities(intervals: readonly number[], limits: PriorityLimits): number[] {
  const checked: number[] = [];
  for (const interval of intervals) checked.push(within(interval, checked.at(-1), limits));
  return checked;
}

/** Why the limits make no sense, in a sentence that names the value; null: they do. */
export function priorityLimitsFault({ smallestMultiple, biggestMultiple }: PriorityLimits): string | null {
  if (!Number.isFinite(smallestMultiple) || smallestMultiple < 1)
    return `the smallest multiple (σ) is ${smallestMultiple}: below 1 a less urgent group would be recrawled more often than the one before it`;
  if (!Number.isFinite(biggestMultiple) || biggestMultiple < smallestMultiple)
    return `the biggest multiple (μ) is ${biggestMultiple} and the smallest (σ) ${smallestMultiple}: no interval is within both`;
  return null;
}

function within(
  interval: number,
  before: number | undefined,
  { smallestMultiple, biggestMultiple }: PriorityLimits,
): number {
  if (before === undefined) return interval;
  const ordered = interval < before ? before * smallestMultiple : interval;
  return Math.min(ordered, before * biggestMultiple);
}
