/** Times as Node's timers take them: setTimeout ends at once what is longer, AbortSignal.timeout throws at a fraction. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Whole milliseconds, rounded up, and never more than a timer can wait (24.8 days): who waits for longer looks again then.
 * A time that is not a number waits that long, too, since a loop that waits for nothing takes the processor.
 */
export function timerMs(ms: number): number {
  return ms < longestTimerMs ? Math.max(0, Math.ceil(ms)) : longestTimerMs;
}
