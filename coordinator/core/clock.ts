/** Time for what waits: a monotonic clock and alarms. Tests turn one by hand. */
export interface AlarmClock {
  nowMs(): number;
  /** Calls back once, not before `delayMs` are over; returns how to call it off. */
  wake(delayMs: number, callback: () => void): () => void;
}

export const systemClock: AlarmClock = {
  nowMs: () => performance.now(),
  wake: (delayMs, callback) => {
    // Node's timers may fire a fraction of a millisecond early.
    const timer = setTimeout(callback, Math.ceil(delayMs) + 1);
    return () => clearTimeout(timer);
  },
};
