/**
 * When enough tries were made. Noise only ever adds to a round trip, so the smallest try is the best; when a
 * second one comes as close to it as clocks and paths allow, a third would teach nothing. A quiet path takes
 * two tries, a noisy moment as many as are allowed.
 */

/** Two tries that differ by no more than the larger of these are the same measurement. */
const sameWithinMs = 0.75;
const sameWithinShare = 0.02;

/** True when the two smallest times agree. */
export function triesAgree(rttsMs: readonly number[]): boolean {
  const [smallest, second] = rttsMs.toSorted((a, b) => a - b);
  if (smallest === undefined || second === undefined) return false;
  return second - smallest <= Math.max(sameWithinMs, sameWithinShare * smallest);
}
