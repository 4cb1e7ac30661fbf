/** The clock of downloads, which tests replace. */

import { setTimeout as delay } from "node:timers/promises";
import { timerMs } from "#core/timer-ms";

export interface Clock {
  now(): Date;
  after(ms: number, run: () => void): () => void;
  /** Rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  after: (ms, run) => {
    const timer = setTimeout(run, timerMs(ms));
    return () => clearTimeout(timer);
  },
  sleep: async (ms, signal) => await delay(timerMs(ms), undefined, { signal }),
};
