/** When a subnet that nobody could measure is probed again: soon at first, then less and less often. */

const firstMs = 5 * 60_000;
/** What has been silent for long is asked twice a day, so that it is found when it speaks again. */
const longestMs = 12 * 3_600_000;

/** The wait in ms after so many rounds in a row (1 and up) that nobody answered: doubled each time. */
export function retryWaitMs(unansweredRounds: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(30, Math.max(0, unansweredRounds - 1)));
}
