/**
 * Makes durations acceptable to Node's timers: setTimeout fires at once if a duration is too long, and AbortSignal.timeout
 * throws for fractions.
 */

const longestTimerMs = 2 ** 31 - 1;

/**
 * Rounds up to whole milliseconds and caps at a timer's maximum (24.8 days), after which the caller checks again. NaN also
 * becomes the maximum, because a loop that does not wait would block the processor.
 */
export function timerMs(ms: number): number {
  return ms < longestTimerMs ? Math.max(0, Math.ceil(ms)) : longestTimerMs;
}

export async function within<T>(mostMs: number, work: Promise<T>): Promise<T | null> {
  let late: NodeJS.Timeout | undefined;
  const waited = new Promise<null>((resolve) => {
    late = setTimeout(() => resolve(null), timerMs(mostMs));
  });
  return await Promise.race([work, waited]).finally(() => clearTimeout(late));
}
