/** Keeps an index at the state of the database, for as long as it is wanted. */
import { setTimeout as delay } from "node:timers/promises";

/** The pause between two looks for changes. */
const followMs = 1000;
const longestPauseMs = 30_000;

/** All pages are read again now and then, because links and ranks change without them; by far most of the time is rest. */
const leastRestMs = 60_000;
const restPerRound = 50;

interface FollowPorts {
  /** Reads what has changed, or all pages. */
  readonly catchUp: (options: { readonly full: boolean }) => Promise<void>;
  /** Is called with the reason when it fails, and with null once it works again. */
  readonly onTrouble: (error: Error | null) => void;
  readonly signal?: AbortSignal;
}

export async function follow({ catchUp, onTrouble, signal }: FollowPorts): Promise<void> {
  let [pauseMs, nextRoundMs] = [followMs, 0];
  for (let full = false; !signal?.aborted; ) {
    const beganMs = performance.now();
    try {
      await catchUp({ full });
      // The first one may have read all pages, too.
      const tookMs = performance.now() - beganMs;
      if (full || nextRoundMs === 0)
        nextRoundMs = performance.now() + Math.max(leastRestMs, restPerRound * tookMs);
      if (pauseMs > followMs) onTrouble(null);
      pauseMs = followMs;
      full = performance.now() >= nextRoundMs;
    } catch (error) {
      if (signal?.aborted) return;
      onTrouble(error as Error);
      pauseMs = Math.min(longestPauseMs, 2 * pauseMs);
    }
    await delay(pauseMs, undefined, { ...(signal && { signal }) }).catch(() => {});
  }
}
