/**
 * The encouragement of the scale-adaptable recrawl strategies (Xu et al., NPC 2010, section 3.1): a group whose tasks
 * succeed more often than before the last reassignment is tried at a shorter interval.
 */
import type { GroupRecord, Reassignment } from "./priority-groups.ts";

export interface EncouragementInput {
  /** Most urgent group first. */
  readonly groups: readonly GroupRecord[];
  /** The `successRates` of the last reassignment. */
  readonly lastSuccessRates: readonly number[];
  /** δ: what an interval is multiplied with. Above 0, below 1. */
  readonly encourageRate: number;
}

/** Why δ makes no sense, in a sentence that names the value; null: it does. */
export function encourageRateFault(encourageRate: number): string | null {
  return encourageRate > 0 && encourageRate < 1
    ? null
    : `the encouragement (δ) is ${encourageRate}: it is a factor that shortens an interval, above 0 and below 1`;
}

/** Before the first reassignment, `LastSuccessRate` is 0, so that any success encourages. */
export function noSuccessRates(groups: number): number[] {
  return new Array<number>(groups).fill(0);
}

/**
 * The intervals, times δ where the success rate rose. The pseudocode never sets its counts to zero, neither before
 * the first group nor between groups, which would make a group's rate that of all groups up to it; the text defines it
 * as "the successRate of a PGP", and so it is here. A group that no task was submitted for (0 / 0) keeps its last rate.
 */
export function encourage(
  intervalSeconds: readonly number[],
  { groups, lastSuccessRates, encourageRate }: EncouragementInput,
): Reassignment {
  const successRates = groups.map(({ submitted, updates }, index) =>
    submitted > 0 ? updates / submitted : (lastSuccessRates[index] ?? 0),
  );
  const encouraged = intervalSeconds.map((seconds, index) =>
    successRates[index]! > (lastSuccessRates[index] ?? 0) ? seconds * encourageRate : seconds,
  );
  return { intervalSeconds: encouraged, successRates };
}
