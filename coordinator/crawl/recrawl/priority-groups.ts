/**
 * Priority groups of channels, each recrawled at one interval, and the records on which the strategies IIR and ICR
 * decide (Xu et al., "Scale-adaptable Recrawl Strategies for DHT-based Distributed Web Crawling System", NPC 2010,
 * section 3.1). The paper calls the most urgent group rank 0 in section 3 and rank 4 in section 4. Here, as in its
 * arrays, lists of groups begin with the most urgent one, which has the shortest interval. Times are in seconds, but
 * any unit would do.
 */

/** Sums over a group's channels, from which reassignments are made (sample-store.ts). */
export interface GroupRecord {
  readonly channels: number;
  /**
   * Mean of the channels' hIntervals; null if there are no channels. The paper does not define it for a channel
   * without an update since the last reassignment, which is usual for long intervals. Such a channel keeps its last
   * value, and a new one counts with the interval in force. The time since its last update would not do, because a
   * channel that cannot be downloaded would lengthen its group's interval for ever.
   */
  readonly hIntervalSeconds: number | null;
  readonly submitted: number;
  readonly updates: number;
  /** Sum of the mean download times of channels that have one: the sum over PGP(k) in equation 4. */
  readonly downloadSeconds: number;
  /** Sum over the channels of download time divided by hInterval: the group's part of `history(Σ λ·t)`, in task threads. */
  readonly busyThreads: number;
}

export interface Reassignment {
  readonly intervalSeconds: readonly number[];
  /** The paper's `LastSuccessRate` for the next reassignment. */
  readonly successRates: readonly number[];
}

/**
 * The trigger of section 3.1: half of the channels in the most urgent group have had more than five updates since the
 * last reassignment. Pass the most urgent group that has channels, since an empty one never triggers.
 */
export function isReassignmentDue(channels: number, channelsWithEnoughUpdates: number): boolean {
  return channels > 0 && channelsWithEnoughUpdates * 2 >= channels;
}

// `checkPriorities` of the scale-adaptable recrawl strategies (Xu et al., NPC 2010, section 3.1, second pseudocode):
// no group has a shorter interval than a more urgent one, or a longer one than a multiple of it.

/** Limits of a group's interval, as multiples of that of the next more urgent group. */
interface PriorityLimits {
  /** σ: the multiple set for a group that would otherwise be more urgent than the one before it. At least 1. */
  readonly smallestMultiple: number;
  /** μ: the largest multiple allowed. At least σ, or the second rule would undo the first. */
  readonly biggestMultiple: number;
}

/**
 * Returns the intervals within the limits, most urgent group first, comparing each with the corrected one before it.
 * As in the paper σ is no minimum: a group at 1.01 times the one before stays there; one at 0.99 times is set to σ
 * times. Nothing limits the first group.
 */
export function checkPriorities(intervals: readonly number[], limits: PriorityLimits): number[] {
  const checked: number[] = [];
  for (const interval of intervals) checked.push(within(interval, checked.at(-1), limits));
  return checked;
}

/** Describes the invalid limit in a sentence; null if the limits are valid. */
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

// The encouragement of the scale-adaptable recrawl strategies (Xu et al., NPC 2010, section 3.1): a group whose tasks
// succeed more often than before the last reassignment tries a shorter interval.

interface ReassignmentInput {
  readonly groups: readonly GroupRecord[];
  /** The intervals in force. A group without channels keeps its own, and so do all groups before anything was downloaded. */
  readonly intervalSeconds: readonly number[];
  /** The `successRates` from the last reassignment. */
  readonly lastSuccessRates: readonly number[];
  /** δ: the factor applied to an interval, between 0 and 1. */
  readonly encourageRate: number;
  readonly limits: PriorityLimits;
}

/**
 * Multiplies intervals by δ where the success rate rose. The pseudocode never resets its counts, so that a group's
 * rate would be that of all groups up to it; the code follows the text, "the successRate of a PGP". A group without
 * submitted tasks (0 / 0) keeps its last rate.
 */
function encouraged(
  intervalSeconds: readonly number[],
  { groups, lastSuccessRates, encourageRate, limits }: ReassignmentInput,
): Reassignment {
  const before = (index: number) => lastSuccessRates[index] ?? 0;
  const successRates = groups.map(({ submitted, updates }, index) =>
    submitted > 0 ? updates / submitted : before(index),
  );
  const intervals = intervalSeconds.map((seconds, index) =>
    successRates[index]! > before(index) ? seconds * encourageRate : seconds,
  );
  return { intervalSeconds: checkPriorities(intervals, limits), successRates };
}

// Iterated capacity reassignment, ICR (Xu et al., NPC 2010, section 3.2): one factor θ stretches the initial
// intervals of all groups, so that planned recrawls take as many task threads as recent updates did.
//
// Let ω(j) be the multiple from group j's initial interval to that of group j + 1, Δt the first group's initial
// interval, and t the channels' mean download times. Then equation 4 is
//
// θ = Σ_k ( Σ_PGP(k) t / Π_{j<k} ω(j) ) / ( Δt · history(Σ λ·t) )
//
// and group k's interval is Π_{j<k} ω(j) · θ · Δt. Since Δt · Π_{j<k} ω(j) is group k's initial interval, ω itself is
// not needed: θ is the number of threads that the initial intervals require, divided by the number that the updates
// took.
//
// Equations 3 and 4 add "Π_{j=0}^{S-1} ω_j = 1", which would make intervals that grow from group to group shrink
// again. It is read as the convention that the empty product, that of group 0, is 1. "The record of each channel's
// previous L updates" is read as the updates since the last reassignment (λ = 1 / hInterval), of which the trigger
// ensures enough. A channel that never had an update has no download time, so it is in neither sum.

/**
 * Returns the groups' next intervals. `initialIntervalSeconds` are those that follow from change rates alone. Call it
 * when `isReassignmentDue`, with records since the last call.
 */
export function iteratedCapacity(
  input: ReassignmentInput & { readonly initialIntervalSeconds: readonly number[] },
): Reassignment {
  const theta = capacityFactor(input.groups, input.initialIntervalSeconds);
  if (theta === null) return encouraged(input.intervalSeconds, input);
  return encouraged(
    input.initialIntervalSeconds.map((seconds) => seconds * theta),
    input,
  );
}

/** θ of equation 4. Above 1 the fleet is too small for the initial intervals. Null if there is no history. */
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

// Iterated interval reassignment, IIR (Xu et al., NPC 2010, section 3.1, first pseudocode, there also called
// InheritedIntervalReassignment): each group's next interval is the mean of its channels' actual intervals between
// updates, shortened if the success rate rose, and in order of urgency.
//
// Where pseudocode and text differ, the code follows the text. The loop over channels ends at `C = number of
// channels`, one past the last; here each channel counts once. Counts are never reset (see `encouraged`). A channel
// without an update since the last reassignment has no interval.

/** Returns the groups' next intervals. Call it when `isReassignmentDue`, with records since the last call. */
export function iteratedInterval(input: ReassignmentInput): Reassignment {
  const measured = input.groups.map(
    (group, index) => group.hIntervalSeconds ?? input.intervalSeconds[index]!,
  );
  return encouraged(measured, input);
}
